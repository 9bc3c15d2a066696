"""What launchers and plans refuse, in sentences that name the field, its value and the remedy.

Kernels write none of this: `refuse` reads their table of tensors, `planned` the arguments of a plan.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from numbers import Integral
from typing import Any, TypeVar

import torch

from book import catalog
from book.catalog.dtypes import DTYPES
from kernels.contract import devices
from kernels.contract.axes import axes, length, names, solved
from kernels.contract.targets import Target
from kernels.contract.tensors import Tensor, bits

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
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
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


_changes: list[Callable[[Any], Any]] = []


@contextlib.contextmanager
def replanned(change: Callable[[Any], Any]) -> Iterator[None]:
    """Inside, every plan is what `change` makes of it: large tiles are tried on small tensors that way."""
    _changes.append(change)
    try:
        yield
    finally:
        _changes.remove(change)


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

        @functools.lru_cache(maxsize=4096)  # a launcher asks the same again and again
        def checked(here: Target, *args: Any, **named: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
            # `here` is what no target, and no dtype, means now: another chip may be imagined next
            given = signature.bind(*args, **named)
            given.apply_defaults()
            values = {name: given.arguments[name] for name in counted}
            sizes(**values)
            constraints(conditions or {}, values)
            target = devices.chip(given.arguments["target"])
            kind = given.arguments["dtype"] or devices.default_dtype()
            dtype(kind, target, dtypes)
            given.arguments.update(dtype=kind, target=target)
            return given.args, given.kwargs

        @functools.wraps(function)
        def plan(*args: Any, **named: Any) -> Any:
            args, named = checked(devices.this_chip(), *args, **named)
            made = function(*args, **named)
            for change in _changes:
                made = change(made)
            return made

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
    stored = {name: _stored(x, table[name], kinds[found]) for name, x in present.items()}
    values = _sizes(kernel, table, present, stored)
    for name, other in present.items():
        _layout(kernel, name, other, table[name])
    constraints(conditions or {}, values)
    for name, other in ours.items():
        _device(kernel, name, other)
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
        allowed = _allowed(table[name], kinds)
        if x.dtype not in {devices.torch_dtype(kind) for kind in allowed}:
            raise TypeError(
                f"{name}.dtype = {devices.dtype_name(x.dtype)}: {kernel} runs in {either(allowed)}; "
                f"{_convert(name, x, allowed)}."
            )
        first, kind = slots.setdefault(table[name].dtype, (name, x.dtype))
        if x.dtype != kind:
            raise _differ(name, x.dtype, first, kind)
    for found, slot in kinds.items():
        fits = {s: {devices.torch_dtype(k) for k in slot.get(s, (s,))} for s in slots}
        if all(kind in fits[s] for s, (_, kind) in slots.items()):
            return found
    (first, kind), (other, another) = list(slots.values())[:2]
    raise _differ(other, another, first, kind)


def _allowed(tensor: Tensor, kinds: Mapping[str, Mapping[str, Sequence[str]]]) -> list[str]:
    """The dtypes that a tensor may be stored in: its slot's, or the fixed one that it names."""
    found = [kind for slot in kinds.values() for kind in slot.get(tensor.dtype, ())]
    return list(dict.fromkeys(found)) or [tensor.dtype]


def _convert(name: str, x: torch.Tensor, allowed: Sequence[str]) -> str:
    """What to do about a dtype that is none of `allowed`."""
    if all(bits(kind) < 8 for kind in allowed):
        return f"use it packed, {8 // bits(allowed[0])} numbers of {allowed[0]} in each torch.uint8"
    if x.dtype == torch.uint8 and "fp8" in allowed:
        return f"use {name}.view(torch.float8_e4m3fn) if these are its bytes"
    best = next((d for d in ("fp16", "fp32") if d in allowed), allowed[0])
    return f"use {name}.to({devices.torch_dtype(best)})"


