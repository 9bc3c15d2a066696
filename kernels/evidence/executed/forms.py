"""Which instructions are known here, by their exact form, and how each is decoded.

A form is an instruction's name with all its suffixes. Arithmetic is a table of exact forms
(`arithmetic`); memory and matrix instructions are families, a regular expression that has to match
the whole form, and how many operands it may have. Whatever else a kernel holds is refused before anything
runs, all of it in one error: NotExecutable. Any other exception while decoding is a mistake in this folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernels.evidence.executed.ptx import BARRIERS, CONTROL, Instruction, Kernel, NotExecutable

Run = Callable[[Any, Any], None]
Maker = Callable[[Kernel, Instruction, re.Match], Run]


@dataclass(frozen=True)
class Family:
    """What decodes the forms of one pattern; operands: how many of them an instruction may have."""

    make: Maker
    operands: tuple[int, ...]


FAMILIES: dict[re.Pattern, Family] = {}


def family(pattern: str, *operands: int) -> Callable[[Maker], Maker]:
    """Registers what decodes the forms that match `pattern` as a whole, with that many operands."""

    def register(maker: Maker) -> Maker:
        FAMILIES[re.compile(pattern)] = Family(maker, operands)
        return maker

    return register


def family_of(form: str) -> tuple[Family, re.Match] | None:
    """What decodes this form, or None."""
    for pattern, one in FAMILIES.items():
        if found := pattern.fullmatch(form):
            return one, found
    return None


def decode(kernel: Kernel) -> Kernel:
    """Gives every instruction its `run`. Raises NotExecutable, naming all forms that are not known here."""
    unknown: dict[str, str] = {}
    known: dict[str, tuple[Family, re.Match] | None] = {}
    for place, one in enumerate(kernel.code):
        if one.form in CONTROL:
            if not _is_known(kernel, one):
                unknown.setdefault(f"{one.form} ({', '.join(one.operands)[:80]})", one.where)
            continue
        if one.form not in known:
            known[one.form] = family_of(one.form)
        try:
            one.run = guarded(kernel, place, _made(kernel, one, known[one.form]))
        except NotExecutable as error:
            what = str(error)
            unknown.setdefault(what if what.startswith(one.form) else f"{one.form} ({what})", one.where)
    if unknown:
        listed = "; ".join(f"{form} at {where}" for form, where in unknown.items())
        raise NotExecutable(f"{kernel.name}: {len(unknown)} instructions are not known here: {listed}.")
    return kernel


def _made(kernel: Kernel, one: Instruction, known: tuple[Family, re.Match] | None) -> Run:
    if known is None:
        raise NotExecutable(one.form)
    of, found = known
    if len(one.operands) not in of.operands:
        raise NotExecutable(f"{one.form} of {len(one.operands)} operands")
    return of.make(kernel, one, found)


def _is_known(kernel: Kernel, one: Instruction) -> bool:
    """Whether the scheduler can carry out this branch, return or barrier (of all threads, number 0)."""
    if one.form in BARRIERS:
        return one.predicate is None and one.operands in (("0",), ("0", str(kernel.threads)))
    if one.form.startswith("bra"):
        return one.operands[0] in kernel.labels
    return one.predicate is None or one.form in ("ret", "exit")


def guarded(kernel: Kernel, place: int, body: Run) -> Run:
    """`body`, of the instruction at this place, for the threads whose predicate holds."""
    predicate = kernel.code[place].predicate
    if predicate is None:
        return body
    register, negated = kernel.index[predicate[0]], predicate[1]

    def run(machine: Any, on: Any) -> None:
        holds = machine.registers[register]
        holds = ~holds if negated else holds
        if holds.all():
            return body(machine, on)
        live = machine.full(holds) if on is None else holds & on
        if machine.counts is not None:
            machine.counts.idle[place] += machine.warps(on) - machine.warps(live)
        if live.any():
            body(machine, live)
        return None

    return run
