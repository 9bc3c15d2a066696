"""How the answers of lab 2 are judged: the product, the bytes it moves, and what it compiles to.

Every judge returns a table of "yours", "theirs" and the difference, and one sentence about the first
thing to mend. It looks at outputs and counted bytes only, so any kernel that does the work passes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from book import cost
from book.say import say
from labs.kit.ask_and_answer import Answer, Ask, CallsAnswer, KernelAnswer, Run
from labs.kit.question import Draw, Verdict
from labs.lab2_linear import wrong_products as wrong
from labs.lab2_linear.cases import ITEMSIZE, ROWS, stored

TENSORS = (("x", "reads"), ("w", "reads"), ("y", "writes"))


def _kernel(answers: Mapping[str, Answer]) -> tuple[KernelAnswer, Verdict | None]:
    answer = answers["linear"]
    failed = Verdict(False, wrong.said(answer.error)) if answer.error else None
    return answer, failed


def _verdict(comments: list[str], rows: list[Mapping[str, Any]], right: str = "") -> Verdict:
    first = next(filter(None, comments), "")
    return Verdict(not first, first or right, tuple(rows))


def compulsory(run: Run) -> dict[str, int]:
    """Bytes of each tensor that no kernel can do without: the formula of the book."""
    formula = cost.linear(**run.case.sizes, itemsize=ITEMSIZE)
    return {**formula.reads, **formula.writes}


def _size(run: Run) -> str:
    return " × ".join(f"{size:,}" for size in run.case.sizes.values())


# ---------------------------------------------------------------------------------- the product


def product(answers: Mapping[str, Answer], asks: Mapping[str, Ask], draw: Draw) -> Verdict:
    """Right to within the rounding of the result."""
    answer, failed = _kernel(answers)
    if failed:
        return failed
    rows = []
    for run in answer.runs:
        ways = [f"{name} {how}" for name, a in run.case.inputs.items() if (how := stored(a)) != ROWS]
        error = wrong.relative_error(run)
        rows.append(
            {
                "m × k × n": _size(run),
                "stored": ", ".join(ways) or ROWS,
                "your error": say("no result")
                if run.error
                else say("not a number")
                if math.isnan(error)
                else f"{error:.1e}",
                "allowed": f"{wrong.TOLERANCE:.0e}",
            }
        )
    return _verdict([wrong.why(run) for run in answer.runs], rows)


def bounds(answers: Mapping[str, Answer], asks: Mapping[str, Ask], draw: Draw) -> Verdict:
    """No access outside a tensor, by a kernel that reads all of x and w and writes all of y."""
    answer, failed = _kernel(answers)
    if failed:
        return failed
    rows, comments = [], []
    for run in answer.runs:
        found = wrong.outside(run.error)
        seen = (
            say("{tensor}, element {element:,}", tensor=found[0], element=found[1])
            if found
            else say("not run")
            if run.error
            else say("nothing")
        )
        rows.append({"m × k × n": _size(run), "touched outside": seen, "theirs": say("nothing")})
        comments.append(f"{run.case}: {wrong.said(run.error)}" if run.error else _untouched(run))
    return _verdict(comments, rows)


def _untouched(run: Run) -> str:
    for (name, verb), size in zip(TENSORS, compulsory(run).values(), strict=True):
        have = run.bytes(name, verb)
        if have < size:
            what = "read" if verb == "reads" else "written"
            return say(
                "{case}: {name}: {missing:,} of its {all:,} numbers are never {what}; cover the "
                "last tile of each side too (triton.cdiv rounds up), and mask only what lies "
                "outside.",
                case=run.case,
                name=name,
                missing=(size - have) // ITEMSIZE,
                all=size // ITEMSIZE,
                what=what,
            )
    return ""


# ------------------------------------------------------------------------------------ the bytes


def once(answers: Mapping[str, Answer], asks: Mapping[str, Ask], draw: Draw) -> Verdict:
    """w is asked for exactly once, by a kernel whose product is right."""
    answer, failed = _kernel(answers)
    if failed:
        return failed
    rows, comments = [], [wrong.why(run) for run in answer.runs]
    for run in answer.runs:
        theirs, yours = compulsory(run)["w"], run.bytes("w", "reads", "block")
        rows.append(_row(run, "w", yours, theirs))
        if not run.error and yours != theirs:
            often = _too_often("w", yours / theirs, run.case.sizes["m"])
            comments.append(f"{run.case}: {_again(run, 'w', often)}")
        comments.append(_copied(run, theirs))
    return _verdict(comments, rows, say("each byte of w is asked for once"))


def _copied(run: Run, size: int) -> str:
    """Partial sums are written once, read once, and at one row far smaller than w; a copy of w isn't."""
    kept, read = run.bytes("scratch", "writes"), run.bytes("scratch", "reads", "block")
    like_w = kept == size or (run.case.sizes["m"] == 1 and kept >= size)
    if like_w or read > run.bytes("scratch", "writes", "block"):
        return say(
            "{case}: scratch: {kept:,} bytes are written and {read:,} read; scratch is for partial "
            "sums, each read once, and a copy of w is traffic like w itself.",
            case=run.case,
            kept=kept,
            read=read,
        )
    return ""


