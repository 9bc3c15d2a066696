"""The vendor's own kernels do the same work as ours: each is held against our result before it is timed."""

import dataclasses
import json
import sys
import types

import pytest
import torch

from kernels import decode_attention, flash_attention, kv_append, linear
from kernels.contract.accuracy import relative_error
from kernels.evidence.experiments import all_experiments
from kernels.evidence.sweeps import sweep
from kernels.evidence.timed import baselines, checking, clocks
from tests.kernels.fakes import Says
from tests.kernels.toy import experiment as toy

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


@pytest.mark.parametrize("experiment", [flash_attention.experiment, decode_attention.experiment])
def test_torch_has_a_form_of_attention_that_each_of_its_kernels_takes(experiment, monkeypatch):
    """With shared KV heads a T4 has only the slow one, which writes the scores: see enable_gqa in torch."""
    asked = []
    attend = baselines.functional.scaled_dot_product_attention

    def remembered(q, k, v, **options):
        asked.append((q.shape[1] == k.shape[1], options.get("enable_gqa", False)))
        return attend(q, k, v, **options)

    monkeypatch.setattr(baselines.functional, "scaled_dot_product_attention", remembered)
    for work in baselines.of(experiment, inputs_of(experiment, "fp16"), "fp16").values():
        work()
    assert asked == [(False, True), (True, False)]


@pytest.mark.parametrize("experiment", [flash_attention.experiment, decode_attention.experiment])
def test_each_of_torch_s_kernels_of_attention_that_takes_the_work_has_a_name(experiment, monkeypatch):
    """On this CPU torch has its flash kernel and no cuDNN: a backend that refuses is not there."""
    each_way = baselines._each_way
    cuda = types.SimpleNamespace(device=types.SimpleNamespace(type="cuda"))
    monkeypatch.setattr(baselines, "_each_way", lambda name, work, _: each_way(name, work, cuda))
    inputs = inputs_of(experiment, "fp16")
    by, used = baselines.sdpa_kernel, []

    def remembered(backend):
        used.append(backend.name)
        return by(backend)

    monkeypatch.setattr(baselines, "sdpa_kernel", remembered)
    works = baselines.of(experiment, inputs, "fp16")
    other = "repeat_interleave" if experiment is flash_attention.experiment else "unflatten"
    assert list(works) == [f"{baselines.ATTENTION}, flash", f"{baselines.ATTENTION}, {other}, flash"]
    assert set(used) == {"CUDNN_ATTENTION", "FLASH_ATTENTION", "EFFICIENT_ATTENTION"}
    used.clear()
    expected = experiment.expected(inputs)
    for work in works.values():
        assert relative_error((work(),), expected) <= experiment.tolerance("fp16")
    assert used == ["FLASH_ATTENTION"] * 2
    # where all refuse, torch takes what it takes
    monkeypatch.setattr(baselines, "BACKENDS", {"cudnn": "CUDNN_ATTENTION"})
    works = baselines.of(experiment, inputs, "fp16")
    assert list(works) == [baselines.ATTENTION, f"{baselines.ATTENTION}, {other}"]


