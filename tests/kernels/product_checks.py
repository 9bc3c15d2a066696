"""Is it so? A check for each statement about the tiles of matrix products in `statements.py`."""

from __future__ import annotations

from kernels.contract.targets import target
from kernels.tiling import products
from tests.kernels import compilations
from tests.kernels.compilations import FEW, INSTRUCTION, SQUARE, UNALIGNED, planned_for
from tests.kernels.compiled_rows import changed, cut, hot, main, rows

KIB = 1024


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
    assert row.spills and row.limited_by == "shared memory" and not main("linear", "sm_80", FEW).spills


def ragged_rows_are_loaded_narrowly() -> None:
    row = main("linear", "sm_90", UNALIGNED)
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
    few, whole = (main("linear", "sm_90", {"m": m, "k": 4096, "n": 4096}) for m in (1, 16))
    assert few.hot.instructions > whole.hot.instructions
    assert few.hot.async_copies == whole.hot.async_copies


def triton_rounds_fp32_unasked() -> None:
    assert main("toy", "sm_80", SQUARE, "fp32").opcode.endswith("TF32")
    fp32_uses_no_matrix_unit()


def local_memory_holds_a_block() -> None:
    for row in rows("linear", "linear", "gfx"):
        assert row.shared_bytes <= 64 * KIB


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
    assert main("linear", "sm_80", {"m": 64, "k": 256, "n": 256}, "fp32").instruction == "none"


def no_thread_has_more_registers() -> None:
    for made in compilations.every().values():
        for row in made:
            assert row.registers <= products.MAX_REGISTERS or not row.target.startswith("sm_")


def operands_come_from_shared_memory() -> None:
    for chip in products.FROM_SHARED:
        for row, loop in hot("linear", "linear", chip):
            high = planned_for("linear", chip, row.sizes).block_m >= products.FROM_SHARED_ROWS
            if dict(row.sizes) != UNALIGNED:
                assert (loop.shared_loads == 0) == high == (row.instruction == INSTRUCTION[chip]), row
