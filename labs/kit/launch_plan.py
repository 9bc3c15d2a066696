"""A plan: what a launcher would launch. It comes from foreign code, so nothing in it is believed.

`check` refuses a plan that could hurt the process that runs it, or that did its work elsewhere than
in a kernel. `run_submitted_code.py` writes plans, `run_kernels.py` runs them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from book.say import say

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


# What a grid has to be; whoever is told so learns more elsewhere, so others look for it.
GRID = say("give one to three sizes of at least 1")


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
        raise BadPlan(
            say(
                "the launcher's plan can't be read ({kind}: {error}).",
                kind=type(error).__name__,
                error=error,
            )
        ) from None


def _check(plan: Mapping[str, Any], kernels: Sequence[str], inputs: Mapping[str, Any]) -> dict[str, Any]:
    buffers = {b["id"]: b for b in (_buffer(b, inputs) for b in plan["buffers"])}
    if sum(b["bytes"] for b in buffers.values()) > MOST_BYTES:
        raise BadPlan(
            say(
                "it allocates more than {most} MiB; allocate what the result needs.",
                most=MOST_BYTES // 2**20,
            )
        )
    for name in inputs:
        if buffers[name]["fill"] == "host":
            raise BadPlan(
                say(
                    "{name} was changed on the host, by torch.{made_by}; leave it alone.",
                    name=name,
                    made_by=buffers[name]["made_by"],
                )
            )
    if len(plan["steps"]) > MOST_STEPS:
        raise BadPlan(
            say(
                "it launches {count} kernels; {most} at most.",
                count=len(plan["steps"]),
                most=MOST_STEPS,
            )
        )
    returned = buffers[plan["returns"]["buffer"]]
    made_by = f"torch.{returned['made_by']}"
    if returned["fill"] == "host":
        raise BadPlan(
            say(
                "the result was computed by {made_by}, not by your kernel; store it with tl.store.",
                made_by=made_by,
            )
        )
    if returned["fill"] == "input":
        raise BadPlan(say("the result is one of the inputs; allocate room for it with torch.empty."))
    steps = [_step(step, kernels, buffers) for step in plan["steps"]]
    if not any("kernel" in step for step in steps):
        raise BadPlan(say("no kernel was launched, so nothing can be in the result; launch yours."))
    returns = _view(plan["returns"], buffers)
    return {"buffers": list(buffers.values()), "steps": steps, "returns": returns}


def _buffer(buffer: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    name, fill = _word(buffer["id"], "id"), buffer["fill"]
    if name in inputs:
        fill = "host" if fill == "host" else "input"
    elif fill not in FILLS:
        raise BadPlan(
            say(
                "fill = {fill!r}: choose from {known}.",
                fill=str(fill)[:60],
                known=", ".join(FILLS),
            )
        )
    size = _whole(buffer["bytes"], "bytes")
    return {"id": name, "bytes": size, "fill": fill, "made_by": _word(buffer["made_by"], "made_by")}


def _step(step: Mapping[str, Any], kernels: Sequence[str], buffers: Mapping[str, Any]) -> dict[str, Any]:
    if "zero" in step:
        if buffers[step["zero"]]["fill"] == "input":
            raise BadPlan(
                say(
                    "{zero} was changed on the host, by torch.zero_; leave it alone.",
                    zero=step["zero"],
                )
            )
        return {"zero": buffers[step["zero"]]["id"]}
    if step["kernel"] not in kernels:
        raise BadPlan(
            say(
                "{kernel} is launched, and is no @triton.jit kernel of the graded cells.",
                kernel=step["kernel"],
            )
        )
    grid = [_whole(n, "grid") for n in step["grid"]]
    launch = say("{kernel} is launched on the grid {grid}", kernel=step["kernel"], grid=tuple(grid))
    if not 1 <= len(grid) <= 3 or min(grid) < 1:
        raise BadPlan(f"{launch}; {GRID}.")
    if math.prod(grid) > MOST_PROGRAMS:
        raise BadPlan(
            say(
                "{launch}; {most:,} programs at most.",
                launch=launch,
                most=MOST_PROGRAMS,
            )
        )
    for name, value in step["options"].items():
        if name not in ("num_warps", "num_stages") or not 1 <= _whole(value, name) <= 32:
            raise BadPlan(say("{name} = {value}: choose from 1 to 32.", name=name, value=value))
    args = {_word(n, "argument"): _argument(step["kernel"], n, a, buffers) for n, a in step["args"].items()}
    return {"kernel": step["kernel"], "grid": grid, "args": args, "options": dict(step["options"])}


def _argument(kernel: str, name: str, value: Mapping[str, Any], buffers: Mapping[str, Any]) -> dict[str, Any]:
    if "view" in value:
        buffer = buffers[value["view"]["buffer"]]
        if buffer["fill"] == "host":
            raise BadPlan(
                say(
                    "{kernel}: {name} was computed by torch.{made_by} on the host; pass the inputs "
                    "themselves, and let the kernel do the work.",
                    kernel=kernel,
                    name=name,
                    made_by=buffer["made_by"],
                )
            )
        return {"view": _view(value["view"], buffers)}
    if "tl" in value:
        if value["tl"] not in DTYPES:
            raise BadPlan(
                say(
                    "{kernel}: {name} = {dtype!r}: not a dtype that is known here.",
                    kernel=kernel,
                    name=name,
                    dtype=value["tl"],
                )
            )
        return {"tl": value["tl"]}
    scalar = value["scalar"]
    if isinstance(scalar, str):
        _word(scalar, name)
    elif not isinstance(scalar, int | float | None):
        raise BadPlan(say("{kernel}: {name}: a number was expected.", kernel=kernel, name=name))
    return {"scalar": scalar}


def _view(view: Mapping[str, Any], buffers: Mapping[str, Any]) -> dict[str, Any]:
    if view["dtype"] not in DTYPES:
        raise BadPlan(
            say(
                "dtype = {dtype!r}: choose from {known}.",
                dtype=view["dtype"],
                known=", ".join(DTYPES),
            )
        )
    shape = [_whole(n, "shape") for n in view["shape"]]
    strides = [_whole(n, "strides") for n in view["strides"]]
    offset = last = _whole(view["offset"], "offset")
    last += sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if 0 not in shape else 0
    if (last + 1) * getattr(torch, view["dtype"]).itemsize > buffers[view["buffer"]]["bytes"]:
        raise BadPlan(say("a view of {buffer} reaches past its end.", buffer=view["buffer"]))
    about = {"buffer": buffers[view["buffer"]]["id"], "dtype": view["dtype"]}
    return about | {"offset": offset, "shape": shape, "strides": strides}


def _word(value: Any, name: str) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_WORD:
        raise BadPlan(
            say(
                "{name} = {value!r}: a short text was expected.",
                name=name,
                value=str(value)[:60],
            )
        )
    return value


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**40:
        raise BadPlan(say("{name} = {value!r}: a whole number was expected.", name=name, value=value))
    return value
