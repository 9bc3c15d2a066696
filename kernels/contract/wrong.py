"""A kernel with a mistake: right in its numbers, wrong in its traffic. It is counted beside the right one."""

from __future__ import annotations

from dataclasses import dataclass

from kernels.contract.experiment import Experiment


@dataclass(frozen=True)
class Wrong:
    """One mistake, as an experiment that computes the same.

    experiment: the right one's sizes, tensors, reference and cost with another way to run it. Its
    `issued` says by name which workspace is no part of the mistake. mistake: what it does, in a sentence.
    """

    experiment: Experiment
    mistake: str
