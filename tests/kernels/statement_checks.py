"""Is it so? A check on what was compiled for each statement about machine code in `statements.py`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kernels.contract.targets import TARGETS
from kernels.evidence import counted
from kernels.evidence.sweeps import sweep
from kernels.kv_append import experiment as kv_append
from kernels.tiling import decode
from tests.kernels import compilations
from tests.kernels.compilations import (
    ATTENTION,
    FEW,
    HEAD,
    INSTRUCTION,
    KNOWN,
    LONGEST_ROW,
    PROMPT,
    case,
    planned_for,
)
from tests.kernels.compiled_rows import changed, hot, main, nothing_spills, rows


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
    assert "16816" in main("decode_attention", "sm_90", ATTENTION).opcode


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
        assert main("flash_attention", chip, {**PROMPT, "head_dim": 64}).blocks_per_sm == 2


def flash_is_alone() -> None:
    for chip in ("sm_90", "sm_100"):
        assert main("flash_attention", chip, PROMPT).blocks_per_sm == 1


def flash_waits_half_as_often_on_hopper() -> None:
    keys = {chip: planned_for("flash_attention", chip, PROMPT).block_n for chip in ("sm_90", "sm_100")}
    assert keys == {"sm_90": 128, "sm_100": 64}
    assert main("flash_attention", "sm_90", PROMPT).hot.matrix_instructions


def flash_takes_exponentials_of_the_hardware() -> None:
    assert all(loop.exponentials for _, loop in hot("flash_attention", "flash attention"))


def a_mask_takes_registers() -> None:
    assert changed("flash_attention", "sm_90").registers > main("flash_attention", "sm_90", PROMPT).registers


def a_chain_stays_in_registers() -> None:
    for row in rows("fma_chain"):
        assert not row.loops and not row.spills, "its loop moves nothing, so it is none of `loops`"


def a_thread_has_chains() -> None:
    for row in rows("fma_chain"):
        plan = planned_for("fma_chain", row.target, row.sizes)
        threads = row.warps * TARGETS[row.target].warp_size
        assert 4 * threads <= plan.block <= 32 * threads, row


def a_matrix_unit_takes_sixteen_rows() -> None:
    assert "16816" in main("toy", "sm_90", FEW).opcode
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
    loop = main("gemv", "sm_90", HEAD).hot
    assert (loop.wide_loads - 1) * 16 == 128, "beside one load of x"


def gemv_keeps_four_rows() -> None:
    for chip in ("sm_80", "sm_90"):
        key = "gemv" if chip == "sm_80" else "gemv.kn"
        assert not main(key, chip, {**HEAD, "m": 4}).spills
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


def an_append_loads_before_it_knows_where(run: Callable[..., object] = kv_append.run) -> None:
    sizes = {"batch": 2, "kv_heads": 2, "head_dim": 16, "context": 4}
    inputs = kv_append.inputs(**sizes)
    inputs["positions"].fill_(-1)  # nowhere: nothing is written, and k and v are read all the same
    with counted.count() as tally:
        run(**inputs)
    reads = tally.reads()
    assert {name: reads[name].unique for name in reads if name in "kv"} == {
        name: inputs[name].nbytes for name in "kv"
    }
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
        assert main("matmul", chip, sweep(KNOWN["matmul"], "compiled")[-1]).instruction == instruction


def a_copy_has_64_bytes_in_flight() -> None:
    for key, tensors in (("stream", 1), ("stream.triad", 2)):
        last = sweep(KNOWN[key], "compiled")[-1]
        assert main(key, "sm_90", last).wide_loads * 16 == 64 * tensors


def a_row_of_scores_stays_in_registers() -> None:
    kernels = compilations.every()[case("unfused_attention", "sm_90", LONGEST_ROW)]
    (softmax,) = [row for row in kernels if row.kernel == "softmax"]
    assert not softmax.spills and not softmax.loops


# ---------------------------------------------------------------------------------------- chapters


def the_fast_instruction_needs_64_rows() -> None:
    for row in rows("linear", "linear", "sm_90"):
        assert row.instruction == ("wgmma" if row.sizes["m"] > 32 else "mma.sync")


def decode_has_an_instruction_everywhere() -> None:
    assert all(row.instruction != "none" for row in rows("decode_attention", "decode attention"))
    assert main("decode_attention", "sm_90", ATTENTION).instruction == "mma.sync"
    nothing_spills("decode_attention")()


def flash_gets_the_fast_instruction() -> None:
    assert main("flash_attention", "sm_90", PROMPT).instruction == "wgmma"
    nothing_spills("flash_attention")()
