"""What a decode step is made of (chapter 09): bytes that a card must read, and times that others measured.

    >>> d = deploy("llama3.1-70b", "h100_sxm", weight_itemsize=1, gpus=8, dtype="fp8")
    >>> found = step_terms(d, batch=64, context=7800, outputs=922, engine="vLLM")
    >>> found.weights, found.all_reduces, found.prompts      # seconds of one step

`weights` and `cache` are floors. `all_reduces`, `prompts` and `rows` are kernels' measured times, with
nothing fitted. Where nobody measured a kernel on the card its own floor stands in, or what another card's
tables add to theirs (`stand_in`), and `borrowed` says so.
`step_law.TermLaw` makes a step's time of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil, inf

from book import cost
from book.catalog import Model
from book.cost import Number
from book.roofline import least
from book.say import say
from book.serving.cache import mean_sequences
from book.serving.deployment import Deployment, deploy, possible
from book.serving.kernel_times import HEAD_DIM, HEADS, KernelTimes, NoTable, plain, shards, tables
from book.serving.phases import decode_step, prefill, prefill_attention_flops

ACTIVATION = 2  # bytes of an activation as an all-reduce sends it: 16 bits in every engine here
MEETINGS = 2  # all-reduces a layer: after attention and after the MLP
FIRST_ROWS = 4  # the table's price at these rows is left to what is fitted
ROUNDS = 10  # requests that each user of the public grid sends
CHUNK = 8192  # tokens that a step may hold, vLLM's for these rows


@dataclass(frozen=True, eq=False)
class Terms:
    """Seconds of one step on one card, and `sequences`, the batch that is reached (a number).

    weights, cache: the floors of what is read. rows: what the products take beyond `FIRST_ROWS` rows.
    prompts: other users' prompts, a token's share. floor: of the whole step, all overlapping. layers: of
    the model. borrowed: one sentence for every term that no table gives.
    """

    weights: Number
    cache: Number
    rows: Number
    all_reduces: Number
    prompts: Number
    sequences: Number
    floor: Number
    layers: int
    borrowed: tuple[str, ...] = ()

    @property
    def tables(self) -> Number:
        """The terms that nothing is fitted to, together."""
        return self.rows + self.all_reduces + self.prompts


def reached(d: Deployment, batch: Number, held: Number) -> Number:
    """min(batch, what fits): the sequences in a step if each holds `held` tokens of cache.

    Raises ValueError if not one fits: such a step is never taken.
    """
    possible(d.model, batch=batch)
    fits = mean_sequences(d, held)
    if not plain(fits) >= 1:
        raise ValueError(
            f"batch = {batch}: {d.model.name} on {d.gpus} x {d.accelerator.name} has no room for one "
            f"cache of {held:,.0f} tokens. Use more cards, a shorter context or smaller formats."
        )
    return least(batch, fits)


def prompts_beside(sequences: Number, outputs: Number, rounds: float = ROUNDS) -> Number:
    """Other users' prompts for each token: (1 - 1/(2 rounds)) (B - 1)/O.

    Each of the B - 1 others brings one prompt for every O tokens. But in a run in which all start at
    once, the first of a user's `rounds` requests are read before anybody decodes, half of them on average:
    that wait is time to first token, not between tokens. `rounds` endless: a steady state.
    """
    return (1 - 1 / (2 * rounds)) * (sequences - 1) / outputs


def one_request(rounds: float) -> None:
    """Raise ValueError for less than one request a user; an endless number is a steady state."""
    if not rounds >= 1:
        raise ValueError(f"rounds = {rounds}: requests that each user sends; give 1 or more.")


def step_terms(
    d: Deployment,
    batch: float,
    context: float,
    outputs: float | None = None,
    *,
    engine: str = "vLLM",
    version: str = "",
    chunk: int = CHUNK,
    rounds: float = ROUNDS,
    held: float | None = None,
    stand_in: str = "",
) -> Terms:
    """The terms of one step of `batch` users, each with `context` tokens, half way through `outputs`.

    outputs: tokens of a whole answer; None if nobody else's prompt comes in between. A prompt has
    then `context - outputs / 2` tokens. chunk: tokens of a step. rounds: see `prompts_beside`.
    held: tokens for which the engine makes room, if more than the context. version: of the tables.
    stand_in: a card whose tables tell what this card's don't; by default floors do.

    Raises ValueError if no sequence fits, the answer is longer than the context says or has no token, a user
    sends no request, or cards have no link to each other.
    """
    one_request(rounds)
    if outputs is not None and not 1 <= outputs < inf:
        raise ValueError(f"outputs = {outputs}: tokens of a whole answer; give 1 or more, or None.")
    table = _Tables(_own(d, engine, version), stand_in)
    sequences = plain(reached(d, batch, held or context))
    step = decode_step(d, max(sequences, 1), context)
    rows = _more_rows(d, table, sequences)
    meetings = _all_reduces(d, table, sequences)
    beside: Number = 0.0
    if outputs is not None:
        length = context - outputs / 2
        if not length > 0:
            raise ValueError(
                f"outputs = {outputs}: half of them exceed context = {context}; give the mean context."
            )
        share = prompts_beside(sequences, outputs, rounds)
        beside = share * _prompt_beside(d, length, sequences, table, chunk)
    return Terms(
        weights=step.weight_time,
        cache=step.kv_time,
        rows=rows,
        all_reduces=meetings,
        prompts=beside,
        sequences=sequences,
        floor=step.time,
        layers=d.model.layers,
        borrowed=tuple(dict.fromkeys(table.notes)),
    )


def lone_prompt(
    d: Deployment, length: float, engine: str = "vLLM", chunk: int = CHUNK, stand_in: str = ""
) -> float:
    """Seconds of a prompt that shares its steps with nobody; by tables, or as `step_terms` without them."""
    possible(d.model, length=length)
    table = _Tables(_own(d, engine), stand_in)
    chunks = ceil(length / chunk)
    try:
        work = chunks * _products(d, table, length / chunks)
        work += table.own.prompt_attention(length, _cache_dtype(d)) * _prompts_of_the_table(d, length)
    except NoTable as missing:
        work = plain(prefill(d, length).time) * table.instead(str(missing), length)
    return plain(work + chunks * _all_reduces(d, table, length / chunks))


def _own(d: Deployment, engine: str, version: str = "") -> KernelTimes:
    return tables(d.accelerator.id, engine, plain(d.weight_itemsize), version, arithmetic=d.dtype)


@dataclass(frozen=True)
class _Tables:
    """A card's own tables, the card that stands in for what they lack, and what had to be said."""

    own: KernelTimes
    stand_in: str = ""
    notes: list[str] = field(default_factory=list)

    def instead(self, missing: str, length: float) -> float:
        """What a floor of prompts is multiplied with: 1, or what the stand-in's tables say of their own."""
        if not self.stand_in:
            self.notes.append(say("{missing} Its floor takes their place.", missing=missing))
            return 1.0
        self.notes.append(
            say(
                "{missing} A floor times what {card} takes over its own takes their place.",
                missing=missing,
                card=self.stand_in,
            )
        )
        return _over_the_floor(self.stand_in, self.own.engine, length)


