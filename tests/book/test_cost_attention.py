"""The costs of Part II against loops that count one operation and one element at a time."""

import numpy as np
import pytest
import sympy

from book import cost
from book.formulas.formula import Formula, Parameter

# ------------------------------------------------------------------------------------------ mlp


def test_mlp_costs_three_products():
    c = cost.mlp(3, 5, 7)
    products = [cost.linear(3, 5, 7), cost.linear(3, 5, 7), cost.linear(3, 7, 5)]
    assert c.flops == sum(p.flops for p in products)
    assert dict(c.reads) == {"x": 30, "w_gate": 70, "w_up": 70, "w_down": 70}
    assert dict(c.writes) == {"y": 30}


@pytest.mark.parametrize(
    ("fused", "names"), [("all", set()), ("gate_up", {"hidden"}), ("none", {"gate", "up", "hidden"})]
)
def test_what_goes_through_memory_between_the_products_is_named(fused, names):
    c = cost.mlp(3, 5, 7, fused=fused)
    assert c.workspace == names
    assert c.workspace_bytes == len(names) * 2 * (3 * 7 * 2)  # written and read, two bytes each
    assert c.bytes - c.workspace_bytes == cost.mlp(3, 5, 7).bytes


def test_mlp_refuses_a_fusion_it_does_not_know():
    with pytest.raises(ValueError, match="fused = 'both'.*gate_up"):
        cost.mlp(1, 2, 3, fused="both")


def test_the_mlp_of_llama_3_8b_is_ruled_by_its_rows():
    m = sympy.Symbol("m", positive=True)
    intensity = cost.mlp(m, 4096, 14336).intensity
    assert intensity.subs(m, 1) == pytest.approx(1, rel=1e-3)
    assert sympy.limit(intensity, m, sympy.oo) == 3 * 14336 / sympy.Integer(2)


def test_mlp_tiles_pad_and_name_partial_sums():
    gate_up = {"block_m": 16, "block_n": 64, "block_k": 32, "splits": 2, "reduce_block": 256}
    tiles = cost.mlp_issued(
        3, 64, 128, gate_up=gate_up, down={"block_m": 16, "block_n": 64, "block_k": 64}, alu_flops=5
    )
    assert tiles.flops == 6 * 16 * 64 * 128
    assert tiles.workspace == {"hidden", "gate_partials", "up_partials"}
    assert tiles.reads["up_partials"] == 2 * 3 * 128 * 4
    assert tiles.bytes - tiles.workspace_bytes == cost.mlp(3, 64, 128).bytes
    assert tiles.workspace_flops == 5 + 2 * (2 * 2 * 256)


# ------------------------------------------------------------------------------------ the cache


@pytest.mark.parametrize(
    ("layers", "kv_heads", "head_dim", "kappa"),
    [(32, 32, 128, 524_288), (32, 8, 128, 131_072), (80, 8, 128, 327_680), (126, 8, 128, 516_096)],
)
def test_a_layers_share_of_the_cache_is_what_append_writes(layers, kv_heads, head_dim, kappa):
    c = cost.kv_append(1, kv_heads, head_dim)
    assert layers * sum(c.writes.values()) == kappa
    assert sum(c.reads.values()) == sum(c.writes.values())


def test_append_to_an_fp8_cache_halves_the_writes_alone():
    plain, narrow = cost.kv_append(5, 8, 64), cost.kv_append(5, 8, 64, kv_itemsize=1)
    assert narrow.reads == plain.reads
    assert 2 * sum(narrow.writes.values()) == sum(plain.writes.values())


# ----------------------------------------------------------------------------- decode attention


def test_decode_attention_counted_one_score_at_a_time():
    batch, heads, kv_heads, head_dim, context = 2, 6, 3, 4, 5
    flops = 0
    for _ in range(batch * heads * context):
        flops += 2 * head_dim  # the score
        flops += 2 * head_dim  # its share of the output
    c = cost.decode_attention(batch, heads, kv_heads, head_dim, context)
    assert c.flops == flops
    assert c.reads["k"] + c.reads["v"] == 2 * batch * kv_heads * context * head_dim * 2
    assert c.reads["q"] == c.writes["o"] == batch * heads * head_dim * 2


