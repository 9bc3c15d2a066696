"""What launchers and plans refuse, in sentences that name the field, its value and the remedy.

Kernels write none of this: `refuse` reads their table of tensors, `planned` the arguments of a plan.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, TypeVar

import torch

from book import catalog
from book.catalog.dtypes import DTYPES
from kernels.contract import devices
from kernels.contract.axes import axes, length, names, solved
from kernels.contract.targets import Target
from kernels.contract.tensors import Tensor

Plans = TypeVar("Plans", bound=Callable[..., Any])
PLANNED = ("fp32", "fp16", "bf16")  # what plans are made for, unless a kernel says otherwise

# sizes that belong together: a condition on them, and why it must hold
GROUPED = {
    "heads % kv_heads == 0": "every KV head serves as many query heads as the others; make heads a multiple "
    "of kv_heads"
}


# ------------------------------------------------------------------------------------ sizes, plans


def sizes(**values: int) -> None:
    """Refuse sizes that are no whole number of at least 1."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(
                f"{name} = {value!r}: a size must be a whole number of at least 1; give {name} one."
            )


def constraints(conditions: Mapping[str, str], values: Mapping[str, int]) -> None:
    """Refuse sizes for which one of `conditions` (Python, on sizes: why) doesn't hold."""
    for condition, why in conditions.items():
        if not eval(condition, {"__builtins__": {}}, dict(values)):
            concerned = [name for name in values if name in compile(condition, "", "eval").co_names]
            raise ValueError(f"{', '.join(f'{name} = {values[name]}' for name in concerned)}: {why}.")


def dtype(name: str, target: Target, known: Sequence[str] = PLANNED) -> None:
    """Refuse a dtype that is none of `known`, or that `target` has no arithmetic for."""
    card = catalog.accelerator(target.accelerator)
    # the name of a mix of formats, "w4a16", is none that a card could lack
    usable = [d for d in known if d not in DTYPES or target.has(d)]
    if name not in known:
        raise ValueError(f"dtype = {name!r}: these kernels do not take it; use {either(usable)}.")
    if name not in usable:
        raise ValueError(
            f"dtype = {name!r}: {card.short_name} ({target.name}) has none; use {either(usable)}."
        )


def planned(
    *, dtypes: Sequence[str] = PLANNED, conditions: Mapping[str, str] | None = None
) -> Callable[[Plans], Plans]:
    """A plan function that refuses what can't be planned, and gets a dtype and a `Target`.

    The function underneath has sizes, then dtype and target, then what it likes. Whoever calls it
    may leave dtype out (what matrix kernels use here) and target (the device at hand; with no GPU,
    `devices.STAND_IN`) or name them. It raises ValueError for a size below 1, a condition that does
    not hold, a dtype or target that is not known, and a dtype that the target lacks.
    """

    def wrap(function: Plans) -> Plans:
        signature = inspect.signature(function)
        own = list(signature.parameters)
        counted = own[: own.index("dtype")]

        @functools.wraps(function)
        def plan(*args: Any, **named: Any) -> Any:
            given = signature.bind(*args, **named)
            given.apply_defaults()
            values = {name: given.arguments[name] for name in counted}
            sizes(**values)
            constraints(conditions or {}, values)
            target = devices.chip(given.arguments["target"])
            kind = given.arguments["dtype"] or devices.default_dtype()
            dtype(kind, target, dtypes)
            given.arguments.update(dtype=kind, target=target)
            return function(*given.args, **given.kwargs)

        return plan  # type: ignore[return-value]

    return wrap


# --------------------------------------------------------------------------------------- tensors