@lru_cache(maxsize=256)
def _over_the_floor(card: str, engine: str, length: float) -> float:
    """How many times its floor a prompt takes by a card's tables: Llama-3.1-70B in FP8 on one card."""
    d = deploy("llama3.1-70b", card, weight_itemsize=1, gpus=1, dtype="fp8")
    return lone_prompt(d, length, engine) / plain(prefill(d, length).time)


def products_of(d: Deployment, rows: float, engine: str = "vLLM", version: str = "") -> float:
    """Seconds of all layers' products with weights, by the tables of a version of the engine.

    Raises kernel_times.NoTable without them.
    """
    return _products(d, _Tables(_own(d, engine, version)), rows)


def prompt_beside(
    d: Deployment, length: float, beside: float, engine: str = "vLLM", chunk: int = CHUNK
) -> float:
    """Seconds that a whole prompt adds to the steps that carry it beside `beside` tokens of other users."""
    table = _Tables(_own(d, engine))
    return _prompt_beside(d, length, beside, table, chunk)


def _prompt_beside(d: Deployment, length: float, beside: float, table: _Tables, chunk: int) -> float:
    """Seconds that a prompt adds to the steps that carry it beside `beside` tokens of other users."""
    chunks = ceil(length / max(chunk - beside, 1))
    part = length / chunks
    return sum(_part_of_a_prompt(d, part, i * part, length, beside, table) for i in range(chunks))


def chunk_time(
    d: Deployment, tokens: float, done: float, length: float, beside: float, engine: str = "vLLM"
) -> float:
    """Seconds that `tokens` of a prompt of `length` add to a step with `beside` tokens of other users.

    done: its tokens before these, which they look back on. All of it comes on top of the step, in turn.
    """
    table = _Tables(_own(d, engine))
    return _part_of_a_prompt(d, tokens, done, length, beside, table)


