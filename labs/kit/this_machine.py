"""The machine that a notebook runs on: its device, the dtype and sizes that fit, and what that means here."""

from __future__ import annotations

import html
from dataclasses import dataclass

import torch

import kernels
from book.drawing.number_text import gibibytes
from book.say import say
from kernels.contract import devices
from kernels.evidence.timed import machine

WORKING_SHARE = 0.25  # of the free memory that one tensor of the lab may take


@dataclass(frozen=True)
class ThisMachine:
    """mode: "gpu" (kernels are timed), "counted" (Triton's interpreter) or "no triton".

    dtype: what matrix kernels use here. largest: bytes that one tensor may have. words: the banner.
    """

    mode: str
    device: str
    name: str
    dtype: str
    largest: int
    words: tuple[str, ...]

    @property
    def torch_dtype(self) -> torch.dtype:
        """`dtype` as torch calls it."""
        return devices.TORCH_DTYPES[self.dtype]

    def _repr_html_(self) -> str:
        first, *rest = self.words
        lines = "".join(f"<br>{html.escape(line)}" for line in rest)
        return (
            '<div style="border-left:4px solid #3b7ddd;padding:.5em .9em;margin:.5em 0">'
            f"<b>{html.escape(first)}</b>{lines}</div>"
        )

    def __repr__(self) -> str:
        return "\n".join(self.words)


def look() -> ThisMachine:
    """Find the GPU, or say what happens without one. Nothing is installed or changed."""
    gpu, missing = machine.gpu_here(), devices.MODE == "missing"
    if gpu is None or missing:
        cpu = machine.cpu_here()
        words = [say("Triton is not installed: kernels can't run here.") if missing else say("No GPU here.")]
        if not missing:
            words.append(
                say("Kernels run in Triton's interpreter, slowly, and every byte they move is counted.")
            )
        if gpu is None:
            words.append(say("What is timed is timed with torch on this processor: {cpu}.", cpu=cpu.name))
        return ThisMachine(
            "no triton" if missing else "counted", "cpu", cpu.name, "fp16", 2**28, tuple(words)
        )
    dtype = kernels.default_dtype()
    words = [
        say(
            "{gpu}, {memory}, {free} free; kernels are compiled.",
            gpu=gpu.name,
            memory=gibibytes(gpu.memory_bytes),
            free=gibibytes(gpu.free_bytes),
        ),
        say(
            "Matrices are {dtype}. Checks count bytes in a second process, in Triton's interpreter.",
            dtype=dtype,
        ),
    ]
    if gpu.target == "sm_75":
        words.append(
            say(
                "This card is older than Triton's tensor-core code: your kernel is right here, but "
                "slow at arithmetic. The compute ceiling is measured with torch."
            )
        )
    words.append(
        say(
            "torch {torch} and Triton are the platform's own; nothing was installed.",
            torch=torch.__version__,
        )
    )
    return ThisMachine("gpu", "cuda", gpu.name, dtype, int(gpu.free_bytes * WORKING_SHARE), tuple(words))