def _again(run: Run, name: str, often: str) -> str:
    """How often it was read, and what the trace says of a part of it that was read more than the rest."""
    part = next((words for words in run.extra if words.startswith(f"{name},")), "")
    return say("{often} {part}", often=often, part=part) if part else often


def _too_often(name: str, times: float, m: int = 0) -> str:
    if times < 1:
        return say("{name} was read {times:.2f} times: part of it is never read.", name=name, times=times)
    if name == "w" and m == 1:  # one row has one row of tiles, however low they are
        return say(
            "w was read {times:.1f} times: each piece is loaded more than once, or programs overlap.",
            times=times,
        )
    why = {
        "w": say(
            "every further row of tiles reads all of it again; up to 64 rows one tile must be as high as m"
        ),
        "x": say("every further column of tiles reads all of it again"),
        "y": say("programs overlap, or add to it with atomics; give each element of y one program"),
    }[name]
    if name == "y":
        return say("{tensor} was written {times:.1f} times: {why}.", tensor=name, times=times, why=why)
    return say("{tensor} was read {times:.1f} times: {why}.", tensor=name, times=times, why=why)


def _row(run: Run, name: str, yours: float, theirs: float | None) -> dict[str, Any]:
    """Bytes of one tensor: yours, theirs, the difference, and how many times that is."""
    return {
        "m × k × n": _size(run),
        "tensor": name,
        "yours": f"{yours:,.0f} B" if yours == int(yours) else f"{yours:,.2f} B",
        "theirs": None if theirs is None else f"{theirs:,} B",
        "difference": None if theirs is None else f"{yours - theirs:+,.0f} B".replace("-", "−"),
        "times": f"{yours / theirs:.2f}" if theirs else None,
    }


def distinct(answers: Mapping[str, Answer], asks: Mapping[str, Ask], draw: Draw) -> Verdict:
    """Distinct bytes of x, w and y equal the formula; y is written once. Scratch is named, not punished."""
    answer, failed = _kernel(answers)
    if failed:
        return failed
    rows, comments = [], [wrong.why(run) for run in answer.runs]
    for run in answer.runs:
        formula = compulsory(run)
        for name, verb in TENSORS:
            rows.append(_row(run, name, run.bytes(name, verb), formula[name]))
        scratch = run.bytes("scratch", "reads") + run.bytes("scratch", "writes")
        if scratch:
            rows.append(_row(run, say("scratch (yours to use)"), scratch, None))
        comments += [] if run.error else [_untouched(run), _wide(run), _rewritten(run, formula["y"])]
    return _verdict(comments, rows, say("the formula, to the byte"))


def _wide(run: Run) -> str:
    if run.bytes("y", "writes") == 2 * compulsory(run)["y"]:
        return say(
            "{case}: y has four bytes a number, as float32 has; allocate it in the dtype of x.",
            case=run.case,
        )
    return ""


def _rewritten(run: Run, size: int) -> str:
    block = run.bytes("y", "writes", "block")
    if block != size:
        return f"{run.case}: {_too_often('y', block / size)}"
    changed = next((name for name in ("x", "w") if run.bytes(name, "writes")), "")
    if not changed:
        return ""
    return say("{case}: {changed} is written to; leave the inputs alone.", case=run.case, changed=changed)


