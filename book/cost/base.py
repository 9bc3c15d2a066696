"""What a cost is: FLOPs, and bytes named by tensor. The modules beside this one hold the operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Protocol


class Number(Protocol):
    """An int, a float, a numpy.ndarray or a sympy.Expr: whatever adds, multiplies and divides.

    What comes of it is Any, since no type says "the more general of the two". So a type checker finds
    a name, a None or a whole Cost in the place of a size, but not an int where an array was meant.
    """

    def __add__(self, other: Any, /) -> Any: ...
    def __radd__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __rsub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __rmul__(self, other: Any, /) -> Any: ...
    def __truediv__(self, other: Any, /) -> Any: ...
    def __rtruediv__(self, other: Any, /) -> Any: ...
    def __floordiv__(self, other: Any, /) -> Any: ...
    def __rfloordiv__(self, other: Any, /) -> Any: ...
    def __mod__(self, other: Any, /) -> Any: ...
    def __pow__(self, other: Any, /) -> Any: ...
    def __neg__(self) -> Any: ...
    def __int__(self) -> int: ...
    def __lt__(self, other: Any, /) -> Any: ...
    def __le__(self, other: Any, /) -> Any: ...
    def __gt__(self, other: Any, /) -> Any: ...
    def __ge__(self, other: Any, /) -> Any: ...


NOTHING: Mapping[str, Any] = MappingProxyType({})  # no bytes of any tensor
FP32_BYTES = 4  # partial sums are kept in fp32 whatever the operands are


@dataclass(frozen=True)
class Cost:
    """FLOPs and bytes of one operation, the bytes named by the tensor they belong to.

    flops: floating-point operations; a multiply and an add are two.
    reads, writes: bytes read from and written to memory, by tensor name.
    sent: bytes that one rank sends over its link to the others, by the name of the collective's
        tensor. It is traffic of another wire: no part of `bytes`, nor of `intensity`.
    workspace: names of the tensors that only this implementation needs (split-K partial sums).
    workspace_flops: FLOPs spent on them. They are reported beside `flops`, never inside it.
    """

    flops: Number
    reads: Mapping[str, Number] = field(default_factory=lambda: NOTHING)
    writes: Mapping[str, Number] = field(default_factory=lambda: NOTHING)
    workspace: frozenset[str] = frozenset()
    workspace_flops: Number = 0
    sent: Mapping[str, Number] = field(default_factory=lambda: NOTHING)

    __array_ufunc__ = None  # an array times a cost is a cost of arrays, not an array of costs

    def __post_init__(self) -> None:
        for name in ("reads", "writes", "sent"):
            terms = getattr(self, name)
            if type(terms) is not MappingProxyType:  # one is of this module, and has its own copy
                object.__setattr__(self, name, MappingProxyType(dict(terms)) if terms else NOTHING)

    @property
    def bytes(self) -> Number:
        """All bytes moved to and from memory, workspace included."""
        return sum(self.reads.values()) + sum(self.writes.values())

    @property
    def workspace_bytes(self) -> Number:
        """Bytes that a different implementation would not have moved."""
        return sum(
            terms[name] for terms in (self.reads, self.writes) for name in terms if name in self.workspace
        )

    @property
    def sent_bytes(self) -> Number:
        """All bytes that this rank sends; 0 if it does its work alone."""
        return sum(self.sent.values())

    @property
    def intensity(self) -> Number:
        """Arithmetic intensity: FLOP per byte of memory."""
        return self.flops / self.bytes

    def renamed(self, **names: str) -> Cost:
        """The same cost with tensors called otherwise, old=new: a part of a whole needs other names."""
        terms: dict[str, Any] = {
            verb: {names.get(name, name): size for name, size in getattr(self, verb).items()}
            for verb in ("reads", "writes", "sent")
        }
        workspace = frozenset(names.get(name, name) for name in self.workspace)
        return replace(self, **terms, workspace=workspace)

    def __add__(self, other: Cost) -> Cost:
        """The cost of doing both, tensor by tensor; terms of the same name add up."""
        if not isinstance(other, Cost):
            return NotImplemented
        return Cost(
            self.flops + other.flops,
            _merge(self.reads, other.reads),
            _merge(self.writes, other.writes),
            self.workspace | other.workspace,
            self.workspace_flops + other.workspace_flops,
            _merge(self.sent, other.sent),
        )

    def __mul__(self, times: Number) -> Cost:
        """The cost of doing it `times` times: of all layers, say. `times` is no cost itself."""
        if isinstance(times, Cost):
            return NotImplemented
        terms: dict[str, Any] = {
            verb: {name: size * times for name, size in getattr(self, verb).items()}
            for verb in ("reads", "writes", "sent")
        }
        return replace(self, flops=self.flops * times, workspace_flops=self.workspace_flops * times, **terms)

    __rmul__ = __mul__


def _merge(a: Mapping[str, Number], b: Mapping[str, Number]) -> Mapping[str, Number]:
    if not a or not b:
        return a or b
    return {name: a.get(name, 0) + b.get(name, 0) for name in [*a, *(n for n in b if n not in a)]}


def positive(**sizes: Number) -> None:
    """Refuse sizes below one. Symbols have no value yet, and pass."""
    for name, value in sizes.items():
        if getattr(value, "free_symbols", None):
            continue
        smallest = value.min() if hasattr(value, "min") and hasattr(value, "shape") else value
        if not smallest > 0:
            raise ValueError(f"{name} = {smallest}: a size must be at least 1; give {name} a positive value.")


def ceil_div(a: Number, b: Number) -> Number:
    """The least whole number that is at least a / b, for ints and integer arrays."""
    return -(-a // b)
