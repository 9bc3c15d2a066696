"""How far a result is from its reference."""

from __future__ import annotations

import math
from typing import Any

import torch


def relative_error(y: Any, reference: Any) -> float:
    """||y - reference|| / ||reference||, in float64, of a tensor or a tuple of tensors as one vector.

    The norm itself where the reference is zero.
    """
    if isinstance(y, tuple):
        y, reference = (torch.cat([x.double().flatten() for x in every]) for every in (y, reference))
    distance = (y.double() - reference.double()).norm().item()
    size = reference.double().norm().item()
    return distance / size if size or math.isnan(size) else distance
