"""What a rank sends: the formulas against a ring that is walked piece by piece, and the sharded linear."""

import numpy as np
import pytest
import sympy

from book import catalog, cost
from book.cost import collectives


def sent_round_a_ring(ranks, pieces, steps):
    """Bytes that each rank passes to its right in `steps` steps, starting with its own piece."""
    return [sum(pieces[(rank - step) % ranks] for step in range(steps)) for rank in range(ranks)]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
def test_a_gather_walked_round_the_ring_sends_what_the_formula_says(ranks):
    pieces = [64] * ranks
    assert set(sent_round_a_ring(ranks, pieces, ranks - 1)) == {cost.all_gather(64 * ranks, ranks)}


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
def test_an_all_reduce_goes_round_the_ring_twice(ranks):
    pieces = [64] * ranks
    twice = set(sent_round_a_ring(ranks, pieces, 2 * (ranks - 1)))
    assert twice == {cost.all_reduce(64 * ranks, ranks)}


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_a_tensor_that_cannot_be_cut_equally_sends_as_much_on_average(ranks):
    pieces = [len(p) for p in np.array_split(np.zeros(1001), ranks)]
    walked = sent_round_a_ring(ranks, pieces, ranks - 1)
    assert sum(walked) / ranks == pytest.approx(cost.reduce_scatter(1001, ranks))
    assert max(walked) - min(walked) <= max(pieces) - min(pieces)


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_a_reduce_scatter_and_an_all_gather_make_an_all_reduce(ranks):
    both = cost.reduce_scatter(2**20, ranks) + cost.all_gather(2**20, ranks)
    assert cost.all_reduce(2**20, ranks) == both


def test_in_an_all_to_all_everything_but_the_own_piece_leaves():
    buffers = np.full((4, 4), 100)  # bytes from rank i to rank j
    np.fill_diagonal(buffers, 0)
    assert set(buffers.sum(1)) == {cost.all_to_all(400, 4)}


def test_a_source_sends_all_of_it_whatever_the_number_of_ranks():
    assert cost.broadcast(1000) == cost.point_to_point(1000) == 1000


def test_many_ranks_send_at_most_twice_the_tensor():
    size, ranks = sympy.symbols("size ranks", positive=True)
    assert sympy.limit(cost.all_reduce(size, ranks), ranks, sympy.oo) == 2 * size
    assert sympy.simplify(cost.all_reduce(size, ranks) - 2 * (ranks - 1) / ranks * size) == 0


def test_collectives_take_arrays():
    assert cost.all_reduce(np.array([4, 8]), 4) == pytest.approx([6, 12])
    assert cost.all_gather(8, np.array([1, 2, 4])) == pytest.approx([0, 4, 6])


