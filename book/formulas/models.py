"""What the model dropdown sets: the catalog's shapes, in the formulas' symbols.

The short formulas hold where all layers are alike. So models with sliding windows and with a
latent cache are left out, and mixtures of experts too wherever weights count.
"""

from __future__ import annotations

from functools import cache

from book import catalog
from book.catalog import Model
from book.formulas.formula import Presets
from book.say import say
from book.serving import linear_numbers, parameters_read

START = "Llama-3.1-8B"  # where every explorer of a whole model begins
# both ways of counting P
ALL, READ = say("all parameters"), say("without the input table")


def _alike(model: Model) -> bool:
    return model.attention.type != "mla" and not model.attention.window


def _dense() -> list[Model]:
    return [m for m in catalog.models() if _alike(m) and m.experts is None]


def _attention(model: Model) -> dict[str, float]:
    return {"heads": model.heads, "kv_heads": model.kv_heads, "head_dim": model.head_dim}


@cache
def attention_shapes() -> Presets:
    """heads, kv_heads and head_dim of every model whose layers are alike."""
    return {
        m.name: {"": {**_attention(m), "max_context": m.max_context}} for m in catalog.models() if _alike(m)
    }


@cache
def kv_shapes() -> Presets:
    """layers, kv_heads and head_dim: what the cache is made of."""
    return {
        m.name: {
            "": {
                "layers": m.layers,
                "kv_heads": m.kv_heads,
                "head_dim": m.head_dim,
                "max_context": m.max_context,
            }
        }
        for m in catalog.models()
        if _alike(m)
    }


@cache
def dense_models() -> Presets:
    """Whole models with every parameter counted, as P in the short formulas."""
    return {
        m.name: {
            "": {
                "parameters": m.parameters,
                "stored": m.parameters,
                "layers": m.layers,
                **_attention(m),
                "activations": linear_numbers(m),
                "max_context": m.max_context,
            }
        }
        for m in _dense()
    }


@cache
def read_models() -> Presets:
    """Whole models with the parameters that a step reads: no input table, of which it takes a row."""
    return {
        m.name: {
            "": {
                "parameters": int(parameters_read(m)),
                "head": m.parameter_parts["head"],
                "stored": m.parameters,
                "layers": m.layers,
                **_attention(m),
                "max_context": m.max_context,
            }
        }
        for m in _dense()
    }


@cache
def weights_only() -> Presets:
    """P alone, both ways of counting it; one way where the input table is the head as well."""
    made = {}
    for m in _dense():
        read, every = int(parameters_read(m)), m.parameters
        held = {"stored": every, "heads": m.heads, "kv_heads": m.kv_heads}
        counts = {READ: read, ALL: every} if read != every else {ALL: every}
        made[m.name] = {label: {"parameters": count, **held} for label, count in counts.items()}
    return made
