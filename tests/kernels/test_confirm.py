"""`confirm`: one table, one figure, series for the explorer, and an exception if physics disagrees."""

import dataclasses
import sys

import pytest
import torch

from book import catalog, cost
from kernels.contract import devices
from kernels.contract.errors import CardRefuses, NotExecutable
from kernels.evidence import PhysicsDisagrees, chips, compiled, confirm, executed, series, tables, timed
from kernels.evidence.confirm import RUNGS
from kernels.evidence.counted import counted_rows
from kernels.gemv import experiment as gemv
from kernels.kv_append import experiment as kv_append
from kernels.linear import experiment as linear
from tests.kernels import faulty
from tests.kernels.fakes import CARD, Says
from tests.kernels.toy import experiment as toy

SMALL = {"m": [1, 64], "k": 128, "n": 128}


@pytest.fixture(scope="module")
def evidence():
    return confirm(toy, **SMALL)


def test_counted_rows_equal_the_formula_to_the_byte(evidence):
    for row, m in zip(evidence.rows, (1, 64), strict=True):
        useful = cost.linear(m, 128, 128, 2)
        assert row.sizes == {"m": m, "k": 128, "n": 128}
        assert row.counted_bytes == row.formula_bytes == useful.bytes
        assert row.intensity == useful.intensity and row.exact
    assert [row.padding for row in evidence.rows] == [16, 1]


def test_the_main_kernel_is_compiled_at_every_size_for_the_chosen_card(evidence):
    own = [(c.sizes["m"], c.instruction) for c in evidence.compiled if c.target == "sm_90"]
    assert own == [(1, "mma.sync"), (64, "wgmma")]
    assert {c.target for c in evidence.compiled} == {"sm_80", "sm_89", "sm_90", "sm_100", "sm_120", "gfx942"}


def test_the_compiled_table_says_what_stands_in_the_loop(evidence):
    row = next(row for row in evidence.compiled if row.target == "sm_90" and row.sizes["m"] == 64)
    shown = next(repr(block) for block in evidence.sections() if "compiled: toy" in repr(block))
    assert "barriers in the loop" in shown and "wide loads in the loop" in shown
    assert (
        f"{row.hot.wide_async_copies + row.hot.wide_loads} of {row.hot.async_copies + row.hot.loads}" in shown
    )
    without = [dataclasses.replace(row, loops=()) for row in evidence.compiled]
    assert "loop" not in repr(tables.compiled("m", without))


def test_what_is_compiled_is_executed_at_every_size_for_the_chosen_card_and_once_for_the_others(evidence):
    assert [(row.target, row.sizes["m"]) for row in evidence.executed] == [
        ("sm_90", 1),
        ("sm_90", 64),
        ("sm_80", 64),
        ("sm_100", 64),
        ("sm_120", 64),
    ]
    assert all(row.dtype == "bf16" and row.relative_error < row.tolerance for row in evidence.executed)
    useful = cost.linear(64, 128, 128, 2)
    for row in evidence.executed[1:]:  # whole tiles: no row or column too much
        assert sum(row.tensor_flops.values()) == useful.flops
        assert row.asked("bytes", "store") == useful.writes["y"]


def test_chips_stand_side_by_side_at_the_last_size_that_is_quick(monkeypatch):
    monkeypatch.setattr(chips, "EASY", cost.linear(64, 128, 128, 2).flops)
    made = confirm(toy, rungs=["executed"], m=[1, 64, 128], k=128, n=128)
    own = [(row.target, row.sizes["m"]) for row in made.executed if row.target == "sm_90"]
    assert own == [("sm_90", m) for m in (1, 64, 128)]
    assert {row.sizes["m"] for row in made.executed if row.target != "sm_90"} == {64}
    shown = next(repr(block) for block in made.sections() if repr(block).startswith("executed: "))
    assert "m = 64" in shown and shown.index("A100") < shown.index("H100") < shown.index("B200")


def test_chips_stand_side_by_side_by_their_names(evidence):
    shown = next(repr(block) for block in evidence.sections() if repr(block).startswith("executed: "))
    for name in ("Ampere, A100 SXM", "Hopper, H100 SXM", "Blackwell, B200", "Blackwell, RTX 5090"):
        assert name in shown
    for instruction in ("mma.sync", "m16n8k16", "wgmma", "tcgen05.mma", "m64n64k16"):
        assert instruction in shown
    assert "no data race" in shown and "m = 64, k = 128, n = 128, bf16" in shown


def test_the_executed_rung_says_for_which_chips_and_how_right(evidence):
    worst = max(row.relative_error for row in evidence.executed)
    assert evidence.status["executed"].startswith(
        "5 runs on this CPU of what is compiled for A100 SXM (sm_80), H100 SXM (sm_90), B200 (sm_100), RTX"
    )
    assert f"right to {worst:.1e} in bf16 (0.01 allowed)" in evidence.status["executed"]


