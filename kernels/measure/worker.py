"""The child process: does one piece of work and tells each result, as a line of JSON, when it has it.

    {"is": "begins", ...}               a kernel that it checks
    {"is": "at", "sizes": {...}}        what it begins; if it dies, that was why
    {"is": "point", "point": {...}}     a size, timed
    {"is": "beside", "sizes": {...}}    it is told, and the vendor's kernels are tried; it is told again then
    {"is": "left_out", ...}             it doesn't fit, or can't be done here
    {"is": "failed", ...}               it raised; "wrong" if the kernel's result was
    {"is": "lost", "reason": ...}       the card answers no more: the rest needs another process
    {"is": "done"}

The request is a line on standard input. Until it comes nothing of the card is used, so a child can
be started ahead of its work. When standard input ends, the parent is gone, and so is the child.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from kernels.contract.errors import PhysicsDisagrees, Unsupported
from kernels.contract.experiment import Experiment
from kernels.evidence import launch_overhead, timed
from kernels.evidence.addresses import find
from kernels.evidence.recorded import write
from kernels.evidence.sweeps import sweep
from kernels.evidence.timed.machine import facts, no_compiler
from kernels.evidence.timed.memory import TooLarge
from kernels.measure.bench import Bench, describe

Tell = Callable[..., None]


def answer(request: Mapping[str, Any], tell: Tell) -> None:
    """Do what is asked; every exception is told, none is raised."""
    try:
        if request["task"] == "describe":
            _describe(request, tell)
        else:
            bench = find(request["bench"])(request.get("cold"))
            with bench.inside():
                TASKS[request["task"]](request, bench, tell)
    except Exception as error:  # noqa: BLE001 - the parent notes it and goes on
        tell("failed", sizes=None, **_why(error))
    tell("done")


def _why(error: BaseException) -> dict[str, Any]:
    """The first line of an error with its kind; whether it says that a result was wrong."""
    line = str(error).strip().partition("\n")[0]
    if isinstance(error, (PhysicsDisagrees, Unsupported)):
        return {"reason": line, "wrong": isinstance(error, PhysicsDisagrees)}
    kind = type(error).__name__
    return {"reason": f"{kind}: {line}" if line else kind, "wrong": False}


def _describe(request: Mapping[str, Any], tell: Tell) -> None:
    here = find(request["describe"]) if request.get("describe") else describe
    device, reason = here()
    if not reason and device.torch_device == "cuda":
        reason = _no_driver()
    tell("device", device=facts(device) if device else None, reason=reason)


def _no_driver() -> str:
    """Why Triton can't start anything here, though there is a card; "" if it can."""
    from triton.runtime import driver

    try:
        driver.active.get_current_target()
    except Exception as error:  # noqa: BLE001 - a compiler's failure, in whatever form
        first = str(error).strip().partition("\n")[0].rstrip(".")
        return no_compiler().rstrip(".") or f"Triton's driver can't be built or loaded here ({first})"
    return ""


def _check(request: Mapping[str, Any], bench: Bench, tell: Tell) -> None:
    """One kernel after another: to start a process for each would take longer than most checks."""
    for asked in request["kernels"]:
        tell("begins", **asked)
        try:
            _check_one(asked, bench, tell)
        except Exception as error:  # noqa: BLE001 - told, and the other kernels are checked
            told = _why(error)
            del error  # it holds the frames, and they the tensors
            tell("failed", sizes=None, **told)
        if reason := bench.lost():
            tell("lost", reason=reason)
            return


def _check_one(asked: Mapping[str, Any], bench: Bench, tell: Tell) -> None:
    """Every size of the "counted" sweep, run poisoned on the device and compared with float64."""
    experiment, dtype = find(asked["experiment"]), asked["dtype"]
    errors = []
    for sizes in sweep(experiment, "counted"):
        tell("at", sizes=sizes)
        inputs = experiment.inputs(**sizes, dtype=dtype, device=bench.device.torch_device, seed=1)
        try:
            errors.append(timed.check(experiment, inputs, dtype))
        except PhysicsDisagrees as error:
            tell("checked", outcome={"dtype": dtype, "verdict": str(error), "sizes": sizes}, arithmetic="")
            return
    outcome = {"dtype": dtype, "verdict": "correct", "relative_error": max(errors), "runs": len(errors)}
    tell("checked", outcome=outcome, arithmetic=experiment.arithmetic(dtype))


def _ceilings(request: Mapping[str, Any], bench: Bench, tell: Tell) -> None:
    tops = timed.ceilings(bench.device, request["dtype"], bench.clock())
    tell("ceilings", dtype=request["dtype"], ceilings=write.ceilings_as_record(tops), clock=bench.facts)


def _points(request: Mapping[str, Any], bench: Bench, tell: Tell) -> None:
    experiment: Experiment = find(request["experiment"])
    tops, dtype = write.ceilings_of(request["ceilings"]), request["dtype"]

    def point(made: timed.Timed) -> None:
        tell("point", point=made.as_record(), began=made.began, ended=made.ended)

    def first(made: timed.Timed) -> None:
        """Ours is safe before a vendor's kernel is tried, which may hang, or take the process."""
        point(made)
        tell("beside", sizes=dict(made.sizes))

    options = {"baselines": request.get("baselines", True), "first": first}
    for sizes in request["sizes"]:
        tell("at", sizes=sizes)
        try:
            made = timed.measure(
                experiment, bench.device, dtype, sizes, bench.clock(), tops, request["budget"], **options
            )
        except Unsupported as error:
            memory = isinstance(error, TooLarge)
            tell("left_out", sizes=sizes, reason=str(error), memory=memory)
            continue
        except Exception as error:  # noqa: BLE001 - told, and the other sizes are measured
            told = _why(error)
            del error  # it holds the frames, and they the tensors
            tell("failed", sizes=sizes, **told)
            if reason := bench.lost():
                tell("lost", reason=reason)
                return
            continue
        point(made)
        if reason := bench.lost():  # a vendor's kernel may have done it
            tell("lost", reason=reason)
            return


def _launches(request: Mapping[str, Any], bench: Bench, tell: Tell) -> None:
    """What a launch costs; floors are those of the bandwidth just measured."""
    reached = request.get("bandwidth")
    with bench.timing():
        kept = launch_overhead.gpu(
            bench.device,
            bandwidth=tuple(reached) if reached else None,
            quick=request["quick"],
            on=bench.gpu,
            cold=(request.get("cold") or {}).get("kept"),
        )
    tell("launches", overhead=kept.as_record())


TASKS: dict[str, Callable[[Mapping[str, Any], Bench, Tell], None]] = {
    "check": _check,
    "ceilings": _ceilings,
    "points": _points,
    "launches": _launches,
}


def main() -> None:
    """Answer the one request that standard input holds."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a compiler or a library prints goes to standard error, not between the lines
    line = sys.stdin.readline()
    if not line:
        return
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def tell(kind: str, **told: Any) -> None:
        out.write(json.dumps({"is": kind, **told}) + "\n")
        out.flush()

    answer(json.loads(line), tell)


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    main()
