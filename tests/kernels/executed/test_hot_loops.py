"""The loop in which a program spends its time: which one it is, and what is counted in it."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from book.portable import dependencies
from kernels import decode_attention, flash_attention, matmul
from kernels.contract.processes import ROOT
from kernels.evidence import executed, instructions
from kernels.evidence.executed import hot_loops
from tests.kernels.executed import mutations, snippets

PAGE = ROOT / "book/pages/gpu-instructions.md"
LOAD = "ld.global.b32 %r5, [%rd0];"
LOOP = """
ld.param.b64 %rd0, [snippet_param_0]; mov.u32 %r0, %tid.x; mov.u32 %r9, %ctaid.x; mov.u32 %r1, 0;
turn: {body}
add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, {turns}; @%p1 bra turn;
{after} ret;"""


def loop_of(body, *, turns="4", after="", threads=64, programs=3):
    """The hot loop of these lines around one tensor of one number."""
    text = LOOP.format(body=body, turns=turns, after=after)
    counts = snippets.run(text, np.zeros(1, np.uint32), threads=threads, grid=(programs, 1, 1)).counts
    one = snippets.kernel(text, threads=threads, parameters=["u64"])
    return hot_loops.hot_loop(one, counts, programs)


def counted(loop):
    return {step.form: step.count for step in loop.steps}


def test_an_instruction_counts_once_for_each_warp_and_turn():
    loop = loop_of(LOAD + LOAD)
    assert (loop.turns, loop.warps) == (4, 2)
    assert counted(loop) == {"ld.global.b32": 2 * 2}


def test_programs_whose_turns_differ_are_averaged():
    assert loop_of(LOAD, turns="%r9").turns == pytest.approx((1 + 1 + 2) / 3)


def test_arithmetic_and_what_stands_behind_the_loop_are_left_out():
    loop = loop_of(LOAD + "add.s32 %r6, %r5, 1;", after="bar.sync 0;")
    assert counted(loop) == {"ld.global.b32": 2}


def test_a_warp_for_none_of_whose_threads_the_predicate_holds_does_not_count():
    assert counted(loop_of("setp.lt.u32 %p2, %r0, 32; @%p2 " + LOAD)) == {"ld.global.b32": 1}
    assert counted(loop_of("setp.eq.u32 %p2, %r0, 40; @%p2 " + LOAD)) == {"ld.global.b32": 1}


def test_what_some_turns_leave_out_is_an_average():
    assert counted(loop_of("setp.lt.u32 %p2, %r1, 3; @%p2 " + LOAD)) == {"ld.global.b32": 2 * 3 / 4}


def test_warps_that_part_inside_the_loop_count_each():
    body = f"setp.lt.u32 %p2, %r0, 32; @%p2 bra over; {LOAD} over: {LOAD}"
    assert counted(loop_of(body)) == {"ld.global.b32": 1 + 2}


def test_of_two_loops_the_inner_one_is_told_and_not_the_one_around_it():
    inner = f"mov.u32 %r2, 0; again: {LOAD} add.s32 %r2, %r2, 1; setp.lt.s32 %p3, %r2, 5; @%p3 bra again;"
    loop = loop_of("bar.sync 0;" + inner)
    assert loop.turns == 4 * 5
    assert counted(loop) == {"ld.global.b32": 2}


def test_a_kernel_without_a_loop_and_one_whose_loop_does_nothing_that_is_told_have_none():
    assert loop_of("") is None
    counts = snippets.run("ret;", np.zeros(1, np.uint32)).counts
    assert hot_loops.hot_loop(snippets.kernel("ret;", parameters=["u64"]), counts, 1) is None


def test_as_json_and_back_it_is_the_same():
    loop = loop_of(LOAD)
    assert hot_loops.read(hot_loops.told(loop)) == loop
    assert hot_loops.read(hot_loops.told(None)) is None


@pytest.fixture(scope="module")
def product():
    return instructions.side_by_side(matmul.experiment, m=512, k=512, n=512)


@pytest.mark.parametrize(("chip", "before"), [("sm_80", 0), ("sm_90", 0), ("sm_100", 1)])
def test_products_of_all_turns_are_all_of_the_products(product, chip, before):
    """On Blackwell the first product stands before the loop."""
    (row,) = (row for row in product.rows if row.target == chip)
    loop = product.loop(chip)
    (step,) = loop.of("product")
    m, n, k = map(int, re.search(r"m(\d+)n(\d+)k(\d+)", step.name).groups())
    assert 2 * m * n * k * step.count * (loop.turns + before) * row.programs == 2 * 512**3


@pytest.mark.parametrize("chip", instructions.CHIPS)
def test_copies_of_a_turn_are_the_bytes_of_its_tiles(product, chip):
    loop, plan = product.loop(chip), matmul.experiment.plan(m=512, k=512, n=512, dtype="bf16", target=chip)
    assert loop.count("copy") * 32 * 16 == 2 * plan.block_k * (plan.block_m + plan.block_n)
    assert loop.warps == plan.num_warps


def test_it_shows_a_line_of_the_kernel_over_what_it_became(product):
    text, page = repr(product), product._repr_html_()
    assert re.search(
        r"matmul\.py:\d+  acc = tl\.dot\(x, w, acc.*\n    sm_80   512 x mma\.sync m16n8k16", text
    )
    assert "<code>x = tl.load(x_ptrs)</code>" in page
    assert product.caption in page.replace("&#x27;", "'")


def test_a_chip_without_a_loop_is_said():
    row = instructions.side_by_side(
        decode_attention.experiment, batch=1, heads=4, kv_heads=1, head_dim=64, context=64
    )
    with pytest.raises(ValueError, match="target = 'sm_80': decode_attention has no loop there"):
        row.loop("sm_80")


def test_the_page_explains_every_instruction_that_it_shows(product):
    explained = re.findall(r"`([\w.]+)`", PAGE.read_text(encoding="utf-8").partition("```\n\n## ")[0])
    shown = {instructions.short(s) for row in product.rows for s in product.loop(row.target).steps}
    assert shown
    for name in shown:
        assert any(name.startswith(word) for word in explained), name


# As on the page, which has run them where the site was just built.
HEAD = {"batch": 1, "heads": 1, "kv_heads": 1, "head_dim": 64}
LONG = {"batch": 1, "length": 8192, "heads": 32, "kv_heads": 8, "head_dim": 64}
LENGTHS = [256, 512, 1024]


@pytest.fixture(scope="module")
def attention():
    """chip -> rows of flash attention, for the page's three lengths and another; one child makes all."""
    asked = {"length": [*LENGTHS, 384], "tile_of": LONG, **HEAD}
    rows = executed.run(flash_attention.experiment, targets=instructions.CHIPS, **asked)
    return {chip: [row for row in rows if row.target == chip] for chip in instructions.CHIPS}


