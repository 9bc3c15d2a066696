"""A model on a machine: what every function of this package is asked about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from book import catalog
from book.catalog import Accelerator, Model
from book.cost import Number
from book.cost.base import positive

Count = Literal["read", "all"]


@dataclass(frozen=True, eq=False)
class Deployment:
    """A model on `gpus` equal cards under tensor parallelism.

    weight_itemsize, kv_itemsize: bytes of a stored number, scales included (int4 in groups of 128
    has 4.125 bits: 0.515625; `catalog.effective_itemsize` gives it by name).
    dtype: what the arithmetic runs in, and so which peak; by default the card's own 16-bit format.
    FP8 weights with FP8 arithmetic need dtype="fp8" said aloud.
    count: "read" charges a step with the parameters that it needs: no input table (a row is looked
    up), the head, the experts that its tokens touch. "all" charges every parameter, the short
    formulas W = P * weight_itemsize and 2 P FLOPs a token.

    weight_itemsize, kv_itemsize and gpus may be arrays that broadcast against batch and context.
    """

    model: Model
    accelerator: Accelerator
    weight_itemsize: Number = 2
    kv_itemsize: Number = 2
    gpus: Number = 1
    dtype: str = ""
    count: Count = "read"

    def __post_init__(self) -> None:
        positive(weight_itemsize=self.weight_itemsize, kv_itemsize=self.kv_itemsize, gpus=self.gpus)
        if self.count not in ("read", "all"):
            raise ValueError(f"count = {self.count!r}: not known; use 'read' or 'all'.")
        object.__setattr__(self, "dtype", self.dtype or self.accelerator.default_dtype)
        self.accelerator.peak(self.dtype)  # a rate that the card lacks is refused here, by name

    @property
    def peak(self) -> float:
        """Dense FLOP/s of one card."""
        return self.accelerator.peak(self.dtype)

    @property
    def bandwidth(self) -> float:
        """Bytes/s of one card."""
        return self.accelerator.bandwidth


def deploy(model: str | Model, accelerator: str | Accelerator, **options: Any) -> Deployment:
    """A `Deployment` by the catalog's names.

        deploy("llama3.1-70b", "h200_sxm", weight_itemsize=1, gpus=2)

    Raises catalog.UnknownName, catalog.UnsupportedDtype or ValueError.
    """
    model = catalog.model(model) if isinstance(model, str) else model
    if isinstance(accelerator, str):
        accelerator = catalog.accelerator(accelerator)
    return Deployment(model, accelerator, **options)
