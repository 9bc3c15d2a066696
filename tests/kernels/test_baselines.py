"""The vendor's own kernels do the same work as ours: held against the same references, on this CPU."""

import dataclasses
import sys
import types

import pytest
import torch

from kernels import decode_attention, flash_attention
from kernels.contract.accuracy import relative_error
from kernels.evidence.experiments import all_experiments
from kernels.evidence.sweeps import sweep
from kernels.evidence.timed import baselines

GOALS = ("stream", "matmul", "linear", "gemv", "decode_attention", "flash_attention")
KEYS = [
    key
    for key, one in all_experiments().items()
    if (one.key in baselines.TABLE or one.name in baselines.FAMILIES) and key not in baselines.WITHOUT
]


def inputs_of(experiment, dtype):
    sizes = min(sweep(experiment, "counted"), key=lambda row: row[experiment.axis])
    return experiment.inputs(**sizes, dtype=dtype)


@pytest.mark.parametrize("key", KEYS)
def test_a_baseline_gives_what_our_kernel_s_reference_gives(key):
    experiment = all_experiments()[key]
    dtype = "fp32" if "fp32" in experiment.dtypes else "fp16"
    inputs = inputs_of(experiment, dtype)
    expected = experiment.expected(inputs)
    works = baselines.of(experiment, inputs, dtype)
    assert works
    for work in works.values():
        made = work()
        made = made if isinstance(made, tuple) else (made,)
        assert [x.shape for x in made] == [x.shape for x in expected]
        assert relative_error(tuple(made), expected) <= experiment.tolerance(dtype)


@pytest.mark.parametrize("key", GOALS)
def test_each_kernel_that_has_a_goal_has_a_baseline(key):
    assert key in KEYS


def test_a_dtype_that_the_vendor_has_nothing_in_has_no_baseline():
    experiment = decode_attention.experiment
    assert baselines.of(experiment, inputs_of(experiment, "fp8"), "fp8") == {}
    ragged = decode_attention.ragged_experiment
    assert baselines.of(ragged, inputs_of(ragged, "fp16"), "fp16") == {}


def test_packages_for_cuda_join_in_only_where_they_can_be_imported(monkeypatch):
    there = types.SimpleNamespace(device=types.SimpleNamespace(type="cuda"), element_size=lambda: 2)
    called = types.ModuleType("flash_attn")
    called.flash_attn_func = lambda *_, **__: "theirs"
    monkeypatch.setitem(sys.modules, "flash_attn", called)
    assert baselines._if_there("flash_attn", "flash_attn_func", there)() == "theirs"
    monkeypatch.setitem(sys.modules, "flash_attn", None)  # an import of it fails
    assert baselines._if_there("flash_attn", "flash_attn_func", there) is None
    assert baselines._if_there("flash_attn", "flash_attn_func", torch.ones(1)) is None


def test_flash_attention_s_package_gets_tensors_as_it_wants_them(monkeypatch):
    """[batch, length, heads, head_dim] for a prompt and for a cache, causal for a prompt only."""
    asked = []

    def theirs(package, name, like):
        def run(*args, **options):
            asked.append((name, [tuple(x.shape) for x in args], options))
            return args[0]

        return run

    monkeypatch.setattr(baselines, "_if_there", theirs)
    flash = flash_attention.experiment
    sizes = {"batch": 1, "length": 6, "heads": 4, "kv_heads": 2, "head_dim": 64}
    for work in baselines.of(flash, flash.inputs(**sizes, dtype="fp16"), "fp16").values():
        assert work().shape == (1, 6, 4, 64)
    decode = dataclasses.replace(decode_attention.experiment)
    sizes = {"batch": 1, "heads": 4, "kv_heads": 2, "head_dim": 64, "context": 5}
    for work in baselines.of(decode, decode.inputs(**sizes, dtype="fp16"), "fp16").values():
        assert work().shape == (1, 4, 64)
    assert asked == [
        ("flash_attn_func", [(1, 6, 4, 64), (1, 6, 2, 64), (1, 6, 2, 64)], {"causal": True}),
        ("single_prefill_with_kv_cache", [(6, 4, 64), (6, 2, 64), (6, 2, 64)], {"causal": True}),
        ("flash_attn_with_kvcache", [(1, 1, 4, 64), (1, 5, 2, 64), (1, 5, 2, 64)], {}),
        ("single_decode_with_kv_cache", [(4, 64), (2, 5, 64), (2, 5, 64)], {"kv_layout": "HND"}),
    ]
