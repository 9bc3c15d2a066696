"""Rows of a public benchmark, and what the law of chapter 09 says of them.

    >>> row = {"model": "llama3.1-70b", "accelerator": "h100_sxm", "engine": "vLLM", "weights": "fp8",
    ...        "gpus": 8, "concurrency": 64, "input_tokens": 8192, "output_tokens": 1024}
    >>> found = predict([row])[0]
    >>> found.tpot, found.ttft, found.borrowed

A row is a mapping with those eight names (`asked`), perhaps kv_itemsize and gathered_steps besides. `tpot_s`
and `ttft_s`, if it has them, are not looked at. The law is fitted to rows of Llama-3.1-70B (`groups`).
Another model has its own floors and shapes, and an overhead in proportion to its layers; another card or
engine is told by the nearest group. The prediction says what is not the row's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from book import catalog
from book.catalog import Accelerator
from book.catalog.measured import steps
from book.catalog.names import UnknownName
from book.say import say
from book.serving.asked import DEFAULT_MODEL, Row, asked, stored
from book.serving.deployment import Deployment
from book.serving.groups import (
    GROUPS,
    QUEUE,
    SHORTEST,
    Group,
    cell,
    deployed,
    first_wait,
    fitted,
    fitted_first_token,
    floor_of,
    group,
    lengths,
    rows,
    terms_of,
)
from book.serving.kernel_times import plain
from book.serving.phases import prefill
from book.serving.step_terms import Terms
from book.serving.term_law import FirstToken, TermLaw

__all__ = [
    "GROUPS",
    "QUEUE",
    "SHORTEST",
    "Group",
    "Prediction",
    "Row",
    "cell",
    "deployed",
    "first_wait",
    "fitted",
    "fitted_first_token",
    "floor_of",
    "group",
    "law_for",
    "lengths",
    "missed_of_the_8b",
    "predict",
    "rows",
    "terms_of",
]


@dataclass(frozen=True, eq=False)
class Prediction:
    """Seconds of a row. terms: of its step. borrowed: a sentence for all that is told by another's.

    ttft: None where not all users fit at once: they queue for memory, which no law here tells. `queue` is
    then the sentence that says so, else "".
    """

    tpot: float
    ttft: float | None
    terms: Terms
    law: TermLaw
    borrowed: tuple[str, ...] = ()
    queue: str = ""


def predict(of: Iterable[Row]) -> list[Prediction | str]:
    """TPOT and TTFT of each row, or the sentence that says why there is none.

    No time is below its own floor, and no card is told slower than one that has less of everything.
    gathered_steps: steps for which prompts are gathered before they run, if a row says so.
    """
    return [_predicted(row) for row in of]


def _predicted(row: Row) -> Prediction | str:
    try:
        return _in_order(asked(row))
    except (ValueError, UnknownName) as refused:
        return str(refused)


def _in_order(row: Row) -> Prediction:
    """By the law, and kept between the groups' cards that have more of everything, and less.

    Each group has a law of its own, so the laws alone may tell that a better card is slower. Rows of the kind
    that was fitted stay as they are; else the lesser card gives way.
    """
    found, d = _by_law(row), deployed(row)
    if _fitted_to(row, d) or found.queue:
        return found
    card, cards = (
        d.accelerator,
        [catalog.accelerator(name) for name in dict.fromkeys(g.accelerator for g in GROUPS)],
    )
    for other in cards:
        theirs = {**row, "kv_itemsize": d.kv_itemsize, "accelerator": other.id}
        better = _has_more(other, card)
        if not better and not _has_more(card, other):
            continue
        if not better and card in cards and not _fitted_to(theirs, deployed(theirs)):
            continue
        told = _in_order(theirs)
        found = found if told.queue else _no_better(found, told, max if better else min, other)
    return found


def _has_more(card: Accelerator, other: Accelerator) -> bool:
    """Whether a card has no less of anything than another card: bandwidth, memory, link, and each peak."""

    def numbers(c: Accelerator) -> tuple[float, ...]:
        return c.bandwidth, c.usable, c.interconnect_bandwidth or 0, *(c.peaks.get(p, 0) for p in other.peaks)

    pairs = zip(numbers(card), numbers(other), strict=True)
    return card != other and all(mine >= theirs for mine, theirs in pairs)


def _no_better(found: Prediction, told: Prediction, worse: Callable, other: Accelerator) -> Prediction:
    times = {"tpot": worse(found.tpot, told.tpot), "ttft": worse(found.ttft, told.ttft)}
    names = [name.upper() for name, time in times.items() if time != getattr(found, name)]
    if not names:
        return found
    words, card = " / ".join(names), other.short_name
    if worse is max:
        text = say(
            "{times} would be less than on {card}, which has more of everything: told as there.",
            times=words,
            card=card,
        )
    else:
        text = say(
            "{times} would be more than on {card}, which has less of everything: told as there.",
            times=words,
            card=card,
        )
    return replace(found, **times, borrowed=(*found.borrowed, text))


def _by_law(row: Row) -> Prediction:
    like, d, terms = group(row["accelerator"], row["engine"]), deployed(row), terms_of(row)
    law, told = law_for(like, plain(d.kv_itemsize)), fitted_first_token(like).factors
    tpot = plain(law(terms))
    first = FirstToken(told["slope"], told["start"])(first_wait(row))
    first = max(first, plain(prefill(d, lengths(row)[0]).time)) + (row.get("gathered_steps") or 0) * tpot
    borrowed = [*_told_by(row, like, d), *terms.borrowed]
    if law.below_its_floor(terms):
        borrowed.append(say("The law's terms add up to less than the step's floor: the floor is told."))
    queue = ""
    if terms.sequences < row["concurrency"]:
        queue = say(
            "{fits:.1f} of {users} users fit at once; the others queue for memory, which no law here tells.",
            fits=terms.sequences,
            users=row["concurrency"],
        )
    return Prediction(tpot, None if queue else plain(first), terms, law, tuple(borrowed), queue)


def _fitted_to(row: Row, d: Deployment) -> bool:
    """Whether a row is of the kind that its group's law was fitted to: card, engine, model and formats."""
    like = group(row["accelerator"], row["engine"])
    own = (like.accelerator, like.engine) == (row["accelerator"], row["engine"])
    formats = stored(row.get("weights") or "") == "fp8" and d.kv_itemsize == like.kv_itemsize
    return own and formats and d.model == catalog.model(DEFAULT_MODEL)


