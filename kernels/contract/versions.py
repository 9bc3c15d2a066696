"""Versions of what computes here, by whatever name its distribution has."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

# The names under which Triton is distributed: PyPI's, and those that ROCm builds of torch bring.
TRITON = ("triton", "pytorch-triton-rocm", "triton-rocm", "pytorch-triton")


def installed(package: str) -> str | None:
    """The version of a package, "triton" by any of its names; None where it is absent."""
    for name in TRITON if package == "triton" else (package,):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return None
