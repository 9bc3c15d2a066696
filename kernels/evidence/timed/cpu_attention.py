"""Decode attention on the CPU that is here, timed with torch: heads that share a cache, and heads that don't.

The same numbers by the same function of torch, called in two ways. "one read a head": torch is told
which query heads share a KV head, and on a CPU walks through the cache once for each of them.
"packed": the query heads of a KV head are passed as rows of one query, and share the read. The
rung is "timed", on "this CPU, torch": torch's kernels, not ours, and no GPU's evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from book import cost
from kernels.contract.errors import PhysicsDisagrees
from kernels.evidence.timed.clocks import Clock, WallClock
from kernels.evidence.timed.cpu import ITEMSIZE, LABEL
from kernels.evidence.timed.machine import cpu_here

GROUPS = (1, 2, 4, 8)  # query heads of one KV head
PACKED, APART = "packed", "one read a head"
GAIN = 1.5  # at least so much faster must eight packed heads be than eight that read alone


@dataclass(frozen=True)
class CpuAttention:
    """What this CPU did, in fp32 with torch.

    points: for each number of query heads "heads", "intensity" by the formula (FLOP/byte), and by
    way of calling, PACKED and APART, the seconds of the quiet runs (20th percentile).
    """

    name: str
    threads: int
    batch: int
    kv_heads: int
    head_dim: int
    context: int
    points: tuple[dict[str, Any], ...]

    def growth(self, way: str) -> float:
        """How many times as long the most query heads take as the fewest."""
        return self.points[-1][way] / self.points[0][way]

    @property
    def gain(self) -> float:
        """How many times faster the most query heads are if they share their reads."""
        return self.points[-1][APART] / self.points[-1][PACKED]

    def check(self) -> None:
        """Raise PhysicsDisagrees unless sharing the read pays off clearly at the most query heads."""
        if not self.gain > GAIN:
            raise PhysicsDisagrees(
                f"{self.points[-1]['heads']} query heads packed ran {self.gain:.2f} times as fast as apart; "
                f"more than {GAIN} was expected. The usual cause is a busy machine: close other programs and "
                "run it again."
            )

    def _table(self) -> Any:
        from book.drawing.number_text import Column, si, table

        cells = [
            {
                "heads": p["heads"],
                "intensity": p["intensity"],
                **{way: si(p[way], "s") for way in (APART, PACKED)},
                "faster": f"{p[APART] / p[PACKED]:.1f}×",
            }
            for p in self.points
        ]
        columns = [
            Column("heads", "query heads"),
            Column("intensity", "FLOP/byte"),
            *(Column(way, way, align="right") for way in (APART, PACKED)),
            Column("faster", "packed is faster by", align="right"),
        ]
        return table(
            cells,
            columns,
            f"timed, {LABEL} ({self.name}, {self.threads} threads, fp32): {self.batch} sequence(s) of "
            f"{self.context:,} tokens, {self.kv_heads} KV heads of {self.head_dim}",
        )

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()

    def __repr__(self) -> str:
        return repr(self._table())


def cpu_attention(
    *,
    groups: tuple[int, ...] = GROUPS,
    batch: int = 1,
    kv_heads: int = 8,
    head_dim: int = 128,
    context: int = 16384,
    clock: Clock | None = None,
    budget: float = 0.15,
) -> CpuAttention:
    """Time decode attention with kv_heads * group query heads, both ways; about 3 seconds.

    groups: query heads of each KV head. The cache, 2 * batch * kv_heads * context * head_dim numbers
    of four bytes, must be larger than the CPU's own caches. budget: seconds of timing a point.
    Raises PhysicsDisagrees if the two ways give different results; says nothing about speed.
    """
    import torch

    clock = clock or WallClock()
    k, v = torch.randn(2, batch, kv_heads, context, head_dim)
    points = tuple(_point(torch, clock, budget, k, v, group) for group in groups)
    return CpuAttention(cpu_here().name, torch.get_num_threads(), batch, kv_heads, head_dim, context, points)


def _point(torch: Any, clock: Clock, budget: float, k: Any, v: Any, group: int) -> dict[str, Any]:
    batch, kv_heads, context, head_dim = k.shape
    attend = torch.nn.functional.scaled_dot_product_attention
    rows = torch.randn(batch, kv_heads, group, head_dim)  # the group in the place of queries
    alone = rows.reshape(batch, kv_heads * group, 1, head_dim)
    ways = {
        PACKED: lambda: attend(rows, k, v),
        APART: lambda: attend(alone, k, v, enable_gqa=group > 1),
    }
    if not torch.allclose(ways[PACKED]().reshape_as(alone), ways[APART](), rtol=1e-3, atol=1e-4):
        raise PhysicsDisagrees(
            f"{kv_heads * group} query heads: packed and apart give different results; they are the same "
            "attention. Try another version of torch."
        )
    work = cost.decode_attention(batch, kv_heads * group, kv_heads, head_dim, context, ITEMSIZE)
    seconds = {way: clock.time(run, budget).low for way, run in ways.items()}
    return {"heads": kv_heads * group, "intensity": work.intensity, **seconds}
