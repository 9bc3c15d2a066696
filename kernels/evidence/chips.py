"""The rungs "executed" and "compiled" of chips that are not here: which, at which sizes, how it went.

Both are asked of child processes (`kernels.evidence.child_process`), which `confirm` starts before it counts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from book import catalog
from book.say import say
from kernels.contract import devices
from kernels.contract.errors import CardRefuses, CompilerAtFault, NotExecutable
from kernels.contract.experiment import Experiment
from kernels.contract.targets import TARGETS
from kernels.evidence import compiled as compiling
from kernels.evidence import executed as executing

RUNGS: Mapping[str, Any] = {"compiled": compiling, "executed": executing}
EASY = 2e8  # FLOP of what is executed for one chip after the other
# (experiment, target's name, sizes), as `executed.cases` and `compiled.cases` take them
Cases = list[tuple[Experiment, str, dict[str, int]]]


def cases(rung: str, experiment: Experiment, rows: Sequence[dict[str, int]], card: Any) -> Cases:
    """What a rung says of chips: every size for the card's architecture, for the others one of them."""
    if devices.MODE == "missing":
        return []
    able = RUNGS[rung].targets_of(experiment)
    own = next((name for name in able if _stands_for(name, card)), None)
    if own is None and rung == "executed" and able:  # a table needs a chip at every size
        own = devices.STAND_IN if devices.STAND_IN in able else able[0]
    mine = [(experiment, own, row) for row in rows] if own else []
    last = _side_by_side(experiment, rows) if rung == "executed" else rows[-1]
    return mine + [(experiment, name, last) for name in able if name != own]


def _side_by_side(experiment: Experiment, rows: Sequence[dict[str, int]]) -> dict[str, int]:
    """The size at which all chips are executed: the last that takes each of them no more than a second."""
    small = [row for row in rows if experiment.cost(**row).flops <= EASY]
    return small[-1] if small else rows[0]


def shared_out(chips: Mapping[str, Cases]) -> list[list[dict[str, Any]]]:
    """Requests for two child processes, one for each core of a small machine: a chip's with one of them,
    so that what is compiled for it is compiled once, and the chip of every size apart from the others.
    Where other notebooks run on the other cores, one child has them all: it imports torch once.
    """
    asked = [one for rung in ("compiled", "executed") for one in RUNGS[rung].requests(chips.get(rung, []))]
    jobs = os.environ.get("BOOK_JOBS", "")
    if asked and (os.cpu_count() or 1) < 2 * (int(jobs) if jobs.isdecimal() else 1):
        return [asked]
    own = asked[0]["target"] if asked else ""
    lists = ([one for one in asked if (one["target"] == own) is mine] for mine in (True, False))
    return [some for some in lists if some]


def executed(wanted: Cases, card: Any = None) -> tuple[tuple[executing.Executed, ...], str]:
    """The rows, each checked, and how the rung stands; card: whose own code somebody wants to see."""
    if devices.MODE == "missing":
        return (), say("not run: {reason}", reason=devices.why_not())
    if not wanted:
        return (), say("not run: no chip whose code can be executed here has its formats")
    made, refused = _attempts(wanted)
    if not made:
        return (), say("not run: {reason}", reason=next(iter(refused.values())))
    words = _how_executed(made)
    for name, reason in refused.items():
        words = say(
            "{words}. Not executed for {target}: {reason}",
            words=words,
            target=_with_card(name),
            reason=reason,
        )
    if own := _own_not_executed(wanted, card):
        words = say("{own} {words}", own=own, words=words)
    return made, words


def _attempts(wanted: Cases) -> tuple[tuple[executing.Executed, ...], dict[str, str]]:
    """The rows there are, and why there is none of a target: its code has what is not known here yet."""
    try:
        return executing.cases(wanted), {}
    except CardRefuses:
        raise
    except NotExecutable:
        pass  # one of them: the others are asked for one by one
    made: list[executing.Executed] = []
    refused: dict[str, str] = {}
    for one in wanted:
        try:
            made += executing.cases([one])
        except CardRefuses:
            raise
        except NotExecutable as error:
            refused.setdefault(one[1], str(error))
    return tuple(made), refused


