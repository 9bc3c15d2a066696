"""Costs against independent arithmetic, in numbers, arrays and symbols alike."""

import numpy as np
import pytest
import sympy

from book import catalog, cost


def test_linear_costs_what_counting_by_hand_gives():
    c = cost.linear(3, 5, 7, itemsize=2)
    assert c.flops == 3 * 7 * (5 + 5)  # for each output, five multiplies and five adds
    assert dict(c.reads) == {"x": 30, "w": 70}
    assert dict(c.writes) == {"y": 42}
    assert c.bytes == 142
    assert c.intensity == 210 / 142


@pytest.mark.parametrize(
    ("m", "k", "n", "printed"),
    [
        (1, 8192, 8192, 1.000),
        (32, 8192, 8192, 31.75),
        (64, 8192, 8192, 63.0),
        (2048, 8192, 8192, 1365.3),
        (8192, 8192, 8192, 2730.7),
        (1, 4096, 4096, 1.000),
        (16, 4096, 4096, 15.876),
        (256, 4096, 4096, 227.556),
    ],
)
def test_linear_intensity_reproduces_the_numbers_in_print(m, k, n, printed):
    assert cost.linear(m, k, n).intensity == pytest.approx(printed, rel=5e-4)


def test_linear_intensity_in_symbols_is_the_formula_of_chapter_02():
    m, k, n = sympy.symbols("m k n", positive=True)
    derived = m / (1 + m / k + m / n)
    assert sympy.simplify(cost.linear(m, k, n).intensity - derived) == 0
    assert sympy.limit(sympy.limit(derived, k, sympy.oo), n, sympy.oo) == m


def test_linear_takes_arrays():
    m = np.array([1, 16, 256])
    curve = cost.linear(m, 4096, 4096).intensity
    assert curve == pytest.approx([cost.linear(int(i), 4096, 4096).intensity for i in m])


@pytest.mark.parametrize(("k", "rows"), [(4096, 345.1), (8192, 318.3), (16384, 306.4)])
def test_rows_to_reach_the_ridge_of_an_h100(k, rows):
    ridge = 989.4e12 / 3.35e12
    exact = ridge / (1 - 2 * ridge / k)  # solve m / (1 + 2 m / k) = ridge for m
    assert exact == pytest.approx(rows, abs=0.1)
    assert cost.linear(int(exact) + 1, k, k).intensity >= ridge > cost.linear(int(exact), k, k).intensity


def test_stream_and_the_dial():
    assert cost.copy(1000, 4).bytes == 8000
    assert cost.copy(1000, 4).flops == 0
    assert cost.triad(1000, 4).intensity == 2 / 12
    assert cost.fma_chain(1000, 16, 4).intensity == 4
    assert cost.fma_chain(1000, 16, 2).intensity == 8


def test_tiles_pad_the_flops_and_leave_the_bytes():
    useful = cost.linear(1, 4096, 4096)
    tiles = cost.linear_issued(1, 4096, 4096, block_m=16, block_n=64, block_k=128)
    assert tiles.flops == 16 * useful.flops
    assert tiles.bytes == useful.bytes
    assert tiles.workspace_bytes == 0


def test_split_k_names_its_price():
    tiles = cost.linear_issued(3, 1000, 100, block_m=16, block_n=64, block_k=128, splits=4)
    useful = cost.linear(3, 1000, 100)
    partials = 4 * 3 * 100 * 4  # four fp32 copies of the output
    assert tiles.workspace == {"partials"}
    assert tiles.workspace_bytes == 2 * partials  # written once, read once
    assert tiles.bytes == useful.bytes + 2 * partials


def test_costs_add_up_tensor_by_tensor():
    both = cost.linear(1, 2, 3) + cost.linear(1, 3, 2)
    assert both.flops == 24
    assert both.reads["w"] == 24
    assert both.bytes == cost.linear(1, 2, 3).bytes + cost.linear(1, 3, 2).bytes


@pytest.mark.parametrize("sizes", [{"m": 0, "k": 1, "n": 1}, {"m": 1, "k": -4, "n": 1}])
def test_a_size_below_one_is_refused_by_name(sizes):
    bad = "m" if sizes["m"] == 0 else "k"
    with pytest.raises(ValueError, match=rf"{bad} = .*at least 1"):
        cost.linear(**sizes)


def test_a_zero_in_an_array_is_refused_too():
    with pytest.raises(ValueError, match="m = 0"):
        cost.linear(np.array([4, 0]), 8, 8)


def test_weights_have_a_size_of_their_own_in_a_linear_layer():
    m, k, n = 3, 256, 7
    c = cost.linear(m, k, n, itemsize=2, weight_itemsize=0.5)
    assert dict(c.reads) == {"x": 2 * 3 * 256, "w": 256 * 7 / 2}  # two to a byte
    assert dict(c.writes) == {"y": 2 * 3 * 7}
    assert c.flops == cost.linear(m, k, n).flops


def test_an_effective_size_holds_the_scales_of_whole_groups():
    numbers, scales = 4096 * 4096 // 2, 4096 // 128 * 4096 * 2  # bytes of int4, and an fp16 for each 128
    size = catalog.effective_itemsize("int4_g128")
    assert cost.linear(1, 4096, 4096, weight_itemsize=size).reads["w"] == numbers + scales


@pytest.mark.parametrize(
    ("issued", "useful", "blocks"),
    [
        (cost.linear_issued, cost.linear, {"block_m": 16, "block_n": 64, "block_k": 64, "splits": 2}),
        (cost.gemv_issued, cost.linear, {"block_m": 4, "block_n": 8, "block_k": 64}),
    ],
)
def test_what_tiles_issue_has_the_weights_size_too(issued, useful, blocks):
    sizes = {"m": 5, "k": 128, "n": 64, "itemsize": 2, "weight_itemsize": 0.5}
    made = issued(**sizes, **blocks)
    assert made.bytes - made.workspace_bytes == useful(**sizes).bytes
    assert made.reads["w"] == 128 * 64 / 2


def test_a_size_that_is_not_positive_is_refused_by_its_name():
    with pytest.raises(ValueError, match="weight_itemsize = -0.5"):
        cost.linear(1, 2, 3, weight_itemsize=-0.5)
    with pytest.raises(ValueError, match="weight_itemsize = 0"):
        cost.weights(8, 1, weight_itemsize=0)


def test_all_weights_at_once_cost_what_the_matrices_do():
    shapes, tokens = [(4096, 14336), (14336, 4096), (4096, 6144)], 7
    apart = [cost.linear(tokens, k, n, weight_itemsize=1) for k, n in shapes]
    whole = cost.weights(sum(k * n for k, n in shapes), tokens, weight_itemsize=1)
    assert whole.flops == sum(c.flops for c in apart)
    assert dict(whole.reads) == {"weights": sum(c.reads["w"] for c in apart)}
    assert not whole.writes


def test_the_intensity_of_weights_alone_is_that_of_a_layer_with_endless_rows_and_columns():
    m, k, s = sympy.symbols("m k s", positive=True)
    layer = cost.linear(m, k, k, 2, s).intensity
    assert sympy.simplify(sympy.limit(layer, k, sympy.oo) - cost.weight_intensity(m, s)) == 0
