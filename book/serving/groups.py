"""The measured rows that the law of chapter 09 is fitted to, by card and engine: their terms and their fits.

    >>> law = fitted(GROUPS[0]).law
    >>> law(terms_of(rows(GROUPS[0])[0]))      # seconds

The rows are of Llama-3.1-70B on H100 and H200 (`book.catalog.measured.steps`). A row is a mapping; `served`
tells any row, by the nearest of these groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from book import catalog
from book.catalog.measured import steps
from book.serving.asked import DEFAULT_MODEL, Row, arithmetic, stored
from book.serving.deployment import Deployment, deploy
from book.serving.fitting import Fitted, fit_columns
from book.serving.kernel_times import plain
from book.serving.phases import decode_step
from book.serving.step_terms import Terms, lone_prompt, step_terms
from book.serving.term_law import TermFit, first_wave, fit_terms

SHORTEST = 0.8  # of the nominal length: lengths are drawn evenly from there to the nominal one
QUEUE = (
    5.0  # seconds: a row whose first token takes longer has a queue for memory in it, which no law here tells
)
WAITED_STEPS = 20  # for which TensorRT-LLM's runs of equal lengths on less than 8 cards gathered prompts


@dataclass(frozen=True)
class Group:
    """The rows of one engine on one card. kv_itemsize: bytes of a cached number. chunk: tokens of a step.

    The cache's format isn't in the rows' columns. It can be told from how many sequences ran at once where
    there was a queue (Little's law: users / (1 + TTFT / (outputs TPOT))), against what fits in either format.
    reserves: the engine admits a request only if its whole answer will fit.
    """

    accelerator: str
    engine: str
    kv_itemsize: float
    chunk: int
    reserves: bool

    @property
    def name(self) -> str:
        """As in "H100 SXM, vLLM"."""
        return f"{catalog.accelerator(self.accelerator).short_name}, {self.engine}"


GROUPS = (
    Group("h100_sxm", "vLLM", 2, 8192, False),
    Group("h200_sxm", "vLLM", 1, 8192, False),
    Group("h200_sxm", "TensorRT-LLM", 1, 16384, True),
)


NEAREST = GROUPS[1]  # of an engine that has no group, on a card that has none


def group(accelerator: str, engine: str) -> Group:
    """The group of these rows, or the nearest: the same engine first, then the same card."""
    return min(GROUPS, key=lambda g: (g.engine != engine, g.accelerator != accelerator, g != NEAREST))


def rows(of: Group) -> tuple[Row, ...]:
    """The measured rows of Llama-3.1-70B in a group, with the steps that their runs gathered prompts for."""
    return tuple(
        {**r, "gathered_steps": _gathered(r)}
        for r in steps.llama_70b()
        if (r["accelerator"], r["engine"]) == (of.accelerator, of.engine)
    )


def _gathered(row: Row) -> int:
    """A setting of these rows' benchmark, which their TTFT shows. It says nothing of other servers."""
    equal = row["input_tokens"] == row["output_tokens"]
    return WAITED_STEPS if row["engine"] == "TensorRT-LLM" and row["gpus"] < 8 and equal else 0


def deployed(row: Row, kv_itemsize: float | None = None) -> Deployment:
    """The deployment of a row. weights: a format of the catalog. Raises what `deploy` raises.

    Where a row doesn't say, weights are in 16 bits; the cache too, unless the weights are in 8 bits or less:
    then it is as in the group that tells the row. `predict` says what it took.
    """
    weights = row.get("weights") or "bf16"
    like = group(row["accelerator"], row["engine"])
    narrow = catalog.itemsize(stored(weights)) <= 1
    cache = kv_itemsize or row.get("kv_itemsize") or (like.kv_itemsize if narrow else 2)
    card = catalog.accelerator(row["accelerator"])
    return deploy(
        row.get("model") or DEFAULT_MODEL,
        card,
        weight_itemsize=catalog.effective_itemsize(stored(weights)),
        kv_itemsize=cache,
        gpus=row["gpus"],
        dtype=arithmetic(weights, card),
    )


def lengths(row: Row, shortest: float = SHORTEST) -> tuple[float, float]:
    """Mean tokens of a prompt and of an answer, drawn evenly from `shortest` of the nominal to all of it."""
    mean = (1 + shortest) / 2
    return mean * row["input_tokens"], mean * row["output_tokens"]


def terms_of(
    row: Row, *, version: str = "", kv_itemsize: float | None = None, shortest: float = SHORTEST
) -> Terms:
    """The terms of a row's mean step. version: of the tables. Raises ValueError where the row can't be."""
    like = group(row["accelerator"], row["engine"])
    prompt, output = lengths(row, shortest)
    return step_terms(
        deployed(row, kv_itemsize),
        row["concurrency"],
        prompt + output / 2,
        output,
        engine=row["engine"],
        version=version,
        chunk=like.chunk,
        held=prompt + (output if like.reserves else output / 2),
        stand_in=like.accelerator,
    )


def cell(row: Row) -> tuple[int, int]:
    """Rows of equal cards and users err together: the bootstrap draws them together."""
    return row["gpus"], row["concurrency"]


def first_wait(row: Row, shortest: float = SHORTEST) -> float:
    """Seconds of prompts that the mean request waits for, its own included, by tables."""
    like = group(row["accelerator"], row["engine"])
    prompt, _ = lengths(row, shortest)
    return first_wave(row["concurrency"]) * lone_prompt(
        deployed(row), prompt, row["engine"], like.chunk, like.accelerator
    )


@lru_cache(maxsize=8)
def fitted(of: Group, version: str = "") -> TermFit:
    """The law of a group's rows, with its intervals and held-out errors."""
    ours = rows(of)
    return fit_terms(
        [terms_of(r, version=version) for r in ours], [r["tpot_s"] for r in ours], [*map(cell, ours)]
    )


def floor_of(row: Row) -> float:
    """Seconds of the floor as a data sheet tells it: all users at nominal lengths, a 16-bit cache."""
    d = deployed(row, kv_itemsize=2)
    return plain(decode_step(d, row["concurrency"], row["input_tokens"] + row["output_tokens"] / 2).time)


@lru_cache(maxsize=8)
def fitted_first_token(of: Group) -> Fitted:
    """slope and start of a group's TTFT, over its rows without a queue for memory."""
    ours = [r for r in rows(of) if r["ttft_s"] < QUEUE]
    return fit_columns(
        {"slope": [first_wait(r) for r in ours], "start": [1.0] * len(ours)},
        [r["ttft_s"] for r in ours],
        given=[r["gathered_steps"] * r["tpot_s"] for r in ours],
        cells=[*map(cell, ours)],
        lowest={"slope": 1, "start": 0},
    )
