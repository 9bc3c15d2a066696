"""Decode attention on the CPU that is here, timed with torch: heads that share a cache, and heads that don't.

The same numbers by the same function of torch, called in two ways. "one read a head": torch is told
which query heads share a KV head, and on a CPU walks through the cache once for each of them.
"packed": the query heads of a KV head are passed as rows of one query, and share the read. The
rung is "timed", on "this CPU, torch": torch's kernels, not ours, and no GPU's evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from book.drawing.number_text import si
from book.drawing.tables import Column, Table, table
from book.say import say
from kernels.evidence import tables
from kernels.evidence.timed.clocks import Clock, Gain, WallClock, gain
from kernels.evidence.timed.cpu import APART, LABEL, PACKED, attention
from kernels.evidence.timed.machine import cpu_here

GROUPS = (1, 2, 4, 8)  # query heads of one KV head
GAIN = 1.5  # at least so much faster are eight packed heads than eight that read alone, if it shows


@dataclass(frozen=True)
class CpuAttention:
    """What this CPU did, in fp32 with torch.

    points: for each number of query heads "heads", "intensity" by the formula (FLOP/byte), and by
    way of calling, PACKED and APART, a Timing. The quiet runs (20th percentile) are compared.
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
        return self.points[-1][way].low / self.points[0][way].low

    @property
    def gain(self) -> Gain:
        """How many times faster the most query heads are if they share their reads."""
        return gain(self.points[-1][APART], self.points[-1][PACKED])

    @property
    def finding(self) -> str:
        """What the times say of heads that share a read, whatever it is."""
        few, many = (self.points[i]["heads"] for i in (0, -1))
        grown = say(
            "{times:.3g} times the query heads took {apart:.1f} times as long with one read a head, and "
            "{packed:.1f} times as long packed.",
            times=many / few,
            apart=self.growth(APART),
            packed=self.growth(PACKED),
        )
        return f"{grown} {self._verdict(many)}"

    def _verdict(self, heads: int) -> str:
        shown, times = self.gain.above(GAIN), self.gain.likely
        if shown:
            return say(
                "Of {heads} heads the packed ones were {times:.1f} times faster.", heads=heads, times=times
            )
        if shown is None:
            return say(
                "The times scatter too much to tell whether packing {heads} heads pays: this machine was too "
                "busy to show it.",
                heads=heads,
            )
        return say(
            "So on this machine packing {heads} heads hardly pays with torch ({times:.2f} times as fast): "
            "either its kernel shares the read by itself, or something else than memory holds it up.",
            heads=heads,
            times=times,
        )

    def table(self) -> Table:
        """One row for each number of query heads."""
        cells = [
            {
                "heads": p["heads"],
                "intensity": p["intensity"],
                **{way: si(p[way].low, "s") for way in (APART, PACKED)},
                "faster": f"{p[APART].low / p[PACKED].low:.1f}×",
            }
            for p in self.points
        ]
        columns = [
            Column("heads", say("query heads")),
            Column("intensity", "FLOP/byte"),
            Column(APART, say("one read a head"), align="right"),
            Column(PACKED, say("packed"), align="right"),
            Column("faster", say("packed is faster by"), align="right"),
        ]
        caption = say(
            "timed, {label} ({name}, {threads} threads, fp32): {batch} sequence(s) of {context:,} tokens, "
            "{kv_heads} KV heads of {head_dim}",
            label=LABEL,
            name=self.name,
            threads=self.threads,
            batch=self.batch,
            context=self.context,
            kv_heads=self.kv_heads,
            head_dim=self.head_dim,
        )
        return table(cells, columns, caption)

    def _repr_html_(self) -> str:
        return f'<div class="rl-evidence">{self.table()._repr_html_()}{tables.finding(self.finding)}</div>'

    def __repr__(self) -> str:
        return f"{self.table()!r}\n\n{self.finding}"


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

    k, v = torch.randn(2, batch, kv_heads, context, head_dim)
    points = tuple(attention(clock or WallClock(), k, v, groups, budget))
    return CpuAttention(cpu_here().name, torch.get_num_threads(), batch, kv_heads, head_dim, context, points)
