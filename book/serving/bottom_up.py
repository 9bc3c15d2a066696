"""A measured step as the sum of its kernels' measured times, and three ways to split what they leave.

    >>> kernels = bottom_up.kernels(row)           # seconds by name, nothing fitted
    >>> row["tpot_s"] - sum(kernels.values())      # what no kernel's table has; it may be negative
    >>> bottom_up.splits(group)["tables"]          # the same rows, another split: see `Split`

Rows are those of `book.serving.served`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from book.serving.fitting import Fitted, fit_columns
from book.serving.kernel_times import plain, tables
from book.serving.served import Group, Row, cell, deployed, group, lengths, rows, terms_of
from book.serving.step_terms import products_of

FLOOR, SCALED, TABLES = "floor", "scaled", "tables"  # what stands for the products with weights


def kernels(row: Row, version: str = "") -> dict[str, float]:
    """Seconds of a row's mean step by kernel: floors, what the kernels take beyond them, and the rest.

    weights, cache: floors. products, attention: the measured kernels less those floors. all_reduces, prompts:
    measured. version: of the engine in whose tables products and all-reduces are looked up, the law's unless
    another is named; attention and prompts were timed in one. Raises kernel_times.NoTable where a kernel was
    not measured on the row's card.
    """
    terms, d = terms_of(row), deployed(row)
    prompt, output = lengths(row)
    sequences = plain(terms.sequences)
    table = tables(row["accelerator"], row["engine"], plain(d.weight_itemsize))
    of_a_head = sequences * d.model.kv_heads / row["gpus"]
    cache = "bf16" if group(row["accelerator"], row["engine"]).kv_itemsize > 1 else "fp8"
    attention = d.model.layers * table.decode_attention(of_a_head, prompt + output / 2, cache)
    return {
        "weights": plain(terms.weights),
        "products": products_of(d, sequences, row["engine"], version) - plain(terms.weights),
        "cache": plain(terms.cache),
        "attention": attention - plain(terms.cache),
        "all_reduces": plain((terms_of(row, version=version) if version else terms).all_reduces),
        "prompts": plain(terms.prompts),
    }


@lru_cache(maxsize=8)
def splits(of: Group) -> Mapping[str, Fitted]:
    """Three laws of the same rows, which differ in what they call a kernel.

    All-reduces and prompts are the tables' in all three. "floor": the weights' floor times a factor, what the
    products take beyond four rows, and a constant: the law of `term_law`. "scaled": the products' table times
    a factor, and a constant. "tables": the products' table as it is, a constant, and a cost for each doubling
    of the cards.
    """
    ours = rows(of)
    terms = [terms_of(r) for r in ours]
    times, cells = [r["tpot_s"] for r in ours], [*map(cell, ours)]
    by_table = np.array(
        [products_of(deployed(r), plain(t.sequences), r["engine"]) for r, t in zip(ours, terms, strict=True)]
    )
    meet = np.array([plain(t.all_reduces + t.prompts) for t in terms])
    shared = {
        "cache": [plain(t.cache) for t in terms],
        "sequence": [plain(t.sequences) for t in terms],
        "overhead": [1.0] * len(ours),
    }
    weights = {"weights": [plain(t.weights) for t in terms]}
    doublings = {"doubling": np.log2([r["gpus"] for r in ours])}
    more_rows = np.array([plain(t.rows) for t in terms])
    return {
        FLOOR: fit_columns({**weights, **shared}, times, given=meet + more_rows, cells=cells),
        SCALED: fit_columns({"products": by_table, **shared}, times, given=meet, cells=cells),
        TABLES: fit_columns({**shared, **doublings}, times, given=meet + by_table, cells=cells),
    }
