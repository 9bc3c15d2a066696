"""A plan: what a launcher would launch. It comes from foreign code, so nothing in it is believed.

`check` refuses a plan that could hurt the process that runs it, or that did its work elsewhere than
in a kernel. `run_submitted_code.py` writes plans, `run_kernels.py` runs them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

DTYPES = (
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "int32",
    "int64",
    "bool",
)  # as torch and Triton call them
MOST_BYTES = 256 * 2**20  # of all buffers of one plan
MOST_PROGRAMS = 20_000
MOST_STEPS = 200
FILLS = ("empty", "zeros", "host")
LONGEST_WORD = 1000  # characters of a scalar that is a string


class BadPlan(ValueError):
    """A plan that is refused; the message is for the author of the launcher."""


def check(
    plan: Mapping[str, Any], kernels: Sequence[str], inputs: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The plan, if it launches only `kernels`, on `inputs` and on room that it made; else raises BadPlan.

    inputs: the specification of each tensor that the launcher was given. What is returned holds only
    what was looked at, so nothing else of the original goes further.
    """
    try:
        return _check(plan, kernels, inputs)
    except BadPlan:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise BadPlan(f"the launcher's plan can't be read ({type(error).__name__}: {error}).") from None


def _check(plan: Mapping[str, Any], kernels: Sequence[str], inputs: Mapping[str, Any]) -> dict[str, Any]:
    buffers = {b["id"]: b for b in (_buffer(b, inputs) for b in plan["buffers"])}
    if sum(b["bytes"] for b in buffers.values()) > MOST_BYTES:
        raise BadPlan(f"it allocates more than {MOST_BYTES // 2**20} MiB; allocate what the result needs.")
    for name in inputs:
        if buffers[name]["fill"] == "host":
            raise BadPlan(
                f"{name} was changed on the host, by torch.{buffers[name]['made_by']}; leave it alone."
            )
    if len(plan["steps"]) > MOST_STEPS:
        raise BadPlan(f"it launches {len(plan['steps'])} kernels; {MOST_STEPS} at most.")
    returned = buffers[plan["returns"]["buffer"]]
    made_by = f"torch.{returned['made_by']}"
    if returned["fill"] == "host":
        raise BadPlan(f"the result was computed by {made_by}, not by your kernel; store it with tl.store.")
    if returned["fill"] == "input":
        raise BadPlan("the result is one of the inputs; allocate room for it with torch.empty.")
    steps = [_step(step, kernels, buffers) for step in plan["steps"]]
    if not any("kernel" in step for step in steps):
        raise BadPlan("no kernel was launched, so nothing can be in the result; launch yours.")
    returns = _view(plan["returns"], buffers)
    return {"buffers": list(buffers.values()), "steps": steps, "returns": returns}


def _buffer(buffer: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    name, fill = _word(buffer["id"], "id"), buffer["fill"]
    if name in inputs:
        fill = "host" if fill == "host" else "input"
    elif fill not in FILLS:
        raise BadPlan(f"fill = {str(fill)[:60]!r}: choose from {', '.join(FILLS)}.")
    size = _whole(buffer["bytes"], "bytes")
    return {"id": name, "bytes": size, "fill": fill, "made_by": _word(buffer["made_by"], "made_by")}


def _step(step: Mapping[str, Any], kernels: Sequence[str], buffers: Mapping[str, Any]) -> dict[str, Any]:
    if "zero" in step:
        if buffers[step["zero"]]["fill"] == "input":
            raise BadPlan(f"{step['zero']} was changed on the host, by torch.zero_; leave it alone.")
        return {"zero": buffers[step["zero"]]["id"]}
    if step["kernel"] not in kernels:
        raise BadPlan(f"{step['kernel']} is launched, and is no @triton.jit kernel of the graded cells.")
    grid = [_whole(n, "grid") for n in step["grid"]]
    launch = f"{step['kernel']} is launched on the grid {tuple(grid)}"
    if not 1 <= len(grid) <= 3 or min(grid) < 1:
        raise BadPlan(f"{launch}; give one to three sizes of at least 1.")
    if math.prod(grid) > MOST_PROGRAMS:
        raise BadPlan(f"{launch}; {MOST_PROGRAMS:,} programs at most.")
    for name, value in step["options"].items():
        if name not in ("num_warps", "num_stages") or not 1 <= _whole(value, name) <= 32:
            raise BadPlan(f"{name} = {value}: choose from 1 to 32.")
    args = {_word(n, "argument"): _argument(step["kernel"], n, a, buffers) for n, a in step["args"].items()}
    return {"kernel": step["kernel"], "grid": grid, "args": args, "options": dict(step["options"])}


def _argument(kernel: str, name: str, value: Mapping[str, Any], buffers: Mapping[str, Any]) -> dict[str, Any]:
    if "view" in value:
        buffer = buffers[value["view"]["buffer"]]
        if buffer["fill"] == "host":
            raise BadPlan(
                f"{kernel}: {name} was computed by torch.{buffer['made_by']} on the host; "
                "pass the inputs themselves, and let the kernel do the work."
            )
        return {"view": _view(value["view"], buffers)}
    if "tl" in value:
        if value["tl"] not in DTYPES:
            raise BadPlan(f"{kernel}: {name} = {value['tl']!r}: not a dtype that is known here.")
        return {"tl": value["tl"]}
    scalar = value["scalar"]
    if isinstance(scalar, str):
        _word(scalar, name)
    elif not isinstance(scalar, int | float | None):
        raise BadPlan(f"{kernel}: {name}: a number was expected.")
    return {"scalar": scalar}


def _view(view: Mapping[str, Any], buffers: Mapping[str, Any]) -> dict[str, Any]:
    if view["dtype"] not in DTYPES:
        raise BadPlan(f"dtype = {view['dtype']!r}: choose from {', '.join(DTYPES)}.")
    shape = [_whole(n, "shape") for n in view["shape"]]
    strides = [_whole(n, "strides") for n in view["strides"]]
    offset = last = _whole(view["offset"], "offset")
    last += sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if 0 not in shape else 0
    if (last + 1) * getattr(torch, view["dtype"]).itemsize > buffers[view["buffer"]]["bytes"]:
        raise BadPlan(f"a view of {view['buffer']} reaches past its end.")
    about = {"buffer": buffers[view["buffer"]]["id"], "dtype": view["dtype"]}
    return about | {"offset": offset, "shape": shape, "strides": strides}


def _word(value: Any, name: str) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_WORD:
        raise BadPlan(f"{name} = {str(value)[:60]!r}: a short text was expected.")
    return value


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**40:
        raise BadPlan(f"{name} = {value!r}: a whole number was expected.")
    return value
