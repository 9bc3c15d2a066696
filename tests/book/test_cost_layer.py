"""book.cost.decode_layer: against arithmetic done another way, and as symbols and arrays."""

import numpy as np
import pytest
import sympy

from book import catalog, cost

LAYER = {"d_model": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128, "d_ff": 14_336}
WEIGHTS = 4096 * (32 + 8 + 8) * 128 + 32 * 128 * 4096 + 3 * 4096 * 14_336


def test_a_llama_3_8b_layer_by_hand():
    one = cost.decode_layer(64, **LAYER, context=4096)
    assert sum(one.reads[n] for n in ("w_qkv", "w_o", "w_gate", "w_up", "w_down")) == 2 * WEIGHTS
    cached = 64 * 8 * 128 * 2  # bytes of one token of K in every sequence
    assert one.reads["k_cache"] == one.reads["v_cache"] == 4096 * cached
    assert one.writes == {"k_cache": cached, "v_cache": cached, "y": 64 * 4096 * 2}
    assert one.flops == 2 * 64 * WEIGHTS + 4 * 64 * 4096 * 32 * 128
    assert one.workspace_bytes == 0
    assert one.bytes == 2 * WEIGHTS + 2 * 4096 * cached + 2 * cached + 2 * 64 * 4096 * 2


def test_the_layers_of_a_catalog_model_are_made_of_it():
    layers = catalog.model("llama3.1-8b").linear_layers()
    weights = sum(k * n for name, (k, n) in layers.items() if "head" not in name)
    assert weights == WEIGHTS


def test_what_the_parts_hand_over_is_counted_on_request():
    all_, none = (cost.decode_layer(3, **LAYER, context=10, fused=f) for f in ("all", "none"))
    rows = 3 * 2 * (48 * 128 + 32 * 128 + 4096 + 14_336)  # qkv, o, h, hidden, written once
    reads = 3 * 2 * ((32 + 2 * 8) * 128 + 32 * 128 + 4096 + 14_336)
    assert none.bytes - all_.bytes == none.workspace_bytes == rows + reads
    assert none.flops == all_.flops


def test_a_cache_in_one_byte_halves_its_part_only():
    two, one = (cost.decode_layer(3, **LAYER, context=10, kv_itemsize=s) for s in (2, 1))
    assert one.reads["k_cache"] * 2 == two.reads["k_cache"]
    assert one.reads["w_qkv"] == two.reads["w_qkv"]


def test_symbols_and_arrays():
    batch = sympy.Symbol("B", positive=True)
    formula = cost.decode_layer(batch, **LAYER, context=100)
    contexts = np.array([1, 100])
    curve = cost.decode_layer(7, **LAYER, context=contexts)
    assert formula.bytes.subs(batch, 7) == curve.bytes[1]
    assert curve.bytes[0] < curve.bytes[1]


def test_it_refuses_with_a_sentence():
    with pytest.raises(ValueError, match="fused = 'some': not known; use all or none"):
        cost.decode_layer(1, **LAYER, context=1, fused="some")
    with pytest.raises(ValueError, match="batch = 0|m = 0"):
        cost.decode_layer(0, **LAYER, context=1)


def test_renamed_tensors_keep_their_bytes():
    plain = cost.mlp(2, 8, 16, fused="gate_up")
    other = plain.renamed(x="h", hidden="middle")
    assert other.reads["h"] == plain.reads["x"] and "x" not in other.reads
    assert other.workspace == {"middle"} and other.bytes == plain.bytes


def test_weights_in_half_a_byte_quarter_their_part_only():
    two, half = (cost.decode_layer(3, **LAYER, context=10, weight_itemsize=s) for s in (2, 0.5))
    weights = ("w_qkv", "w_o", "w_gate", "w_up", "w_down")
    assert sum(half.reads[n] for n in weights) == WEIGHTS / 2
    assert two.bytes - half.bytes == WEIGHTS * 1.5


def test_an_mlp_in_tiles_reads_its_weights_in_their_own_size():
    sizes = {"m": 3, "d_model": 64, "d_ff": 128, "itemsize": 2, "weight_itemsize": 1}
    blocks = {"block_m": 16, "block_n": 64, "block_k": 64}
    made = cost.mlp_issued(**sizes, gate_up=blocks, down=blocks)
    assert made.bytes == cost.mlp(**sizes, fused="gate_up").bytes
    assert sum(made.reads[n] for n in ("w_gate", "w_up", "w_down")) == 3 * 64 * 128
