"""What can go wrong with evidence, as exceptions whose message is a sentence."""

from __future__ import annotations


class PhysicsDisagrees(AssertionError):
    """The kernel moved other bytes, or did other FLOPs, than its formula says."""


class ImpossibleResult(AssertionError):
    """A measurement is better than the machine allows, so it measured something else."""


class Unsupported(ValueError):
    """A target, dtype or machine that cannot do what was asked; the message says what it can."""
