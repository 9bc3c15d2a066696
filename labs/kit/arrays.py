"""Arrays as JSON carries them between processes: dtype, shape, and the bytes in base64."""

from __future__ import annotations

import base64
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