def test_a_kernel_that_only_copies_is_exact_in_words(monkeypatch):
    monkeypatch.setattr(executed, "EXECUTABLE", ("sm_80",))
    made = confirm(kv_append, rungs=["executed"], accelerator="a100_80gb_sxm", batch=1)
    assert "; exact in bf16, no data race" in made.status["executed"]


@pytest.mark.parametrize(
    ("fault", "m", "says"),
    [
        (faulty.wrong_experiment, 16, "relative error 1, allowed 0.01"),
        (faulty.maskless_experiment, 5, "is outside every tensor; y is the nearest"),
        (faulty.racing_experiment, 16, "data races, the first: "),
    ],
)
def test_compiled_code_that_is_wrong_or_races_or_leaves_its_tensors_is_refused(monkeypatch, fault, m, says):
    monkeypatch.setattr(executed, "EXECUTABLE", ("sm_90",))
    with pytest.raises(PhysicsDisagrees, match=says):
        confirm(fault, rungs=["executed"], m=m, k=64, n=64)


def test_where_other_notebooks_fill_the_cores_one_child_has_all_that_two_would(monkeypatch):
    wanted = {
        "compiled": [(toy, name, SMALL) for name in ("sm_80", "sm_90")],
        "executed": [(toy, "sm_90", SMALL)],
    }
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    monkeypatch.setenv("BOOK_JOBS", "2")
    first, second = chips.shared_out(wanted)
    monkeypatch.setenv("BOOK_JOBS", "4")
    (alone,) = chips.shared_out(wanted)
    assert sorted(map(str, alone)) == sorted(map(str, first + second))
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    monkeypatch.delenv("BOOK_JOBS")
    assert chips.shared_out(wanted) == [alone]
    assert chips.shared_out({}) == []


def test_an_instruction_that_is_not_known_is_said_and_not_hidden(monkeypatch):
    monkeypatch.setattr(chips, "shared_out", lambda cases: [])  # nobody begins what nobody takes

    def unknown(*_):
        raise NotExecutable("toy_kernel: 1 instructions are not known here: frobnicate.b32.")

    monkeypatch.setattr(executed, "cases", unknown)
    made = confirm(toy, rungs=["executed"], m=1, k=128, n=128)
    assert made.executed == ()
    assert "not run: toy_kernel: 1 instructions are not known here: frobnicate.b32." in repr(made)


def test_what_one_chip_lacks_takes_nothing_from_the_others(monkeypatch, evidence):
    def unknown_on_one(wanted, **options):
        if any(name == "sm_80" for _, name, *_ in wanted):
            raise NotExecutable("toy_kernel: 1 instructions are not known here: frobnicate.b32.")
        return cases(wanted, **options)

    cases = executed.cases
    monkeypatch.setattr(executed, "cases", unknown_on_one)
    monkeypatch.setattr(chips, "shared_out", lambda cases: [])
    made = confirm(toy, rungs=["executed"], **SMALL)
    assert made.executed == tuple(row for row in evidence.executed if row.target != "sm_80")
    said = made.status["executed"]
    assert said.startswith("4 runs on this CPU of what is compiled for H100 SXM (sm_90), B200 (sm_100), RTX")
    assert said.endswith(
        "Not executed for A100 SXM (sm_80): toy_kernel: 1 instructions are not known here: frobnicate.b32."
    )


def test_what_no_card_would_do_is_not_taken_for_what_is_not_known(monkeypatch):
    def refuses(*_):
        raise CardRefuses("outside")

    monkeypatch.setattr(chips, "shared_out", lambda cases: [])
    monkeypatch.setattr(executed, "cases", refuses)
    with pytest.raises(PhysicsDisagrees, match="outside"):
        confirm(toy, rungs=["executed"], m=1, k=128, n=128)


@pytest.mark.parametrize(
    ("accelerator", "says"),
    [("t4", "The T4's own code (sm_75) was not executed. "), ("l4", "The L4's own code (sm_89) was not ")],
)
def test_a_card_whose_own_code_was_not_executed_is_told_so_first(monkeypatch, accelerator, says):
    monkeypatch.setattr(executed, "EXECUTABLE", ("sm_90",))
    made = confirm(toy, rungs=["executed"], accelerator=accelerator, m=1, k=128, n=128)
    assert says in made.status["executed"].partition("runs on this CPU")[0]


def test_a_card_whose_own_code_was_executed_is_told_nothing_else(evidence):
    assert "own code" not in evidence.status["executed"]


def test_where_there_is_no_triton_nothing_is_executed_and_it_is_said(monkeypatch):
    monkeypatch.setattr(devices, "MODE", "missing")
    made = confirm(toy, rungs=["executed"], m=1, k=128, n=128)
    assert made.executed == ()
    assert "not run: triton = not installed" in made.status["executed"]


