"""What kernel files and chapters say of machine code is so.

Every such sentence, found by its words, has a row with a check on what was compiled; a row whose sentence
is gone, or came to say something else, fails too.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest

from tests.kernels import compilations
from tests.kernels import statement_checks as so

ROOT = Path(__file__).parents[2]
# Words that speak of machine code, and names of chips.
SPEAKS = re.compile(
    r"barrier|register|shared memory|spill|\bwait|\bthread|instruction|in flight|(?:wide|narrow|widest) load"
    r"|matrix unit|(?:share|on) (?:a|one) multiprocessor|programs a multiprocessor"
    r"|\bfits? (?:on|in|side by side)\b|KiB|Hopper|Blackwell|ptxas"
    r"|when compiling|loop counter|one loop|\bfly\b|tf32|the hardware has",
    re.IGNORECASE,
)
# In chapters "threads" and "waits" are mostly something else.
SPEAKS_IN_PROSE = re.compile(
    r"barrier|register|shared memory|spill|wide load|instruction|mma\.sync|wgmma|tcgen05",
    re.IGNORECASE,
)


# What is said -> what of it is so. A sentence belongs to the row whose words it has.
STATEMENTS: dict[str, dict[str, Callable[[], None]]] = {
    "decode_attention.py": {
        "each thread adds to its own, after the loop they are added up": so.decode_sums_after_the_loop,
    },
    "flash_attention.py": {
        "takes a mask in every load, and the registers for it": so.a_mask_takes_registers,
        "with exp2, which the hardware has": so.flash_takes_exponentials_of_the_hardware,
        "what fits registers and shared memory": so.nothing_spills("flash_attention"),
        "takes 128 rows wherever no register is spilled": so.flash_takes_128_rows,
        "With head_dim 64 two programs share a multiprocessor": so.flash_shares_a_multiprocessor,
        "with 128 only one fits on Hopper and Blackwell": so.flash_is_alone,
        "half as many waits for each product": so.flash_is_alone,
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
        "nothing needs a mask, known when compiling": so.whole_tiles_need_no_mask,
        "The default rounds fp32 operands to tf32": so.triton_rounds_fp32_unasked,
        "keeps the sum in registers": so.the_sum_stays_in_registers("matmul", "matmul"),
    },
    "persistent_matmul.py": {
        "the next tile's first loads wait until": so.a_tile_is_stored_behind_its_loop,
        "the loop over K are one loop (`flatten`), so they fly while": so.persistent_programs_have_one_loop,
        "no more programs than fit on `target` at once": so.persistent_programs_fit_at_once,
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
        "what keeps most bytes in flight without spilling": so.nothing_spills("decode_attention"),
        "the matrix units' smallest tile": so.matrix_tiles_have_sixteen_rows,
        "at most 256 numbers of a head fit in one tile": so.decode_fits_as_often_as_planned,
        "of four warps, what fits side by side with the stages": so.decode_fits_as_often_as_planned,
        "How many programs of so many warps fit on a multiprocessor": so.decode_fits_as_often_as_planned,
        "no copies into shared memory meanwhile": so.decode_without_copies_into_shared_memory,
    },
    "tiling/products.py": {
        "what a thread may have.": so.programs_that_hide_waits_fit,
        "Where nothing is said, ptxas saves registers": so.unasked_ptxas_spills,
        "which wide loads need": so.ragged_rows_are_loaded_narrowly,
        "How many programs of this tile fit on a multiprocessor": so.the_estimate_agrees_with_the_compiler,
        "two for each sum that a thread keeps, and forty": so.the_estimate_agrees_with_the_compiler,
        "Shared memory:": so.the_estimate_agrees_with_the_compiler,
        "where the matrix units don't read shared memory": so.operands_come_from_shared_memory,
        "what a thread may have beside the programs": so.programs_that_hide_waits_fit,
        "Stages are what keeps bytes in flight": so.a_loop_fetches_ahead,
        "two programs of a small tile on one multiprocessor": so.two_small_tiles_fit,
        "64 KiB of LDS": so.local_memory_holds_a_block,
        "two stages are prefetching into registers": so.amd_prefetches_into_registers,
        "no matrix unit:": so.fp32_uses_no_matrix_unit,
        "narrow loads, each with an address in a register": so.ragged_rows_are_loaded_narrowly,
        "of a thread, in what an instruction can name": so.no_thread_has_more_registers,
        "their matrix units read operands in shared memory": so.operands_come_from_shared_memory,
        "how many registers their addresses take": so.addresses_take_registers,
        "whose addresses take registers as well, fewer fit": so.addresses_take_registers,
        "at most 99 KiB a block": so.small_shared_memory_holds_two_blocks,
        "of all but the first, two blocks fit in 100": so.small_shared_memory_holds_two_blocks,
    },
    "01-roofline.ipynb": {
        "multiplies and adds `k` times in registers": so.a_chain_stays_in_registers,
    },
    "02-linear-layers.ipynb": {
        "the instruction on one chip (sm_90, the H100) changes with": so.the_fast_instruction_needs_64_rows,
        "the fast matrix instruction needs at least 64 rows": so.the_fast_instruction_needs_64_rows,
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
    ("STYLE.md", "what happens inside a loop", "names what a rung has"),
    ("STYLE.md", "compiled without spills", "says what test_compiled does"),
]

ROWS = [(where, words) for where, some in STATEMENTS.items() for words in some]
ROWS += [(where, words) for where, words, _ in NO_FACTS]
CHECKS = list(dict.fromkeys(check for some in STATEMENTS.values() for check in some.values()))


def files() -> list[Path]:
    """Kernels and what cuts them up (`measure` is a command), the chapters, the rule book."""
    python = [*ROOT.glob("kernels/*.py"), *ROOT.glob("kernels/tiling/*.py")]
    kernels = sorted(path for path in python if path.name != "measure.py")
    return [*kernels, *sorted(ROOT.glob("chapters/[0-9]*.ipynb")), ROOT / "STYLE.md"]


def name(path: Path) -> str:
    """What the table calls a file."""
    return f"tiling/{path.name}" if path.parent.name == "tiling" else path.name


def sentences(path: Path) -> list[str]:
    """The sentences of a file's comments and texts, or a notebook's prose, that speak of machine code."""
    speaks = SPEAKS if path.suffix == ".py" else SPEAKS_IN_PROSE
    pieces = (piece for text in _texts(path) for piece in re.split(r"(?<=[.!?;:])\s+|\n\n", text))
    return [" ".join(piece.split()) for piece in pieces if speaks.search(piece) and " " in piece]


def _texts(path: Path) -> Iterator[str]:
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield source
    elif path.suffix == ".ipynb":
        cells = nbformat.reads(source, 4).cells
        yield from (cell.source for cell in cells if cell.cell_type == "markdown")
    else:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
        yield from _comments(source)


def _comments(source: str) -> Iterator[str]:
    """Comments; those of several lines in a row as one text."""
    block: list[str] = []
    last = -1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            alone = token.line.lstrip().startswith("#")
            if not (alone and token.start[0] == last + 1):
                yield " ".join(block)
                block = []
            block.append(token.string.lstrip("# "))
            last = token.start[0] if alone else -1
    yield " ".join(block)


@pytest.mark.parametrize("path", files(), ids=name)
def test_every_sentence_about_machine_code_has_a_row(path):
    mine = [words for where, words in ROWS if where == name(path)]
    unheld = [said for said in sentences(path) if not any(words in said for words in mine)]
    assert not unheld, "give each a row in STATEMENTS with a check of what is compiled, or say it otherwise"


@pytest.mark.parametrize(("where", "words"), ROWS)
def test_every_row_is_still_said(where, words):
    (path,) = [path for path in files() if name(path) == where]
    assert [said for said in sentences(path) if words in said]


@pytest.mark.skipif(
    compilations.TRITON != compilations.PINNED,
    reason=f"triton = {compilations.TRITON}: said of what {compilations.PINNED} compiles, which is pinned",
)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_what_is_said_of_machine_code_is_so(check):
    check()


def test_a_sentence_about_machine_code_is_found_wherever_it_stands(tmp_path):
    path = tmp_path / "kernel.py"
    path.write_text(
        '"""Sums. They stay in registers."""\n'
        "x = 1  # no barrier here\n"
        "# Threads of this program\n# wait for each other. And so on.\n"
        'y = "with wide loads: nothing"\n',
        encoding="utf-8",
    )
    assert sentences(path) == [
        "They stay in registers.",
        "with wide loads:",
        "no barrier here",
        "Threads of this program wait for each other.",
    ]
