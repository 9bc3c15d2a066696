"""Models: their shapes, their linear layers, and their parameters counted from the shapes alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from book.catalog.rows import Row, Source, read, rows

PATH = Path(__file__).with_name("models.yaml")
ATTENTIONS = ("mha", "gqa", "mla")
FP8_BLOCK = 128  # DeepSeek's FP8 weights carry one scale per 128 x 128 block

Layers = dict[str, tuple[int, int]]  # label -> (k inputs, n outputs)


@dataclass(frozen=True)
class Attention:
    """Attention beyond heads and widths. The MLA ranks are 0 for mha and gqa.

    window: tokens a sliding-window layer looks back (0: none), and how many layers have one.
    """

    type: str
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    qk_nope_head_dim: int = 0
    qk_rope_head_dim: int = 0
    v_head_dim: int = 0
    qkv_bias: bool = False
    o_bias: bool = False
    qk_norm: bool = False
    sinks: bool = False
    window: int = 0
    window_layers: int = 0
    global_layers: int = 0
    pattern: str = ""


@dataclass(frozen=True)
class Experts:
    """The mixture of experts of a block: `top_k` of `n_experts`, each `d_ff_expert` wide."""

    n_experts: int
    top_k: int
    n_shared: int
    d_ff_expert: int
    n_dense_layers: int
    router_bias: bool
    expert_bias: bool
    router_correction_bias: bool


@dataclass(frozen=True)
class Model:
    """One open-weight model. Widths are in elements.

    kv_heads: for MLA the config's own number; its cache is kv_lora_rank + qk_rope_head_dim wide.
    vocab: padded rows of the embedding. norms_per_layer: d_model-sized RMSNorms in a block.
    published_parameters: the total found in a public source, `count_scope` what that covers.
    label_parameters, label_active_parameters: what the vendor prints, rounded.
    """

    id: str
    name: str
    hf_id: str
    layers: int
    d_model: int
    heads: int
    kv_heads: int
    head_dim: int
    d_ff: int
    vocab: int
    tied_embeddings: bool
    norms_per_layer: int
    max_context: int
    attention: Attention
    experts: Experts | None
    mtp_layers: int
    fp8_block_scales: bool
    published_parameters: int
    count_scope: str
    label_parameters: float
    label_active_parameters: float | None
    sources: tuple[Source, ...]
    notes: str

    @property
    def source(self) -> str:
        """All sources as one line."""
        return "; ".join(s.text for s in self.sources)

    def linear_layers(self) -> Layers:
        """Each distinct linear layer: label -> (k, n), for y[m, n] = x[m, k] @ w[k, n].

        Of a mixture of experts, one expert; the head last.
        """
        layers = _attention_layers(self)
        moe = self.experts
        if moe is None or moe.n_dense_layers:
            layers |= _mlp_layers(self.d_model, self.d_ff)
        if moe is not None:
            layers["router"] = (self.d_model, moe.n_experts)
            layers |= _mlp_layers(self.d_model, moe.d_ff_expert, "expert ")
            if moe.n_shared:
                layers |= _mlp_layers(self.d_model, moe.n_shared * moe.d_ff_expert, "shared expert ")
        layers["head"] = (self.d_model, self.vocab)
        return layers

    @property
    def parameters(self) -> int:
        """Every number a checkpoint stores, counted from the fields; see the comments below."""
        return sum(self.parameter_parts.values())

    @property
    def parameter_parts(self) -> dict[str, int]:
        """`parameters` by what reads them: they add up to it.

        "input table": looked up, a row a token; 0 where it is tied, for then a step reads all of it
        as the "head". "experts": the routed ones, all of them. "prediction": multi-token-prediction
        modules, which plain decoding leaves alone. "blocks": the rest, read for every token.
        """
        dense = self.layers if self.experts is None else self.experts.n_dense_layers
        blocks, experts = dense * _block(self, _dense_mlp(self)), 0
        if self.experts is not None:
            experts = (self.layers - dense) * self.experts.n_experts * _expert(self, self.experts)
            blocks += (self.layers - dense) * _block(self, _mixture(self, self.experts)) - experts
        embedding = self.vocab * self.d_model
        return {
            "input table": 0 if self.tied_embeddings else embedding,
            "blocks": blocks + self.d_model,  # with the final norm
            "experts": experts,
            "prediction": self.mtp_layers * _mtp(self),
            "head": embedding,
        }


def _attention_layers(model: Model) -> Layers:
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


def _mlp_layers(d_model: int, width: int, prefix: str = "") -> Layers:
    """A gated MLP (SwiGLU, GeGLU): three matrices, not two."""
    return {
        f"{prefix}gate": (d_model, width),
        f"{prefix}up": (d_model, width),
        f"{prefix}down": (width, d_model),
    }


def _weights(layers: Layers, fp8_block_scales: bool) -> int:
    """Elements of these matrices, and of their scales if they are stored in FP8 blocks."""
    total = sum(k * n for k, n in layers.values())
    if fp8_block_scales:
        total += sum(-(-k // FP8_BLOCK) * -(-n // FP8_BLOCK) for k, n in layers.values())
    return total


def _block(model: Model, mlp: int) -> int:
    """One transformer block: its norms, its attention, and an MLP of `mlp` parameters."""
    return model.norms_per_layer * model.d_model + _attention(model) + mlp


def _dense_mlp(model: Model) -> int:
    return _weights(_mlp_layers(model.d_model, model.d_ff), model.fp8_block_scales)


def _attention(model: Model) -> int:
    a = model.attention
    total = _weights(_attention_layers(model), model.fp8_block_scales)
    if a.type == "mla":
        total += a.q_lora_rank + a.kv_lora_rank  # one norm on each latent
    if a.qkv_bias:
        total += (model.heads + 2 * model.kv_heads) * model.head_dim
    if a.o_bias:
        total += model.d_model
    if a.qk_norm:
        total += 2 * model.head_dim  # one norm for queries, one for keys, shared by the heads
    if a.sinks:
        total += model.heads  # one learned logit a head
    return total


def _expert(model: Model, moe: Experts) -> int:
    """One routed expert."""
    one = _weights(_mlp_layers(model.d_model, moe.d_ff_expert), model.fp8_block_scales)
    return one + (2 * moe.d_ff_expert + model.d_model if moe.expert_bias else 0)


def _mixture(model: Model, moe: Experts) -> int:
    """All experts of a block, the shared ones and the router."""
    d, scales = model.d_model, model.fp8_block_scales
    one = _expert(model, moe)
    # Shared experts are stored as one wide MLP; with 128 x 128 blocks that is the same sum.
    shared = _weights(_mlp_layers(d, moe.n_shared * moe.d_ff_expert), scales)
    router = d * moe.n_experts  # never quantised
    router += moe.n_experts * (moe.router_bias + moe.router_correction_bias)
    return moe.n_experts * one + shared + router


def _mtp(model: Model) -> int:
    """A multi-token-prediction module as DeepSeek-V3's checkpoint holds it.

    A whole block; a projection of [hidden, embedding] (2d to d) with a norm on either half and one
    before the head; and its own copies of the embedding table and the head.
    """
    d = model.d_model
    mlp = _dense_mlp(model) if model.experts is None else _mixture(model, model.experts)
    return _block(model, mlp) + 2 * d * d + 3 * d + 2 * model.vocab * d


def load_models(path: Path = PATH) -> Mapping[str, Model]:
    """id -> Model, checked. Raises CatalogError."""
    document = read(path)
    return MappingProxyType({row.data["id"]: _model(row) for row in rows(document, "models", path)})


def _model(row: Row) -> Model:
    params = row.row("params")
    label = params.number("label_total_b")
    active = params.number("label_active_b", optional=True)
    made = Model(
        id=row.text("id"),
        name=row.text("name"),
        hf_id=row.text("hf_id"),
        layers=row.number("n_layers", integer=True),
        d_model=row.number("d_model", integer=True),
        heads=row.number("n_heads", integer=True),
        kv_heads=row.number("n_kv_heads", integer=True),
        head_dim=row.number("head_dim", integer=True),
        d_ff=row.number("d_ff", integer=True),
        vocab=row.number("vocab", integer=True),
        tied_embeddings=row.flag("tie_word_embeddings"),
        norms_per_layer=row.number("norms_per_layer", integer=True),
        max_context=row.number("max_context", integer=True),
        attention=_attention_fields(row),
        experts=_expert_fields(row),
        mtp_layers=row.number("mtp_layers", optional=True, integer=True) or 0,
        fp8_block_scales=params.flag("fp8_block_scales", default=False),
        published_parameters=params.number("exact_total", integer=True),
        count_scope=params.text("count_scope", optional=True),
        label_parameters=label * 1e9,
        label_active_parameters=None if active is None else active * 1e9,
        sources=row.cited(),
        notes=row.text("notes"),
    )
    row.finish()
    params.finish()
    if made.heads % made.kv_heads:
        row.refuse(
            "n_kv_heads", made.kv_heads, f"must divide n_heads = {made.heads}; check both in the config."
        )
    return made


def _attention_fields(row: Row) -> Attention:
    inner = row.row("attention")
    kind = inner.choice("type", ATTENTIONS)
    ranks = ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    made = Attention(
        type=kind,
        **{name: inner.number(name, integer=True) for name in ranks if kind == "mla"},
        **{name: inner.flag(name, default=False) for name in ("qkv_bias", "o_bias", "qk_norm", "sinks")},
        window=inner.number("window", optional=True, integer=True) or 0,
        window_layers=inner.number("window_layers", optional=True, integer=True, zero=True) or 0,
        global_layers=inner.number("global_layers", optional=True, integer=True, zero=True) or 0,
        pattern=inner.text("pattern", optional=True),
    )
    inner.finish()
    layers = row.data.get("n_layers")
    if made.window and made.window_layers + made.global_layers != layers:
        inner.refuse(
            "window_layers", made.window_layers, f"with global_layers it must add up to n_layers = {layers}."
        )
    return made


def _expert_fields(row: Row) -> Experts | None:
    inner = row.row("moe", optional=True)
    if inner is None:
        return None
    made = Experts(
        n_experts=inner.number("n_experts", integer=True),
        top_k=inner.number("top_k", integer=True),
        n_shared=inner.number("n_shared", integer=True, zero=True),
        d_ff_expert=inner.number("d_ff_expert", integer=True),
        n_dense_layers=inner.number("n_dense_layers", integer=True, zero=True),
        **{n: inner.flag(n, default=False) for n in ("router_bias", "expert_bias", "router_correction_bias")},
    )
    inner.finish()
    if made.top_k > made.n_experts:
        inner.refuse("top_k", made.top_k, f"can't exceed n_experts = {made.n_experts}.")
    return made
