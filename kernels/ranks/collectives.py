"""The collectives of torch.distributed, each under its tensor's name, and every byte of them counted.

    y = collectives.all_reduce(y=y)              # in place of dist.all_reduce(y)

    with collectives.count() as link:            # counts whatever torch.distributed is asked for
        y = row_parallel(x, w)
    link.sent()                                  # {"y": bytes that this rank sends}

Counted is the payload that is handed to a collective, and what this rank sends of it if the ranks
pass it round a ring, walked here step by step and piece by piece (`book.cost.collectives` has the
closed form). What really crosses a wire is the library's choice; `kernels.ranks.wire` measures it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from kernels.contract.dispatch import Watch

_called: ContextVar[str] = ContextVar("_called", default="")


# ------------------------------------------------------------------------------- the collectives


def all_reduce(**named: torch.Tensor) -> torch.Tensor:
    """Add a tensor up over all ranks, in place, and return it: `all_reduce(y=y)`."""
    with _one(named) as x:
        dist.all_reduce(x)
        return x


def all_gather(*, dim: int = 0, **named: torch.Tensor) -> torch.Tensor:
    """All ranks' tensors side by side along `dim`, in the order of the ranks; all of one shape."""
    with _one(named) as x:
        parts = [torch.empty_like(x, memory_format=torch.contiguous_format) for _ in range(_ranks())]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts, dim)


def reduce_scatter(*, dim: int = 0, **named: torch.Tensor) -> torch.Tensor:
    """Add a tensor up over all ranks; each keeps its equal part along `dim`."""
    with _one(named) as x:
        parts = [part.contiguous() for part in x.chunk(_ranks(), dim)]
        mine = torch.empty_like(parts[dist.get_rank()])
        dist.reduce_scatter(mine, parts)
        return mine


def all_to_all(**named: torch.Tensor) -> torch.Tensor:
    """Part i of every rank's tensor, cut equally along its first dimension, to rank i; in their order."""
    with _one(named) as x:
        received = torch.empty_like(x, memory_format=torch.contiguous_format)
        dist.all_to_all_single(received, x.contiguous())
        return received


def broadcast(source: int = 0, **named: torch.Tensor) -> torch.Tensor:
    """Rank `source`'s tensor to all others, in place of theirs."""
    with _one(named) as x:
        dist.broadcast(x, source)
        return x


def send(to: int, **named: torch.Tensor) -> None:
    """A tensor to rank `to`, which has to call `receive`."""
    with _one(named) as x:
        dist.send(x, to)


def receive(source: int, **named: torch.Tensor) -> torch.Tensor:
    """What rank `source` sends, in place of this tensor."""
    with _one(named) as x:
        dist.recv(x, source)
        return x


def _ranks() -> int:
    return dist.get_world_size()


@contextlib.contextmanager
def _one(named: dict[str, torch.Tensor]) -> Iterator[torch.Tensor]:
    """The one tensor of a collective; while it runs, its name is the one that is counted under."""
    if len(named) != 1:
        raise TypeError(f"named = {list(named)}: a collective takes one tensor, under its name; say y=y.")
    name, x = next(iter(named.items()))
    token = _called.set(name)
    try:
        yield x
    finally:
        _called.reset(token)


# ----------------------------------------------------------------------------------- the counts


@dataclass(frozen=True)
class Call:
    """One collective on one rank. payload, sent: bytes of the tensor, and what of it this rank sends."""

    collective: str
    tensor: str
    payload: int
    sent: int


