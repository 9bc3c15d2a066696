"""The rung "compiled": real compilations for chips that are not here."""

import re
from dataclasses import replace

import pytest

from kernels.contract.errors import PhysicsDisagrees, Unsupported
from kernels.contract.targets import target
from kernels.evidence import compiled
from kernels.evidence.sweeps import sweep
from tests.kernels import compilations, unlaunchable
from tests.kernels.compilations import (
    EXPERIMENTS,
    INSTRUCTION,
    KNOWN,
    MORE,
    RUNGS,
    SPECIALISED,
    SPILLS,
    SQUARE,
    TRITON,
    UNALIGNED,
    WHOLE,
    case,
)
from tests.kernels.toy import experiment as toy

# Their loads are 16 bytes wide where the sizes are multiples of 16; a toy's are not held to it.
WIDE = ("linear", "matmul", "mlp", "flash_attention")


@pytest.fixture(scope="module")
def every():
    """(key, chip, sizes, dtype, changes of the plan) -> rows, a kernel each."""
    return compilations.every()


@pytest.fixture(scope="module")
def row(every):
    """One compilation of the toy, which is as it should be."""
    return every[case("toy", "sm_90", SQUARE)][0]


# ------------------------------------------------------------------- all that the sweeps launch


@pytest.mark.parametrize("name", KNOWN)
def test_everything_fits_and_stays_in_registers_wherever_it_is_launched(every, name):
    mine = [row for (key, *_, plan), rows in every.items() if key == name and not plan for row in rows]
    assert mine and faults(mine) == []
    assert all(0 < row.occupancy <= 1 for row in mine)


def faults(rows):
    """What can't be launched or spills, a sentence each, but for the spills that are excused by name."""
    allowed = SPILLS.get(TRITON, {})
    return [
        fault
        for row in rows
        if not (row.fits and (row.kernel, row.target) in allowed)
        for fault in row.faults
    ]


PLANTED = {
    "too_many_stages": r"a block asks for 393,216 bytes of shared memory and may have 232,448",
    "too_many_registers": r"too few registers for one block of 16 warps",
    "too_many_threads": r"too few threads for one block of 64 warps",
    "too_few_warps": r"\d+ bytes of each thread leave its 255 registers",
}


@pytest.fixture(scope="module")
def planted():
    """What is compiled of each experiment that has a fault at one timed size."""
    ones = {name: getattr(unlaunchable, name) for name in PLANTED}
    points = [(name, point) for name, one in ones.items() for point in compilations.launched(one, "sm_90")]
    rows = compiled.cases([(ones[name], "sm_90", *point) for name, point in points])
    found = {name: [] for name in PLANTED}
    for (name, _), row in zip(points, rows, strict=True):
        found[name].append(row)
    return found


@pytest.mark.parametrize("name", PLANTED)
def test_a_fault_at_one_timed_size_is_found(planted, name):
    (fault,) = faults(planted[name])
    assert re.search(r"m = 256, .*" + PLANTED[name], fault)


def test_every_tile_of_a_product_fits_and_stays_in_registers(every):
    for chip, aligned, tile in compilations.tiles():
        key, _, sizes, plan = compilations.tile_case(chip, aligned, tile)
        assert faults(every[case(key, chip, sizes, plan=plan)]) == []


def test_every_spill_that_is_excused_is_there_and_no_larger(every):
    found: dict[tuple[str, str], int] = {}
    for (*_, plan), rows in every.items():
        for row in rows:
            if row.spills and not plan:
                place = row.kernel, row.target
                found[place] = max(found.get(place, 0), row.spill_bytes)
    assert found == {place: most for place, (most, _) in SPILLS.get(TRITON, {}).items()}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_point_of_every_sweep_is_compiled_for_the_chip_that_plans_stand_in_for(every, name):
    one = EXPERIMENTS[name]
    for chip in WHOLE:
        if not compiled.why_not(one, target(chip)):
            for rung in RUNGS:
                for sizes in compilations.points(one, rung):
                    assert every[case(name, chip, sizes)], (chip, rung, sizes)


def test_every_experiment_is_compiled_for_the_chips_it_shows_something_on(every):
    for name, one in EXPERIMENTS.items():
        assert {chip for key, chip, *_ in every if key == name} >= set(compilations.chips(one)), name


@pytest.mark.parametrize(("sizes", "dtype", "anew"), SPECIALISED)
def test_sizes_share_their_machine_code_unless_triton_tells_them_apart(every, row, sizes, dtype, anew):
    (other,) = every[case("toy", "sm_90", sizes, dtype)]
    assert (other.code != row.code) == anew