@pytest.mark.parametrize(
    ("heads", "kv_heads", "expected"), [(32, 32, 1), (32, 8, 4), (64, 8, 8), (128, 8, 16), (32, 1, 32)]
)
def test_intensity_per_byte_of_cache_is_the_group(heads, kv_heads, expected):
    assert cost.kv_intensity(heads, kv_heads) == expected
    assert cost.kv_intensity(heads, kv_heads, 1) == 2 * expected
    batch, dim, context = sympy.symbols("batch dim context", positive=True)
    c = cost.decode_attention(batch, heads, kv_heads, dim, context)
    assert c.flops / (c.reads["k"] + c.reads["v"]) == expected  # all three symbols cancel
    # With q and o it's a little less, and nears that in a long context.
    full = sympy.cancel(c.intensity)
    assert full.free_symbols == {context}
    assert sympy.limit(full, context, sympy.oo) == expected
    assert full.subs(context, 4096) < expected


def test_only_the_sum_of_ragged_lengths_matters():
    ragged = cost.decode_attention(3, 8, 2, 64, tokens=7 + 100 + 13)
    assert ragged == cost.decode_attention(3, 8, 2, 64, 40)


@pytest.mark.parametrize("given", [{}, {"context": 4, "tokens": 8}])
def test_decode_attention_wants_context_or_tokens(given):
    with pytest.raises(ValueError, match="give one of them"):
        cost.decode_attention(2, 8, 2, 64, **given)


def test_decode_attention_makes_a_formula():
    names = {"batch": 8, "heads": 32, "kv_heads": 8, "head_dim": 128, "context": 4096, "itemsize": 2}
    parameters = [Parameter(name, name, value, 1, 2**20) for name, value in names.items()]
    formula = Formula.of_cost("decode_attention", "", cost.decode_attention, parameters)
    assert formula(**names) == pytest.approx(cost.decode_attention(**names).intensity)


def test_decode_attention_takes_arrays():
    context = np.array([1, 1000, 131_072])
    curve = cost.decode_attention(4, 32, 8, 128, context)
    assert list(curve.bytes) == [cost.decode_attention(4, 32, 8, 128, int(s)).bytes for s in context]


def test_tiles_pad_heads_dimensions_and_context():
    # Groups of 4 heads on 16-row tiles; 100 tokens in blocks of 64 are 128; 96 dimensions as 128.
    tiles = cost.decode_attention_issued(
        2, 8, 2, 96, 100, block_context=64, block_heads=16, block_dim=128, split_context=None
    )
    assert tiles.flops == 2 * 2 * 16 * 128 * 4 * 128
    assert tiles.bytes == cost.decode_attention(2, 8, 2, 96, 100).bytes
    assert not tiles.workspace


def test_split_kv_names_its_price_and_skips_programs_past_the_end():
    lengths = [1, 128, 129, 500]
    tiles = cost.decode_attention_issued(
        4, 8, 2, 64, lengths, block_context=64, block_heads=16, split_context=128, lengths_itemsize=4
    )
    programs = 1 + 1 + 2 + 4
    assert tiles.workspace == {"partials", "lse", "lengths"}
    assert tiles.writes["partials"] == tiles.reads["partials"] == programs * 8 * 64 * 4
    assert tiles.writes["lse"] == programs * 8 * 4
    assert tiles.reads["lengths"] == 4 * 4
    assert tiles.flops == (64 + 128 + 192 + 512) * 2 * 16 * 4 * 64
    useful = cost.decode_attention(4, 8, 2, 64, tokens=sum(lengths))
    assert tiles.bytes - tiles.workspace_bytes == useful.bytes


def test_only_a_context_that_is_not_split_needs_no_second_kernel():
    shape = {"block_context": 64, "block_heads": 16}
    tiles = cost.decode_attention_issued(1, 8, 2, 64, 100, **shape, split_context=64)
    assert tiles.writes["lse"] == 2 * 8 * 4
    # Lengths are known on the card alone: a kernel that may split writes its parts for short ones too.
    assert cost.decode_attention_issued(1, 8, 2, 64, 64, **shape, split_context=64).writes["lse"] == 8 * 4
    assert not cost.decode_attention_issued(1, 8, 2, 64, 64, **shape).workspace


def test_heads_that_are_not_packed_pad_a_tile_each():
    shape = {"block_context": 64, "block_heads": 16}
    together, apart = (cost.decode_attention_issued(2, 12, 2, 64, 64, **shape, packed=n) for n in (None, 1))
    assert apart.flops == 6 * together.flops
    assert cost.decode_attention_issued(2, 12, 2, 64, 64, **shape, packed=4).flops == 2 * together.flops
    assert apart.bytes == together.bytes


def test_appending_reads_a_table_that_is_named():
    tiles = cost.kv_append_issued(5, 8, 64, positions_itemsize=8)
    assert tiles.workspace == {"positions"} and tiles.workspace_bytes == 5 * 8
    assert tiles.bytes - tiles.workspace_bytes == cost.kv_append(5, 8, 64).bytes
    assert tiles.flops == tiles.workspace_flops == 0