def _part_of_a_prompt(
    d: Deployment, tokens: float, done: float, length: float, beside: float, table: _Tables
) -> float:
    """By tables: the products of more rows less those of the step without them, a share of the prompt's
    attention by its pairs of tokens, and all-reduces. With a table missing, floors for the first two. Never
    below nought: a table in which more rows take less time would give some of the step back.
    """
    share = (2 * done + tokens) * tokens / length**2
    try:
        work = _products(d, table, beside + tokens) - _products(d, table, beside)
        attention = table.own.prompt_attention(length, _cache_dtype(d))
        work += share * attention * _prompts_of_the_table(d, length)
    except NoTable as missing:
        alone = prefill(d, length)
        # The step has read its weights already; what a mixture reads more of them comes on top.
        more = prefill(d, tokens).weight_time - decode_step(d, max(beside, 1), 1).weight_time
        work = max(alone.compute_time * tokens / length, more) * table.instead(str(missing), length)
    return max(0.0, plain(work + _all_reduces(d, table, beside + tokens) - _all_reduces(d, table, beside)))


def _cache_dtype(d: Deployment) -> str:
    return "bf16" if d.kv_itemsize > 1 else "fp8"


def _prompts_of_the_table(d: Deployment, length: float) -> float:
    """How many of the measured one-layer prompts make up one card's part of this model's attention."""
    one = cost.flash_attention(1, length, HEADS, HEADS, HEAD_DIM).flops
    return plain(prefill_attention_flops(d.model, length) / one / d.gpus)


def _products(d: Deployment, table: _Tables, rows: float) -> float:
    """Seconds of all layers' products with weights that every token meets. Raises NoTable for experts."""
    if d.model.experts is not None:
        raise NoTable(f"{d.model.name} has experts, and the tables of products have none.")
    cut = shards_of(d.model, int(d.gpus))
    others = sum(not table.own.measured(n, k) for n, k in cut)
    if others:
        table.notes.append(
            say(
                "Cards that share {model}, {gpus} in number: of {all} products in a layer {others} were not "
                "measured in that shape. Those that were tell them, as a + b n k.",
                model=d.model.name,
                gpus=int(d.gpus),
                all=len(cut),
                others=others,
            )
        )
    return d.model.layers * sum(plain(table.own.product(n, k, max(rows, 1))) for n, k in cut)


@lru_cache(maxsize=64)
def _shards(layers: tuple[tuple[str, tuple[int, int]], ...], gpus: int) -> tuple[tuple[int, int], ...]:
    return tuple(shards(dict(layers), gpus))


def shards_of(model: Model, gpus: int) -> tuple[tuple[int, int], ...]:
    """(n, k) of the products of one block on one of `gpus` cards: qkv, o, gate and up, down."""
    return _shards(tuple(model.linear_layers().items()), gpus)


def _more_rows(d: Deployment, table: _Tables, sequences: float) -> float:
    """What the products of `sequences` rows take beyond those of `FIRST_ROWS`; 0 where nobody measured."""
    try:
        return _products(d, table, sequences) - _products(d, table, FIRST_ROWS)
    except NoTable as missing:
        table.notes.append(
            say("{missing} What they take beyond {rows} rows is left out.", missing=missing, rows=FIRST_ROWS)
        )
        return 0.0


def _all_reduces(d: Deployment, table: _Tables, rows: float) -> float:
    """Seconds of all layers' all-reduces of `rows` tokens; by the link, where nobody measured."""
    size, gpus = max(rows, 1) * d.model.d_model * ACTIVATION, int(d.gpus)
    try:
        each = plain(table.own.all_reduce(gpus, size))
    except NoTable as missing:
        each = _without_a_table(d, table, gpus, size, str(missing))
    return MEETINGS * d.model.layers * each


def _without_a_table(d: Deployment, table: _Tables, gpus: int, size: float, missing: str) -> float:
    """The stand-in's time, but no less than the floor of this card's own link. Raises NoLink without one."""
    floor = plain(cost.all_reduce(size, gpus) / d.accelerator.link())
    if table.stand_in:
        try:
            lent = plain(tables(table.stand_in, table.own.engine).all_reduce(gpus, size))
        except NoTable:
            lent = 0.0  # nobody's over so many cards
        if lent > floor:
            table.notes.append(
                say("{missing} Those of {card} take their place.", missing=missing, card=table.stand_in)
            )
            return lent
    table.notes.append(say("{missing} The floor of its link takes their place.", missing=missing))
    return floor
