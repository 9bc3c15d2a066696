"""What can go wrong with evidence, as exceptions whose message is a sentence."""

from __future__ import annotations


class PhysicsDisagrees(AssertionError):
    """The kernel moved other bytes, or did other FLOPs, than its formula says."""


class CompilerAtFault(PhysicsDisagrees):
    """The compiled code lacks what no line of a kernel can ask for, so another compiler has to be used."""


class ImpossibleResult(AssertionError):
    """A measurement is better than the machine allows, so it measured something else."""


class NotExecutable(Exception):
    """Compiled code that can't be executed on this CPU; the message says which part of it isn't known."""


class CardRefuses(PhysicsDisagrees, NotExecutable):
    """Compiled code did what a card would refuse, or stop at: an access outside every tensor, say."""


class Unsupported(ValueError):
    """A target, dtype or machine that cannot do what was asked; the message says what it can."""
