"""A model on a machine: what every function of this package is asked about, and what can't be asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

import numpy as np

from book import catalog
from book.catalog import Accelerator, Model, NoLink
from book.catalog.parameters import PARTS
from book.cost import Number
from book.roofline import PLAIN
from book.serving import short

Count = Literal["read", "all"]
OTHERS = "others"  # in a mapping of item sizes: every part that it doesn't name
SMALLEST, LARGEST = 1 / 8, 8  # bytes of a stored number: a bit, a float64
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

    Raises ValueError for what can't exist: a part of a card, numbers of cards that heads can't be dealt
    out to evenly (`splits`), several cards with no link between them (catalog.NoLink), a number stored
    in no bytes or in more than a float64 has.
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
        if isinstance(weights, Mapping):
            for part, size in weights.items():
                _itemsize(f"weight_itemsize[{part!r}]", size)
            itemsizes(self.model, weights)  # a part that is unknown or left out is refused
        else:
            _itemsize("weight_itemsize", weights)
        _itemsize("kv_itemsize", self.kv_itemsize)
        _whole_cards(self.gpus, self.model, self.accelerator)
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

    Raises catalog.UnknownName, catalog.UnsupportedDtype, catalog.NoLink or ValueError.
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
        options["weight_itemsize"] = catalog.storage(model, checkpoint, "checkpoint")
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


def whole_tokens(context: Number) -> None:
    """Raise ValueError for a part of a token. A step's mean context may have one; a cache may not."""
    _refuse(context, lambda s: s == np.floor(s), "context", "a cache holds whole tokens; round it.")


def room(memory: Number, fraction: Number, reserve: Number) -> None:
    """Raise ValueError where a card can't have this memory, or an engine not this share of it."""
    _refuse(memory, lambda m: m > 0, "memory", "bytes of a card, above 0; leave it out for the catalog's.")
    _refuse(
        fraction, lambda f: (f > 0) & (f <= 1), "fraction", "the share that may be used; from 0 to 1, not 0."
    )
    _refuse(reserve, lambda r: r >= 0, "reserve", "bytes kept for other things; give 0 or more.")


def itemsizes(model: Model, weight_itemsize: Itemsize) -> dict[str, Number]:
    """Part -> bytes of one of its parameters, for every part that the model has.

    Raises ValueError for a part that is unknown, or left out with no "others" to stand for it.
    """
    held = [part for part in PARTS if model.parameter_parts[part]]
    if not isinstance(weight_itemsize, Mapping):
        return dict.fromkeys(held, weight_itemsize)
    for part in weight_itemsize:
        if part not in (*PARTS, OTHERS):
            raise ValueError(
                f"weight_itemsize names {part!r}: no part of a model; use {', '.join(PARTS)} or {OTHERS!r}."
            )
    for part in held:
        if part not in weight_itemsize and OTHERS not in weight_itemsize:
            raise ValueError(
                f"weight_itemsize says nothing of {part!r}, which {model.name} has: add it, or {OTHERS!r}."
            )
    return {part: weight_itemsize[part if part in weight_itemsize else OTHERS] for part in held}


def splits(model: Model, accelerator: Accelerator | None = None) -> tuple[int, ...]:
    """Numbers of cards that tensor parallelism can deal this model out to, smallest first.

    Query heads must come out even; KV heads must too, or each be copied to the same number of cards
    (a latent cache always is, to all). That is what vLLM, SGLang and TensorRT-LLM ask for. A card
    with no link to its kind stays alone.
    """
    if accelerator is not None and accelerator.interconnect_bandwidth is None:
        return (1,)
    return tuple(gpus for gpus in range(1, model.heads + 1) if not _uneven(model, gpus))


def _uneven(model: Model, gpus: Number) -> Number:
    kv_heads = 1 if model.attention.type == "mla" else model.kv_heads
    return short.uneven(model.heads, kv_heads, gpus)


def _itemsize(name: str, value: Number) -> None:
    if isinstance(value, str):
        raise ValueError(
            f"{name} = {value!r}: bytes of a stored number, not a name. catalog.effective_itemsize "
            "has the bytes of a format by name, deploy(..., checkpoint=...) those of published weights."
        )
    if isinstance(value, Mapping):
        raise ValueError(f"{name} = {dict(value)!r}: one number for all; only weights have parts.")
    _refuse(
        value,
        lambda size: (size >= SMALLEST) & (size <= LARGEST),
        name,
        f"bytes of a stored number, from {SMALLEST:g} to {LARGEST:g}; 2 for bf16, 1 for FP8, 0.5 for plain "
        "int4.",
    )


def _whole_cards(gpus: Number, model: Model, accelerator: Accelerator) -> None:
    _refuse(gpus, lambda n: (n >= 1) & (n == np.floor(n)), "gpus", "cards come whole; give 1, 2, 4, ...")
    _refuse(
        gpus,
        lambda n: n <= model.heads,
        "gpus",
        f"{model.name} has {model.heads} heads to deal out; take {model.heads} at most, or copies of it.",
    )
    numbers = ", ".join(map(str, splits(model)))
    _refuse(
        gpus,
        lambda n: _uneven(model, n) == 0,
        "gpus",
        f"{model.name}'s heads, {model.heads} with {model.kv_heads} for keys and values, can't be dealt out "
        f"evenly; take one of {numbers}.",
    )
    if accelerator.interconnect_bandwidth is None:
        alone = f"{accelerator.name} has no link to another of its kind; take 1."
        try:
            _refuse(gpus, lambda n: n <= 1, "gpus", alone)
        except ValueError as error:
            raise NoLink(str(error)) from None


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
