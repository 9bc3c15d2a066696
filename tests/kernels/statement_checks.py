"""Is it so? A check on what was compiled for each statement that `test_statements.py` has a row for."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from kernels.contract.targets import TARGETS, target
from kernels.evidence import counted
from kernels.evidence.compiled import Compiled
from kernels.evidence.compiled.loops import Loop
from kernels.evidence.sweeps import sweep
from kernels.kv_append import experiment as kv_append
from kernels.tiling import decode, products
from tests.kernels.compilations import (
    ATTENTION,
    CHANGED,
    FEW,
    HEAD,
    INSTRUCTION,
    KNOWN,
    LONGEST_ROW,
    PROMPT,
    SQUARE,
    UNALIGNED,
    case,
    every,
    planned_for,
    tile_case,
    tiles,
)

KIB = 1024

# ------------------------------------------------------------------------------ what was compiled


def rows(
    key: str, kernel: str = "", chips: str = "", dtype: str | None = None, warm: bool = True
) -> list[Compiled]:
    """Rows of an experiment as planned, in its best dtype: of this kernel, on chips whose name fits."""
    found = [
        row
        for (name, chip, _, kind, plan), made in every().items()
        if (name, plan) == (key, ()) and kind == (dtype or KNOWN[key].best_dtype(target(chip)))
        for row in made
        if (not kernel or row.kernel == kernel) and re.match(chips, chip)
    ]
    assert found or not warm, f"nothing of {key} was compiled"
    return found


def hot(key: str, kernel: str = "", chips: str = "") -> list[tuple[Compiled, Loop]]:
    """(row, its hot loop) of those that have one."""
    return [(row, row.hot) for row in rows(key, kernel, chips) if row.hot]


def one(key: str, chip: str, sizes: dict[str, int], dtype: str | None = None) -> Compiled:
    """The main kernel of one case, as planned."""
    return every()[case(key, chip, sizes, dtype)][0]


def changed(key: str, chip: str) -> Compiled:
    """The main kernel with what CHANGED puts in place of its plan."""
    ((sizes, plan),) = [(sizes, plan) for name, on, sizes, plan in CHANGED if (name, on) == (key, chip)]
    return every()[case(key, chip, sizes, plan=plan)][0]


def nothing_spills(key: str, kernel: str = "") -> Callable[[], None]:
    """A check: whatever was compiled of it stays in registers."""

    def stays_in_registers() -> None:
        assert not [row.faults for row in rows(key, kernel) if row.spills]

    stays_in_registers.__name__ = f"nothing_of_{key}_spills"
    return stays_in_registers


# ---------------------------------------------------------------------------------------- the checks


def decode_sums_after_the_loop() -> None:
    # The peak of 16 rows is looked for over all threads, three times two lanes; a sum would be as much again.
    for row, loop in hot("decode_attention", "decode attention", "sm_"):
        rows_of_tile = planned_for("decode_attention", row.target, row.sizes).block_heads
        assert loop.barriers <= 6 and loop.shuffles <= 6 * rows_of_tile // 16, row


def decode_fits_as_often_as_planned() -> None:
    tried = rows("decode_attention", "decode attention")
    assert {(row.target, row.sizes["head_dim"]) for row in tried} >= {
        (name, 256) for name, chip in TARGETS.items() if chip.has_tensor_cores
    }
    for row in tried:
        assert row.blocks_per_sm >= decode.programs_per_sm(row.warps), row
        if row.warps == 8:
            assert row.blocks_per_sm == 1, row
    assert {row.warps for row in tried} == {4, 8}


def decode_without_copies_into_shared_memory() -> None:
    assert all(loop.async_copies == 0 for _, loop in hot("decode_attention", "decode attention", "gfx"))
    assert all(loop.async_copies > 0 for _, loop in hot("decode_attention", "decode attention", "sm_90"))


def matrix_tiles_have_sixteen_rows() -> None:
    assert "16816" in one("decode_attention", "sm_90", ATTENTION).opcode


def flash_takes_128_rows() -> None:
    for chip in TARGETS:
        for dim in (64, 128):
            if chip != "sm_75":
                assert planned_for("flash_attention", chip, {**PROMPT, "head_dim": dim}).block_m == 128
    assert planned_for("flash_attention", "sm_80", {**PROMPT, "head_dim": 256}).block_m < 128
    assert changed("flash_attention", "sm_80").spills
    nothing_spills("flash_attention")()


def flash_shares_a_multiprocessor() -> None:
    for chip in ("sm_90", "sm_100"):
        assert one("flash_attention", chip, {**PROMPT, "head_dim": 64}).blocks_per_sm == 2


def flash_is_alone() -> None:
    for chip in ("sm_90", "sm_100"):
        assert one("flash_attention", chip, PROMPT).blocks_per_sm == 1
        assert planned_for("flash_attention", chip, PROMPT).block_n == 128


def flash_takes_exponentials_of_the_hardware() -> None:
    assert all(loop.exponentials for _, loop in hot("flash_attention", "flash attention"))


def a_mask_takes_registers() -> None:
    assert changed("flash_attention", "sm_90").registers > one("flash_attention", "sm_90", PROMPT).registers


def a_chain_stays_in_registers() -> None:
    for row in rows("fma_chain"):
        assert not row.loops and not row.spills, "its loop moves nothing, so it is none of `loops`"


def a_thread_has_chains() -> None:
    for row in rows("fma_chain"):
        plan = planned_for("fma_chain", row.target, row.sizes)
        assert 4 <= plan.block / (row.warps * TARGETS[row.target].warp_size) <= 32


def a_matrix_unit_takes_sixteen_rows() -> None:
    assert "16816" in one("toy", "sm_90", FEW).opcode
    gemv_uses_no_matrix_instruction()


def gemv_uses_no_matrix_instruction() -> None:
    for key in ("gemv", "gemv.kn"):
        assert {row.instruction for row in rows(key)} == {"none"}
    assert rows("gemv", "gemv", "sm_75")


def gemv_loads_w_wide() -> None:
    assert all(loop.wide_loads == loop.loads for _, loop in hot("gemv", "gemv", "sm_"))
    for row, loop in hot("gemv.kn", "gemv", "sm_(?!75)"):  # all of w; of x each load is one number
        plan = planned_for("gemv.kn", row.target, row.sizes)
        assert loop.wide_loads * 16 * 32 * row.warps == 2 * plan.block_k * plan.block_n, row


def gemv_has_128_bytes_in_flight() -> None:
    loop = one("gemv", "sm_90", HEAD).hot
    assert (loop.wide_loads - 1) * 16 == 128, "beside one load of x"


def gemv_keeps_four_rows() -> None:
    for chip in ("sm_80", "sm_90"):
        key = "gemv" if chip == "sm_80" else "gemv.kn"
        assert not one(key, chip, {**HEAD, "m": 4}).spills
    with pytest.raises(ValueError, match="at most 4 rows"):
        planned_for("gemv", "sm_90", {**HEAD, "m": 5})


def gemv_meets_in_registers() -> None:
    for row, loop in hot("gemv", "gemv"):
        assert loop.barriers == loop.shared_loads == loop.shared_stores == loop.shuffles == 0, row


def gemv_would_send_w_through_shared_memory() -> None:
    for chip in ("sm_80", "sm_90"):
        loop = changed("gemv", chip).hot
        assert loop.barriers == 4 and loop.shared_stores == loop.shared_loads == 4 and loop.round_trips


def gemv_fits_four_times() -> None:
    for key in ("gemv", "gemv.kn"):
        assert all(row.blocks_per_sm >= 4 for row in rows(key, "gemv"))


def an_append_is_wide() -> None:
    for row in rows("kv_append"):
        assert (row.wide_loads, row.warps * TARGETS[row.target].warp_size) == (
            2,
            128,
        ) or row.target == "gfx942"


def an_append_loads_before_it_knows_where() -> None:
    sizes = {"batch": 2, "kv_heads": 2, "head_dim": 16, "context": 4}
    inputs = kv_append.inputs(**sizes)
    inputs["positions"].fill_(-1)  # nowhere: nothing is written, and k and v are read all the same
    with counted.count() as tally:
        kv_append.run(**inputs)
    assert tally.reads()["k"].unique == inputs["k"].nbytes
    assert not any(written.unique for written in tally.writes().values())


def the_sum_stays_in_registers(key: str, kernel: str) -> Callable[[], None]:
    """A check: the loop of a product stores nothing outside shared memory, and nothing spills."""

    def stores_nothing() -> None:
        assert all(loop.stores == loop.spills == 0 for _, loop in hot(key, kernel))
        nothing_spills(key)()

    stores_nothing.__name__ = f"the_sums_of_{key}_stay_in_registers"
    return stores_nothing


def a_product_uses_the_matrix_units() -> None:
    for chip, instruction in INSTRUCTION.items():
        assert one("matmul", chip, sweep(KNOWN["matmul"], "compiled")[-1]).instruction == instruction


def a_copy_has_64_bytes_in_flight() -> None:
    for key, tensors in (("stream", 1), ("stream.triad", 2)):
        last = sweep(KNOWN[key], "compiled")[-1]
        assert one(key, "sm_90", last).wide_loads * 16 == 64 * tensors


def a_row_of_scores_stays_in_registers() -> None:
    kernels = every()[case("unfused_attention", "sm_90", LONGEST_ROW)]
    assert not [row for row in kernels if row.kernel == "softmax" and (row.spills or row.loops)]


# ------------------------------------------------------------------------------- tiles of products


def programs_that_hide_waits_fit() -> None:
    for key in ("linear", "matmul"):
        for row in rows(key, key):
            plan = planned_for(key, row.target, row.sizes, row.dtype)
            assert row.blocks_per_sm >= products.room(plan, row.dtype, target(row.target)).busy, row
            assert row.registers <= (plan.max_registers or row.registers), row
            aligned = dict(row.sizes) != UNALIGNED
            assert (plan.max_registers is not None) == (row.target.startswith("sm_") and aligned), row


def unasked_ptxas_spills() -> None:
    row = changed("linear", "sm_80")
    assert row.spills and row.limited_by == "shared memory" and not one("linear", "sm_80", FEW).spills


def ragged_rows_are_loaded_narrowly() -> None:
    row = one("linear", "sm_90", UNALIGNED)
    assert row.wide_loads == 0 and row.hot.loads == row.loads
    assert all(
        r.wide_loads == r.loads for r in rows("linear", "linear", "sm_90") if dict(r.sizes) != UNALIGNED
    )


def persistent_programs_have_one_loop() -> None:
    """Copies for the next tile, products and stores of this one, in the same loop."""
    for row in rows("matmul.persistent", chips="sm_"):
        whole = [x for x in row.loops if x.async_copies and x.matrix_instructions and x.stores]
        assert len(whole) == 1, row


def a_tile_is_stored_behind_its_loop() -> None:
    for row, loop in hot("matmul", "matmul", "sm_"):
        assert loop.async_copies and loop.matrix_instructions and not loop.stores, row


def persistent_programs_fit_at_once() -> None:
    for row in rows("matmul.persistent"):
        chip = target(row.target)
        plan = planned_for("matmul.persistent", row.target, row.sizes, row.dtype)
        assert plan.programs <= row.blocks_per_sm * chip.sm_count, row


def whole_tiles_need_no_mask() -> None:
    # the same tile of 16 rows, once with one row in it
    few, whole = (one("linear", "sm_90", {"m": m, "k": 4096, "n": 4096}) for m in (1, 16))
    assert few.hot.instructions > whole.hot.instructions
    assert few.hot.async_copies == whole.hot.async_copies


def triton_rounds_fp32_unasked() -> None:
    assert one("toy", "sm_80", SQUARE, "fp32").opcode.endswith("TF32")
    fp32_uses_no_matrix_unit()


def local_memory_holds_a_block() -> None:
    for row in rows("linear", "linear", "gfx"):
        assert row.shared_bytes <= 64 * KIB


def cut(aligned: bool, chips: str = "") -> list[tuple[products.Plan, Compiled]]:
    """(tile, as compiled) of every tile of products."""
    return [
        (tile, every()[case(key, chip, sizes, plan=plan)][0])
        for chip, even, tile in tiles()
        for key, chip, sizes, plan in [tile_case(chip, even, tile)]
        if even == aligned and re.match(chips, chip)
    ]


def the_estimate_agrees_with_the_compiler() -> None:
    for tile, row in cut(aligned=True):
        assert row.blocks_per_sm == products.resident(tile, row.dtype, target(row.target)).blocks, row


def small_shared_memory_holds_two_blocks() -> None:
    for tile, row in cut(aligned=True, chips="sm_89|sm_120"):
        first = tile.block_m == 128
        assert row.shared_bytes <= 99 * KIB and (row.blocks_per_sm >= 2) == (not first), row


def addresses_take_registers() -> None:
    for tile, row in cut(aligned=False, chips="sm_"):
        assert tile.max_registers is None
        assert row.blocks_per_sm < products.resident(tile, row.dtype, target(row.target)).blocks, row
        assert row.limited_by == "registers", row


def a_loop_fetches_ahead() -> None:
    assert all(
        loop.async_copies for _, loop in hot("linear", "linear", "sm_(?!75)") if loop.wide_async_copies
    )
    assert all(loop.async_copies == loop.wide_async_copies for _, loop in hot("matmul", "matmul", "sm_"))


def two_small_tiles_fit() -> None:
    for row in rows("linear", "linear", "sm_"):
        if planned_for("linear", row.target, row.sizes).block_m < 64:
            assert row.blocks_per_sm >= 2, row


def amd_prefetches_into_registers() -> None:
    for _, loop in hot("linear", "linear", "gfx"):
        assert loop.async_copies == 0 and loop.loads and loop.shared_stores


def fp32_uses_no_matrix_unit() -> None:
    assert one("linear", "sm_80", {"m": 64, "k": 256, "n": 256}, "fp32").instruction == "none"


def no_thread_has_more_registers() -> None:
    for made in every().values():
        for row in made:
            assert row.registers <= products.MAX_REGISTERS or not row.target.startswith("sm_")


def operands_come_from_shared_memory() -> None:
    for chip in products.FROM_SHARED:
        for row, loop in hot("linear", "linear", chip):
            high = planned_for("linear", chip, row.sizes).block_m >= products.FROM_SHARED_ROWS
            if dict(row.sizes) != UNALIGNED:
                assert (loop.shared_loads == 0) == high == (row.instruction == INSTRUCTION[chip]), row


# ---------------------------------------------------------------------------------------- chapters


def the_fast_instruction_needs_64_rows() -> None:
    for row in rows("linear", "linear", "sm_90"):
        assert row.instruction == ("wgmma" if row.sizes["m"] > 32 else "mma.sync")


def decode_has_an_instruction_everywhere() -> None:
    assert all(row.instruction != "none" for row in rows("decode_attention", "decode attention"))
    assert one("decode_attention", "sm_90", ATTENTION).instruction == "mma.sync"
    nothing_spills("decode_attention")()


def flash_gets_the_fast_instruction() -> None:
    assert one("flash_attention", "sm_90", PROMPT).instruction == "wgmma"
    nothing_spills("flash_attention")()
