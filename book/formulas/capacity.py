"""What a position of the sliders asks of a card's memory, and what it asks that can't be.

A formula with weights or a cache says in a `Capacity` how many bytes they are. Python evaluates its
expressions, the page runs the JavaScript that is generated from them, and both say in a sentence
whether it fits. The arithmetic is `book.serving.short`'s, which `serving.fit` uses for a deployment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import sympy

from book import roofline
from book.formulas.symbols import Parameter, symbol
from book.serving import short

CARDS = symbol("cards")  # how many share it: the reader's number, or one that is tried

# What the bytes are of: a whole model at work; weights with no cache beside them; caches of all layers with
# no weights; the caches of one layer.
Held = Literal["model", "weights", "cache", "layer"]


@dataclass(frozen=True)
class Capacity:
    """Bytes that a formula's position holds in memory, on `gpus` cards that share it.

    held: what these bytes are of. weights: bytes of all weights; sequence: bytes of one sequence's cache;
    batch: sequences. heads, kv_heads: what is dealt out to the cards; without heads no other number of
    cards is proposed. gpus: the symbol of the slider that counts the cards; "" for one card.
    alone: 1 where nothing joins two such cards, so that one holds everything.
    fraction: the share of a card that an engine may use. broken: {word: expression}, positive where a
    position can't be whatever the memory. parameters: those of its symbols that the formula may lack.
    """

    held: Held
    memory: sympy.Expr
    weights: sympy.Expr = sympy.S.Zero
    sequence: sympy.Expr = sympy.S.Zero
    batch: sympy.Expr = sympy.S.Zero
    heads: sympy.Expr | None = None
    kv_heads: sympy.Expr = sympy.S.One
    gpus: str = ""
    alone: sympy.Expr = sympy.S.Zero
    fraction: sympy.Expr | float = short.FRACTION
    broken: Mapping[str, sympy.Expr] = field(default_factory=dict)
    parameters: tuple[Parameter, ...] = ()

    @property
    def outputs(self) -> dict[str, sympy.Expr]:
        """Bytes of one of `CARDS` cards, sequences that fit there, and whether heads come out even.

        needed, weights, there (what may be used), memory: bytes. sequences: whole ones that fit beside
        the weights. uneven: 0 where so many cards can share it. heads: how many could at most.
        """
        there = self.memory * self.fraction
        weights = self.weights / CARDS
        share = short.kv_share(self.kv_heads, CARDS)
        each = self.sequence * share
        made = {
            "needed": weights + self.batch * each,
            "weights": weights,
            "there": there,
            "memory": self.memory,
            "uneven": sympy.S.Zero,
            "heads": sympy.S.Zero,
        }
        if self.sequence != 0:
            made["sequences"] = sympy.floor(roofline.most(0, (there - weights) / each))
        if self.heads is not None:
            uneven = short.uneven(self.heads, self.kv_heads, CARDS) + self.alone * (CARDS - 1)
            made |= {"uneven": uneven, "heads": self.heads}
        return {name: sympy.sympify(e) for name, e in made.items()}