def _stored(x: torch.Tensor, tensor: Tensor, slots: Mapping[str, Sequence[str]]) -> str:
    """The dtype that this tensor is stored in, among those that its slot may have."""
    allowed = slots.get(tensor.dtype, (tensor.dtype,))
    return next((kind for kind in allowed if devices.torch_dtype(kind) == x.dtype), allowed[0])


def _differ(name: str, kind: torch.dtype, first: str, wanted: torch.dtype) -> TypeError:
    return TypeError(
        f"{name}.dtype = {devices.dtype_name(kind)}, {first}.dtype = {devices.dtype_name(wanted)}: both must "
        f"be the same; use {name}.to({first}.dtype)."
    )


def _sizes(
    kernel: str,
    table: Mapping[str, Tensor],
    given: Mapping[str, torch.Tensor],
    stored: Mapping[str, str],
) -> dict[str, int]:
    """Every size that these tensors show; raises ValueError, with the remedy, where two disagree.

    Where tensors disagree on a size, the one that most of them show is believed.
    """
    written = {name: table[name].stored_axes(stored[name]) for name in given}
    values: dict[str, int] = {}
    origin: dict[str, str] = {}  # size -> the first tensor that showed what is believed of it
    shown: dict[str, list[tuple[int, str]]] = {}
    for name, x in given.items():
        for axis, n in zip(written[name], x.shape, strict=True):
            if axis in names(axis):
                shown.setdefault(axis, []).append((n, name))
    for axis, votes in shown.items():
        counts = Counter(n for n, _ in votes)
        values[axis], origin[axis] = max(votes, key=lambda vote: counts[vote[0]])
    for name, x in given.items():  # arithmetic on sizes: what is left to find
        for axis, n in zip(written[name], x.shape, strict=True):
            if axis not in names(axis) and (found := solved(axis, n, values)):
                values[found[0]], origin[found[0]] = found[1], name
    for name, x in given.items():
        own = {size for size, votes in shown.items() if {who for _, who in votes} == {name}}
        for axis, n in zip(written[name], x.shape, strict=True):
            if names(axis) <= set(values) and length(axis, values) != n:
                known = ", ".join(f"{s} = {values[s]} of {origin[s]}" for s in values if s in names(axis))
                free = {size for size in names(axis) if origin[size] == name}
                if free and free < names(axis):  # it was solved from this tensor: say what it must be made of
                    known += f" ({axis} = {length(axis, values)})"
                wanted = tuple(
                    a if names(a) <= own or not names(a) <= set(values) else length(a, values)
                    for a in written[name]
                )
                remedy = _remedy(name, x, wanted, axis, length(axis, values))
                doubted = next((origin[s] for s in names(axis) if _tied(shown.get(s, ()))), "")
                if doubted and remedy != f"pass {name}.T":  # a weight stored transposed is what it usually is
                    remedy += f"; or {doubted}, with {tuple(given[doubted].shape)}, is the one to mend"
                raise ValueError(
                    f"{name}.shape = {tuple(x.shape)}: {kernel} needs {_written(name, table[name])}, with "
                    f"{known}, so {_numbers(wanted)}; {remedy}."
                )
    return values


def _tied(votes: Sequence[tuple[int, str]]) -> bool:
    """Whether two values of a size are shown by equally many tensors."""
    best = Counter(n for n, _ in votes).most_common(2)
    return len(best) == 2 and best[0][1] == best[1][1]


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
    if tensor.written and any(n > 1 and step == 0 for n, step in zip(x.shape, x.stride(), strict=True)):
        raise ValueError(
            f"{name}.stride() = {x.stride()}: {kernel} writes {name} in place, where several of its "
            f"numbers are one place in memory; give {name} memory of its own, {name}.contiguous()."
        )
    for axis, most in tensor.within.items():
        place = axes(tensor.shape).index(axis)
        if x.shape[place] > 1 and x.stride(place) >= most:
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
