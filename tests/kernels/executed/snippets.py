"""PTX of a few lines as a kernel that runs: what the tests of single instructions share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernels.evidence.executed import machine, ptx
from kernels.evidence.executed.forms import decode
from kernels.evidence.executed.memory import GlobalMemory

UINT = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
LETTER = {"rd": 64, "rh": 16, "rb": 8, "r": 32}  # of registers, as ptxas's own output names them


def text(body: str, *, threads: int = 32, parameters: Sequence[str] = ("u64", "u64", "u64")) -> str:
    """A kernel around these lines; registers %r0 to %r299, %rd, %rh, %rb and predicates %p are declared."""
    listed = ", ".join(f".param .{kind} snippet_param_{i}" for i, kind in enumerate(parameters))
    registers = "\n".join(f".reg .b{bits} %{letter}<300>;" for letter, bits in LETTER.items())
    return f"""
.version 8.7
.target sm_90a
.address_size 64
.file 1 "/somewhere/snippet.py"
.visible .entry snippet({listed})
.reqntid {threads}
{{
.reg .pred %p<20>;
{registers}
.loc 1 7 3
{body}
}}
"""


def kernel(body: str, **options: Any) -> ptx.Kernel:
    """These lines, decoded."""
    return decode(ptx.read(text(body, **options)))


def run(
    body: str,
    *tensors: np.ndarray,
    threads: int = 32,
    grid: tuple[int, int, int] = (1, 1, 1),
    shared: int = 0,
    **options: Any,
) -> machine.Outcome:
    """Runs these lines over a grid; their parameters are the tensors, into which results are written back.

    `tensor0` and so on are what a message calls them.
    """
    memory = GlobalMemory()
    places = [memory.put(f"tensor{i}", one.reshape(-1).view(np.uint8)) for i, one in enumerate(tensors)]
    snippet = kernel(body, threads=threads, parameters=["u64"] * len(tensors))
    outcome = machine.launch(snippet, memory, grid, places, shared, **options)
    for place, one in zip(places, tensors, strict=True):
        one.reshape(-1).view(np.uint8)[:] = memory.get(place, one.nbytes)
    return outcome


def here(threads: int = 32, *, body: str, programs: int = 1, shared: int = 0, **options: Any) -> Any:
    """A machine at the first of these lines, whose registers a test may set."""
    races = options.pop("races", False)
    one = kernel(body, threads=threads, **options)
    grid = (programs, 1, 1)
    return machine.Machine(
        one, GlobalMemory(), np.arange(programs), grid, shared, {}, machine.Counts(), races, None
    )


def put(state: Any, registers: Mapping[str, np.ndarray]) -> None:
    """Bits for registers, which broadcast to [programs, threads]."""
    for name, values in registers.items():
        state.registers[state.kernel.index[name]] = np.atleast_2d(values)


def get(state: Any, name: str) -> np.ndarray:
    """A register's bits, [programs, threads]."""
    return state.full(state.registers[state.kernel.index[name]])


def step(state: Any, on: np.ndarray | None = None) -> None:
    """Runs the lines one after another: for code without branches."""
    with np.errstate(all="ignore"):
        for one in state.kernel.code:
            state.now = one
            if one.run is not None:
                one.run(state, on)


def results(form: str, result: int, operands: Sequence[np.ndarray]) -> np.ndarray:
    """What an instruction makes of bits, one lane each; result: its width, 1 for a predicate.

    operands: arrays of one length, bool or uint; "d, a, b" is the order of all instructions here.
    """
    count = -(-len(operands[0]) // 32) * 32
    names = {8: "%rb", 16: "%rh", 32: "%r", 64: "%rd"}
    used = []
    for i, values in enumerate(operands):
        used.append(f"%p{i}" if values.dtype == bool else f"{names[values.dtype.itemsize * 8]}{i}")
    out = "%p9" if result == 1 else f"{names[result]}9"
    state = here(count, body=f"{form} {', '.join([out, *used])};")
    padded = [np.resize(values, count) for values in operands]
    put(state, dict(zip(used, padded, strict=True)))
    step(state)
    found = get(state, out)[0, : len(operands[0])]
    assert found.dtype == (bool if result == 1 else UINT[result]), f"{form}: a register of another width"
    return found