def test_a_linear_layer_is_offered_to_torch_in_the_order_of_a_checkpoint_too(monkeypatch):
    experiment, asked = linear.experiment, []
    inputs = inputs_of(experiment, "fp16")
    theirs = baselines.functional.linear
    spied = lambda x, w: asked.append((w.shape, w.is_contiguous())) or theirs(x, w)  # noqa: E731
    monkeypatch.setattr(baselines.functional, "linear", spied)
    works = baselines.of(experiment, inputs, "fp16")
    assert list(works) == ["torch.matmul", "torch functional.linear"] and asked == []
    works["torch functional.linear"]()
    assert asked == [(inputs["w"].shape[::-1], True)]

    def full(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(torch.Tensor, "contiguous", full)  # no room for a second copy: the other is timed
    assert list(baselines.of(experiment, inputs, "fp16")) == ["torch.matmul"]


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


# --------------------------------------------------------------- held against ours, before it is timed

OURS = clocks.Timing(2e-3, 2e-3, 2e-3, 9)
SIZES = {"m": 16, "k": 128, "n": 64}


def beside(experiment, works, monkeypatch, sizes=None, dtype="fp16"):
    """What is timed beside our kernel of these works (made from the inputs): (baseline, notes, the clock)."""
    clock, inputs = Says(1e-3), experiment.inputs(**(sizes or SIZES), dtype=dtype)
    monkeypatch.setattr(baselines, "of", lambda *_: works(**inputs))
    return *baselines.beside(experiment, inputs, dtype, clock, OURS, 0.1), clock


@pytest.mark.parametrize(
    ("key", "dtype"),
    [(key, d) for key in KEYS for d in ("fp16", "fp32") if d in all_experiments()[key].dtypes],
)
def test_each_of_today_s_is_near_enough_to_our_kernel_s_result_to_be_timed(key, dtype):
    experiment = all_experiments()[key]
    clock, inputs = Says(1e-3), inputs_of(experiment, dtype)
    found, notes = baselines.beside(experiment, inputs, dtype, clock, OURS, 0.1)
    assert notes == [] and clock.budgets == [0.1] * len(baselines.of(experiment, inputs, dtype))
    assert found["share"] == 0.5 and 0 <= found["relative_error"] <= experiment.tolerance(dtype)


@pytest.mark.parametrize(("after", "changed"), [(2e-3, False), (2.4e-3, True)])
def test_ours_is_timed_again_behind_the_vendors_as_a_card_s_clock_falls(monkeypatch, after, changed):
    class Falls(Says):
        def time(self, work, budget=0.3):
            found = super().time(work, budget)
            return clocks.Timing(after, after, after, 5) if work is ours else found

    ours, inputs = lambda: None, toy.inputs(**SIZES, dtype="fp16")
    monkeypatch.setattr(baselines, "of", lambda *_: {"theirs": lambda: inputs["x"] @ inputs["w"]})
    found, notes = baselines.beside(toy, inputs, "fp16", Falls(1e-3), OURS, 0.1, ours)
    assert found["again"] == {"seconds": after, "low": after, "high": after}
    said = "After the vendors' kernels ours took 2400.0 µs, before them 2000.0 µs: the card has changed"
    assert [note.startswith(said) for note in notes] == [True] * changed


def test_a_baseline_that_gives_something_else_is_not_timed_and_named_with_the_difference(monkeypatch):
    works = lambda x, w: {"theirs": lambda: 1.25 * (x @ w), "torch.matmul": lambda: x @ w}  # noqa: E731
    found, notes, clock = beside(toy, works, monkeypatch)
    assert clock.budgets == [0.1], "the right one only"
    assert (found["name"], found["others"]) == ("torch.matmul", {})
    assert notes == [
        "theirs was not timed: its result is 2.50e-01 of its norm away from ours in fp16, "
        "and 2e-03 is allowed."
    ]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda y: y[:-1], "the result has shape (15, 64), its reference (16, 64)"),
        (lambda y: (y, y), "it gives 2 results, and ours are 1"),
        (lambda y: y.new_full(y.shape, float("nan")), "NaN or infinity"),
        (lambda y: y.no_such_thing, "could not be timed beside it: AttributeError"),
    ],
)
def test_what_can_not_be_compared_is_not_timed_either(monkeypatch, wrong, says):
    found, (note,), clock = beside(toy, lambda x, w: {"theirs": lambda: wrong(x @ w)}, monkeypatch)
    assert found is None and clock.budgets == []
    assert note.startswith("theirs ") and says in note


def test_an_output_made_before_that_is_never_written_does_not_pass_for_a_result(monkeypatch):
    def works(x, w):
        y = torch.empty(len(x), w.shape[1], dtype=x.dtype)
        return {"lazy": lambda: y}

    found, (note,), _ = beside(toy, works, monkeypatch)
    assert found is None and "NaN" in note


@pytest.mark.parametrize("fault", ["nothing", "elsewhere"])
def test_what_is_written_in_place_is_compared_with_the_places_as_they_were_before_ours(monkeypatch, fault):
    """Both write into the same cache: what ours left there must not pass for theirs."""
    experiment = kv_append.experiment
    sizes = {"batch": 4, "kv_heads": 2, "head_dim": 16, "context": 8}

    def works(k, v, k_cache, v_cache, positions):
        right = baselines._append(experiment, k, v, k_cache, v_cache, positions)

        def wrong():
            if fault == "elsewhere":
                right["torch index_put_"]()
                k_cache[1, 1, (positions[1] + 1) % 8] = 1.0
            return k_cache, v_cache

        return {"theirs": wrong, **right}

    found, (note,), _ = beside(experiment, works, monkeypatch, sizes)
    assert found["name"] == "torch index_put_" and found["relative_error"] == 0.0
    assert note.startswith("theirs was not timed") and "0e+00 is allowed" in note


