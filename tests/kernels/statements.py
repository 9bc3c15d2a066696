"""What kernel files and chapters say of machine code, and the check that holds each statement."""

from __future__ import annotations

from collections.abc import Callable

from tests.kernels import product_checks as tiles
from tests.kernels import statement_checks as so
from tests.kernels.compiled_rows import nothing_spills

# What is said -> what of it is so. A sentence belongs to the row whose words it has.
STATEMENTS: dict[str, dict[str, Callable[[], None]]] = {
    "decode_attention.py": {
        "each thread adds to its own, after the loop they are added up": so.decode_sums_after_the_loop,
    },
    "flash_attention.py": {
        "takes a mask in every load, and the registers for it": so.a_mask_takes_registers,
        "with exp2, which the hardware has": so.flash_takes_exponentials_of_the_hardware,
        "what fits registers and shared memory": nothing_spills("flash_attention"),
        "takes 128 rows wherever no register is spilled": so.flash_takes_128_rows,
        "With head_dim 64 two programs share a multiprocessor": so.flash_shares_a_multiprocessor,
        "with 128 only one fits on Hopper and Blackwell": so.flash_is_alone,
        "On Hopper it takes 128 keys at once": so.flash_waits_half_as_often_on_hopper,
        "half as many waits for each product": so.flash_waits_half_as_often_on_hopper,
    },
    "fma_chain.py": {
        "k times in registers": so.a_chain_stays_in_registers,
        "kept in registers": so.a_chain_stays_in_registers,
        "each thread then has 4 to 32 independent chains": so.a_thread_has_chains,
    },
    "gemv.py": {
        "would only idle on a tile of 16 rows": so.a_matrix_unit_takes_sixteen_rows,
        "for which Triton has no matrix instructions": so.gemv_uses_no_matrix_instruction,
        "to keep enough bytes in flight": so.gemv_has_128_bytes_in_flight,
        "wide loads along whichever axis of w lies side by side": so.gemv_loads_w_wide,
        "at most 4 rows in registers": so.gemv_keeps_four_rows,
        "more rows want more sums than there are registers": so.gemv_keeps_four_rows,
        "128 threads load at once, 16 bytes each": so.gemv_loads_w_wide,
        "up to 128 bytes in flight for each thread": so.gemv_has_128_bytes_in_flight,
        "Triton would send all of it through shared memory, with": so.gemv_would_send_w_through_shared_memory,
        "waves of four programs a multiprocessor": so.gemv_fits_four_times,
        "what the registers of a tile leave room for": so.gemv_fits_four_times,
        "the widest load of one thread": so.gemv_loads_w_wide,
        "BLOCK_K is 16 bytes a thread": so.gemv_loads_w_wide,
        "meet in registers, no barrier in the loop": so.gemv_meets_in_registers,
        "only here threads wait for each other": so.gemv_meets_in_registers,
    },
    "kv_append.py": {
        "Up to 2 KiB of K a program": so.an_append_is_wide,
        "16 bytes for each of its 128 threads": so.an_append_is_wide,
        "need not wait for the position": so.an_append_loads_before_it_knows_where,
    },
    "matmul.py": {
        "the matrix units' own ceiling": so.a_product_uses_the_matrix_units,
        "nothing needs a mask, known when compiling": tiles.whole_tiles_need_no_mask,
        "The default rounds fp32 operands to tf32": tiles.triton_rounds_fp32_unasked,
        "keeps the sum in registers": so.the_sum_stays_in_registers("matmul", "matmul"),
    },
    "persistent_matmul.py": {
        "the next tile's first loads wait until": tiles.a_tile_is_stored_behind_its_loop,
        "one loop (`flatten`), so they fly while": tiles.persistent_programs_have_one_loop,
        "no more programs than fit on `target` at once": tiles.persistent_programs_fit_at_once,
    },
    "mlp.py": {
        "multiplies them in registers": so.the_sum_stays_in_registers("mlp", "gate and up"),
    },
    "stream.py": {
        "each thread has 64 bytes in flight": so.a_copy_has_64_bytes_in_flight,
    },
    "unfused_attention.py": {
        "keeps a row of scores in the registers": so.a_row_of_scores_stays_in_registers,
    },
    "tiling/decode.py": {
        "whole waves of two programs a multiprocessor": so.decode_fits_as_often_as_planned,
        "what keeps most bytes in flight without spilling": nothing_spills("decode_attention"),
        "the matrix units' smallest tile": so.matrix_tiles_have_sixteen_rows,
        "at most 256 numbers of a head fit in one tile": so.decode_fits_as_often_as_planned,
        "of four warps, what fits side by side with the stages": so.decode_fits_as_often_as_planned,
        "How many programs of so many warps fit on a multiprocessor": so.decode_fits_as_often_as_planned,
        "no copies into shared memory meanwhile": so.decode_without_copies_into_shared_memory,
    },
    "tiling/products.py": {
        "what a thread may have.": tiles.programs_that_hide_waits_fit,
        "Where nothing is said, ptxas saves registers": tiles.unasked_ptxas_spills,
        "which wide loads need": tiles.ragged_rows_are_loaded_narrowly,
        "How many programs of this tile fit on a multiprocessor": tiles.the_estimate_agrees_with_the_compiler,
        "two for each sum that a thread keeps, and forty": tiles.the_estimate_agrees_with_the_compiler,
        "Shared memory:": tiles.the_estimate_agrees_with_the_compiler,
        "where the matrix units don't read shared memory": tiles.operands_come_from_shared_memory,
        "what a thread may have beside the programs": tiles.programs_that_hide_waits_fit,
        "Stages are what keeps bytes in flight": tiles.a_loop_fetches_ahead,
        "two programs of a small tile on one multiprocessor": tiles.two_small_tiles_fit,
        "64 KiB of LDS": tiles.local_memory_holds_a_block,
        "two stages are prefetching into registers": tiles.amd_prefetches_into_registers,
        "no matrix unit:": tiles.fp32_uses_no_matrix_unit,
        "narrow loads, each with an address in a register": tiles.ragged_rows_are_loaded_narrowly,
        "of a thread, in what an instruction can name": tiles.no_thread_has_more_registers,
        "their matrix units read operands in shared memory": tiles.operands_come_from_shared_memory,
        "how many registers their addresses take": tiles.addresses_take_registers,
        "whose addresses take registers as well, fewer fit": tiles.addresses_take_registers,
        "at most 99 KiB a block": tiles.small_shared_memory_holds_two_blocks,
        "of all but the first, two blocks fit in 100": tiles.small_shared_memory_holds_two_blocks,
    },
    "01-roofline.ipynb": {
        "multiplies and adds `k` times in registers": so.a_chain_stays_in_registers,
    },
    "02-linear-layers.ipynb": {
        "the matrix instruction on one chip changes with": so.the_fast_instruction_needs_64_rows,
        "the fast matrix instruction needs a tile of 64 rows": so.the_fast_instruction_needs_64_rows,
    },
    "03-prefill-and-decode.ipynb": {
        "multiplies them in registers": so.the_sum_stays_in_registers("mlp", "gate and up"),
    },
    "04-decode-floor.ipynb": {
        "in wide loads, and adds up in registers": so.gemv_meets_in_registers,
        "no column for a matrix instruction": so.gemv_uses_no_matrix_instruction,
    },
    "06-attention.ipynb": {
        "No spills, and a matrix instruction everywhere": so.decode_has_an_instruction_everywhere,
        "uses the older instruction here (`mma.sync`)": so.decode_has_an_instruction_everywhere,
    },
    "08-prefill-attention.ipynb": {
        "gets the fast matrix instruction, and nothing spills": so.flash_gets_the_fast_instruction,
    },
}

