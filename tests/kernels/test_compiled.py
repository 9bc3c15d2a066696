"""The rung "compiled": real compilations for chips that are not here, and the readers of their code."""

import os
import sys

import pytest

from kernels.contract import devices
from kernels.contract.errors import Unsupported
from kernels.contract.targets import TARGETS, occupancy, target
from kernels.evidence import child_process, compiled
from kernels.evidence.addresses import address
from kernels.evidence.compiled import machine_code
from kernels.evidence.compiled.specialisations import specialisations
from kernels.evidence.experiments import all_experiments
from kernels.evidence.sweeps import sweep
from tests.kernels.toy import experiment as toy

DEFAULT = all_experiments()
INSTRUCTION = {
    "sm_80": "mma.sync",
    "sm_90": "wgmma",
    "sm_100": "tcgen05.mma",
    "gfx942": "mfma",
}


# The chip that plans stand in for is compiled at every specialisation that the sweeps launch, the others
# at the largest size; EVERY_CHIP=1 compiles all of it everywhere (`make test-specialisations`, minutes).
WHOLE = tuple(TARGETS) if os.environ.get("EVERY_CHIP") else (devices.STAND_IN,)

LLAMA = {"d_model": 4096, "d_ff": 14_336}
ATTENTION = {"batch": 1, "heads": 32, "kv_heads": 8, "head_dim": 128, "context": 8192}
PROMPT = {"batch": 1, "length": 8192, "heads": 32, "kv_heads": 8, "head_dim": 128}
HEAD = {"m": 1, "k": 4096, "n": 14_336}

# What no sweep has: (key, chip, sizes, dtype or None, the main kernel's instruction).
MORE = [
    ("toy", "sm_90", {"m": 1, "k": 1024, "n": 1024}, None, "mma.sync"),  # few rows: the older one
    ("linear", "sm_80", {"m": 64, "k": 256, "n": 256}, "fp32", "none"),  # true fp32, no tf32
    ("mlp", "sm_89", {"m": 4096, **LLAMA}, None, "mma.sync"),
    ("mlp", "sm_120", {"m": 4096, **LLAMA}, None, "mma.sync"),
    ("flash_attention", "sm_89", PROMPT, None, "mma.sync"),
    ("flash_attention", "sm_120", PROMPT, None, "mma.sync"),
    ("flash_attention", "sm_90", {**PROMPT, "head_dim": 256}, None, "wgmma"),
    # a group of 4 query heads is too few for the newer instruction, 64 are enough
    ("decode_attention", "sm_89", ATTENTION, None, "mma.sync"),
    ("decode_attention", "sm_90", ATTENTION, None, "mma.sync"),
    ("decode_attention", "gfx942", ATTENTION, None, "mfma"),
    ("decode_attention", "sm_90", {**ATTENTION, "heads": 64, "kv_heads": 1}, None, "wgmma"),
    ("decode_attention", "sm_100", {**ATTENTION, "heads": 64, "kv_heads": 1}, None, "tcgen05.mma"),
    ("decode_attention", "sm_80", {**ATTENTION, "heads": 16, "head_dim": 256}, None, "mma.sync"),
    ("decode_attention", "sm_90", ATTENTION, "fp8", "mma.sync"),
    ("gemv", "sm_80", {**HEAD, "m": 4}, None, "none"),
    ("gemv", "sm_120", HEAD, None, "none"),
    ("gemv.kn", "sm_100", HEAD, None, "none"),
    ("gemv.kn", "sm_90", {**HEAD, "m": 4}, None, "none"),
    ("kv_append", "sm_100", {"batch": 64, "kv_heads": 8, "head_dim": 128, "context": 4096}, None, "none"),
]
# Their loads are 16 bytes wide wherever the sizes allow it; a toy's and a W of four rows are not held to it.
WIDE = ("linear", "matmul", "mlp", "flash_attention")


def chips(experiment):
    """Matrix kernels have an instruction to show on each chip; the others are alike on most.

    What a decode step is made of is compiled with the experiments of its parts.
    """
    if experiment.name == "decode_layer":
        return ["sm_90"]
    return list(INSTRUCTION) if experiment.unit == "matrix" else ["sm_75", "sm_90", "gfx942"]


def planned():
    """Every (experiment, chip, sizes, dtype) that is compiled here."""
    for one in DEFAULT.values():
        for chip in TARGETS:
            if chip in WHOLE and not compiled.why_not(one, target(chip)):
                yield from ((one, chip, sizes, None) for sizes in specialisations(one, target(chip)))
            elif chip in chips(one):
                yield one, chip, sweep(one, "compiled")[-1], None
    known = {**DEFAULT, "toy": toy}
    yield from ((known[key], chip, sizes, dtype) for key, chip, sizes, dtype, _ in MORE)