@pytest.mark.parametrize("chip", instructions.CHIPS)
def test_what_grows_with_the_length_and_its_square_is_extended_exactly(attention, chip):
    lengths = [row.sizes["length"] for row in attention[chip]]
    for amount in (
        lambda row: sum(row.tensor_flops.values()),
        lambda row: sum(row.launches[0].special.values()),
        lambda row: row.compulsory_bytes,
        lambda row: row.total("wavefronts"),
    ):
        *three, other = map(amount, attention[chip])
        assert instructions.extended(lengths[:3], three, lengths[3]) == other > 0


def test_limits_say_what_counts_take_on_each_card_and_what_is_not_counted(attention):
    kernels = [attention[chip][:3] for chip in ("sm_80", "sm_90")]
    a100, h100 = repr(instructions.limits(kernels, 8192)).splitlines()[-2:]
    assert re.match(r"A100 SXM, head_dim 64 +0\.\d\d +[01]\.\d\d +0\.\d\d +[01]\.\d\d +5\d%", a100)
    assert re.match(r"H100 SXM, head_dim 64 +0\.\d\d +0\.9\d +1\.00 +10\d%", h100), "no shared memory"


def test_what_was_taken_out_is_summed_over_kernels_and_chips_and_the_page_depends_on_it():
    taken = instructions.taken_out()
    kept = json.loads(mutations.TABLE.read_text(encoding="utf-8"))["cases"]
    there = [k["barrier"]["there"] for launches in kept.values() for k in launches.values() if "barrier" in k]
    assert taken["barrier"].times == sum(there) > taken["barrier"].seen > 0
    shown = repr(instructions.races_seen(taken))
    assert re.search(rf"barrier +{taken['barrier'].times} +{taken['barrier'].seen} +0\n", shown)
    assert re.search(r"mbarrier wait +\d+ +not watched +0", shown)
    read = dependencies.closure(["from kernels.evidence import instructions"], ROOT)
    assert mutations.TABLE in {ROOT / path for path in read}