# ------------------------------------------------------------------------- what the chips do


@pytest.mark.parametrize("chip", INSTRUCTION)
def test_a_large_matrix_product_uses_the_matrix_instruction_of_its_chip(every, chip):
    for name in ("linear", "matmul"):
        rows = every[case(name, chip, sweep(KNOWN[name], "compiled")[-1])]
        assert rows[0].instruction == INSTRUCTION[chip]


def test_a_bandwidth_kernel_has_no_matrix_instruction(every):
    for (name, *_), rows in every.items():
        if KNOWN[name].unit != "matrix":
            assert {row.instruction for row in rows} == {"none"}


@pytest.mark.parametrize(("key", "chip", "sizes", "dtype", "instruction"), MORE)
def test_the_instruction_is_the_one_that_few_or_many_rows_get(every, key, chip, sizes, dtype, instruction):
    main, *others = every[case(key, chip, sizes, dtype)]
    assert main.instruction == instruction
    assert all(row.instruction == "none" for row in others if row.kernel in ("merge", "add partials"))


def test_loads_are_wide(every):
    for (name, chip, sizes, dtype, plan), rows in every.items():
        if plan or dtype != KNOWN[name].best_dtype(target(chip)):
            continue
        # On AMD a tile of 16 rows leaves 8 bytes of x to a thread.
        large = chip.startswith("sm_") or sizes == tuple(sweep(KNOWN[name], "compiled")[-1].items())
        if name in WIDE and dict(sizes) != UNALIGNED and large:
            narrow = [(r.kernel, r.target, dict(r.sizes)) for r in rows if r.wide_loads < r.loads]
            assert not [one for one in narrow if one[0] != "add partials"]
        if name == "kv_append" and chip.startswith("sm_"):
            assert {row.wide_loads for row in rows} == {2}, "k and v; the position is one number"


# --------------------------------------------------------------------------- what is wrong with one


def test_a_kernel_that_is_as_it_should_be_has_no_fault(row):
    assert row.fits and not row.spills and row.faults == ()
    row.check()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {"shared_bytes": 300_000, "blocks_per_sm": 0},
            r"toy_kernel on sm_90 \(m = 64, k = 1,024, n = 1,024, bf16\): a block asks for 300,000 bytes of "
            "shared memory and may have 232,448, .*choose a smaller tile or fewer stages",
        ),
        (
            {"blocks_per_sm": 0, "limited_by": "registers", "registers": 255, "warps": 32},
            "too few registers for one block of 32 warps with 255 registers a thread; choose a smaller tile",
        ),
        (
            {"spill_bytes": 24, "registers": 255},
            "24 bytes of each thread leave its 255 registers for memory; choose a smaller tile, more warps",
        ),
    ],
)
def test_what_cannot_run_or_spills_is_named_with_the_remedy(row, changed, sentence):
    wrong = replace(row, **changed)
    assert len(wrong.faults) == 1
    with pytest.raises(PhysicsDisagrees, match=sentence):
        wrong.check()


# ----------------------------------------------------------------------------- what is refused


def test_sm_75_compiles_bandwidth_kernels_only():
    there = {name for name, e in EXPERIMENTS.items() if "sm_75" in compiled.targets_of(e)}
    assert there == {name for name, e in EXPERIMENTS.items() if e.unit != "matrix"}
    assert "stream" in there and "linear" not in there


def test_a_matrix_kernel_on_sm_75_is_refused_with_a_sentence():
    with pytest.raises(Unsupported, match="no tensor-core code .*choose sm_80 or later"):
        compiled.run(toy, targets=["sm_75"])


def test_a_dtype_that_nobody_offered_is_refused_with_the_ones_there_are():
    with pytest.raises(
        Unsupported, match=r"dtype = 'fp8': toy does not run in it; choose bf16, fp16 or fp32"
    ):
        compiled.run(toy, targets=["sm_90"], dtype="fp8")


def test_a_dtype_that_the_card_lacks_is_refused():
    stream = EXPERIMENTS["stream"]
    with pytest.raises(Unsupported, match="sm_75 .*has none; choose"):
        compiled.run(stream, targets=["sm_75"], dtype="bf16")


def test_an_unknown_target_lists_the_known_ones():
    with pytest.raises(ValueError, match="sm_91.*choose one of sm_75, sm_80"):
        compiled.run(toy, targets=["sm_91"])
