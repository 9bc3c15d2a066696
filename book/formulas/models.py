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
from book.serving.cache import attention_of_a_layer

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


ENDLESS = 2**40  # tokens: a window that no context reaches


@cache
def served_models() -> Presets:
    """Every model of the catalog, in facts that hold for windows, latents and experts too.

    parameters: read in every step; routed: those of all experts together, of which each token takes
    chosen of experts. scores: FLOPs of one token of context in one layer; cached: numbers that it keeps
    there, dealt out to cards by kv_heads (a latent to none). windowed layers look back on window tokens,
    or to the last multiple of chunk.
    """
    return {m.name: {"": _served(m)} for m in catalog.models()}


def _served(m: Model) -> dict[str, float]:
    parts, moe, a = m.parameter_parts, m.experts, m.attention
    layer = attention_of_a_layer(m, 1, 1, 1)
    chunked = a.window_kind == "chunked"
    return {
        "parameters": parts["blocks"] + parts["head"],
        "routed": parts["experts"],
        "experts": moe.n_experts if moe else 1,
        "chosen": moe.top_k if moe else 1,
        "stored": m.parameters,
        "layers": m.layers,
        "windowed": a.window_layers if a.window else 0,
        "window": a.window if a.window and not chunked else ENDLESS,
        "chunk": a.window if chunked else ENDLESS,
        "scores": int(layer.flops),
        "cached": int(layer.bytes),
        "heads": m.heads,
        "kv_heads": 1 if a.type == "mla" else m.kv_heads,
        "max_context": m.max_context,
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
