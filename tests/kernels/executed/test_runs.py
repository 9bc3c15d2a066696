"""Every kernel of the book, as compiled for a chip, run on this CPU against float64."""

from __future__ import annotations

import os
from itertools import product

import pytest

from kernels.contract import devices
from kernels.contract.errors import PhysicsDisagrees, Unsupported
from kernels.contract.targets import TARGETS
from kernels.contract.tiles import tile
from kernels.evidence import counted, executed
from kernels.evidence.experiments import all_experiments
from kernels.evidence.sweeps import sweep
from tests.kernels.toy import experiment as toy

ALL = all_experiments()
# The chip that plans stand in for runs everything; EVERY_CHIP=1 runs it on each (`make test-executed`). The
# others show that their own instructions are known.
EVERYTHING = bool(os.environ.get("EVERY_CHIP"))
WHOLE = executed.EXECUTABLE if EVERYTHING else (devices.STAND_IN,)
INSTRUCTION = {"sm_80": "mma.sync", "sm_90": "wgmma", "sm_100": "tcgen05.mma", "sm_120": "mma.sync"}
LARGE = {"m": 128, "k": 256, "n": 256}
OF_PARTS = ("decode_layer", "fma_chain")  # other kernels one after another; one tile of each unrolling
COMPARED = [name for name in ALL if "." not in name and name != "decode_layer"]
VECTORS = ("lse", "positions")  # numbers that many lanes need


def counted_sizes():
    """What is counted, on each chip; and a product of whole tiles on every chip."""
    for one, chip in product(ALL.values(), WHOLE):
        if not executed.why_not(one, TARGETS[chip]):
            yield from ((one, chip, sizes) for sizes in sweep(one, "counted"))
    yield from ((ALL["matmul"], chip, LARGE) for chip in INSTRUCTION if chip not in WHOLE)


def planned_tiles():
    """Tiles of sizes that are compiled or timed, on the last size that is counted.

    Without EVERY_CHIP that of each sweep's end, on prompts as `aligned` has them.
    """
    for one, chip in product(ALL.values(), WHOLE):
        if executed.why_not(one, TARGETS[chip]) or one.name in OF_PARTS:
            continue

        def tile_of(sizes, one=one, chip=TARGETS[chip]):
            return tile(one.plan(**sizes, dtype=one.best_dtype(chip), target=chip))

        small = sweep(one, "counted")
        seen = {tile_of(sizes) for sizes in small}
        sweeps = (sweep(one, rung) for rung in ("compiled", "timed"))
        for sizes in (sizes for rows in sweeps for sizes in (rows if EVERYTHING else rows[-1:])):
            if (new := tile_of(sizes)) not in seen:
                seen.add(new)
                yield one, chip, small[-1] if EVERYTHING else aligned(small[-1]), None, sizes


