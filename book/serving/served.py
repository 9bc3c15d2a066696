"""Rows of a public benchmark, and what the law of chapter 09 says of them.

    >>> row = {"model": "llama3.1-70b", "accelerator": "h100_sxm", "engine": "vLLM", "weights": "fp8",
    ...        "gpus": 8, "concurrency": 64, "input_tokens": 8192, "output_tokens": 1024}
    >>> found = predict([row])[0]
    >>> found.tpot, found.ttft, found.borrowed

A row is a mapping with those eight names. `tpot_s` and `ttft_s`, if it has them, are not looked at. The
law is fitted to the rows of Llama-3.1-70B on H100 and H200 (`book.catalog.measured.steps`). Another model
has its own floors and shapes, and an overhead in proportion to its layers; another card or engine is told
by the nearest group, and the prediction says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from book import catalog
from book.catalog.measured import steps
from book.say import say
from book.serving.deployment import Deployment, deploy
from book.serving.fitting import Fitted, fit_columns
from book.serving.kernel_times import plain
from book.serving.phases import decode_step
from book.serving.step_terms import Terms, lone_prompt, step_terms
from book.serving.term_law import FirstToken, TermFit, TermLaw, first_wave, fit_terms

Row = Mapping[str, Any]

SHORTEST = 0.8  # of the nominal length: lengths are drawn evenly from there to the nominal one
QUEUE = (
    5.0  # seconds: a row whose first token takes longer has a queue for memory in it, which no law here tells
)
WAITED_STEPS = 20  # for which TensorRT-LLM's runs of equal lengths on less than 8 cards gathered prompts
DEFAULT_MODEL = "llama3.1-70b"


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
# Other people's names of formats and engines. Scales of FP8 blocks add 0.006 %.
FORMATS = {
    "fp8_block": "fp8",
    "fp8_static": "fp8",
    "float16": "fp16",
    "bfloat16": "bf16",
    "int8_wo": "int8",
    "int4_wo": "int4_g128",
    "w4afp8": "int4_g128",
    "w4a16_mxfp4": "mxfp4",
}
ENGINES = {"vllm": "vLLM", "trtllm": "TensorRT-LLM", "tensorrt-llm": "TensorRT-LLM", "sglang": "SGLang"}


@dataclass(frozen=True, eq=False)
class Prediction:
    """Seconds of a row. terms: of its step. borrowed: a sentence for all that is told by another's."""

    tpot: float
    ttft: float
    terms: Terms
    law: TermLaw
    borrowed: tuple[str, ...] = ()


def group(accelerator: str, engine: str) -> Group:
    """The group of these rows, or the nearest: the same engine first, then the same card."""
    return min(GROUPS, key=lambda g: (g.engine != engine, g.accelerator != accelerator, g != NEAREST))


def rows(of: Group) -> tuple[Row, ...]:
    """The measured rows of Llama-3.1-70B in a group."""
    return tuple(
        r for r in steps.llama_70b() if (r["accelerator"], r["engine"]) == (of.accelerator, of.engine)
    )


def deployed(row: Row, kv_itemsize: float | None = None) -> Deployment:
    """The deployment of a row. weights: a format of the catalog. Raises what `deploy` raises."""
    weights = row.get("weights") or "bf16"  # where a source doesn't say, the plainest
    weights = FORMATS.get(weights, weights)
    like = group(row["accelerator"], row["engine"])
    cache = (
        kv_itemsize or row.get("kv_itemsize") or (like.kv_itemsize if catalog.itemsize(weights) <= 1 else 2)
    )
    card = catalog.accelerator(row["accelerator"])
    arithmetic = weights if weights in card.peaks else card.default_dtype
    return deploy(
        row.get("model") or DEFAULT_MODEL,
        card,
        weight_itemsize=catalog.effective_itemsize(weights),
        kv_itemsize=cache,
        gpus=row["gpus"],
        dtype=arithmetic,
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


def gathered_steps(row: Row) -> int:
    """Steps that TensorRT-LLM's runs waited to gather prompts; the rows show it in their TTFT."""
    gathers = (
        row["engine"] == "TensorRT-LLM" and row["gpus"] < 8 and row["input_tokens"] == row["output_tokens"]
    )
    return WAITED_STEPS if gathers else 0


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
        given=[gathered_steps(r) * r["tpot_s"] for r in ours],
        cells=[*map(cell, ours)],
        lowest={"slope": 1, "start": 0},
    )


def predict(of: Iterable[Row]) -> list[Prediction | str]:
    """TPOT and TTFT of each row, or the sentence that says why there is none."""
    return [_predicted(row) for row in of]


def _predicted(row: Row) -> Prediction | str:
    absent = [
        n
        for n in ("accelerator", "engine", "gpus", "concurrency", "input_tokens", "output_tokens")
        if n not in row
    ]
    if absent:
        return say("The row has no {names}: give what a prediction is about.", names=", ".join(absent))
    try:
        row = _named_as_here(row)
        like = group(row["accelerator"], row["engine"])
        terms, law = terms_of(row), fitted(like).law
        told = fitted_first_token(like).factors
        tpot = plain(law(terms))
        first = FirstToken(told["slope"], told["start"])(first_wait(row)) + gathered_steps(row) * tpot
    except (ValueError, LookupError) as refused:
        return str(refused)
    return Prediction(tpot, plain(first), terms, law, (*_told_by(row, like), *terms.borrowed))


def _named_as_here(row: Row) -> Row:
    """The row with the catalog's names and whole numbers. Raises ValueError for what can't be served."""
    counts = {name: int(row[name]) for name in ("gpus", "concurrency", "input_tokens", "output_tokens")}
    for name, value in counts.items():
        if value < 1:
            raise ValueError(f"{name} = {value}: give a whole number, at least 1.")
    heads = catalog.model(row.get("model") or DEFAULT_MODEL).heads
    if heads % counts["gpus"]:
        raise ValueError(
            f"gpus = {counts['gpus']}: {heads} query heads can't be dealt out evenly; use a divisor of it."
        )
    engine = ENGINES.get(str(row["engine"]).lower(), row["engine"])
    return {**row, **counts, "accelerator": catalog.accelerator(row["accelerator"]).id, "engine": engine}


def _told_by(row: Row, like: Group) -> Sequence[str]:
    if (row["accelerator"], row["engine"]) == (like.accelerator, like.engine):
        return ()
    said = say(
        "The law of {group} tells {engine} on {card}.",
        group=like.name,
        engine=row["engine"],
        card=row["accelerator"],
    )
    return (said,)