def test_where_memory_has_no_room_for_both_results_ours_waits_in_the_host_s(monkeypatch):
    tried = []

    def works(x, w):
        def work():
            tried.append(len(tried))
            if len(tried) == 1:
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return x @ w

        return {"torch.matmul": work}

    moved = []
    to_host = torch.Tensor.cpu
    monkeypatch.setattr(torch.Tensor, "cpu", lambda x: moved.append(x.shape) or to_host(x))
    found, notes, _ = beside(toy, works, monkeypatch)
    assert found["name"] == "torch.matmul" and notes == [] and moved == [(16, 64)]


def test_a_baseline_that_fits_nowhere_costs_no_point_of_ours(monkeypatch):
    def full(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nmore words")

    found, notes, _ = beside(toy, lambda x, w: {"theirs": full}, monkeypatch)
    assert found is None and notes == [
        "theirs could not be timed beside it: OutOfMemoryError: "
        "CUDA out of memory. Tried to allocate 2.00 GiB."
    ]
    found, notes, _ = beside(toy, full, monkeypatch)
    assert found is None and notes == [
        "No baseline could be made: CUDA out of memory. Tried to allocate 2.00 GiB."
    ]


def test_results_are_compared_a_piece_at_a_time_whatever_their_strides(monkeypatch):
    whole = torch.randn(6, 5, 7).transpose(0, 2)
    off = whole + 0.5
    expected = checking.distance([[off]], [[whole]])
    monkeypatch.setattr(checking, "AT_ONCE", 4)
    pieces = list(checking._pieces(off, whole))
    assert max(a.numel() for a, _ in pieces) <= 4 and sum(a.numel() for a, _ in pieces) == 210
    assert checking.distance([[off]], [[whole]]) == pytest.approx(expected)
    assert expected == pytest.approx(0.5 * 210**0.5 / whole.double().norm().item())


class Each:
    """A clock with a timing for each work, in the order in which they are timed."""

    def __init__(self, *timings):
        self.timings = list(timings)

    def time(self, work, budget=0.3):
        return self.timings.pop(0)


def test_a_vendor_s_time_that_may_be_python_s_is_no_baseline(monkeypatch):
    """A kernel of 20 us in no graph, with 5 ms of Python, would say that ours is 100 times as fast."""
    noted = "Python took longer to launch this than could be hidden: the time is Python's."
    slow = clocks.Timing(5e-3, 5e-3, 5e-3, 9, "eager", 5.1e-3, notes=(noted,))
    inputs = toy.inputs(**SIZES, dtype="fp16")
    matmul = lambda: inputs["x"] @ inputs["w"]  # noqa: E731
    monkeypatch.setattr(baselines, "of", lambda *_: {"slow": matmul})
    found, (note,) = baselines.beside(toy, inputs, "fp16", Each(slow), OURS, 0.1)
    assert found is None
    assert note == (
        "slow is left out: no graph could hold it, and Python takes 5100.0 µs to launch "
        "what took 5000.0 µs: the time may be Python's."
    )
    # With one beside it that was timed as ours was, that one counts alone.
    graph = clocks.Timing(6e-3, 5.9e-3, 6.1e-3, 9, "graph", 1e-5)
    monkeypatch.setattr(baselines, "of", lambda *_: {"slow": matmul, "torch.matmul": matmul})
    found, notes = baselines.beside(toy, inputs, "fp16", Each(slow, graph), OURS, 0.1)
    assert (found["name"], found["others"], found["share"], len(notes)) == ("torch.matmul", {}, 3.0, 1)


def test_of_each_baseline_it_is_kept_how_it_was_timed_and_what_was_noted(monkeypatch):
    eager = clocks.Timing(1e-3, 0.9e-3, 1.2e-3, 11, "eager", 1e-4, 1e-6, ("Launched by Python: a reason.",))
    graph = clocks.Timing(6e-3, 5.9e-3, 6.1e-3, 9, "graph", 1e-5, 1e-6)
    inputs = toy.inputs(**SIZES, dtype="fp16")
    matmul = lambda: inputs["x"] @ inputs["w"]  # noqa: E731
    monkeypatch.setattr(baselines, "of", lambda *_: {"one": matmul, "other": matmul})
    found, notes = baselines.beside(toy, inputs, "fp16", Each(eager, graph), OURS, 0.1)
    assert (found["name"], found["way"], found["low"], found["high"], found["runs"]) == (
        "one", "eager", 0.9e-3, 1.2e-3, 11,
    )  # fmt: skip
    assert found["notes"] == ["Launched by Python: a reason."] and found["others"] == {"other": 6e-3}
    other = found["timings"]["other"]
    assert (other["way"], other["low"], other["high"], other["runs"]) == ("graph", 5.9e-3, 6.1e-3, 9)
    assert notes == [] and json.loads(json.dumps(found)) == found