def test_tiles_refuse_lengths_and_splits_that_do_not_fit():
    blocks = {"block_context": 64, "block_heads": 16}
    with pytest.raises(ValueError, match="2 lengths for batch = 3"):
        cost.decode_attention_issued(3, 8, 2, 64, [5, 6], **blocks)
    with pytest.raises(ValueError, match="split_context = 100: must be a multiple"):
        cost.decode_attention_issued(1, 8, 2, 64, 300, split_context=100, **blocks)


def test_mla_decode_stands_next_to_the_ridge():
    batch, context = sympy.symbols("batch context", positive=True)
    c = cost.mla_decode(batch, 128, 512, 64, context)
    assert float(c.flops / c.reads["kv"]) == pytest.approx(241.8, abs=0.05)
    assert 61 * cost.mla_decode(1, 128, 512, 64, 1).reads["kv"] == 70_272


# ---------------------------------------------------------------------------- prefill attention


def test_fused_attention_at_4096_tokens():
    assert cost.flash_attention(1, 4096, 32, 32, 128).intensity == 1024
    assert cost.flash_attention(1, 4096, 32, 8, 128).intensity == pytest.approx(1638.4)
    b, length, h, d = sympy.symbols("b L h d", positive=True)
    assert sympy.cancel(cost.flash_attention(b, length, h, h, d).intensity) == length / 4


@pytest.mark.parametrize("kv_heads", [32, 8])
def test_unfused_attention_is_held_down_by_its_score_matrix(kv_heads):
    c = cost.unfused_attention(1, 4096, 32, kv_heads, 128)
    assert c.intensity == pytest.approx(31, abs=0.5)
    assert c.workspace == {"scores", "probabilities"}
    assert c.workspace_bytes == 4 * 32 * 4096**2 * 2
    assert c.bytes - c.workspace_bytes == cost.flash_attention(1, 4096, 32, kv_heads, 128).bytes


def test_the_causal_half_is_the_triangle_but_for_its_diagonal():
    length, triangle = 512, sum(range(1, 513))
    c = cost.flash_attention(1, length, 1, 1, 64)
    assert 4 * 64 * triangle == c.flops * (length + 1) / length
    assert cost.flash_attention(1, length, 1, 1, 64, causal=False).flops == 2 * c.flops


@pytest.mark.parametrize(("length", "block_m", "block_n"), [(37, 16, 32), (128, 64, 16), (33, 32, 16)])
def test_causal_tiles_are_the_blocks_that_hold_a_visible_key(length, block_m, block_n):
    up = lambda x, b: -(-x // b) * b  # noqa: E731
    pairs = 0
    for i in range(0, up(length, block_m), block_m):
        for j in range(0, up(length, block_n), block_n):
            visible = any(k <= q for q in range(i, min(i + block_m, length)) for k in range(j, j + block_n))
            pairs += block_m * block_n if visible else 0
    tiles = cost.flash_attention_issued(2, length, 6, 3, 8, block_m=block_m, block_n=block_n, block_dim=16)
    assert tiles.flops == 2 * 6 * pairs * 4 * 16
    assert tiles.bytes == cost.flash_attention(2, length, 6, 3, 8).bytes


def test_unfused_tiles_issue_the_whole_square():
    useful = cost.unfused_attention(1, 128, 4, 2, 64)
    blocks = {"block_m": 64, "block_n": 64, "block_k": 32}
    tiles = cost.unfused_attention_issued(1, 128, 4, 2, 64, scores=blocks, weighted_sum=blocks, alu_flops=9)
    assert tiles.flops == 2 * useful.flops
    assert tiles.bytes == useful.bytes and tiles.workspace == useful.workspace
    assert tiles.workspace_flops == 9


def test_each_product_of_unfused_attention_pads_to_its_own_tiles():
    tiles = cost.unfused_attention_issued(
        2,
        100,
        3,
        1,
        96,
        scores={"block_m": 64, "block_n": 128, "block_k": 64},  # 128 x 128 scores of 128 dimensions
        weighted_sum={"block_m": 32, "block_n": 64, "block_k": 16},  # 128 x 128 outputs of 112 keys
    )
    assert tiles.flops == 2 * 3 * 2 * (128 * 128 * 128 + 128 * 128 * 112)


@pytest.mark.parametrize("batch", [0, np.array([3, 0])])
def test_an_empty_batch_is_refused_by_name(batch):
    for operation in (cost.decode_attention, cost.flash_attention, cost.unfused_attention):
        with pytest.raises(ValueError, match="batch = 0"):
            operation(batch, 16, 8, 8, 8)