def test_a_card_whose_code_is_not_known_gets_the_stand_in(evidence):
    made = confirm(toy, rungs=["executed"], accelerator="mi300x", **SMALL)
    assert made.executed == evidence.executed


def test_every_rung_is_named_and_an_absent_one_says_so(evidence):
    assert tuple(evidence.status) == RUNGS
    assert evidence.status["recorded"] == "not measured yet"
    if not torch.cuda.is_available():
        assert evidence.status["timed"] == "not measured yet: no GPU here"
    text, page = repr(evidence), evidence._repr_html_()
    for rung in RUNGS:
        assert rung in text and rung in page
    assert "not measured yet" in text and "not measured yet" in page
    assert "✓" in text and "wgmma" in page


def test_the_text_is_the_same_in_every_run(evidence):
    assert repr(confirm(toy, **SMALL)) == repr(evidence)


def test_points_are_series_with_their_rung():
    series = confirm(linear, rungs=["counted", "published"], m=[1, 16], k=256, n=256).points()
    counted = series[0]
    assert (counted["rung"], counted["accelerator"]) == ("counted", None)
    assert [(p["m"], p["flops_per_s"], p["seconds"]) for p in counted["points"]] == [
        (1, None, None),
        (16, None, None),
    ]
    assert counted["points"][0]["intensity"] == cost.linear(1, 256, 256, 2).intensity
    assert {s["rung"] for s in series[1:]} == {"published"}
    assert all(p["flops_per_s"] > 0 for s in series[1:] for p in s["points"])


def test_a_legend_names_only_what_tells_its_series_apart():
    labels = ["H100 SXM, bf16, heads = 8, d = 128", "H100 SXM, bf16, heads = 64, d = 128"]
    others = [{"rung": "published", "label": label} for label in labels]
    ours = {"rung": "counted", "label": "counted"}
    assert [s["label"] for s in series.told_apart([ours, *others])] == ["counted", "heads = 8", "heads = 64"]
    assert series.told_apart(others[:1]) == others[:1]
    assert series.told_apart([others[0], others[0]]) == [others[0], others[0]]


def test_the_figure_carries_the_counted_points_and_its_caption(evidence):
    figure = evidence.figure(caption="The roof.", number="2.1")
    [marks] = [line for line in figure.axes[0].get_lines() if line.get_marker() == "o"]
    assert list(marks.get_xdata()) == [row.intensity for row in evidence.rows]
    assert set(marks.get_ydata()) == {0}, "a count has no time, so its mark has no height"
    assert (figure.caption, figure.number) == ("The roof.", "2.1")


@pytest.mark.parametrize(
    ("experiment", "sizes", "roof"),
    [
        (gemv, {"m": 1, "k": 64, "n": 64}, "H100 SXM vector fp32"),
        (linear, {"m": 1, "k": 64, "n": 64}, "H100 SXM bf16"),
    ],
)
def test_a_kernel_is_drawn_under_the_roof_of_the_units_that_it_uses(experiment, sizes, roof):
    made = confirm(experiment, rungs=["counted"], accelerator="h100_sxm", **sizes)
    card = catalog.accelerator("h100_sxm")
    axes = made.figure().axes[0]
    assert roof in {text.get_text() for text in axes.texts}
    height = max(max(line.get_ydata()) for line in axes.get_lines())
    assert height == card.peak(made.arithmetic, experiment.unit)


def test_where_kernels_are_compiled_a_child_counts(monkeypatch):
    here = confirm(toy, rungs=["counted"], m=1, k=128, n=128).rows
    monkeypatch.setattr(counted_rows.devices, "MODE", "compiled")
    assert counted_rows.rows(toy, [{"m": 1, "k": 128, "n": 128}]) == here


def test_split_k_workspace_is_a_column_of_its_own():
    made = confirm(linear, rungs=["counted"], m=1, k=1024, n=1024)
    assert made.rows[0].workspace_bytes > 0
    assert made.rows[0].counted_bytes == cost.linear(1, 1024, 1024, 2).bytes
    assert made.rows[0].intensity_of_all < made.rows[0].intensity
    assert "workspace" in repr(made) and "exact are the formula's bytes" in repr(made)
    assert "With the workspace that the formula leaves out" in made.figure().get_label()
    with_it = made.rows[0].useful_flops / (made.rows[0].counted_bytes + made.rows[0].workspace_bytes)
    assert made.points()[0]["points"][0]["intensity_of_all"] == with_it


