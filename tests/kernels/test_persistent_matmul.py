"""kernels.persistent_matmul: few programs, all tiles, each once; what it can save and what it can't."""

from dataclasses import replace

import pytest

from kernels import matmul, persistent_matmul
from kernels.contract.targets import TARGETS
from kernels.evidence import counted
from kernels.persistent_matmul import experiment, most_saved, plan

SIZES = {"m": 300, "k": 208, "n": 528}  # no tile divides any of them


@pytest.mark.parametrize("programs", [1, 2, 3, 7, 9])
def test_however_few_programs_there_are_every_tile_is_computed_once(monkeypatch, programs):
    few = replace(plan(**SIZES), programs=programs)
    assert few.tile.tiles(300, 528) == 9
    monkeypatch.setattr(persistent_matmul, "plan", lambda *sizes, **named: few)
    row = counted.run(replace(experiment, plan=persistent_matmul.plan), **SIZES)
    row.check(experiment)
    assert row.programs == programs
    assert row.writes["y"].block == row.writes["y"].unique == 300 * 528 * 2


def test_it_reads_and_computes_what_a_program_for_each_tile_does():
    persistent, each = (counted.run(one, **SIZES) for one in (experiment, matmul.experiment))
    assert {n: t.block for n, t in persistent.reads.items()} == {n: t.block for n, t in each.reads.items()}
    assert persistent.dot_flops == each.dot_flops


@pytest.mark.parametrize("target", [name for name, t in TARGETS.items() if t.has_tensor_cores])
def test_no_more_programs_than_fit_at_once_and_none_without_a_tile(target):
    sms = TARGETS[target].sm_count
    assert plan(8192, 512, 8192, "bf16", target).programs in (sms, 2 * sms)
    assert plan(16, 512, 64, "bf16", target).programs == 1


def test_starts_are_saved_where_k_is_short_and_there_are_several_waves():
    def saved(m, k, n):
        return most_saved(plan(m, k, n, "bf16", "sm_90"), m, k, n)

    assert saved(2048, 512, 2048) == 0.0  # one wave: nothing starts again
    # 2,048 tiles on 132 multiprocessors are 16 rounds, of 8 pieces of K and a start of 2 each
    assert saved(8192, 512, 8192) == 2 * 15 / (16 * (8 + 2))
    assert saved(8192, 8192, 8192) < 0.02
