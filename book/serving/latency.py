"""What a user feels: the time to the first token, and between two tokens."""

from __future__ import annotations

from typing import Any, Protocol

from book.cost import Number
from book.serving.deployment import Deployment
from book.serving.step_law import IDEAL


class StepTime(Protocol):
    """A law of steps: `step_law.StepLaw` or `term_law.TermLaw`."""

    def step(self, d: Deployment, batch: Any, context: Any, **more: Any) -> Number:
        """Seconds of a step."""


class FirstTokenTime(Protocol):
    """A law of first tokens: `term_law.FirstToken`, or `step_law.IDEAL`, which is the floor."""

    def first_token(self, d: Deployment, length: Any, batch: Any, **more: Any) -> Number:
        """Seconds to a first token."""


def ttft(
    d: Deployment, length: Number, batch: Number = 1, law: FirstTokenTime = IDEAL, **more: Any
) -> Number:
    """Time to first token, seconds. Without a law, the floor of `batch` prompts read at once.

    A `term_law.FirstToken` adds the wait: of `batch` users who start together, the mean request's. What it
    wants besides goes into `more` (engine, chunk, rounds).
    """
    return law.first_token(d, length, batch, **more)


def tpot(d: Deployment, batch: Number, context: Number, law: StepTime = IDEAL, **more: Any) -> Number:
    """Time per output token, seconds, on average. Without a law, the floor of one decode step.

    A `term_law.TermLaw` takes the terms of `step_terms.step_terms`, which knows the rest of `more`: with
    `outputs=`, the tokens of a whole answer, other users' prompts are in it, and no more sequences than fit.
    It takes numbers, no arrays.
    """
    return law.step(d, batch, context, **more)


def throughput(d: Deployment, batch: Number, context: Number, law: StepTime = IDEAL, **more: Any) -> Number:
    """Tokens per second of all sequences together while they decode."""
    return batch / tpot(d, batch, context, law, **more)