def aligned(sizes):
    """A prompt as long or a little longer, a multiple of 16 as the sweeps' lengths are, and of no tile.

    So Triton compiles what a card runs there. Of a softmax whose rows are unaligned, 8,192 numbers read and
    written one by one, it makes code for ten seconds; EVERY_CHIP=1 has that too.
    """
    return sizes | {"length": -(-sizes["length"] // 16) * 16} if "length" in sizes else sizes


@pytest.fixture(scope="module")
def made():
    """The rows of each of these two, all of them made by one child process."""
    lists = [list(some()) for some in (counted_sizes, planned_tiles)]
    assert all(lists)
    rows = iter(executed.cases([one for some in lists for one in some]))
    return [[next(rows) for _ in some] for some in lists]


@pytest.fixture(scope="module")
def every(made):
    """(key, target) -> rows, one for each counted size."""
    found: dict[tuple[str, str], list[executed.Executed]] = {}
    for row in made[0]:
        found.setdefault((row.experiment, row.target), []).append(row)
    return found


@pytest.mark.parametrize("name", ALL)
def test_the_compiled_code_is_right_and_nothing_races(every, name):
    rows = [row for (key, _), rows in every.items() if key == name for row in rows]
    assert rows
    for row in rows:
        row.check()


def test_every_tile_that_the_sweeps_plan_is_right_and_nothing_races(made):
    for row in made[1]:
        row.check()


@pytest.mark.parametrize("chip", INSTRUCTION)
def test_each_chip_multiplies_with_its_own_instruction(every, chip):
    row = every["matmul", chip][0]
    assert {name.split()[0] for name in row.tensor_flops} == {INSTRUCTION[chip]}
    m, k, n = (row.sizes[axis] for axis in "mkn")
    assert sum(row.tensor_flops.values()) == 2 * m * k * n, "these tiles divide the matrices"


def test_a_result_that_is_wrong_and_a_race_are_refused(every):
    row = every["matmul", devices.STAND_IN][0]
    with pytest.raises(PhysicsDisagrees, match=r"matmul on sm_90 \(m = 128.*relative error 0.5, allowed"):
        executed.Executed(**{**vars(row), "relative_error": 0.5}).check()
    with pytest.raises(PhysicsDisagrees, match="relative error nan"):
        executed.Executed(**{**vars(row), "relative_error": float("nan")}).check()
    with pytest.raises(PhysicsDisagrees, match="nothing was started"):
        executed.Executed(**{**vars(row), "launches": ()}).check()
    raced = executed.Launch(**{**vars(row.launches[0]), "races": ("a and b meet.",)})
    with pytest.raises(PhysicsDisagrees, match="1 data races, the first: a and b meet."):
        executed.Executed(**{**vars(row), "launches": (raced,)}).check()


def test_every_run_is_counted_where_triton_has_the_machine_code_already():
    first, second = executed.run(toy, targets=["sm_80"], m=[16, 32], k=128, n=128)
    assert (first.programs, second.programs) == (2, 4)
    assert first.tensor_flops == {"mma.sync m16n8k16.bf16": 2 * 16 * 128 * 128}
    assert second.tensor_flops == {"mma.sync m16n8k16.bf16": 2 * 32 * 128 * 128}


def test_each_chip_runs_its_own_plan_whichever_ran_before_it():
    matmul, sizes = ALL["matmul"], {"m": 128, "k": 64, "n": 256}
    rows = executed.run(matmul, targets=["sm_80", "sm_90", "sm_100"], **sizes)
    planned = [matmul.plan(**sizes, dtype="bf16", target=TARGETS[row.target]).tiles(128, 256) for row in rows]
    assert [row.programs for row in rows] == planned
    assert len(set(planned)) > 1, "one plan for all would pass"


def test_a_chip_whose_code_is_not_known_is_refused_with_those_that_are():
    with pytest.raises(Unsupported, match="target = 'gfx942'.*choose sm_80, sm_90, sm_100, sm_120"):
        executed.run(toy, targets=["gfx942"])


def moved(row):
    """What an access is called, "load x" -> bytes that the lanes of all launches ask for."""
    found: dict[str, int] = {}
    for launch in row.launches:
        for name, traffic in launch.traffic.items():
            found[name] = found.get(name, 0) + traffic.bytes
    return found


@pytest.mark.parametrize("name", COMPARED)
def test_the_compiled_code_moves_the_bytes_that_the_interpreter_counts(every, name):
    """To the byte; but lanes that need the same number of a vector each ask for it.

    The interpreter computes in another format where it can't in the card's: one as wide, in the same plan.
    """
    one, chip = ALL[name], TARGETS[devices.STAND_IN]
    row, dtype = every[name, chip.name][0], counted.interpretable(one)
    assert one.itemsizes(dtype) == one.itemsizes(row.dtype)
    theirs_plan, our_plan = (one.plan(**row.sizes, dtype=kind, target=chip) for kind in (row.dtype, dtype))
    assert tile(theirs_plan) == tile(our_plan)
    ours, theirs = counted.run(one, dtype=dtype, **row.sizes), moved(row)
    assert {f"store {n}": t.issued for n, t in ours.writes.items()} == {
        n: size for n, size in theirs.items() if n.startswith("store")
    }
    for tensor, traffic in ours.reads.items():
        asked = theirs[f"load {tensor}"]
        assert asked == traffic.issued or (asked % traffic.issued == 0 and tensor in VECTORS), tensor