def refuse(
    kernel: str,
    table: Mapping[str, Tensor],
    given: Mapping[str, Any],
    kinds: Mapping[str, Mapping[str, Sequence[str]]],
    conditions: Mapping[str, str] | None = None,
) -> tuple[dict[str, int], str]:
    """The sizes and the dtype of these tensors; raises where `kernel` can't run on them.

    table: its tensors; given: those of a call, outputs left out. kinds: dtype -> slot -> the storage
    dtypes that it allows there. Raises TypeError for what is no tensor or of a wrong dtype,
    ValueError for a shape, device or layout, NoTriton where nothing can be launched.
    """
    present = {name: x for name, x in given.items() if not (x is None and table[name].optional)}
    for name, x in present.items():
        _kind(kernel, name, x, table[name])
    ours = {name: x for name, x in present.items() if not table[name].table}
    found = _dtype(kernel, table, ours, kinds)
    first, x = next(iter(ours.items()))
    for name, other in present.items():
        if other.device != x.device:
            raise ValueError(
                f"{name}.device = {other.device}, {first}.device = {x.device}: both must be on one device; "
                f"use {name}.to({first}.device)."
            )
    values = _sizes(kernel, table, present)
    for name, other in present.items():
        _layout(kernel, name, other, table[name])
    constraints(conditions or {}, values)
    _device(kernel, first, x)
    return values, found


def _kind(kernel: str, name: str, x: Any, tensor: Tensor) -> None:
    if not isinstance(x, torch.Tensor):
        remedy = f"torch.tensor({name}, dtype=torch.{tensor.dtype})" if tensor.table else "torch.as_tensor"
        raise TypeError(f"{name} = {type(x).__name__}: {kernel} needs a torch.Tensor; use {remedy}.")
    wanted = len(axes(tensor.shape))
    if x.ndim != wanted:
        raise ValueError(
            f"{name}.shape = {tuple(x.shape)}: {kernel} needs {_written(name, tensor)}, {wanted} "
            f"{'dimension' if wanted == 1 else 'dimensions'}; reshape it."
        )
    if x.numel() == 0:
        raise ValueError(
            f"{name}.shape = {tuple(x.shape)}: every size must be at least 1; {kernel} has nothing to do: "
            f"give {name} at least one of each."
        )
    if tensor.table and x.dtype not in (torch.int32, torch.int64):
        raise TypeError(
            f"{name}.dtype = {devices.dtype_name(x.dtype)}: {kernel} needs whole numbers; use "
            f"{name}.to(torch.{tensor.dtype})."
        )


def _dtype(
    kernel: str,
    table: Mapping[str, Tensor],
    given: Mapping[str, torch.Tensor],
    kinds: Mapping[str, Mapping[str, Sequence[str]]],
) -> str:
    """The experiment's dtype in which all tensors are stored as it wants them."""
    slots: dict[str, tuple[str, torch.dtype]] = {}  # slot -> who was first, and its dtype
    for name, x in given.items():
        allowed = {kind for slot in kinds.values() for kind in slot.get(table[name].dtype, ())}
        if x.dtype not in {devices.torch_dtype(kind) for kind in allowed}:
            own = [kind for kind, slot in kinds.items() if kind in slot.get(table[name].dtype, ())]
            best = next((d for d in ("fp16", "fp32") if d in allowed), next(iter(allowed)))
            remedy = str(devices.torch_dtype(best))
            raise TypeError(
                f"{name}.dtype = {devices.dtype_name(x.dtype)}: {kernel} runs in {either(own or allowed)}; "
                f"use {name}.to({remedy})."
            )
        first, kind = slots.setdefault(table[name].dtype, (name, x.dtype))
        if x.dtype != kind:
            raise _differ(name, x.dtype, first, kind)
    for found, slot in kinds.items():
        fits = {s: {devices.torch_dtype(k) for k in allowed} for s, allowed in slot.items()}
        if all(kind in fits[s] for s, (_, kind) in slots.items()):
            return found
    (first, kind), (other, another) = list(slots.values())[:2]
    raise _differ(other, another, first, kind)


def _differ(name: str, kind: torch.dtype, first: str, wanted: torch.dtype) -> TypeError:
    return TypeError(
        f"{name}.dtype = {devices.dtype_name(kind)}, {first}.dtype = {devices.dtype_name(wanted)}: both must "
        f"be the same; use {name}.to({first}.dtype)."
    )


