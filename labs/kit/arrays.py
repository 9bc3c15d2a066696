"""Arrays as JSON carries them between processes: dtype, shape, and the bytes in base64."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def packed(array: np.ndarray) -> dict[str, Any]:
    """`array` as JSON can hold it."""
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
    return {"dtype": array.dtype.name, "shape": list(array.shape), "base64": data}


def unpacked(value: Mapping[str, Any]) -> np.ndarray:
    """The array again, writable. Raises ValueError if the bytes don't fill the shape."""
    flat = np.frombuffer(base64.b64decode(value["base64"], validate=True), dtype=np.dtype(value["dtype"]))
    return flat.reshape([int(n) for n in value["shape"]]).copy()


LARGEST, LONGEST, DEEPEST = 10**300, 1000, 8  # of a number, a string and lists in lists


def harmless(value: Any, depth: int = DEEPEST) -> Any:
    """A value from JSON that can be compared, calculated with and shown, whatever was sent."""
    if isinstance(value, int) and abs(value) > LARGEST:
        return math.inf if value > 0 else -math.inf  # no float holds it
    if isinstance(value, list | dict) and not depth:
        return "..."
    if isinstance(value, list):
        return [harmless(one, depth - 1) for one in value]
    if isinstance(value, dict):
        return {name: harmless(one, depth - 1) for name, one in value.items()}
    return value[:LONGEST] if isinstance(value, str) else value