def own_traffic(answers: Mapping[str, Answer], asks: Mapping[str, Ask], draw: Draw) -> Verdict:
    """Their formula for the bytes that their kernel asks for, against what it asked for."""
    answer, failed = _kernel(answers)
    formula: CallsAnswer = answers["traffic"]
    if failed or formula.error:
        return failed or Verdict(False, wrong.said(formula.error))
    rows, comments = [], []
    for run, (value, error) in zip(answer.runs, formula.returns, strict=True):
        if run.error or error:
            comments.append(f"{run.case}: {wrong.said(run.error or f'traffic: {error}')}")
            continue
        counted = {name: run.bytes(name, verb, "block") for name, verb in TENSORS}
        yours = {name: _number(value.get(name)) for name in counted} if isinstance(value, dict) else {}
        if not yours or None in yours.values():
            comments.append(
                say(
                    "{case}: traffic returned {value}; give bytes for x, w and y, by name.",
                    case=run.case,
                    value=str(value)[:80],
                )
            )
            continue
        rows += [_row(run, name, yours[name], counted[name]) for name in counted]
        comments += [_untouched(run), _wide(run)]
        if yours != counted:
            comments.append(f"{run.case}: {_formula_mistake(run, yours, counted)}")
    return _verdict(comments, rows, say("your formula and your kernel agree, to the byte"))


def _formula_mistake(run: Run, yours: Mapping[str, float], counted: Mapping[str, int]) -> str:
    least = compulsory(run)
    if all(2 * yours[name] == counted[name] for name in counted):
        return say("you counted numbers; each has two bytes.")
    for unit, size in (("kB", 1000), ("KiB", 1024), ("MB", 1e6), ("MiB", 2**20)):
        if all(math.isclose(size * yours[name], counted[name], rel_tol=1e-9) for name in counted):
            return say("those are {unit}; give bytes.", unit=unit)
    if dict(yours) == least:
        return say("those are the distinct bytes; count a tile of x again for every program that loads it.")
    times = {name: counted[name] / least[name] for name in counted}
    if (yours["x"], yours["w"]) == (times["w"] * least["x"], times["x"] * least["w"]):
        return say(
            "the two factors are the wrong way round: x is read once for each column of tiles, and "
            "w once for each row of tiles."
        )
    name = next(name for name in counted if yours[name] != counted[name])
    said = say(
        "{name}: you say {yours:,.0f} bytes, and the kernel asks for {counted:,}",
        name=name,
        yours=yours[name],
        counted=counted[name],
    )
    if yours[name] != int(yours[name]) or (yours[name] / least[name]) % 1:
        if yours[name] > counted[name]:
            return say(
                "{said}: lanes that are masked off move nothing, so count only what lies inside.",
                said=said,
            )
        return say("{said}: there is a whole number of tiles; round up.", said=said)
    if name == "y":
        return say("{said}: how many programs store each byte of {name}?", said=said, name=name)
    loads = say("{said}: how many programs load each byte of {name}?", said=said, name=name)
    return _again(run, name, loads)


def _number(value: Any) -> float | None:
    good = isinstance(value, int | float) and not isinstance(value, bool)
    return value if good and abs(value) < 1e18 and value == value else None


# --------------------------------------------------------------------------------- the compiler


def compiles(answers: Mapping[str, Answer], asks: Mapping[str, Ask], draw: Draw) -> Verdict:
    """Compiles for real chips, with their matrix instruction, and keeps its sums in registers.

    How it ran in the interpreter is other questions' business.
    """
    answer, failed = _kernel(answers)
    if failed:
        return failed
    rows, comments = [], []
    refused = next((run.error for run in answer.runs if run.error), say("it was not compiled."))
    for target in asks["linear"].targets:
        facts = answer.compiled.get(target, refused)
        if isinstance(facts, str):
            comments.append(f"{target}: {wrong.said(facts)}")
            continue
        for one in facts:
            rows.append(
                {
                    "chip": target,
                    "kernel": one["kernel"],
                    "matrix instruction": one["instruction"],
                    "registers": one["registers"],
                    "spilled": f"{one['spill_bytes']} B",
                }
            )
            if one["spill_bytes"]:
                comments.append(
                    say(
                        "{target}: {kernel} spills {spilled} bytes a thread to memory: choose a "
                        "smaller tile, or more warps.",
                        target=target,
                        kernel=one["kernel"],
                        spilled=one["spill_bytes"],
                    )
                )
        if all(one["instruction"] == "none" for one in facts):
            comments.append(
                say(
                    "{target}: no matrix instruction: multiply the two tiles with tl.dot.",
                    target=target,
                )
            )
    return _verdict(comments, rows)
