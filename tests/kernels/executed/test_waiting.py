"""Programs that wait for each other, as Triton compiles them: locks, and barriers of the whole grid."""

from __future__ import annotations

import pytest

from kernels.contract.targets import TARGETS
from tests.kernels import compiling

# A file of its own: Triton reads the source of its kernels.
WAITS = """
import json
import torch, triton
import triton.language as tl
from kernels.contract.targets import Target, target
from kernels.evidence.executed import machine
from kernels.evidence.executed.imaginary_card import card

machine.WAITED = 400  # for those who wait for ever

class Small(Target):
    sm_count = 4

CHIP = target("sm_80")

@triton.jit
def locked(lock, total, x, N: tl.constexpr):
    p, i = tl.program_id(0), tl.arange(0, N)
    v = tl.load(x + p * N + i)
    while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
        pass
    tl.store(total + i, tl.load(total + i) + v)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0, sem="release")

@triton.jit
def meet(y, z, count, P, N: tl.constexpr):
    p, i = tl.program_id(0), tl.arange(0, N)
    tl.store(y + p * N + i, p + i)
    tl.debug_barrier()
    tl.atomic_add(count, 1, sem="acq_rel")
    while tl.load(count, volatile=True) < P:
        pass
    tl.atomic_add(count, 0, sem="acq_rel")
    tl.store(z + p * N + i, tl.load(y + (p + 1) % P * N + i))

@triton.jit
def forever(flag):
    while tl.load(flag, volatile=True) == 0:
        pass

def lock(programs, warps):
    x, total = torch.arange(programs * 128.0), torch.zeros(128)
    locked[(programs,)](torch.zeros(1, dtype=torch.int32), total, x, 128, num_warps=warps)
    return bool((total == x.view(programs, 128).sum(0)).all())

def grid_barrier(programs, warps):
    y, z = (torch.zeros(programs * 32, dtype=torch.int32) for _ in range(2))
    meet[(programs,)](y, z, torch.zeros(1, dtype=torch.int32), programs, 32, num_warps=warps)
    return bool((z == y.roll(-32)).all())

told = {}
cases = {
    "a lock of one warp": lambda: lock(12, 1),
    "a lock of four warps": lambda: lock(12, 4),
    "a barrier of 100": lambda: grid_barrier(100, 4),
    "a barrier of 260": lambda: grid_barrier(260, 1),
    "a barrier of too many": lambda: grid_barrier(9, 32),
    "forever": lambda: forever[(2,)](torch.zeros(1, dtype=torch.int32)),
}
for order in ("forward", "interleaved"):
    for name, case in cases.items():
        if order == "interleaved" and "barrier" in name:
            continue
        with card(Small(**vars(CHIP)) if "too many" in name else CHIP, order=order) as here:
            try:
                right = case()
                told[f"{name}, {order}"] = [right, list(here.launched[-1].outcome.races)]
            except Exception as error:
                told[f"{name}, {order}"] = f"{type(error).__name__}: {error}"
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What came of each case: whether it was right, and its races; or the error."""
    file = tmp_path_factory.mktemp("compiling") / "program.py"
    file.write_text(WAITS, encoding="utf-8")
    return compiling.told(str(file))


@pytest.mark.parametrize("order", ["forward", "interleaved"])
@pytest.mark.parametrize("warps", ["one warp", "four warps"])
def test_a_spin_lock_that_is_right_ends_right(told, warps, order):
    """Pitfall: its loop is several basic blocks, so nobody seems to stay where he is."""
    assert told[f"a lock of {warps}, {order}"] == [True, []]


@pytest.mark.parametrize("programs", [100, 260])
def test_a_barrier_of_all_programs_ends_if_the_card_holds_them(told, programs):
    """Also of more than a batch, which is 64 programs of four warps and 256 of one."""
    assert told[f"a barrier of {programs}, forward"] == [True, []]


def test_a_barrier_of_more_programs_than_the_card_holds_is_refused_with_both_numbers(told):
    held = TARGETS["sm_80"].max_threads // 1024 * 4  # multiprocessors
    assert held == 8
    said = told["a barrier of too many, forward"]
    assert said.startswith("CardRefuses: program.py:")
    assert f"needs 9 programs at once; the card holds {held} at most" in said


def test_what_never_comes_is_not_waited_for(told):
    for order in ("forward", "interleaved"):
        assert "all programs that have not ended wait, and none is left" in told[f"forever, {order}"]