def test_a_formula_that_forgets_the_activations_is_refused():
    def forgets_x(m, k, n, itemsize=2):
        right = cost.linear(m, k, n, itemsize)
        return dataclasses.replace(right, reads={"w": right.reads["w"]})

    with pytest.raises(PhysicsDisagrees, match="reads of x, bytes: expected 0 from the formula, counted 256"):
        confirm(dataclasses.replace(toy, cost=forgets_x), rungs=["counted"], m=1, k=128, n=128)


def test_a_multiply_add_counted_as_one_flop_is_refused():
    def half(plan, **sizes):
        right = toy.issued(plan, **sizes)
        return dataclasses.replace(right, flops=right.flops // 2)

    with pytest.raises(PhysicsDisagrees, match="FLOPs issued"):
        confirm(dataclasses.replace(toy, issued=half), rungs=["counted"], m=1, k=128, n=128)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"rungs": ["guessed"], "m": 1}, "not a rung; choose from counted, executed, compiled"),
        ({"m": [1], "k": [64, 128]}, "at most one size may be a list"),
        ({"k": 2.5}, "k = 2.5: a size must be a whole number, or a list of some"),
        ({"k": [64, 2.5]}, "k = .64, 2.5.: a size must be a whole number"),
        ({"k": []}, "k = ..: a size must be a whole number"),
        ({"k": "64"}, "k = '64': a size must be a whole number"),
        ({"rows": 3}, "rows is not one of its sizes; it takes m, k, n"),
        ({"accelerator": "h100_smx", "m": 1}, "h100_sxm"),
    ],
)
def test_bad_arguments_give_a_sentence(wrong, says):
    with pytest.raises((ValueError, KeyError), match=says):
        confirm(toy, **wrong)


def test_an_interpreter_that_cannot_run_is_said_and_not_hidden(monkeypatch):
    monkeypatch.setattr(counted_rows.devices.triton, "__version__", "3.6.0")
    monkeypatch.setattr(counted_rows, "version", {"numpy": "2.5.1"}.__getitem__)
    made = confirm(toy, rungs=["counted"], m=1, k=128, n=128)
    assert made.rows == () and made.points() == []
    assert "not run: numpy 2.5.1 is too new for the interpreter of Triton 3.6.0" in repr(made)


def test_with_a_card_the_timed_rung_joins_the_table_the_figure_and_the_points(monkeypatch):
    module = sys.modules["kernels.evidence.confirm"]
    monkeypatch.setattr(module, "gpu_here", lambda: CARD)
    says = Says(1e-3, 1e-3, 1e-3, 1e-2, 1e-2, 5e-6, 5e-6, 1e-12)
    monkeypatch.setattr(timed, "gpu_clock", lambda *_: (says, None))
    made = confirm(dataclasses.replace(toy, dtypes=("fp16",)), rungs=["timed"], m=1, k=128, n=128)
    assert made.accelerator == "h100_sxm"
    (series,) = made.points()  # the third point was impossible: it stays out
    assert (series["rung"], [p["m"] for p in series["points"]]) == ("timed", [1, 16])
    assert series["points"][0]["seconds"] == 5e-6
    assert "impossible" in repr(made)
    assert "Impossible result" in made.status["timed"]
    assert made.ceilings.bandwidth > 0
    assert made.figure() is not None


def compiled_as(monkeypatch, **changed):
    """confirm's compiled rung, whose rows are those of the toy but for what is changed."""
    real = compiled.cases
    monkeypatch.setattr(
        compiled,
        "cases",
        lambda *a, **k: tuple(dataclasses.replace(row, **changed) for row in real(*a, **k)),
    )
    return confirm(toy, rungs=("compiled",)).status["compiled"]


def test_code_that_no_block_of_can_live_anywhere_is_refused(monkeypatch):
    with pytest.raises(PhysicsDisagrees, match="too few registers for one block"):
        compiled_as(monkeypatch, blocks_per_sm=0, limited_by="registers")


def test_a_matrix_kernel_that_uses_no_tensor_core_is_named(monkeypatch):
    words = compiled_as(monkeypatch, instruction="none", dtype="bf16")
    assert words.startswith("for sm_80") and "; no tensor-core instruction on sm_90, sm_80, sm_89" in words


def test_a_section_says_its_sentence_first_and_folds_what_few_ask_for(evidence):
    page = evidence._repr_html_()
    heads = [part.partition("</strong>")[0] for part in page.split('<p class="rl-rung"><strong>')[1:]]
    assert tuple(heads) == RUNGS
    counted = page.partition("<strong>executed")[0]
    assert counted.index("every byte and FLOP") < counted.index("bytes, formula") < counted.index("<details>")
    assert "bytes asked for" in counted.partition("<details>")[2]
    assert "<table" not in page.partition("<strong>recorded")[2], "what is not there takes a line"
    text = repr(evidence)
    assert (
        text.index("counted: 2 sizes") < text.index("asked for: each load") < text.index("executed: 5 runs")
    )
