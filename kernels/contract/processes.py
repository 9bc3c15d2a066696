"""Other Python processes of this book: what they have to be told."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # of this checkout


def environment(*, interpret: bool) -> dict[str, str]:
    """A child's environment: Triton's mode said explicitly, this checkout first on the path."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "TRITON_INTERPRET": "1" if interpret else "0", "PYTHONPATH": path}
