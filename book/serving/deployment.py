"""A model on a machine: what every function of this package is asked about, and what can't be asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

import numpy as np

from book import catalog
from book.catalog import Accelerator, Model
from book.cost import Number
from book.roofline import PLAIN

Count = Literal["read", "all"]
Itemsize = Number | Mapping[str, Number]  # of all parameters, or by part: see `book.serving.weights`


@dataclass(frozen=True, eq=False)
class Deployment:
    """A model on `gpus` equal cards under tensor parallelism.

    weight_itemsize, kv_itemsize: bytes of a stored number, scales included (int4 in groups of 128
    has 4.125 bits: 0.515625; `catalog.effective_itemsize` gives it by name). Of weights it may be a
    mapping over their parts (`book.serving.weights`), as `catalog.storage` has it for checkpoints.
    dtype: what the arithmetic runs in, and so which peak; by default the card's own 16-bit format.
    FP8 weights with FP8 arithmetic need dtype="fp8" said aloud.
    count: "read" charges a step with the parameters that it needs: no input table (a row is looked
    up), the head, the experts that its tokens touch. "all" charges every parameter, the short
    formulas W = P * weight_itemsize and 2 P FLOPs a token.

    Item sizes and gpus may be arrays that broadcast against batch and context, or symbols.

    Raises ValueError for what can't exist: a part of a card, more cards than the model has heads to
    deal out, a number stored in no bytes or in endlessly many.
    """

    model: Model
    accelerator: Accelerator
    weight_itemsize: Itemsize = 2
    kv_itemsize: Number = 2
    gpus: Number = 1
    dtype: str = ""
    count: Count = "read"

    def __post_init__(self) -> None:
        weights = self.weight_itemsize
        sizes = weights if isinstance(weights, Mapping) else {"": weights}
        for part, size in sizes.items():
            _itemsize(f"weight_itemsize[{part!r}]" if part else "weight_itemsize", size)
        _itemsize("kv_itemsize", self.kv_itemsize)
        _whole_cards(self.gpus, self.model)
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


def deploy(
    model: str | Model, accelerator: str | Accelerator, *, checkpoint: str = "", **options: Any
) -> Deployment:
    """A `Deployment` by the catalog's names.

        deploy("llama3.1-70b", "h200_sxm", weight_itemsize=1, gpus=2)
        deploy("gpt-oss-120b", "h100_sxm", checkpoint="mxfp4")

    checkpoint: a way in which weights are published (`catalog.storage`), instead of weight_itemsize.

    Raises catalog.UnknownName, catalog.UnsupportedDtype or ValueError.
    """
    model = catalog.model(model) if isinstance(model, str) else model
    if isinstance(accelerator, str):
        accelerator = catalog.accelerator(accelerator)
    if checkpoint:
        if "weight_itemsize" in options:
            raise ValueError(
                f"checkpoint = {checkpoint!r} with weight_itemsize = {options['weight_itemsize']!r}: both "
                "say what a weight takes; give one of them."
            )
        options["weight_itemsize"] = catalog.storage(model, checkpoint)
    return Deployment(model, accelerator, **options)


def possible(
    model: Model,
    *,
    batch: Number | None = None,
    context: Number | None = None,
    length: Number | None = None,
) -> None:
    """Raise ValueError where no engine could be asked this: less than one sequence, or one too long.

    batch: sequences, at least one (a mean over steps may lie between whole numbers). context, length:
    tokens of a sequence and of a prompt, from 1 to the model's `max_context`. Arrays are checked
    element by element; symbols have no value yet, and pass.
    """
    if batch is not None:
        _refuse(batch, lambda b: b >= 1, "batch", "a step needs one sequence at least; give 1 or more.")
    most = f"{model.name} takes {model.max_context:,} tokens at most; give fewer, or another model."
    for name, tokens in (("context", context), ("length", length)):
        if tokens is not None:
            _refuse(tokens, lambda s: s >= 1, name, "there is one token at least; give 1 or more.")
            _refuse(tokens, lambda s: s <= model.max_context, name, most)


def _itemsize(name: str, value: Number) -> None:
    _refuse(
        value,
        lambda size: size > 0,
        name,
        "bytes of a stored number, above 0; 2 for bf16, 1 for FP8, 0.5 for plain int4.",
    )


def _whole_cards(gpus: Number, model: Model) -> None:
    _refuse(gpus, lambda n: (n >= 1) & (n == np.floor(n)), "gpus", "cards come whole; give 1, 2, 4, ...")
    _refuse(
        gpus,
        lambda n: n <= model.heads,
        "gpus",
        f"{model.name} has {model.heads} heads to deal out; take {model.heads} at most, or copies of it.",
    )


def _refuse(value: Any, good: Callable[[Any], Any], name: str, remedy: str) -> None:
    """ValueError that names the first number of `value` that is not finite or not good."""
    if getattr(value, "free_symbols", None):
        return
    if type(value) in PLAIN and isfinite(value) and good(value):
        return  # the common case, without an array
    numbers = np.atleast_1d(np.asarray(value, float))
    bad = numbers[~(np.isfinite(numbers) & good(numbers))]
    if bad.size:
        raise ValueError(f"{name} = {bad[0]:g}: {remedy}")