def _own_not_executed(wanted: Cases, card: Any) -> str:
    """That the chosen card's own code was not executed but other chips' was: a sentence, or ""."""
    if card is None or any(_stands_for(name, card) for _, name, _ in wanted):
        return ""
    own = next((name for name in TARGETS if _stands_for(name, card)), "")
    if not own:
        return say("The {card}'s own code was not executed.", card=card.short_name)
    return say("The {card}'s own code ({target}) was not executed.", card=card.short_name, target=own)


def _how_executed(made: tuple[executing.Executed, ...]) -> str:
    """For which chips, how right, and what was looked for; each row is checked."""
    faults = []
    for row in made:
        try:
            row.check()
        except CompilerAtFault as fault:
            faults.append(str(fault))
    targets, right = _targets(made, name=_with_card), _how_right(made)
    if faults:
        return say(
            "{count} runs on this CPU of what is compiled for {targets}; {right}, no access outside the "
            "tensors' memory. But {fault}",
            count=len(made),
            targets=targets,
            right=right,
            fault=faults[0],
        )
    return say(
        "{count} runs on this CPU of what is compiled for {targets}; {right}, no data race, no access "
        "outside the tensors' memory",
        count=len(made),
        targets=targets,
        right=right,
    )


def _how_right(rows: Sequence[executing.Executed]) -> str:
    dtype = ", ".join(dict.fromkeys(row.dtype for row in rows))
    worst = max(row.relative_error for row in rows)
    if not worst:
        return say("exact in {dtype}", dtype=dtype)
    allowed = max(row.tolerance for row in rows)
    return say(
        "right to {worst:.1e} in {dtype} ({allowed:g} allowed)", worst=worst, dtype=dtype, allowed=allowed
    )


def side_by_side(rows: Sequence[executing.Executed]) -> list[executing.Executed]:
    """Those of the size at which most chips were executed, in the order of their architectures."""
    sizes = [row.sizes for row in rows]
    shared = max(sizes, key=lambda one: (sizes.count(one), sizes.index(one)))
    return sorted(
        (row for row in rows if row.sizes == shared), key=lambda row: list(TARGETS).index(row.target)
    )


def compiled(experiment: Experiment, wanted: Cases) -> tuple[tuple[compiling.Compiled, ...], str]:
    """The main kernels' rows, and how the rung stands. Raises PhysicsDisagrees for what fits no card."""
    if devices.MODE == "missing":
        return (), say("not run: {reason}", reason=devices.why_not())
    made = compiling.cases(wanted)
    for row in made:
        if not row.fits:  # nobody can launch it, so nothing else that is said of it matters
            row.check()
    # A launch may start helper kernels (the sum of split-K partials): the table shows the main one.
    main, seen = [], set()
    for row in made:
        key = (row.target, tuple(row.sizes.items()))
        if key not in seen:
            seen.add(key)
            main.append(row)
    spilled = sorted(
        {say("{kernel} on {target}", kernel=row.kernel, target=row.target) for row in made if row.spills}
    )
    targets = _targets(made)
    if spilled:
        words = say("for {targets}; spills in {kernels}", targets=targets, kernels=", ".join(spilled))
    else:
        words = say("for {targets}; no spills", targets=targets)
    if without := _without_tensor_cores(experiment, made):
        words = say(
            "{words}; no tensor-core instruction on {targets}", words=words, targets=", ".join(without)
        )
    return tuple(main), words


def _targets(rows: Sequence[Any], name: Callable[[str], str] = str) -> str:
    found = {row.target for row in rows}
    return ", ".join(name(one) for one in TARGETS if one in found)


def _with_card(name: str) -> str:
    """As in "H100 SXM (sm_90)"."""
    return f"{catalog.accelerator(TARGETS[name].accelerator).short_name} ({name})"


def _without_tensor_cores(experiment: Experiment, made: Sequence[compiling.Compiled]) -> list[str]:
    """Targets on which a matrix kernel multiplies without them, although they have its dtype's."""
    if experiment.unit != "matrix":
        return []
    used = {row.target for row in made if row.instruction != "none" or row.dtype == "fp32"}
    return [name for name in dict.fromkeys(row.target for row in made) if name not in used]


def _stands_for(name: str, card: Any) -> bool:
    return catalog.accelerator(TARGETS[name].accelerator).compute_capability == card.compute_capability
