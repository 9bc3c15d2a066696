"""The readers of machine code, on captured listings: instructions, loops, resources, occupancy."""

import pytest

from kernels.contract.targets import TARGETS, occupancy, target
from kernels.evidence.compiled import listing, loops, machine_code

SASS = """
        /*0a10*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8].tnspB, R24, gsb0 ;
        /*0a20*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24 ;
        /*0b00*/              @!P1 LDGSTS.E.BYPASS.LTC128B.128 [R5], desc[UR4][R6.64] ;
        /*0b10*/                   LDG.E.U16 R7, desc[UR4][R2.64] ;
        /*0b20*/                   STL [R1+0x4], R52 ;
        /*0b30*/                   LDL.LU R13, [R1] ;
"""
USAGE = " Function k:\n  REG:168 STACK:24 SHARED:1024 LOCAL:0 CONSTANT[0]:592 TEXTURE:0 SURFACE:0 SAMPLER:0"
AMD = """
kernel:                                 ; @kernel
    s_load_dwordx2 s[2:3], s[0:1], 0x0
    v_mfma_f32_32x32x8_bf16 a[0:15], v[2:3], v[4:5], a[0:15]
.LBB0_1:                                ; =>This Inner Loop Header: Depth=1
    buffer_load_dwordx4 v[8:11], v1, s[8:11], 0 offen
    buffer_load_dword v1, s[8:11], 0 offen lds
    global_load_ushort v12, v[2:3], off
    ds_write_b128 v1, v[8:11]
    s_barrier
    ds_read_b128 v[8:11], v1
    v_add_f32_dpp v1, v2, v3 row_shr:1 row_mask:0xf bank_mask:0xf
    v_exp_f32_e32 v1, v2
    s_cbranch_scc1 .LBB0_1
    s_endpgm
    .section .rodata,"a",@progbits
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 16
    .sgpr_count:     45
    .sgpr_spill_count: 0
    .vgpr_count:     96
    .vgpr_spill_count: 4
"""


def sass(*lines):
    """The instructions of a listing whose lines stand at 0x00, 0x10, ..."""
    (code,) = listing.read_sass("".join(f"/*{16 * i:04x}*/ {line} ;\n" for i, line in enumerate(lines)))
    return code


def test_the_nvidia_reader_sees_instruction_registers_spills_and_wide_loads():
    (code,) = listing.read_sass(SASS)
    facts = machine_code.read_nvidia(USAGE, code)
    assert (facts["instruction"], facts["opcode"]) == ("wgmma", "HGMMA.64x128x16.F32.BF16")
    assert (facts["registers"], facts["spill_bytes"], facts["spill_instructions"]) == (168, 24, 2)
    assert (facts["wide_loads"], facts["loads"]) == (1, 2)


def test_the_amd_reader_sees_instruction_registers_spills_and_wide_loads():
    facts = machine_code.read_amd(AMD)
    assert (facts["instruction"], facts["matrix_instructions"]) == ("mfma", 1)
    assert (facts["registers"], facts["scalar_registers"]) == (96, 45)
    assert (facts["spill_bytes"], facts["spill_instructions"]) == (16, 4)
    assert (facts["wide_loads"], facts["loads"]) == (1, 3)


def test_the_amd_reader_sees_what_stands_in_the_loop():
    (loop,) = machine_code.read_amd(AMD)["loops"]
    assert {name: value for name, value in loop.items() if value} == {
        "depth": 1, "innermost": True, "instructions": 9, "barriers": 1, "shared_loads": 1,
        "shared_stores": 1, "loads": 2, "wide_loads": 1, "async_copies": 1, "shuffles": 1,
        "exponentials": 1, "round_trips": 1,
    }  # fmt: skip


def test_code_of_several_kernels_is_cut_where_each_begins():
    text = "".join(f"/*{at:04x}*/ {line} ;\n" for at, line in ((0, "EXIT"), (16, "BRA 0x20"), (32, "EXIT")))
    first, second = listing.read_sass(text, [(0, 16), (16, 48)])
    assert [one.opcode for one in first] == ["EXIT"]
    assert (second[0].target, second[0].falls_through) == (1, False)


@pytest.mark.parametrize(
    ("line", "jumps", "goes_on"),
    [
        ("BRA 0x0", True, False),
        ("@P0 BRA 0x0", True, True),
        ("@!UP1 BRA.U 0x0", True, True),
        ("BRA.U UP0, 0x0", True, True),  # its condition is an operand
        ("EXIT", False, False),
        ("@P0 EXIT", False, True),
        ("RET.REL.NODEC R2 0x0", False, False),
        ("CALL.REL.NOINC 0x0", True, True),
        ("BSSY B0, 0x0", False, True),  # says where threads meet, and jumps nowhere
        ("FADD R1, R2, R3", False, True),
    ],
)
def test_where_an_instruction_may_go_on(line, jumps, goes_on):
    (one,) = sass(line)
    assert (one.target is not None, one.falls_through) == (jumps, goes_on)


def test_a_load_that_never_happens_is_none():
    (one,) = sass("@!PT LDS RZ, [RZ]")
    assert one.opcode == "NOP"


