"""Which mode Triton is in, and what is said where kernels can't run. Each case is its own process."""

import os
import subprocess

from tests.kernels import with_torch


def _python(code: str, **environment: str) -> subprocess.CompletedProcess:
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    return with_torch.python(code, {**env, "CUDA_VISIBLE_DEVICES": "", **environment})


LAUNCH = """
import torch
from kernels import linear
try:
    linear.linear(torch.ones(2, 8).half(), torch.ones(8, 2).half())
    print("ran")
except Exception as error:
    print(type(error).__name__, error)
"""


def test_without_a_gpu_kernels_are_interpreted():
    done = _python("import kernels; print(kernels.MODE, kernels.device(), kernels.default_dtype())" + LAUNCH)
    assert done.stdout.splitlines() == ["interpreted cpu fp16", "ran"], done.stderr


def test_without_triton_everything_but_a_launch_works():
    done = _python(
        "import sys; sys.modules['triton'] = None\n"
        "import kernels; from kernels import fma_chain, linear, matmul, stream\n"
        "print(kernels.MODE, kernels.default_dtype(), linear.plan(1, 64, 64).block_m)" + LAUNCH
    )
    first, second = done.stdout.splitlines()
    assert first == "missing fp16 16", done.stderr
    assert second.startswith("NoTriton triton = not installed: this platform (")
    assert "pip install triton" in second


def test_triton_imported_before_in_the_wrong_mode_is_said_at_once_and_at_the_launch():
    done = _python("import triton, kernels" + LAUNCH)
    assert done.stdout.startswith("NoTriton TRITON_INTERPRET = unset or 0 when Triton was imported"), (
        done.stderr
    )
    assert "restart Python" in done.stdout
    assert "RuntimeWarning" in done.stderr


def test_counting_compiled_kernels_is_refused():
    done = _python(
        "from kernels import linear\nfrom kernels.evidence import counted\n"
        "counted.run(linear.experiment, m=1, k=8, n=8)",
        TRITON_INTERPRET="0",
    )
    assert "RuntimeError: Triton's mode = compiled: counting needs the interpreter" in done.stderr
