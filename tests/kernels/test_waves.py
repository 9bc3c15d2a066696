"""kernels.tiling.waves: splits that fill a card to the end, on every chip at every size that is timed."""

import pytest

from book import catalog, roofline
from kernels.contract.targets import TARGETS
from kernels.evidence.experiments import all_experiments
from kernels.evidence.sweeps import sweep
from kernels.tiling import decode, products, waves
from kernels.tiling.integers import ceil_div

ALL = all_experiments()


def room(multiprocessors, fit=1, busy=None):
    return waves.Room(multiprocessors, fit, busy or fit)


@pytest.mark.parametrize(
    ("tiles", "where", "share"),
    [
        (132, room(132), 1.0),
        (143, room(132), 143 / 264),  # 1.08 waves
        (128, room(108), 128 / 216),
        (320, room(148, 2), 320 / 592),  # 1.08 waves of two programs a multiprocessor
        (66, room(132, 2), 66 / 264),
        (256, room(132, 3, 2), 256 / 264),  # one wave of two a multiprocessor: the third has nothing to add
        (330, room(132, 3, 2), 330 / 396),  # some have three, and take turns
        (400, room(132, 3, 2), 400 / 792),
    ],
)
def test_what_is_left_over_after_whole_waves_takes_a_wave_of_its_own(tiles, where, share):
    assert waves.fill(tiles, 64, where) == share


def test_pieces_that_do_not_divide_leave_some_programs_idle():
    assert waves.fill(100, 10, room(300), parts=3) == 10 / (3 * 4)


@pytest.mark.parametrize("tiles", [1, 7, 64, 128, 129, 500])
@pytest.mark.parametrize("pieces", [1, 5, 64, 100])
def test_no_part_is_without_a_piece_and_no_more_are_made_than_allowed(tiles, pieces):
    for where in (room(40), room(132, 3, 2), room(148, 2)):
        for most in (0, 1, 3, 64):
            n = waves.parts(tiles, pieces, where, most)
            assert 1 <= n <= max(most, 1)
            assert (n - 1) * ceil_div(pieces, n) < pieces


def test_tiles_that_fill_the_card_are_not_cut_and_few_are():
    assert waves.parts(264, 64, room(132, 2), 64) == 1
    assert waves.parts(64, 64, room(132, 2), 64) == 4


def test_partial_results_that_cost_more_than_the_idle_card_are_not_made():
    # 1.19 waves take the time of 2; cut in four, 4.74 waves take 5 of a quarter of it, 1.25
    assert waves.parts(128, 128, room(108), 4) == 4
    assert waves.parts(128, 128, room(108), 4, extra=1.0) == 1


def cuts():
    """(chip, kernel, sizes, tiles, pieces, room, parts, most, extra) of all that is split, at timed sizes.

    extra: time of one part's partial results over the least time of the operation, by its formula.
    """
    for chip in (chip for chip in TARGETS.values() if chip.has_tensor_cores):
        card = catalog.accelerator(chip.accelerator)
        for key in ("linear", "mlp", "decode_attention"):
            one = ALL[key]
            dtype = one.best_dtype(chip)
            for sizes in sweep(one, "timed"):
                plan = one.plan(**sizes, dtype=dtype, target=chip)
                if key == "decode_attention":
                    heads, kv_heads = sizes["heads"], sizes["kv_heads"]
                    tiles = sizes["batch"] * kv_heads * plan.head_tiles(heads, kv_heads)
                    pieces, where = ceil_div(sizes["context"], plan.block_context), room(chip.sm_count, 2)
                    formula, partials = one.formula(dtype, **sizes), 8 * sizes["batch"] * heads * 129
                    share, limit = decode.WORKSPACE_SHARE, decode.MAX_SPLITS
                else:
                    m, k, n = (
                        sizes.values() if key == "linear" else (sizes["m"], sizes["d_ff"], sizes["d_model"])
                    )
                    plan = plan if key == "linear" else plan.down
                    tiles, pieces = plan.tiles(m, n), ceil_div(k, plan.block_k)
                    where = products.room(plan, dtype, chip)
                    formula, partials = ALL["linear"].formula(dtype, m=m, k=k, n=n), 8 * m * n
                    share, limit = products.WORKSPACE_SHARE, products.MAX_SPLITS
                least = roofline.time(formula.flops, formula.bytes, card.peak(dtype), card.bandwidth)
                most = min(int(share * formula.bytes / partials), limit)
                extra = partials / card.bandwidth / least
                yield chip.name, key, sizes, tiles, pieces, where, plan.splits, most, extra


@pytest.mark.parametrize("cut", list(cuts()), ids=lambda cut: f"{cut[0]}: {cut[1]}, {[*cut[2].values()]}")
def test_no_plan_ends_in_a_nearly_empty_wave_that_another_split_would_fill(cut):
    *_, tiles, pieces, where, parts, most, extra = cut

    def time(n):
        started = 1 + waves.START / ceil_div(pieces, n)
        return started / waves.fill(tiles, pieces, where, n) + (n * extra if n > 1 else 0.0)

    nearby = range(max(1, parts - 3), max(min(parts + 3, most, pieces), 1) + 1)
    assert parts <= max(most, 1) and time(parts) <= 1.1 * min(map(time, nearby))


def test_where_arithmetic_binds_an_a100_works_three_quarters_of_the_time_or_more():
    chip, shares = TARGETS["sm_80"], {}
    for m in (256, 512, 1024, 2048, 4096):
        plan = products.split(m, 8192, 8192, "bf16", chip)
        where = products.room(plan, "bf16", chip)
        shares[m] = waves.fill(plan.tiles(m, 8192), ceil_div(8192, plan.block_k), where, plan.splits)
    assert min(shares.values()) >= 0.75, shares