# --------------------------------------------------------------------------------------------- loops


def test_what_stands_around_a_loop_is_not_in_it():
    (loop,) = loops.loops(
        sass("LDG.E.128 R1, [R2]", "LDG.E R1, [R2]", "SHFL.BFLY R1", "@P0 BRA 0x10", "BAR.SYNC 0x0", "EXIT"),
        "cuda",
    )
    assert (loop.loads, loop.wide_loads, loop.shuffles, loop.barriers) == (1, 0, 1, 0)
    assert (loop.instructions, loop.depth, loop.innermost) == (3, 1, True)


def test_a_loop_in_a_loop_is_a_row_of_its_own():
    outer, inner = loops.loops(
        sass("MUFU.EX2 R1, R2", "LDG.E.128 R1, [R2]", "@P0 BRA 0x10", "STG.E R1", "@P1 BRA 0x0", "EXIT"),
        "cuda",
    )
    assert (outer.depth, outer.innermost, outer.exponentials, outer.stores, outer.loads) == (
        1,
        False,
        1,
        1,
        0,
    )
    assert (inner.depth, inner.innermost, inner.wide_loads, inner.instructions) == (2, True, 1, 2)


def test_a_loop_that_only_waits_belongs_to_what_is_around_it():
    (loop,) = loops.loops(
        sass(
            "HMMA.16816.F32 R1", "SYNCS.PHASECHK.TRANS64.TRYWAIT P0", "@!P0 BRA 0x10", "@P1 BRA 0x0", "EXIT"
        ),
        "cuda",
    )
    assert (loop.matrix_instructions, loop.instructions, loop.innermost) == (1, 4, True)


def test_code_that_was_moved_out_of_the_way_is_no_loop():
    code = sass("@P0 BRA 0x40", "LDG.E R1, [R2]", "STG.E R1", "EXIT", "LDS R1, [R2]", "BRA 0x20")
    assert loops.loops(code, "cuda") == []


def test_two_ways_back_to_one_place_are_one_loop():
    (loop,) = loops.loops(
        sass("LDG.E R1, [R2]", "@P0 BRA 0x0", "STS [R1], R2", "@P1 BRA 0x0", "EXIT"), "cuda"
    )
    assert (loop.loads, loop.shared_stores, loop.instructions) == (1, 1, 4)


@pytest.mark.parametrize(
    ("body", "trips"),
    [
        (["STS [R1], R2", "BAR.SYNC 0x0", "LDS R1, [R2]", "BAR.SYNC 0x0"], 1),
        (["LDS R1, [R2]", "BAR.SYNC 0x0", "STS [R1], R2", "BAR.SYNC 0x0"], 1),  # on into the next turn
        (
            [
                "STS [R1], R2",
                "BAR.SYNC 0x0",
                "LDSM R1, [R2]",
                "STSM [R1], R2",
                "BAR.SYNC 0x0",
                "LDS R1, [R2]",
            ],
            2,
        ),
        (["LDGSTS.E.BYPASS.128 [R1]", "BAR.SYNC 0x0", "LDSM R1, [R2]"], 0),  # what came from memory
        (["STS [R1], R2", "LDS R1, [R2]"], 0),  # each thread its own
        (["STS [R1], R2", "BAR.ARV 0x1", "LDS R1, [R2]"], 0),  # says "here", and waits for nobody
    ],
)
def test_a_round_trip_is_a_barrier_between_stores_and_loads(body, trips):
    (loop,) = loops.loops(sass(*body, "@P0 BRA 0x0", "EXIT"), "cuda")
    assert loop.round_trips == trips


def test_a_kernel_without_a_loop_has_none():
    assert loops.loops(sass("LDG.E R1, [R2]", "EXIT"), "cuda") == []


# ----------------------------------------------------------------------------------------- occupancy


@pytest.mark.parametrize(
    ("chip", "registers", "shared", "warps", "blocks", "limit"),
    [
        # by hand: 65536 registers; a warp at 32 takes 1024 of them, so 64 warps, the most there are
        ("sm_90", 32, 0, 4, 16, "threads"),
        ("sm_90", 168, 147456, 8, 1, "registers"),  # 12 warps fit, a block has 8; shared would allow 1
        ("sm_80", 64, 40 * 1024, 4, 4, "shared memory"),  # 164 KiB / 41 KiB
        ("sm_90", 255, 0, 4, 2, "registers"),  # 256 * 32 a warp: 8 warps
        ("sm_90", 16, 0, 64, 0, "threads"),  # 2,048 live on a multiprocessor, a block has 1,024
        ("sm_75", 16, 0, 1, 16, "blocks"),
        ("gfx942", 128, 0, 4, 4, "registers"),  # 512 / 128 = 4 waves on each of 4 SIMDs
    ],
)
def test_occupancy_agrees_with_the_calculation_by_hand(chip, registers, shared, warps, blocks, limit):
    got = occupancy(target(chip), registers=registers, shared_bytes=shared, warps=warps)
    assert (got.blocks, got.limit) == (blocks, limit)
    assert got.fraction == blocks * warps * TARGETS[chip].warp_size / TARGETS[chip].max_threads
