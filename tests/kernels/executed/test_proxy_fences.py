"""Fences between what threads store and what tensor cores read: not every Triton sets them all."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from kernels import matmul
from kernels.contract.errors import CompilerAtFault, PhysicsDisagrees
from kernels.evidence import confirm, executed
from tests.kernels import compiling

TRITON = version("triton").partition("+")[0]


def row_with(races):
    (row,) = executed.run(matmul.experiment, targets=["sm_90"], m=128, k=64, n=256)
    launch = executed.Launch(**{**vars(row.launches[0]), "races": races})
    return executed.Executed(**{**vars(row), "launches": (launch,)})


MISSING = "shared memory is read by matmul.py:73: wgmma: stored with no fence.proxy.async since (8 cells)."


def test_a_fence_that_is_not_there_is_the_compilers_fault_and_has_a_remedy():
    row = row_with((MISSING,))
    assert row.unfenced == (MISSING,) and row.races == ()
    with pytest.raises(CompilerAtFault, match="sets no fence.proxy.async.*Use Triton 3.9.*or another tile"):
        row.check()


def test_a_race_that_the_kernel_could_mend_comes_first():
    with pytest.raises(PhysicsDisagrees, match="1 data races, the first: a and b meet") as caught:
        row_with((MISSING, "a and b meet.")).check()
    assert not isinstance(caught.value, CompilerAtFault)


def test_a_chapter_goes_on_and_says_which_fence_is_missing(monkeypatch):
    row = row_with((MISSING,))
    monkeypatch.setattr(executed, "cases", lambda wanted, **options: (row,))
    made = confirm(matmul.experiment, rungs=["executed"], m=128, k=64, n=256)
    assert "no access outside the tensors' memory. But matmul on sm_90" in made.status["executed"]
    assert "no data race" not in made.status["executed"]


TILES = """
import json
from kernels import flash_attention as fa
from kernels.contract import tiles
from kernels.contract.targets import target
from kernels.evidence.executed.execution import execute
sizes = {"batch": 1, "length": 300, "heads": 2, "kv_heads": 1, "head_dim": 128}
found = []
for tile in ((128, 128, 128, 8, 2), (128, 64, 128, 8, 3)):
    with tiles.imposed(fa.Plan(*tile)):
        card, error = execute(fa.experiment, target("sm_100"), "bf16", sizes)
    races = [race for one in card.launched for race in one.outcome.races]
    assert error < fa.experiment.tolerance("bf16"), error
    found.append([sum("fence.proxy.async" in race for race in races), len(races)])
print(json.dumps(found))
"""


@pytest.mark.skipif(TRITON not in ("3.7.1", "3.8.0"), reason="before them there are fewer, in 3.9 all")
def test_the_tile_of_attention_on_blackwell_is_one_whose_fences_are_there():
    """What the comment at its tiles says, so that they change back when it no longer holds."""
    assert compiling.told("-c", TILES) == [[1, 1], [0, 0]]