@pytest.fixture(scope="module")
def every():
    """(key, chip, sizes, dtype) -> rows, a kernel each: all of it in one child."""
    wanted = list(planned())
    rows, made = iter(compiled.cases(wanted)), {}
    for one, chip, sizes, dtype in wanted:
        case = one.key, chip, tuple(sizes.items()), dtype
        made[case] = [next(rows) for _ in range(launches(one, chip, sizes, dtype))]
    assert next(rows, None) is None
    return made


def launches(experiment, chip, sizes, dtype):
    """How many kernels one run of it starts there."""
    dtype = dtype or experiment.best_dtype(target(chip))
    plan = experiment.plan(**sizes, dtype=dtype, target=target(chip))
    return len(experiment.meta_launches(plan, dtype, **sizes))


@pytest.mark.parametrize("name", [*DEFAULT, "toy"])
def test_nothing_spills_and_everything_fits_at_every_specialisation_that_is_launched(every, name):
    mine = [row for (key, *_), rows in every.items() if key == name for row in rows]
    assert mine and not [(r.kernel, r.target, dict(r.sizes), r.spill_bytes) for r in mine if r.spills]
    assert all(row.fits and 0 < row.occupancy <= 1 for row in mine)


def test_every_experiment_is_compiled_for_the_chips_it_shows_something_on(every):
    for name, one in DEFAULT.items():
        assert {chip for key, chip, *_ in every if key == name} >= set(chips(one)), name


@pytest.mark.parametrize("chip", INSTRUCTION)
def test_a_large_matrix_product_uses_the_matrix_instruction_of_its_chip(every, chip):
    for name in ("linear", "matmul"):
        mine = {
            dict(s)["m"]: rows
            for (key, c, s, kind), rows in every.items()
            if (key, c, kind) == (name, chip, None)
        }
        assert mine[max(mine)][0].instruction == INSTRUCTION[chip]


def test_a_bandwidth_kernel_has_no_matrix_instruction(every):
    for (name, *_), rows in every.items():
        if name != "toy" and DEFAULT[name].unit != "matrix":
            assert {row.instruction for row in rows} == {"none"}


@pytest.mark.parametrize(("key", "chip", "sizes", "dtype", "instruction"), MORE)
def test_the_instruction_is_the_one_that_few_or_many_rows_get(every, key, chip, sizes, dtype, instruction):
    main, *others = every[key, chip, tuple(sizes.items()), dtype]
    assert main.instruction == instruction
    assert all(row.instruction == "none" for row in others if row.kernel in ("merge", "add partials"))


def test_loads_are_wide(every):
    for (name, chip, _, dtype), rows in every.items():
        if name in WIDE and dtype is None:
            narrow = [(r.kernel, r.target, dict(r.sizes)) for r in rows if r.wide_loads < r.loads]
            assert not [one for one in narrow if one[0] != "add partials"]
        if name == "kv_append" and chip.startswith("sm_"):
            assert {row.wide_loads for row in rows} == {2}, "k and v; the position is one number"


def test_sm_75_compiles_bandwidth_kernels_only():
    there = {name for name, e in DEFAULT.items() if "sm_75" in compiled.targets_of(e)}
    assert there == {name for name, e in DEFAULT.items() if e.unit != "matrix"}
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
    stream = DEFAULT["stream"]
    with pytest.raises(Unsupported, match="sm_75 .*has none; choose"):
        compiled.run(stream, targets=["sm_75"], dtype="bf16")


def test_an_unknown_target_lists_the_known_ones():
    with pytest.raises(ValueError, match="sm_91.*choose one of sm_75, sm_80"):
        compiled.run(toy, targets=["sm_91"])


@pytest.fixture
def started(tmp_path, monkeypatch):
    """How many requests each child process was given; none is started, and nothing is kept for good."""
    monkeypatch.setenv("INFERENCE_ROOFLINE_CACHE", str(tmp_path))
    asked = []
    monkeypatch.setattr(child_process, "run", lambda some, **_: asked.append(len(some)) or [[7]] * len(some))
    return asked


REQUESTS = [{"task": "compile", "experiment": address(toy), "n": i} for i in range(2)]


