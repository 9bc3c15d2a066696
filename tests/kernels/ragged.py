"""Sizes at which every experiment is tried: small, odd, beside the edges of tiles; and its own edges."""

from __future__ import annotations

import math
import random
from functools import cache

from kernels.contract.experiment import Experiment
from kernels.evidence.experiments import all_experiments

# beside powers of two, primes, and what Triton's own tests like
ODD = (1, 2, 3, 5, 16, 17, 37, 64, 65, 96, 128, 130, 200, 257)
WORK, PROGRAMS = 2e6, 32  # FLOPs and bytes, and programs, of a case at most: the interpreter is slow
CASES, TRIES = 3, 20_000


@cache
def _drawn(key: str) -> list[dict[str, int]]:
    experiment = all_experiments()[key]
    draw, found, dtype = random.Random(experiment.name), [], experiment.default_dtype()
    for _ in range(TRIES):
        if len(found) == CASES:
            break
        sizes = {name: draw.choice(ODD) for name in experiment.sizes}
        if not all(eval(condition, {}, dict(sizes)) for condition in experiment.conditions):
            continue
        if sizes not in found and _small(experiment, dtype, sizes):
            found.append(sizes)
    if not found and not experiment.edges:
        raise ValueError(
            f"{key}: its conditions {list(experiment.conditions)} leave no small sizes to try; give it "
            "edges=, sizes that they allow."
        )
    return found


def ragged(experiment: Experiment) -> list[dict[str, int]]:
    """Its own edges and CASES random ones that its conditions allow: the same in every run."""
    edges = [dict(zip(experiment.sizes, values, strict=True)) for values in experiment.edges]
    return [*edges, *_drawn(experiment.key)]


def _small(experiment: Experiment, dtype: str, sizes: dict[str, int]) -> bool:
    cost = experiment.formula(dtype, **sizes)
    if cost.flops + cost.bytes > WORK:
        return False
    launches = experiment.meta_launches(experiment.plan(**sizes, dtype=dtype), dtype, **sizes)
    return sum(math.prod(launch.grid) for launch in launches) <= PROGRAMS


def smallest(experiment: Experiment) -> dict[str, int]:
    """One ragged case, the cheapest with the fewest sizes of one: an axis of one has no neighbours."""
    dtype = experiment.default_dtype()

    def worth(sizes: dict[str, int]) -> tuple[int, float]:
        return sum(n == 1 for n in sizes.values()), experiment.formula(dtype, **sizes).bytes

    return min(ragged(experiment), key=worth)
