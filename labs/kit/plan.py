"""A plan: what a launcher would launch. It comes from foreign code, so nothing in it is believed.

`check` refuses a plan that could hurt the process that runs it, or that did its work elsewhere than
in a kernel. `answering.py` writes plans, `replaying.py` runs them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

ITEMSIZE = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "int32": 4, "int64": 8, "bool": 1}
MOST_BYTES = 256 * 2**20  # of all buffers of one plan
MOST_PROGRAMS = 20_000
MOST_STEPS = 200


class BadPlan(ValueError):
    """A plan that is refused; the message is for the author of the launcher."""


def check(plan: Mapping[str, Any], kernels: Sequence[str], inputs: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise BadPlan unless `plan` launches only `kernels`, on `inputs` and on room that it made.

    inputs: the specification of each tensor that the launcher was given.
    """
    try:
        _check(plan, kernels, inputs)
    except (KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
        raise BadPlan(f"the launcher's plan can't be read ({type(error).__name__}: {error}).") from None


def _check(plan: Mapping[str, Any], kernels: Sequence[str], inputs: Mapping[str, Any]) -> None:
    buffers = {str(b["id"]): b for b in plan["buffers"]}
    if sum(_whole(b["bytes"], "bytes") for b in buffers.values()) > MOST_BYTES:
        raise BadPlan(f"it allocates more than {MOST_BYTES // 2**20} MiB; allocate what the result needs.")
    for name in inputs:
        if buffers[name]["fill"] == "host":
            raise BadPlan(
                f"{name} was changed on the host, by torch.{buffers[name]['made_by']}; leave it alone."
            )
    if len(plan["steps"]) > MOST_STEPS:
        raise BadPlan(f"it launches {len(plan['steps'])} kernels; {MOST_STEPS} at most.")
    launches = [step for step in plan["steps"] if "kernel" in step]
    for step in launches:
        _check_launch(step, kernels, buffers)
    returned = buffers[plan["returns"]["buffer"]]
    made_by = f"torch.{returned['made_by']}"
    if returned["fill"] == "host":
        raise BadPlan(f"the result was computed by {made_by}, not by your kernel; store it with tl.store.")
    if returned["fill"] == "input":
        raise BadPlan("the result is one of the inputs; allocate room for it with torch.empty.")
    if not launches:
        raise BadPlan("no kernel was launched, so nothing can be in the result; launch yours.")
    _check_view(plan["returns"], buffers)


def _check_launch(step: Mapping[str, Any], kernels: Sequence[str], buffers: Mapping[str, Any]) -> None:
    if step["kernel"] not in kernels:
        raise BadPlan(f"{step['kernel']} is launched, and is no @triton.jit kernel of the graded cells.")
    grid = [_whole(n, "grid") for n in step["grid"]]
    if not 1 <= len(grid) <= 3 or min(grid) < 1 or math.prod(grid) > MOST_PROGRAMS:
        raise BadPlan(
            f"{step['kernel']} is launched on the grid {tuple(grid)}; give one to three sizes of at least 1, "
            f"{MOST_PROGRAMS:,} programs at most."
        )
    for name, value in step["options"].items():
        if name not in ("num_warps", "num_stages") or not 1 <= _whole(value, name) <= 32:
            raise BadPlan(f"{name} = {value}: choose from 1 to 32.")
    for name, argument in step["args"].items():
        if "view" in argument:
            view = argument["view"]
            _check_view(view, buffers)
            buffer = buffers[view["buffer"]]
            if buffer["fill"] == "host":
                raise BadPlan(
                    f"{step['kernel']}: {name} was computed by torch.{buffer['made_by']} on the host; "
                    "pass the inputs themselves, and let the kernel do the work."
                )
        elif "tl" in argument:
            if argument["tl"] not in ITEMSIZE:
                raise BadPlan(
                    f"{step['kernel']}: {name} = {argument['tl']!r}: not a dtype that is known here."
                )
        elif not isinstance(argument["scalar"], int | float | bool | str | None):
            raise BadPlan(f"{step['kernel']}: {name}: a number was expected.")


def _check_view(view: Mapping[str, Any], buffers: Mapping[str, Any]) -> None:
    if view["dtype"] not in ITEMSIZE:
        raise BadPlan(f"dtype = {view['dtype']!r}: choose from {', '.join(ITEMSIZE)}.")
    shape = [_whole(n, "shape") for n in view["shape"]]
    strides = [_whole(n, "strides") for n in view["strides"]]
    last = _whole(view["offset"], "offset")
    last += sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if 0 not in shape else 0
    if (last + 1) * ITEMSIZE[view["dtype"]] > buffers[view["buffer"]]["bytes"]:
        raise BadPlan(f"a view of {view['buffer']} reaches past its end.")


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**40:
        raise BadPlan(f"{name} = {value!r}: a whole number was expected.")
    return value
