"""Does it fit? What a deployment needs of each card's memory, what is there, and what would do.

>>> fit(deploy("llama3.1-8b", "h100_sxm"), batch=64, context=32_768).sentence
'does not fit: needs 291 GB; this card has 85.0 GB, of which 76.5 GB may be used; 14 sequences of
32,768 tokens would; 4 cards would hold all'
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from book.cost import Number
from book.say import say
from book.serving import short
from book.serving.cache import kv_bytes, kv_share, sequences
from book.serving.deployment import Deployment, possible, room, splits, whole_tokens
from book.serving.weights import weight_bytes

FRACTION = short.FRACTION
SERVER = 8  # cards that one server commonly joins


@dataclass(frozen=True, eq=False)
class Fit:
    """Memory that a deployment needs for some sequences, and has. Bytes of one card.

    weights, cache: bytes each card must hold. memory: bytes a card has (`Accelerator.usable`);
    there: those that the engine may use for both. fits: needed <= there.
    sequences: how many of this context fit at once beside the weights; 0 if the weights don't fit.
    cards: the least number of such cards, of those that the model can be split to, that would hold
    all; None if none would. Whether so many can be joined is another matter: the sentence says so.

    For arrays of batch or context the numbers are arrays, `sequences` and `fits` too; `cards` and the
    sentence speak of one deployment, and raise ValueError for arrays.
    """

    deployment: Deployment
    batch: Number
    context: Number
    weights: Number
    cache: Number
    memory: Number
    there: Number
    sequences: Number

    @property
    def needed(self) -> Number:
        """Bytes of each card: its share of the weights and of the caches."""
        return self.weights + self.cache

    @property
    def fits(self) -> bool | np.ndarray:
        """Whether that is there. Of arrays, element by element."""
        answer = self.needed <= self.there
        return answer if np.ndim(answer) else bool(answer)

    @property
    def cards(self) -> int | None:
        """The least number of these cards that would hold all, out of `splits`; None if none would."""
        self._one()
        for gpus in self._splits:
            other = _needed(replace(self.deployment, gpus=gpus), self.batch, self.context)
            if sum(other) <= self.there:
                return gpus
        return None

    @property
    def _splits(self) -> tuple[int, ...]:
        return splits(self.deployment.model, self.deployment.accelerator)

    @property
    def sentence(self) -> str:
        """What to tell the reader: that it fits and with how much to spare, or what would."""
        self._one()
        if not self.fits:
            return "; ".join((self._need(), self._would(), self._cards_would()))
        have = say(
            "fits: needs {needed} of the {there} that may be used of {memory}",
            needed=size(self.needed),
            there=size(self.there),
            memory=size(self.memory),
        )
        count, context = int(self.sequences), f"{self.context:,}"
        if count == 1:
            return "; ".join((have, say("1 sequence of {context} tokens would fit", context=context)))
        would = say("{count} sequences of {context} tokens would fit", count=f"{count:,}", context=context)
        return "; ".join((have, would))

    def _need(self) -> str:
        needed, memory, there = map(size, (self.needed, self.memory, self.there))
        if self.deployment.gpus == 1:
            return say(
                "does not fit: needs {needed}; this card has {memory}, of which {there} may be used",
                needed=needed,
                memory=memory,
                there=there,
            )
        return say(
            "does not fit: needs {needed} on each card, which has {memory}, of which {there} may be used",
            needed=needed,
            memory=memory,
            there=there,
        )

    def _would(self) -> str:
        count, context = int(self.sequences), f"{self.context:,}"
        if self.weights > self.there:
            return say("the weights alone take {weights}", weights=size(self.weights))
        if count == 0:
            return say("not one sequence of {context} tokens would", context=context)
        if count == 1:
            return say("1 sequence of {context} tokens would", context=context)
        return say("{count} sequences of {context} tokens would", count=f"{count:,}", context=context)

    def _cards_would(self) -> str:
        if self.cards is None:
            if self._splits == (1,):
                return say("it has no link to another, so more of them would not help")
            return say("no number of these cards up to {most} would hold all", most=max(self._splits))
        if self.cards == 1:
            return say("1 card would hold all")
        if self.cards > (self.deployment.accelerator.joins or SERVER):
            return say("{cards} cards would hold all, if so many can be joined", cards=self.cards)
        return say("{cards} cards would hold all", cards=self.cards)

    def _one(self) -> None:
        for name in ("batch", "context"):
            if np.ndim(getattr(self, name)):
                raise ValueError(f"{name} = {getattr(self, name)}: a sentence speaks of one; ask for each.")


def size(count: Any) -> str:
    """Bytes, one number, as one reads them here: three digits, in 1e9."""
    billions = float(count) / 1e9
    decimals = 0 if billions >= 99.95 else 1 if billions >= 9.995 else 2
    return say("{size} GB", size=f"{billions:,.{decimals}f}")


def fit(
    d: Deployment,
    batch: Number,
    context: Number,
    *,
    memory: Number | None = None,
    fraction: float = FRACTION,
    reserve: Number = 0,
) -> Fit:
    """What `batch` sequences of `context` tokens need of each card, and whether that is there.

    memory: bytes of a card, by default `Accelerator.usable`; fraction: the share of it that the engine
    may use (vLLM's gpu_memory_utilization is 0.9 by default); reserve: bytes of that for activations
    and graphs. Numbers and arrays.

    Raises ValueError for what can't be asked: less than one sequence, a context that the model
    doesn't take or that is no whole number of tokens, a memory, a fraction or a reserve that can't be.
    """
    possible(d.model, batch=batch, context=context)
    whole_tokens(context)
    memory = d.accelerator.usable if memory is None else memory
    room(memory, fraction, reserve)
    weights, cache = _needed(d, batch, context)
    there = memory * fraction - reserve
    count = sequences(d, context, memory=memory, fraction=fraction, reserve=reserve)
    return Fit(d, batch, context, weights, cache, memory, there, count)


def _needed(d: Deployment, batch: Number, context: Number) -> tuple[Number, Number]:
    """(bytes of weights, bytes of cache) that each card holds."""
    each = kv_bytes(d.model, context, d.kv_itemsize) * kv_share(d.model, d.gpus)
    return weight_bytes(d.model, d.weight_itemsize) / d.gpus, batch * each