def test_answers_are_kept_and_read_back(started):
    for _ in range(2):
        assert child_process.cached(REQUESTS, interpret=False) == [[7], [7]]
    assert started == [2, 0]
    child_process.cached([REQUESTS[1], REQUESTS[0] | {"n": 5}], interpret=False)
    assert started == [2, 0, 1]


def test_an_answer_is_asked_for_again_when_its_code_changed(started, monkeypatch):
    child_process.cached(REQUESTS, interpret=False)
    monkeypatch.setattr(child_process.inspect, "getsource", lambda module: "changed = True")
    child_process.cached(REQUESTS, interpret=False)
    assert started == [2, 2]


def test_in_a_notebook_the_version_that_travelled_decides(started, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "book.portable.dependencies", None)  # it stays at home
    for folder in ("1.0+aaaa", "1.0+aaaa", "1.0+bbbb"):
        monkeypatch.setattr(child_process, "ROOT", tmp_path / folder)
        child_process.cached(REQUESTS, interpret=False)
    assert started == [2, 0, 2]


def test_an_error_in_the_child_arrives_with_its_own_sentence():
    with pytest.raises(ValueError, match="not known here"):
        request = {"task": "compile", "experiment": address(toy), "dtype": "fp16", "sizes": {}}
        child_process.run([request | {"target": "sm_1"}], interpret=False)


# ------------------------------------------------------------------ readers, on captured listings

SASS = """
        /*0a10*/  HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8].tnspB, R24, gsb0 ;
        /*0a20*/  HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24 ;
        /*0b00*/  LDGSTS.E.BYPASS.LTC128B.128 [R5], desc[UR4][R6.64] ;
        /*0b10*/  LDG.E.U16 R7, desc[UR4][R2.64] ;
        /*0b20*/  STL [R1+0x4], R52 ;
        /*0b30*/  LDL.LU R13, [R1] ;
"""
USAGE = " Function k:\n  REG:168 STACK:24 SHARED:1024 LOCAL:0 CONSTANT[0]:592 TEXTURE:0 SURFACE:0 SAMPLER:0"
AMD = """
    v_mfma_f32_32x32x8_bf16 a[0:15], v[2:3], v[4:5], a[0:15]
    buffer_load_dwordx4 v[8:11], v1, s[8:11], 0 offen
    global_load_ushort v12, v[2:3], off
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 16
    .sgpr_count:     45
    .sgpr_spill_count: 0
    .vgpr_count:     96
    .vgpr_spill_count: 4
"""


def test_the_nvidia_reader_sees_instruction_registers_spills_and_wide_loads():
    facts = machine_code.read_nvidia(USAGE, SASS)
    assert (facts["instruction"], facts["opcode"]) == ("wgmma", "HGMMA.64x128x16.F32.BF16")
    assert (facts["registers"], facts["spill_bytes"], facts["spill_instructions"]) == (168, 24, 2)
    assert (facts["wide_loads"], facts["loads"]) == (1, 2)


def test_the_amd_reader_sees_instruction_registers_spills_and_wide_loads():
    facts = machine_code.read_amd(AMD)
    assert (facts["instruction"], facts["matrix_instructions"]) == ("mfma", 1)
    assert (facts["registers"], facts["scalar_registers"]) == (96, 45)
    assert (facts["spill_bytes"], facts["spill_instructions"]) == (16, 4)
    assert (facts["wide_loads"], facts["loads"]) == (1, 2)


@pytest.mark.parametrize(
    ("chip", "registers", "shared", "warps", "blocks", "limit"),
    [
        # by hand: 65536 registers; a warp at 32 takes 1024 of them, so 64 warps, the most there are
        ("sm_90", 32, 0, 4, 16, "threads"),
        ("sm_90", 168, 147456, 8, 1, "registers"),  # 12 warps fit, a block has 8; shared would allow 1
        ("sm_80", 64, 40 * 1024, 4, 4, "shared memory"),  # 164 KiB / 41 KiB
        ("sm_90", 255, 0, 4, 2, "registers"),  # 256 * 32 a warp: 8 warps
        ("sm_75", 16, 0, 1, 16, "blocks"),
        ("gfx942", 128, 0, 4, 4, "registers"),  # 512 / 128 = 4 waves on each of 4 SIMDs
    ],
)
def test_occupancy_agrees_with_the_calculation_by_hand(chip, registers, shared, warps, blocks, limit):
    got = occupancy(target(chip), registers=registers, shared_bytes=shared, warps=warps)
    assert (got.blocks, got.limit) == (blocks, limit)
    assert got.fraction == blocks * warps * TARGETS[chip].warp_size / TARGETS[chip].max_threads
