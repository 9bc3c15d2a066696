"""Times of a layer's kernels as others measured them, at sizes between the measured ones: read, not fitted.

    >>> table = tables("h100_sxm", "vLLM")
    >>> table.all_reduce(gpus=8, size=64 * 16384)    # seconds of one all-reduce
    >>> table.product(1024, 8192, rows=64)           # seconds of y[64, 1024] = x[64, 8192] w

The rows are NVIDIA aiconfigurator's (`book.catalog.measured`, where each file says how it was measured).
Between two measured sizes a time is interpolated along a straight line in both logarithms; beyond the
last size it grows in proportion; before the first it is the first. Sizes may be arrays.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from book.catalog.interpolation import interpolate
from book.catalog.measured import all_reduce, decode_attention, gemm_shards, prefill_attention
from book.cost import Number
from book.say import say

VERSIONS = MappingProxyType({"vLLM": "0.24.0", "TensorRT-LLM": "1.3.0rc20"})
ATTENTION_ENGINE = "vLLM"  # the one whose decode attention was measured
HEADS, HEAD_DIM = 64, 128  # of the prompt that was measured
# bytes of a stored weight and what it is multiplied in ("": not said): the format that was measured
WEIGHT_DTYPES: Mapping[tuple[float, str], str] = {
    (1.0, ""): "fp8",
    (1.0, "fp8"): "fp8",
    (2.0, ""): "bf16",
    (2.0, "bf16"): "bf16",
    (2.0, "fp16"): "bf16",
}


@dataclass(frozen=True, eq=False)
class Curve:
    """Measured seconds by size, both ascending."""

    sizes: np.ndarray
    seconds: np.ndarray


def curve(measured: Mapping[Any, float]) -> Curve:
    """{size: seconds} as a curve, in ascending order."""
    sizes = sorted(measured)
    return Curve(np.array(sizes, float), np.array([measured[k] for k in sizes]))


def plain(value: Any) -> float:
    """One number as a float; an array of one element, too."""
    return float(value)


class NoTable(LookupError):
    """Nobody's measured times of this kernel are in the catalog."""


def between(size: Number, known: Curve) -> Number:
    """Seconds at `size` from measured ones; see the module's first lines for what happens outside."""
    first, last = known.sizes[0], known.sizes[-1]
    inside = interpolate(np.clip(size, first, last), known.sizes, known.seconds)
    found = inside * np.maximum(1, np.asarray(size, float) / last)
    return found if np.ndim(found) else plain(found)


@dataclass(frozen=True)
class KernelTimes:
    """The measured kernels of one card under one engine's tables. version: of these tables, no row's.

    Every method raises NoTable with a sentence where nothing was measured.
    """

    accelerator: str
    engine: str
    version: str
    dtype: str = "fp8"

    @property
    def _products(self) -> Mapping[tuple[int, int], Curve]:
        """(n, k): {rows: seconds}. Raises NoTable."""
        if not self._found:
            raise NoTable(self._missing("matrix products in " + self.dtype))
        return self._found

    @cached_property
    def _found(self) -> Mapping[tuple[int, int], Curve]:
        found: dict[tuple[int, int], dict[float, float]] = defaultdict(dict)
        for row in gemm_shards.rows():
            if self._ours(row) and row["dtype"] == self.dtype:
                found[row["n"], row["k"]][row["m"]] = row["seconds"]
        return {shape: curve(times) for shape, times in found.items()}

    @cached_property
    def _by_size(self) -> tuple[np.ndarray, np.ndarray]:
        """[rows], and [rows, 2] a and b of `a + b * elements`, seconds, through the shapes measured there.

        Least squares of the relative errors: a shape that nobody measured is told by the others.
        """
        shapes = self._products
        elements = np.array([n * k for n, k in shapes])
        found = []
        rows = sorted(set.intersection(*(set(c.sizes) for c in shapes.values())))
        for count in rows:
            times = np.array([float(c.seconds[c.sizes == count][0]) for c in shapes.values()])
            columns = np.column_stack([1 / times, elements / times])
            found.append(np.linalg.lstsq(columns, np.ones(len(times)), rcond=None)[0])
        return np.array(rows), np.array(found)

    def measured(self, n: int, k: int) -> bool:
        """Whether this product was measured itself."""
        return (n, k) in self._products

    def product(self, n: int, k: int, rows: Number) -> Number:
        """Seconds of y[rows, n] = x[rows, k] w[k, n]; of a shape nobody measured, a + b n k."""
        if not self.measured(n, k):
            counts, ab = self._by_size
            return between(rows, Curve(counts, ab[:, 0] + ab[:, 1] * n * k))
        return between(rows, self._products[n, k])

    def all_reduce(self, gpus: int, size: Number) -> Number:
        """Seconds of one all-reduce of `size` bytes over `gpus` cards, in a CUDA graph; 0 for one card."""
        if gpus == 1:
            return 0.0 * np.asarray(size, float) if np.ndim(size) else 0.0
        if gpus not in self._all_reduces:
            raise NoTable(self._missing(f"an all-reduce over {gpus} cards"))
        return between(size, self._all_reduces[gpus])

    @cached_property
    def _all_reduces(self) -> Mapping[int, Curve]:
        found: dict[int, dict[float, float]] = defaultdict(dict)
        for row in all_reduce.rows():
            if self._ours(row) and row["method"] == "custom_graph":
                found[row["gpus"]][row["bytes"]] = row["seconds"]
        return {gpus: curve(times) for gpus, times in found.items()}

    def prompt_attention(self, tokens: Number, cache_dtype: str = "bf16") -> Number:
        """Seconds of causal attention of one prompt in one layer of 64 query heads of 128."""
        known = _prompts(self.accelerator, self.engine, self.version, cache_dtype)
        if known is None:
            raise NoTable(self._missing(f"prompt attention with a {cache_dtype} cache"))
        return between(tokens, known)

    def decode_attention(self, sequences: Number, context: Number, cache_dtype: str = "bf16") -> Number:
        """Seconds of one layer's attention of a step, of `sequences` with one KV head of 128 each.

        A shard is as many: its sequences times its KV heads. Along the context and between batches
        it is a straight line, as bytes are.
        """
        at = _decodes(self.accelerator, cache_dtype)
        if not at:
            raise NoTable(self._missing(f"decode attention with a {cache_dtype} cache"))
        batches = np.array(sorted(at))
        columns = []
        for batch in batches:
            known, times = at[batch].sizes, at[batch].seconds
            beyond = np.maximum(context - known[-1], 0) * (times[-1] - times[-2]) / (known[-1] - known[-2])
            columns.append(np.interp(context, known, times) + beyond)
        place = int(np.clip(np.searchsorted(batches, sequences, "right") - 1, 0, len(batches) - 2))
        share = (sequences - batches[place]) / (batches[place + 1] - batches[place])
        return float(columns[place] * (1 - share) + columns[place + 1] * share)

    def _ours(self, row: Mapping) -> bool:
        return (row["accelerator"], row["engine"], row["engine_version"]) == (
            self.accelerator,
            self.engine,
            self.version,
        )

    def _missing(self, what: str) -> str:
        return say(
            "No measured times of {what} on {card} with {engine} {version}: the catalog has H100 and H200, "
            "vLLM and TensorRT-LLM.",
            what=what,
            card=self.accelerator,
            engine=self.engine,
            version=self.version,
        )