@pytest.mark.parametrize("name", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"])
def test_one_rank_sends_nothing(name):
    assert getattr(collectives, name)(1000, 1) == 0


def test_no_ranks_are_refused_by_name():
    with pytest.raises(ValueError, match="ranks = 0: a size must be at least 1"):
        cost.all_reduce(1000, 0)


# ------------------------------------------------------------------------- Cost.sent


def test_what_is_sent_is_no_memory_traffic():
    c = cost.linear_row_parallel(16, 1024, 512, ranks=2)
    alone = cost.linear(16, 512, 512)
    assert c.sent_bytes > 0
    assert (c.bytes, c.intensity) == (alone.bytes, alone.intensity)


def test_sent_bytes_add_up_are_renamed_and_multiplied_as_reads_are():
    a = cost.linear_row_parallel(16, 1024, 512, ranks=2)
    b = cost.linear_row_parallel(16, 512, 1024, ranks=2).renamed(y="out")
    assert dict((a + b).sent) == {"y": a.sent["y"], "out": b.sent["out"]}
    assert (a + a).sent["y"] == (2 * a).sent["y"] == 2 * a.sent["y"]
    assert (32 * a).reads["w"] == 32 * a.reads["w"]
    assert (32 * a).flops == (a * 32).flops == 32 * a.flops


def test_an_array_or_a_symbol_times_a_cost_is_a_cost():
    layers = sympy.Symbol("L", positive=True)
    a = cost.linear_row_parallel(16, 1024, 512, ranks=2)
    assert (layers * a).sent["y"] == layers * a.sent["y"]
    assert (np.array([1, 80]) * a).bytes == pytest.approx([a.bytes, 80 * a.bytes])


def test_two_costs_are_not_multiplied():
    with pytest.raises(TypeError):
        cost.copy(8) * cost.copy(8)


def test_an_operation_of_one_card_sends_nothing():
    assert cost.linear(4, 8, 8).sent_bytes == 0
    assert dict(cost.decode_layer(1, 64, 4, 2, 16, 128, 100).sent) == {}


# ------------------------------------------------------------------- the sharded linear


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_the_shards_of_w_make_the_whole_w_and_the_flops_the_whole_flops(ranks):
    whole = cost.linear(16, 1024, 512)
    for one in (cost.linear_column_parallel, cost.linear_row_parallel):
        c = one(16, 1024, 512, ranks)
        assert ranks * c.reads["w"] == whole.reads["w"]
        assert ranks * c.flops == whole.flops


def test_by_columns_each_rank_reads_all_of_x_and_writes_its_part_of_y():
    c = cost.linear_column_parallel(3, 8, 12, 4)
    assert (c.reads["x"], c.writes["y"]) == (3 * 8 * 2, 3 * 3 * 2)
    assert c.sent_bytes == 0


def test_by_columns_with_a_gather_the_other_columns_go_round():
    c = cost.linear_column_parallel(3, 8, 12, 4, gather=True)
    assert c.sent["y"] == 3 * (3 * 3 * 2)  # three pieces of y, each rank's is 3 x 3


def test_by_rows_each_rank_reads_its_part_of_x_and_writes_all_of_y():
    c = cost.linear_row_parallel(3, 8, 12, 4)
    assert (c.reads["x"], c.writes["y"]) == (3 * 2 * 2, 3 * 12 * 2)
    assert c.sent["y"] == 2 * 3 * (3 * 12 * 2) / 4


def test_one_rank_is_a_linear_layer():
    alone = cost.linear(3, 8, 12)
    for one in (cost.linear_column_parallel, cost.linear_row_parallel):
        c = one(3, 8, 12, 1)
        assert (c.flops, dict(c.reads), dict(c.writes)) == (
            alone.flops,
            dict(alone.reads),
            dict(alone.writes),
        )
        assert c.sent_bytes == 0


def test_in_symbols_a_row_parallel_layer_sends_a_share_of_its_output():
    m, k, n, r = sympy.symbols("m k n r", positive=True)
    c = cost.linear_row_parallel(m, k, n, r)
    assert sympy.simplify(c.sent["y"] - 2 * (r - 1) / r * 2 * m * n) == 0
    assert c.reads["w"] == 2 * k * n / r


@pytest.mark.parametrize(("one", "name"), [("column", "n"), ("row", "k")])
def test_ranks_that_do_not_divide_are_refused_with_the_remedy(one, name):
    with pytest.raises(ValueError, match=rf"{name} = 10, ranks = 4: every rank needs an equal part; pad"):
        getattr(cost, f"linear_{one}_parallel")(1, 10, 10, 4)


def test_an_array_of_ranks_is_refused_if_one_of_them_does_not_divide():
    with pytest.raises(ValueError, match="every rank needs an equal part"):
        cost.linear_row_parallel(1, 8, 8, np.array([2, 3]))


# ------------------------------------------------------------------------ a card's link


def test_the_link_of_an_h100_is_half_of_what_is_printed_for_both_directions():
    assert catalog.accelerator("h100_sxm").link() == 900e9 / 2


@pytest.mark.parametrize("card", [c for c in catalog.accelerators() if not c.interconnect_bandwidth])
def test_a_card_without_a_link_says_so(card):
    with pytest.raises(catalog.NoLink, match=rf"{card.name.split(' (')[0]}.* has no link .*works alone"):
        card.link()


@pytest.mark.parametrize("cut", [cost.linear_column_parallel, cost.linear_row_parallel])
def test_a_shard_of_narrow_weights_is_read_in_their_size_and_sends_activations(cut):
    wide, narrow = (cut(4, 256, 128, 2, 2, size) for size in (2, 0.5))
    assert narrow.reads["w"] == 256 * 128 / 2 / 2
    assert wide.reads["x"] == narrow.reads["x"]
    assert dict(wide.sent) == dict(narrow.sent)
