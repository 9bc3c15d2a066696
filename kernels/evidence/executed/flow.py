"""Where the number that an instruction gives goes: what in a kernel's text depends on it."""

from __future__ import annotations

from kernels.evidence.executed.ptx import Instruction, Kernel, vector

# Each thread by itself makes one register of others.
_OWN = frozenset(
    (
        *("mov", "cvt", "add", "sub", "mul", "fma", "mad", "neg", "abs", "min", "max", "div", "rem"),
        *("and", "or", "xor", "not", "shl", "shr", "selp", "setp", "prmt", "bfe"),
        *("ex2", "lg2", "rcp", "rsqrt", "sqrt", "tanh", "sin", "cos"),
    )
)


def goes_only_into_stores(kernel: Kernel, load: Instruction) -> bool:
    """Whether what this load gives is, by way of arithmetic, only stored to global memory, if anything.

    Not where it decides on a branch, a predicate or an address, or reaches another thread. Registers of one
    name are one here, whenever they are written: where that is too coarse, the answer is no.
    """
    known = _places(kernel, load.operands[0])
    while True:
        reached = set(known)
        for one in kernel.code:
            if known.isdisjoint(one.registers) or one is load:
                continue
            if one.predicate is not None and kernel.index.get(one.predicate[0]) in known:
                return False
            sources = _places(kernel, *one.operands[1:])
            if known.isdisjoint(sources):
                if one.form.startswith("st.") and not known.isdisjoint(_places(kernel, one.operands[0])):
                    return False  # an address
                continue
            name = one.form.partition(".")[0]
            if name in _OWN:
                reached |= _places(kernel, one.operands[0])
            elif not one.form.startswith("st.global") or not known.isdisjoint(
                _places(kernel, one.operands[0])
            ):
                return False
        if reached == known:
            return True
        known = reached


def _places(kernel: Kernel, *operands: str) -> set[int]:
    """Registers that these operands name."""
    names = [name.strip("[] ").partition("+")[0].strip() for text in operands for name in vector(text)]
    return {kernel.index[name] for name in names if name in kernel.index}
