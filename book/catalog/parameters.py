"""A model's parameters, counted from its shapes alone: by what reads them, and by what they are.

`parameter_kinds` is the one count; `Model.parameter_parts` and `Model.parameters` are its sums. Two
divisions, because two questions are asked. What a step reads goes by *part*: of the input table a
row a token, of the experts those that are touched, the head once. What a checkpoint keeps in which
format goes by *kind*: a matrix in FP8 or FP4, its scales in FP32, a norm in BF16.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from book.catalog.architecture import Experts, Layers, Model

PARTS = ("input table", "blocks", "experts", "prediction", "head")
KINDS = (
    "tables",  # input table and head: a row a token of the vocabulary
    "attention",  # the matrices around attention
    "mlp",  # the matrices of dense layers and of shared experts
    "experts",  # the matrices of routed experts
    "expert biases",
    "scales",  # FP8 blocks' own, where the checkpoint is published with them
    "router",
    "routing biases",  # DeepSeek's correction, added to the scores that choose
    "vectors",  # norms, biases, sinks
    "projection",  # of a prediction module: [hidden, embedding] to a width
)
FP8_BLOCK = 128  # DeepSeek's FP8 weights carry one scale per 128 x 128 block

Kinds = Counter[str]


def parameter_kinds(model: Model) -> Mapping[str, Mapping[str, int]]:
    """part -> kind -> count, of every number that a checkpoint stores. All parts are there."""
    dense, moe = model.dense_layers, model.experts
    blocks = _times(dense, _block(model) + _mlp(model, model.d_ff))
    experts: Kinds = Counter()
    if moe is not None:
        mixtures = model.layers - dense
        blocks += _times(mixtures, _block(model) + _around_experts(model, moe))
        experts = _times(mixtures * moe.n_experts, _expert(model, moe))
    blocks["vectors"] += model.d_model * (2 if model.norm_bias else 1)  # the final norm
    table = model.vocab * model.d_model
    parts: dict[str, Kinds] = {
        "input table": Counter(tables=0 if model.tied_embeddings else table),
        "blocks": blocks,
        "experts": experts,
        "prediction": _times(model.mtp_layers, _mtp(model)),
        "head": Counter(tables=table, vectors=model.vocab if model.head_bias else 0),
    }
    return MappingProxyType(
        {part: MappingProxyType({k: n for k in KINDS if (n := counts[k])}) for part, counts in parts.items()}
    )


def _times(count: int, kinds: Kinds) -> Kinds:
    return Counter({kind: count * n for kind, n in kinds.items()})


def _matrices(model: Model, kind: str, layers: Layers) -> Kinds:
    """Elements of these matrices, and of their scales if they are stored in FP8 blocks."""
    made = Counter({kind: sum(k * n for k, n in layers.values())})
    if model.fp8_block_scales:
        made["scales"] = sum(-(-k // FP8_BLOCK) * -(-n // FP8_BLOCK) for k, n in layers.values())
    return made


def _block(model: Model) -> Kinds:
    """One transformer block but for its MLP: norms and attention."""
    a, d = model.attention, model.d_model
    made = _matrices(model, "attention", attention_layers(model))
    vectors = model.norms_per_layer * d * (2 if model.norm_bias else 1)
    if a.type == "mla":
        vectors += a.q_lora_rank + a.kv_lora_rank  # one norm on each latent
    if a.qkv_bias:
        vectors += (model.heads + 2 * model.kv_heads) * model.head_dim
    if a.o_bias:
        vectors += d
    if a.qk_norm == "head":
        vectors += 2 * model.head_dim  # one norm for queries, one for keys, shared by the heads
    elif a.qk_norm == "all":
        vectors += (model.heads + model.kv_heads) * model.head_dim  # over all heads at once
    if a.sinks:
        vectors += model.heads  # one learned logit a head
    return made + Counter(vectors=vectors)


def _mlp(model: Model, width: int) -> Kinds:
    return _matrices(model, "mlp", mlp_layers(model.d_model, width))


def _expert(model: Model, moe: Experts) -> Kinds:
    """One routed expert."""
    biases = 2 * moe.d_ff_expert + model.d_model if moe.expert_bias else 0
    layers = mlp_layers(model.d_model, moe.d_ff_expert)
    return _matrices(model, "experts", layers) + Counter({"expert biases": biases})


def _around_experts(model: Model, moe: Experts) -> Kinds:
    """What a block has beside its routed experts: the shared ones, and the router."""
    # Shared experts are stored as one wide MLP; with 128 x 128 blocks that is the same sum.
    made = _mlp(model, moe.n_shared * moe.d_ff_expert)
    made["router"] = model.d_model * moe.n_experts  # never quantised
    made["vectors"] = moe.n_experts * moe.router_bias
    made["routing biases"] = moe.n_experts * moe.router_correction_bias
    return made


def _mtp(model: Model) -> Kinds:
    """A multi-token-prediction module as DeepSeek-V3's checkpoint holds it.

    A whole block; a projection of [hidden, embedding] (2d to d) with a norm on either half and one
    before the head; and its own copies of the embedding table and the head.
    """
    d, moe = model.d_model, model.experts
    if moe is None:
        mlp = _mlp(model, model.d_ff)
    else:
        mlp = _around_experts(model, moe) + _times(moe.n_experts, _expert(model, moe))
    own = Counter(projection=2 * d * d, vectors=3 * d, tables=2 * model.vocab * d)
    return _block(model) + mlp + own


def attention_layers(model: Model) -> Layers:
    """The matrices around attention: label -> (k, n)."""
    d, a = model.d_model, model.attention
    if a.type == "mla":
        qk_head_dim = a.qk_nope_head_dim + a.qk_rope_head_dim
        return {
            "q down projection": (d, a.q_lora_rank),
            "q up projection": (a.q_lora_rank, model.heads * qk_head_dim),
            "kv down projection": (d, a.kv_lora_rank + a.qk_rope_head_dim),
            "kv up projection": (a.kv_lora_rank, model.heads * (a.qk_nope_head_dim + a.v_head_dim)),
            "o projection": (model.heads * a.v_head_dim, d),
        }
    return {
        "q projection": (d, model.heads * model.head_dim),
        "k projection": (d, model.kv_heads * model.head_dim),
        "v projection": (d, model.kv_heads * model.head_dim),
        "o projection": (model.heads * model.head_dim, d),
    }


def mlp_layers(d_model: int, width: int, prefix: str = "") -> Layers:
    """A gated MLP (SwiGLU, GeGLU): three matrices, not two."""
    return {
        f"{prefix}gate": (d_model, width),
        f"{prefix}up": (d_model, width),
        f"{prefix}down": (width, d_model),
    }