@lru_cache(maxsize=16)
def law_for(like: Group, kv_itemsize: float) -> TermLaw:
    """A group's law, with the cache's factor of rows whose cache has this format: see `of_the_cache`."""
    return replace(fitted(like).law, cache=fitted(of_the_cache(like, kv_itemsize)).law.cache)


def of_the_cache(like: Group, kv_itemsize: float) -> Group:
    """The group whose factor tells a cache of this format: its own, else the first with that format."""
    if like.kv_itemsize == kv_itemsize:
        return like
    return next(g for g in GROUPS if g.kv_itemsize == kv_itemsize)


def _told_by(row: Row, like: Group, d: Deployment) -> Iterator[str]:
    """One sentence for each thing in which a row differs from those that its law was fitted to."""
    own = (row["accelerator"], row["engine"]) == (like.accelerator, like.engine)
    if not own:
        yield say(
            "The law of {group} tells {engine} on {card}.",
            group=like.name,
            engine=row["engine"],
            card=row["accelerator"],
        )
    fitted_to = catalog.model(DEFAULT_MODEL)
    if d.model != fitted_to:
        yield say(
            "The law was fitted to {model}'s {layers} layers: its constant goes by the layers, {count} here. "
            "Rows of Llama-3.1-8B, the only other model tried, were missed by: {misses}.",
            model=fitted_to.name,
            layers=fitted_to.layers,
            count=d.model.layers,
            misses=", ".join(f"{name} {miss:.0%}" for name, miss in missed_of_the_8b().items()),
        )
    if row.get("weights") is None:
        yield say("The row doesn't say how its weights are stored: 16 bits are assumed.")
    elif stored(row["weights"]) != "fp8":
        yield say("The factors were fitted to FP8 weights; these are {weights}.", weights=row["weights"])
    bits = round(8 * d.kv_itemsize)
    if row.get("kv_itemsize") is None and not _fitted_to(row, d):
        yield say("The row doesn't say how its cache is stored: {bits} bits a number are assumed.", bits=bits)
    other = of_the_cache(like, plain(d.kv_itemsize))
    if other != like:
        yield say("The rate of a {bits}-bit cache is that of {group}.", bits=bits, group=other.name)


@lru_cache(maxsize=1)
def missed_of_the_8b() -> Mapping[str, float]:
    """{card, engine: mean |told / measured - 1| of the TPOT} of all measured rows of Llama-3.1-8B."""
    found: dict[str, list[float]] = {}
    for row in steps.llama_8b():
        row = {**row, "model": "llama3.1-8b"}
        like = group(row["accelerator"], row["engine"])
        told = law_for(like, plain(deployed(row).kv_itemsize))(terms_of(row))
        name = f"{catalog.accelerator(row['accelerator']).short_name}, {row['engine']}"
        found.setdefault(name, []).append(abs(plain(told) / row["tpot_s"] - 1))
    return MappingProxyType({name: sum(each) / len(each) for name, each in found.items()})
