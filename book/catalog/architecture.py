"""Models: their shapes, their linear layers, and what the file says of them, checked.

A `Model` holds blocks of softmax attention (of all heads alike, with or without a window, or latent)
and gated MLPs or experts. What is built otherwise would come out wrong without a word, so the file
lists such models under `refused`, and asking for one says what it has that this can't hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from book.catalog.parameters import attention_layers, mlp_layers, parameter_kinds
from book.catalog.rows import Row, Source, read, rows

PATH = Path(__file__).with_name("models.yaml")
ATTENTIONS = ("mha", "gqa", "mla")
QK_NORMS = ("head", "all")
WINDOWS = ("sliding", "chunked")

Layers = dict[str, tuple[int, int]]  # label -> (k inputs, n outputs)


@dataclass(frozen=True)
class Attention:
    """Attention beyond heads and widths. The MLA ranks are 0 for mha and gqa.

    window: tokens that a windowed layer looks back on (0: none), and how many layers have one.
    window_kind: "sliding": the last `window` tokens. "chunked": what its chunk of `window` tokens
    holds so far, so that a layer starts anew at every multiple.
    qk_norm: "head": a norm of head_dim for queries and one for keys; "all": one over all heads; "".
    """

    type: str
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    qk_nope_head_dim: int = 0
    qk_rope_head_dim: int = 0
    v_head_dim: int = 0
    qkv_bias: bool = False
    o_bias: bool = False
    qk_norm: str = ""
    sinks: bool = False
    window: int = 0
    window_kind: str = ""
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
    vocab: padded rows of the embedding. norms_per_layer: d_model-sized norms in a block; norm_bias:
    they are LayerNorms, with a bias each; head_bias: the head adds one.
    aliases: other names by which `catalog.model` finds it.
    published_parameters: the total found in a public source, `count_scope` what that covers.
    label_parameters, label_active_parameters: what the vendor prints, rounded.
    """

    id: str
    name: str
    hf_id: str
    aliases: tuple[str, ...]
    layers: int
    d_model: int
    heads: int
    kv_heads: int
    head_dim: int
    d_ff: int
    vocab: int
    tied_embeddings: bool
    norms_per_layer: int
    norm_bias: bool
    head_bias: bool
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

    @property
    def dense_layers(self) -> int:
        """Layers whose MLP is no mixture of experts."""
        return self.layers if self.experts is None else self.experts.n_dense_layers

    def linear_layers(self) -> Layers:
        """Each distinct linear layer: label -> (k, n), for y[m, n] = x[m, k] @ w[k, n].

        Of a mixture of experts, one expert; the head last.
        """
        layers, moe = attention_layers(self), self.experts
        if self.dense_layers:
            layers |= mlp_layers(self.d_model, self.d_ff)
        if moe is not None:
            layers["router"] = (self.d_model, moe.n_experts)
            layers |= mlp_layers(self.d_model, moe.d_ff_expert, "expert ")
            if moe.n_shared:
                layers |= mlp_layers(self.d_model, moe.n_shared * moe.d_ff_expert, "shared expert ")
        layers["head"] = (self.d_model, self.vocab)
        return layers

    @cached_property
    def parameter_kinds(self) -> Mapping[str, Mapping[str, int]]:
        """part -> kind -> count: see `book.catalog.parameters`. Counted once a model."""
        return parameter_kinds(self)

    @cached_property
    def parameter_parts(self) -> Mapping[str, int]:
        """`parameters` by what reads them: they add up to it. Counted once a model.

        "input table": looked up, a row a token; 0 where it is tied, for then a step reads all of it
        as the "head". "experts": the routed ones, all of them. "prediction": multi-token-prediction
        modules, which plain decoding leaves alone. "blocks": the rest, read for every token.
        """
        return MappingProxyType({part: sum(kinds.values()) for part, kinds in self.parameter_kinds.items()})

    @cached_property
    def parameters(self) -> int:
        """Every number a checkpoint stores, counted from the fields. Counted once a model."""
        return sum(self.parameter_parts.values())


def load_refused(path: Path = PATH) -> Mapping[str, str]:
    """name or hf id -> what that model is built of that a `Model` can't hold. Raises CatalogError."""
    document = read(path)
    found: dict[str, str] = {}
    for index, entry in enumerate(document.get("refused") or ()):
        row = Row(f"{path.name}, refused[{index}]", entry)
        reason = row.text("because")
        found |= {str(name): reason for name in row.items("names")}
        row.finish()
    return MappingProxyType(found)


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
        aliases=tuple(str(x) for x in row.items("aliases", optional=True)),
        layers=row.number("n_layers", integer=True),
        d_model=row.number("d_model", integer=True),
        heads=row.number("n_heads", integer=True),
        kv_heads=row.number("n_kv_heads", integer=True),
        head_dim=row.number("head_dim", integer=True),
        d_ff=row.number("d_ff", integer=True),
        vocab=row.number("vocab", integer=True),
        tied_embeddings=row.flag("tie_word_embeddings"),
        norms_per_layer=row.number("norms_per_layer", integer=True),
        norm_bias=row.flag("norm_bias", default=False),
        head_bias=row.flag("head_bias", default=False),
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
        **{name: inner.flag(name, default=False) for name in ("qkv_bias", "o_bias", "sinks")},
        qk_norm=inner.choice("qk_norm", QK_NORMS, optional=True) or "",
        window=inner.number("window", optional=True, integer=True) or 0,
        window_kind=inner.choice("window_kind", WINDOWS, optional=True) or "",
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
    if bool(made.window) != bool(made.window_kind):
        inner.refuse(
            "window_kind", made.window_kind, "goes with window: say sliding or chunked, or drop both."
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