@lru_cache(maxsize=16)
def _prompts(accelerator: str, engine: str, version: str, cache_dtype: str) -> Curve | None:
    ours = (accelerator, engine, version, HEADS, 1, "bf16", cache_dtype)
    columns = ("accelerator", "engine", "engine_version", "heads", "batch", "attention_dtype", "cache_dtype")
    rows = [row for row in prefill_attention.rows() if tuple(row[c] for c in columns) == ours]
    return curve({row["tokens"]: row["seconds"] for row in rows}) if rows else None


@lru_cache(maxsize=8)
def _decodes(accelerator: str, cache_dtype: str) -> Mapping[int, Curve]:
    ours = (accelerator, ATTENTION_ENGINE, 8, 1, HEAD_DIM, 0, cache_dtype)
    columns = ("accelerator", "engine", "heads", "kv_heads", "head_dim", "window", "cache_dtype")
    found: dict[int, dict[float, float]] = defaultdict(dict)
    for row in decode_attention.rows():
        if tuple(row[c] for c in columns) == ours:
            found[row["batch"]][row["context"]] = row["seconds"]
    return {batch: curve(times) for batch, times in found.items()}


@lru_cache(maxsize=32)
def tables(
    accelerator: str,
    engine: str = "vLLM",
    weight_itemsize: float = 1,
    version: str = "",
    arithmetic: str = "",
) -> KernelTimes:
    """The tables of a card and an engine, at the version that the law uses unless another is named.

    An engine that has none is told by vLLM's. The format is that of the stored weight, where measured
    with this arithmetic.
    """
    engine = engine if engine in VERSIONS else "vLLM"
    dtype = WEIGHT_DTYPES.get((weight_itemsize, arithmetic))
    if dtype is None:
        dtype = say(
            "{arithmetic} with {bits:g} bits a weight",
            arithmetic=arithmetic or say("products"),
            bits=8 * weight_itemsize,
        )
    return KernelTimes(accelerator, engine, version or VERSIONS[engine], dtype)


def shards(layers: Mapping[str, Sequence[int]], gpus: int) -> list[tuple[int, int]]:
    """(n, k) of the products of one dense block as tensor parallelism cuts them: qkv, o, gate_up, down.

    layers: `Model.linear_layers()`. q, k and v are one product, gate and up another, as engines run
    them. What comes into the block is cut along n, what leaves it along k. Experts and routers are left out.
    """
    fused: dict[str, list[int]] = {}
    for label, (k, n) in layers.items():
        if label.startswith(("expert", "router", "head")):
            continue
        if label.startswith(("q ", "k ", "v ")) and "down" not in label and "up" not in label:
            place = "qkv"
        elif label in ("gate", "up"):
            place = "gate_up"
        else:
            place = label
        if place == "o projection" or place.endswith(" down") or place == "down":
            fused[place] = [n, k // gpus]
        else:
            width, _ = fused.get(place, (0, k))
            fused[place] = [width + n // gpus, k]
    return [(n, k) for n, k in fused.values()]