# Said, and no fact of compiled code: (file, words, why it needs no check here).
NO_FACTS = [
    ("decode_attention.py", "known when compiling", "what Triton does with a constexpr condition"),
    ("tiling/waves.py", "how many of them, 1 to `fit`, hide each other's waits", "a definition"),
    (
        "tiling/products.py",
        "programs of one multiprocessor hide each other's waits",
        "a choice; its price is timed",
    ),
    ("01-roofline.ipynb", "Code that never calls a matrix instruction", "of code in general"),
    ("02-linear-layers.ipynb", "which matrix instruction it got", "asks"),
    ("02-linear-layers.ipynb", "It is one instruction and two operations", "of every processor"),
    ("08-prefill-attention.ipynb", "{count} registers", "printed of what was compiled"),
    ("08-prefill-attention.ipynb", "{count} bytes spilled", "printed of what was compiled"),
    ("01-roofline.ipynb", "on this processor, instruction by instruction", "says what executed means"),
    ("02-linear-layers.ipynb", "run instruction by instruction", "says what executed means"),
    ("STYLE.md", "An instruction form in", "of the tests of instructions"),
    ("STYLE.md", "what happens inside a loop", "names what a rung has"),
    ("STYLE.md", "compiled without spills", "says what test_compiled does"),
]