def _sizes(kernel: str, table: Mapping[str, Tensor], given: Mapping[str, torch.Tensor]) -> dict[str, int]:
    """Every size that these tensors show; raises ValueError, with the remedy, where two disagree."""
    stored = {name: table[name].stored_axes(_storage(x)) for name, x in given.items()}
    values: dict[str, int] = {}
    origin: dict[str, str] = {}  # size -> the tensor that showed it
    for bare in (True, False):  # axes that are a size first, arithmetic on sizes after
        for name, x in given.items():
            for axis, n in zip(stored[name], x.shape, strict=True):
                if (axis in names(axis)) == bare and (shown := solved(axis, n, values)):
                    values[shown[0]] = shown[1]
                    origin[shown[0]] = name
    for name, x in given.items():
        for axis, n in zip(stored[name], x.shape, strict=True):
            if names(axis) <= set(values) and length(axis, values) != n:
                others = {s: values[s] for s in values if s in names(axis)}
                known = ", ".join(f"{s} = {v} of {origin[s]}" for s, v in others.items())
                wanted = tuple(length(a, values) if names(a) <= set(values) else a for a in stored[name])
                raise ValueError(
                    f"{name}.shape = {tuple(x.shape)}: {kernel} needs {_written(name, table[name])}, with "
                    f"{known} {_numbers(wanted)}; {_remedy(name, x, wanted, axis, length(axis, values))}."
                )
    return values


def _storage(x: torch.Tensor) -> str:
    """A dtype of as many bits; two numbers of four bits share a uint8."""
    return "int4" if x.dtype == torch.uint8 else devices.dtype_name(x.dtype)


def _remedy(name: str, x: torch.Tensor, wanted: Sequence[int | str], axis: str, value: int) -> str:
    """The transposition that would fit, if one does."""
    for i, j in combinations(range(x.ndim), 2):
        order = list(range(x.ndim))
        order[i], order[j] = j, i
        if all(isinstance(n, str) or x.shape[k] == n for k, n in zip(order, wanted, strict=True)):
            return f"pass {name}.T" if x.ndim == 2 else f"pass {name}.transpose({i}, {j})"
    hint = f", or pass {name}.T if it is stored the other way round" if x.ndim == 2 else ""
    return f"make its {axis} {value}{hint}"


def _layout(kernel: str, name: str, x: torch.Tensor, tensor: Tensor) -> None:
    if tensor.side_by_side and x.stride(-1) != 1 and x.shape[-1] > 1:
        raise ValueError(
            f"{name}.stride() = {x.stride()}: {kernel} needs numbers of {axes(tensor.shape)[-1]} side by "
            f"side; use {name}.contiguous()."
        )
    for axis, most in tensor.within.items():
        if x.stride(axes(tensor.shape).index(axis)) >= most:
            raise ValueError(
                f"{name}.stride() = {x.stride()}: {kernel} needs neighbours along {axis} less than {most:,} "
                f"numbers apart; use {name}.contiguous()."
            )


def _device(kernel: str, name: str, x: torch.Tensor) -> None:
    why_not = devices.why_not()
    if why_not:
        raise devices.NoTriton(why_not)
    if x.device.type != devices.device():
        raise ValueError(
            f"{name}.device = {x.device}: {kernel} runs on {devices.device()!r} here (Triton is "
            f"{devices.MODE}); use {name}.to({devices.device()!r})."
        )
    if devices.MODE == "interpreted" and x.dtype == torch.bfloat16:
        raise TypeError(
            f"{name}.dtype = bf16: Triton's interpreter multiplies bf16 wrongly; use {name}.half(): fp16 "
            "moves the same bytes (kernels.default_dtype() gives what fits the device)."
        )


def _written(name: str, tensor: Tensor) -> str:
    return f"{name}[{', '.join(axes(tensor.shape))}]"


def _numbers(wanted: Sequence[int | str]) -> str:
    return f"[{', '.join(map(str, wanted))}]"


def either(names_: Iterable[str]) -> str:
    """Choices in words: "fp32, fp16 or bf16"."""
    *most, last = [*names_] or ["another target"]
    return f"{', '.join(most)} or {last}" if most else last
