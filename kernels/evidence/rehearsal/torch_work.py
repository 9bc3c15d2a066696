"""torch's operations as a simulated card would be given them: what each moves and computes, and no result.

Inside `TorchWork` nobody reads what an operation makes (a clock only starts it), so none is computed: a
product of 2,048 rows would take this CPU a second each time. Its shape comes from torch's meta device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.flop_counter import flop_registry

from kernels.contract.devices import dtype_name
from kernels.contract.dispatch import Watch

_FOR_CPU = "_for_cpu"  # how torch calls what it runs in place of a kernel that has FLOPs in its registry


@dataclass(frozen=True)
class Operation:
    """One that a card would start a kernel for. moved: bytes, each tensor once. flops: of products only.

    dtype: of its first tensor, as the catalog calls it. data: where the largest tensor begins.
    """

    name: str
    moved: int
    flops: float
    dtype: str
    data: str


class TorchWork(Watch):
    """Inside, `tell` hears of each operation of torch's that a card would start a kernel for.

    wait: is called where an operation hands a number to Python, for which a program waits.
    """

    def __init__(self, tell: Callable[[Operation], None], wait: Callable[[], None]) -> None:
        super().__init__()
        self._tell, self._wait = tell, wait

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        schema, given = function._schema, _tensors((args, kwargs))
        if function is torch.ops.aten._local_scalar_dense.default:
            self._wait()
            return function(*args, **kwargs)
        only_looks = any(one.alias_info for one in schema.returns) and not schema.is_mutable
        if only_looks or function is torch.ops.aten._unsafe_view.default:
            return function(*args, **kwargs)
        made = _unmade(function, args, kwargs)
        if given and "empty" not in schema.name:  # memory costs no kernel
            self._tell(_operation(function, args, kwargs, made))
        return made


def _tensors(nested: Any) -> list[torch.Tensor]:
    return [x for x in tree_leaves(nested) if isinstance(x, torch.Tensor)]


def _operation(function: Any, args: Any, kwargs: Any, made: Any) -> Operation:
    touched = {id(x): x for x in _tensors((args, kwargs, made))}.values()
    sizes = {x: min(x.numel() * x.element_size(), x.untyped_storage().nbytes()) for x in touched}
    largest = max(sizes, key=sizes.__getitem__)
    return Operation(
        str(function),
        sum(sizes.values()),
        _flops(function, args, kwargs, made),
        dtype_name(next(iter(touched)).dtype),
        str(largest.data_ptr()),
    )


def _flops(function: Any, args: Any, kwargs: Any, made: Any) -> float:
    """By torch's own registry; 0 for what isn't in it, as elementwise operations are not."""
    packet = function._overloadpacket
    name = packet.__name__.removesuffix(_FOR_CPU)
    count = flop_registry.get(getattr(torch.ops.aten, name, packet))
    if count is None:
        return 0.0
    given = {key: value for key, value in kwargs.items() if key != "out"}
    return float(count(*args, **given, out_val=made))


def _unmade(function: Any, args: Any, kwargs: Any) -> Any:
    """What `function` returns, of the right shape, with whatever numbers; what it would write stays."""
    schema = function._schema
    written = [
        kwargs.get(one.name) if one.kwarg_only or i >= len(args) else args[i]
        for i, one in enumerate(schema.arguments)
        if one.alias_info and one.alias_info.is_write
    ]
    if written:
        if len(schema.returns) > 1:
            return function(*args, **kwargs)
        return written[0] if schema.returns else None
    imagined = {**kwargs, **({"device": "meta"} if "device" in kwargs else {})}
    try:
        made = function(
            *tree_map_only(torch.Tensor, _meta, args), **tree_map_only(torch.Tensor, _meta, imagined)
        )
    except (NotImplementedError, RuntimeError):  # torch can't say it without the numbers
        return function(*args, **kwargs)
    return tree_map_only(torch.Tensor, _empty, made)


def _meta(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(x.size(), x.stride(), dtype=x.dtype, device="meta")


def _empty(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(x.size(), x.stride(), dtype=x.dtype) if x.device.type == "meta" else x