class Link(Watch):
    """What this rank hands to collectives, call by call, in `calls`.

    torch sends every collective through its dispatcher, so that none can be forgotten, whoever asks
    for it. One that was not asked for by name is counted under the collective's own.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []

    def sent(self) -> dict[str, int]:
        """Bytes that this rank sends, by tensor."""
        return self._by_tensor("sent")

    def payload(self) -> dict[str, int]:
        """Bytes that were handed to collectives, by tensor: the whole tensor, once a call."""
        return self._by_tensor("payload")

    def _by_tensor(self, what: str) -> dict[str, int]:
        total: dict[str, int] = {}
        for call in self.calls:
            total[call.tensor] = total.get(call.tensor, 0) + getattr(call, what)
        return total

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch imports its compiler to leave it out: two seconds in every rank

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """See one operation of torch, note it if it is a collective, and let it go on."""
        if func.namespace in ("c10d", "_c10d_functional"):
            self._note(func, dict(zip((a.name for a in func._schema.arguments), args, strict=False)))
        return func(*args, **(kwargs or {}))

    def _note(self, func: Any, given: dict[str, Any]) -> None:
        operator = func._schema.name.partition("::")[2]
        if operator in _FREE:
            return
        if operator not in _RULES:
            raise NotImplementedError(
                f"{func._schema.name}: what it sends is not counted here; use all_reduce, all_gather, "
                "reduce_scatter, all_to_all, broadcast, send or recv of torch.distributed."
            )
        name, rule = _RULES[operator]
        group = dist.ProcessGroup.unbox(given["process_group"])
        payload, sent = rule(given, group.rank(), group.size())
        self.calls.append(Call(name, _called.get() or name, payload, sent))


def count() -> Link:
    """A new count, for a `with` block."""
    return Link()


# Each rule: (arguments of the operator, rank, ranks) -> (payload, sent), in bytes.


def _size(x: torch.Tensor) -> int:
    return x.numel() * x.element_size()


def _cut(x: torch.Tensor, ranks: int) -> list[int]:
    """Bytes of the pieces of a tensor: equal but for a number more in the first ones."""
    numbers = (x.numel() // ranks + (i < x.numel() % ranks) for i in range(ranks))
    return [n * x.element_size() for n in numbers]


def _walk(pieces: Sequence[int], rank: int, steps: int) -> int:
    """What `rank` sends to its right in so many steps: its own piece, then what came from the left."""
    return sum(pieces[(rank - step) % len(pieces)] for step in range(steps))


def _all_reduce(given: dict[str, Any], rank: int, ranks: int) -> tuple[int, int]:
    # n - 1 steps to add up, after which the piece to the right is done here, and n - 1 to hand out
    pieces = [_cut(x, ranks) for x in given["tensors"]]
    sent = sum(_walk(p, rank, ranks - 1) + _walk(p, rank + 1, ranks - 1) for p in pieces)
    return sum(map(_size, given["tensors"])), sent


def _gather(pieces: list[int], rank: int, ranks: int) -> tuple[int, int]:
    return sum(pieces), _walk(pieces, rank, ranks - 1)


def _scatter(pieces: list[int], rank: int, ranks: int) -> tuple[int, int]:
    # rank's own piece has to arrive last, so it is the one that rank never sends
    return sum(pieces), _walk(pieces, rank - 1, ranks - 1)


def _exchange(pieces: list[int], rank: int) -> tuple[int, int]:
    return sum(pieces), sum(pieces) - pieces[rank]


def _to_all(given: dict[str, Any], rank: int, ranks: int) -> tuple[int, int]:
    x, rows = given["input"], given.get("input_split_sizes")
    row = _size(x) // max(len(x), 1)
    return _exchange([n * row for n in rows] if rows else [_size(x) // ranks] * ranks, rank)


def _broadcast(given: dict[str, Any], rank: int, ranks: int) -> tuple[int, int]:
    size = sum(map(_size, given["tensors"]))
    last = (given["root_rank"] - 1) % ranks  # of the ring that begins at the source
    return size, 0 if rank == last else size


_FREE = {"barrier", "monitored_barrier_"}
_RULES: dict[str, tuple[str, Callable[[dict[str, Any], int, int], tuple[int, int]]]] = {
    "allreduce_": ("all_reduce", _all_reduce),
    "allgather_": ("all_gather", lambda g, r, n: _gather([_size(x) for x in g["output_tensors"][0]], r, n)),
    "_allgather_base_": ("all_gather", lambda g, r, n: _gather([_size(g["input_tensor"])] * n, r, n)),
    "reduce_scatter_": (
        "reduce_scatter",
        lambda g, r, n: _scatter([_size(x) for x in g["input_tensors"][0]], r, n),
    ),
    "_reduce_scatter_base_": (
        "reduce_scatter",
        lambda g, r, n: _scatter([_size(g["output_tensor"])] * n, r, n),
    ),
    "alltoall_base_": ("all_to_all", _to_all),
    "alltoall_": ("all_to_all", lambda g, r, n: _exchange([_size(x) for x in g["input_tensors"]], r)),
    "broadcast_": ("broadcast", _broadcast),
    "send": ("send", lambda g, r, n: (sum(map(_size, g["tensors"])),) * 2),
    "recv_": ("receive", lambda g, r, n: (sum(map(_size, g["tensors"])), 0)),
}
