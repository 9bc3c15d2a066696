"""Pieces of work timed with torch on the CPU that is here: streams, a dial, a linear layer, attention.

torch's kernels, not ours, which is said wherever a time is shown: the rung is "timed", on "this
CPU, torch". What it comes to is in `kernels.evidence.cpu` and `kernels.evidence.cpu_attention`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from book import cost
from book.say import say
from kernels.contract.errors import PhysicsDisagrees
from kernels.evidence.timed.clocks import Clock, Timing, quieter

LABEL = say("this CPU, torch")
ROWS = (1, 2, 16, 64, 256)
WIDTHS = (4, 8, 16, 32, 64, 128, 256)  # of the dial: intensity is near width / 4
SQUARE = 2048  # rows and columns of the product that gives the peak: far past any ridge
STREAM = 2**25  # numbers that copy and triad move: larger than any cache
ITEMSIZE = 4  # fp32: the one dtype whose speed is steady on CPUs
ROUNDS = 2  # over all points of a sweep, so that a burst of other work spoils a round and not a point
PACKED, APART = "packed", "apart"


def stream(clock: Clock, budget: float = 0.15, n: int = STREAM) -> dict[str, Timing]:
    """How long "copy" (y = a), "triad" (y = a + 3 b) and "read" (a sum) take on n fp32 numbers."""
    import torch

    a, b, y = torch.rand(n), torch.rand(n), torch.rand(n)
    return {
        "copy": clock.time(lambda: y.copy_(a), budget),
        "triad": clock.time(lambda: torch.add(a, b, alpha=3.0, out=y), budget),
        "read": clock.time(a.sum, budget),
    }


def dial(clock: Clock, width: int, budget: float = 0.15, n: int = 2**24) -> dict[str, Any]:
    """n numbers in groups of `width`, each group times one matrix: a point (see `timed_point`)."""
    import torch

    m = n // width
    x, w, y = torch.rand(m, width), torch.rand(width, width), torch.empty(m, width)
    timing = clock.time(lambda: torch.mm(x, w, out=y), budget)
    return timed_point(cost.linear(m, width, width, ITEMSIZE), timing, m=m, k=width, n=width)


def product(clock: Clock, budget: float = 0.15, n: int = SQUARE) -> float:
    """FLOP/s of one product of two n by n matrices in fp32."""
    import torch

    x, w, y = torch.rand(n, n), torch.rand(n, n), torch.empty(n, n)
    return cost.linear(n, n, n, ITEMSIZE).flops / clock.time(lambda: torch.mm(x, w, out=y), budget).seconds


def forms(x: Any, w: Any) -> dict[str, Callable[[], Any]]:
    """The forms in which torch can be asked for x[m, k] times w[n, k] transposed, by name.

    They read and compute the same numbers. A library may hold one of them to be a product for many
    rows and another to be one for few: MKL on some CPUs reads w again for each row in the first form.
    """
    import torch

    ways = {"x @ w.T": lambda: torch.nn.functional.linear(x, w), "w @ x.T": lambda: w @ x.T}
    return ways if len(x) > 1 else {**ways, "w @ x": lambda: torch.mv(w, x[0])}


def linear(clock: Clock, size: int, rows: Sequence[int], budget: float = 0.15) -> list[dict[str, Any]]:
    """A linear layer with k = n = size at these row counts: points, each in its quickest form.

    budget: seconds for a form of a point, over all rounds; what takes longer has one round.
    A point has the name of its form under "form".
    """
    import torch

    weights = torch.rand(size, size)
    ways = {(m, form): run for m in rows for form, run in forms(torch.rand(m, size), weights).items()}
    took: dict[tuple[int, str], Timing] = {}
    for _ in range(ROUNDS):
        for one, run in ways.items():
            if one not in took or took[one].seconds < budget / ROUNDS:
                took[one] = quieter(clock.time(run, budget / ROUNDS), took.get(one))
    points = []
    for m in rows:
        best, form = min(((took[one], one[1]) for one in ways if one[0] == m), key=lambda pair: pair[0].low)
        point = timed_point(cost.linear(m, size, size, ITEMSIZE), best, m=m, k=size, n=size)
        points.append({**point, "form": form})
    return points


def attention(
    clock: Clock, k: Any, v: Any, groups: Sequence[int], budget: float = 0.15
) -> list[dict[str, Any]]:
    """Decode attention over k, v[batch, kv_heads, context, head_dim], at these query heads a KV head.

    Points: "heads", "intensity" by the formula (FLOP/byte) and, by way of calling (PACKED, APART), its
    Timing. Raises PhysicsDisagrees if the two ways give different results.
    """
    works = [_attention_ways(k, v, group) for group in groups]
    took: dict[tuple[int, str], Timing] = {}
    for _ in range(ROUNDS):
        for i, ways in enumerate(works):
            for way, run in ways.items():
                took[i, way] = quieter(clock.time(run, budget / ROUNDS), took.get((i, way)))
    batch, kv_heads, context, head_dim = k.shape
    points = []
    for i, heads in enumerate(kv_heads * group for group in groups):
        work = cost.decode_attention(batch, heads, kv_heads, head_dim, context, ITEMSIZE)
        timings = {way: took[i, way] for way in works[i]}
        points.append({"heads": heads, "intensity": work.intensity, **timings})
    return points


def _attention_ways(k: Any, v: Any, group: int) -> dict[str, Callable[[], Any]]:
    import torch

    batch, kv_heads, _, head_dim = k.shape
    attend = torch.nn.functional.scaled_dot_product_attention
    rows = torch.randn(batch, kv_heads, group, head_dim)  # the group in the place of queries
    alone = rows.reshape(batch, kv_heads * group, 1, head_dim)
    ways = {PACKED: lambda: attend(rows, k, v), APART: lambda: attend(alone, k, v, enable_gqa=group > 1)}
    if not torch.allclose(ways[PACKED]().reshape_as(alone), ways[APART](), rtol=1e-3, atol=1e-4):
        raise PhysicsDisagrees(
            f"{kv_heads * group} query heads: packed and apart give different results; they are the same "
            "attention. Try another version of torch."
        )
    return ways


def timed_point(work: cost.Cost, timing: Timing, **sizes: int) -> dict[str, Any]:
    """Sizes, seconds ("low" and "high": the quiet and the slow runs') and rates of one piece of work."""
    return {
        **sizes,
        "seconds": timing.seconds,
        "low": timing.low,
        "high": timing.high,
        "intensity": work.intensity,
        "flops_per_s": work.flops / timing.seconds,
        "bytes_per_s": work.bytes / timing.seconds,
    }
