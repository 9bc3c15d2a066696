"""`python -m kernels.measure --rehearse`: the whole command on an imaginary card, with real child processes.

One run of two kernels, and one on which everything goes wrong. $REHEARSAL names the record of a whole run
(`make rehearse`), which then takes the place of the first.
"""

import ast
import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from book import roofline
from kernels import gemv, kv_append
from kernels.evidence import confirm, launch_overhead, record_tables, recorded, timed
from kernels.evidence.executed import EXECUTABLE
from kernels.evidence.experiments import all_experiments
from kernels.evidence.recorded import __main__ as shelving
from kernels.evidence.recorded import plausible, write
from kernels.measure import command, rehearsal, work
from kernels.measure.report import table
from labs.lab2_linear import other_cards
from tests.kernels import faulty

TWO = {"gemv": gemv.experiment, "kv_append": kv_append.experiment}
GIVEN = os.environ.get("REHEARSAL")
CHIP = "sm_90"
whole = pytest.mark.skipif(not GIVEN, reason="minutes: make rehearse")


def rehearsed(folder, experiments, *words, bench=None, full=None):
    """The command on an imaginary card: exit code, record, what it printed. full: when the disk is."""
    out, lines = folder / "try.json", []
    save = recorded.save

    def saves(record, path):
        if full and full(record):
            raise OSError(28, "No space left on device")
        save(record, path)

    given = ["--out", str(out), "--rehearse", CHIP, "--quick", "--kernels", ",".join(TWO), *words]
    where = {} if bench is None else {"bench": bench, "describe": f"{bench}.describe"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "choose", lambda names: experiments)
        patch.setattr(recorded, "save", saves)
        patch.setattr("builtins.print", lambda *said, **_: lines.append(" ".join(map(str, said))))
        code = command.main(given, **where)
    return SimpleNamespace(code=code, path=out, record=recorded.load(out), said="\n".join(lines))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A rehearsal in which nothing goes wrong."""
    if GIVEN:
        record = recorded.load(GIVEN)
        return SimpleNamespace(code=0, path=Path(GIVEN), record=record, said=table(record))
    return rehearsed(tmp_path_factory.mktemp("rehearsal"), TWO)


@pytest.fixture(scope="module")
def bench(run):
    """What the run was rehearsed on."""
    return getattr(rehearsal, run.record["device"]["target"])


@pytest.fixture(scope="module")
def name(bench):
    """Its card's."""
    return bench.card().row.short_name


def points(record, name):
    return [p for sweep in record["sweeps"] if sweep["experiment"] == name for p in sweep["points"]]


# ------------------------------------------------------------------------------------ a whole run


def test_every_executable_chip_can_be_rehearsed_on():
    for chip in EXECUTABLE:
        assert getattr(rehearsal, chip).card().device.target == chip
        assert rehearsal.addresses(chip)["bench"].endswith(f":{chip}")


def test_where_triton_does_not_compile_there_is_nothing_to_rehearse_on(tmp_path, capsys):
    """As in this process, whose Triton interprets."""
    device, reason = rehearsal.sm_90.describe()
    assert device is None and "Triton has to compile for that" in reason
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "_device", lambda *_: (device, reason))
        assert command.main(["--out", str(tmp_path / "x.json"), "--rehearse"]) == command.NOTHING
    assert capsys.readouterr().err.startswith("Nothing to rehearse on: Triton has to compile")


def test_it_is_complete_and_says_that_nothing_was_measured(run, name):
    assert run.code == 0 and run.record["status"] == "complete" and run.record["missing"] == []
    assert run.record["kind"] == "rehearsed" and run.record["device"]["imaginary"]
    assert f"Rehearsed on an imaginary card, nothing here was measured: imaginary {name}" in run.said
    assert set(rehearsal.NOTES) <= set(run.record["notes"])
    assert run.record["clocks"] == {"before": {}, "after": {}}


def test_each_kernel_was_executed_and_timed_at_the_sizes_that_are_counted(run, bench):
    ours = all_experiments() if GIVEN else TWO
    for key, experiment in ours.items():
        assert run.record["correct"][key]["verdict"] == "correct"
        card = bench.card().device
        (job,) = work.jobs({key: experiment}, card, None, quick=not GIVEN, rung="counted")[0]
        assert {tuple(p["sizes"].values()) for p in points(run.record, key)} == {
            tuple(row.values()) for row in job.rows
        }


def test_the_clock_reads_the_times_that_are_true(run, bench):
    """Every one within 3 %, or a step of the events."""
    truth, card = bench.truth, bench.card()
    for sweep in run.record["sweeps"]:
        experiment = all_experiments()[sweep["experiment"]]
        for point in sweep["points"]:
            cost = experiment.formula(sweep["dtype"], **point["sizes"])
            peak = timed.peak_of(experiment, card.row, sweep["dtype"])
            floor = roofline.time(cost.flops, cost.bytes, peak, card.row.bandwidth)
            true = floor / truth.kernels + truth.start * len(point["kernels"])
            assert point["seconds"] == pytest.approx(true, rel=0.03, abs=0.5e-6), point["sizes"]
            assert point["way"] == "graph" and point["launch_seconds"] > 0


def test_ceilings_baselines_and_plans_are_in_it(run, bench):
    card = bench.card()
    for tops in run.record["ceilings"].values():
        assert 0.7 < tops["bandwidth"] / card.row.bandwidth < 0.82
        assert 0.7 < tops["peak"] / card.row.peaks[tops["dtype"]] < 0.82
    assert set(run.record["ceilings"]["fp32"]["peaks"]) >= {"torch.matmul 4096", "kernels.fma_chain"}
    cold = run.record["cold_cache"]
    assert cold["kept"] == "clean" and cold["clean"] == pytest.approx(cold["in_turn"], rel=0.15)
    assert cold["overwritten"] > 1.5 * cold["clean"], "a written cache is paid for by who comes next"
    for point in points(run.record, "gemv"):
        assert point["baseline"]["name"] == "torch.matmul" and point["baseline"]["share"] > 0
        assert point["plan"]["num_warps"] and len(point["kernels"]) == 2
        assert point["kernels"][0]["shared_bytes"] >= 0
        assert "registers" not in point["kernels"][0], "of which an imaginary driver knows nothing"


@whole
def test_the_cost_of_a_launch_is_in_it(run):
    lines = {(one["work"], one["way"]): one for one in run.record["overhead"]["lines"]}
    assert set(lines) == {(w, way) for w in ("noop", "linear") for way in ("eager", "graph")}
    assert "launch: noop, eager: 8.0" in table(run.record), "the host's, as the simulated card has it"


def test_the_table_has_what_a_launch_costs_or_why_that_can_not_be_told(run):
    line = {"work": "noop", "way": "graph", "counts": [8, 16, 32], "seconds": [16e-6, 32e-6, 64e-6]}
    bent = {**line, "way": "eager", "seconds": [64e-6, 16e-6, 64e-6]}
    said = table({**run.record, "overhead": {"lines": [line, bent], "laws": []}})
    assert "launch: noop, graph: 2.00 µs each" in said
    assert "launch: noop, eager: not to be told: the points are no line" in said


def test_with_resume_nothing_is_left_to_do_and_a_measurement_is_not_gone_on_with(
    run, bench, tmp_path, monkeypatch
):
    monkeypatch.setattr(write, "version", lambda root: run.record["commit"])
    kept = {**run.record, "kind": "measured", "device": {**run.record["device"], "imaginary": False}}
    recorded.save(kept, tmp_path / "try.json")
    device = bench.card().device
    asked = SimpleNamespace(out=tmp_path / "try.json", resume=True)
    with pytest.raises(ValueError, match="kind = 'measured', and here it is 'rehearsed'"):
        command._record(asked, device, "x")
    recorded.save(run.record, tmp_path / "try.json")
    record = command._record(asked, device, "x")
    every, _ = work.jobs(TWO, device, None, quick=not GIVEN, rung="counted")
    assert [work.without_done(job, record).rows for job in every] == [(), ()]


# ------------------------------------------------------- what a reader's record goes through after it


@pytest.fixture
def shelved(run, tmp_path, monkeypatch):
    """The book's folder of records, with this one in it."""
    monkeypatch.setattr(recorded, "FOLDER", tmp_path)
    recorded.save(run.record, tmp_path / "rehearsal.json")


def cells(page):
    """The sources of a page's code cells that show records."""
    found = re.findall(r"```\{code-cell\}[^\n]*\n(?::[^\n]*\n)*(.*?)```", page, re.DOTALL)
    return [source for source in found if "record_tables." in source]


def shown(source):
    """What a cell shows: its last line's value, as HTML and as text."""
    *before, last = ast.parse(source).body
    here = {"record_tables": record_tables}
    exec(compile(ast.Module(before, []), "cell", "exec"), here)
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), here)
    return value._repr_html_() + repr(value)


@pytest.mark.parametrize("page", ["records.md", "status.md"])
def test_a_page_that_shows_records_does_not_show_it(shelved, name, page):
    sources = cells((write.ROOT / "book/pages" / page).read_text(encoding="utf-8"))
    assert sources and not [one for one in sources if name in shown(one)]
    record = {**recorded.load(recorded.FOLDER / "rehearsal.json"), "kind": "measured"}
    record["device"] = {**record["device"], "imaginary": False}
    recorded.save(record, recorded.FOLDER / "rehearsal.json")
    assert name in shown(sources[0]), "as it would if it were one"


def test_unless_it_is_asked_for_nothing_shows_it(run, shelved, bench, name):
    assert recorded.load_all() == () and record_tables.times() == () and launch_overhead.recorded() == ()
    assert repr(record_tables.shelf()).startswith("No card has been measured yet.")
    assert recorded.points("gemv", records=[run.record], others=True) == ()
    assert confirm(gemv.experiment, rungs=["recorded"]).points() == []
    numbers = {"m": 1, "k": 4096, "n": 64, "cards": {bench.card().row.id: {"name": name}}}
    (row,) = other_cards.reveal({}, numbers).cells
    assert row[2] == "not measured yet"


def test_asked_for_by_name_its_tables_say_in_each_line_that_it_is_one(run, name):
    rows = record_tables.times([run.record], rehearsals=True)
    assert {one.kernel for one in rows} >= set(TWO)
    assert {one.card for one in rows} == {f"rehearsed, not measured: {name}"}
    assert all(0 < one.of_floor < 1 for one in rows) and any(one.vendor for one in rows)
    page = record_tables.shelf([run.record], rehearsals=True)
    assert f"rehearsed, not measured: imaginary {name}" in repr(page)
    assert page._repr_html_().count("rehearsed, not measured: ") > len(rows)


@whole
def test_the_cost_of_a_launch_can_be_drawn_and_is_called_rehearsed(run, name):
    (found,) = launch_overhead.recorded([run.record], rehearsals=True)
    assert found.where.startswith(f"rehearsed, not measured: imaginary {name}")
    launch = {(one.work, one.way): one.per_launch for one in found.lines}
    assert launch["noop", "graph"] < launch["noop", "eager"]
    assert "rehearsed" in repr(found) and "recorded" not in repr(found)
    markers = {line.get_marker() for axes in found.figure().axes for line in axes.get_lines()}
    assert "x" in markers and "o" not in markers


def test_a_chapter_draws_it_under_its_name_and_in_no_rung(run):
    evidence = confirm(gemv.experiment, rungs=["recorded"], records=run.path)
    assert evidence.recorded == () and len(evidence.rehearsed) == 1
    assert f"{run.path.name} is a rehearsal, and is none of evidence" in repr(evidence)
    figure = evidence.figure()
    assert "x" in {line.get_marker() for axes in figure.axes for line in axes.get_lines()}


def test_the_check_has_nothing_against_its_numbers(run, capsys):
    assert shelving.main(["check", str(run.path)]) == 1
    assert "1 complaint," in capsys.readouterr().out
    clean = {**run.record, "commit": "0123456789ab"}
    verdict = plausible.judge(clean, rehearsals=True)
    assert verdict.complaints[0].startswith("It is a rehearsal")
    assert verdict.complaints[1:] == (
        "software.cuda and software.hip are both missing: torch had no GPU; measure again with one.",
    )
    assert shelving.main(["check", str(run.path), "--rehearsal"]) == 1
    assert "software.cuda" in capsys.readouterr().out


def test_it_is_not_taken_onto_the_shelf(run, tmp_path, capsys):
    assert shelving.main(["add", str(run.path), "--to", str(tmp_path / "records")]) == 1
    assert not (tmp_path / "records").exists()


# ------------------------------------------------------------------------------ what goes wrong


@pytest.fixture(scope="module")
def broken(run, tmp_path_factory):
    """A rehearsal on a card where much fails, of kernels of which some are wrong; the disk is full once.

    It goes on with the ceilings of the first one.
    """
    folder = tmp_path_factory.mktemp("broken")
    some = {**TWO, "toy.doubled": faulty.wrong_experiment, "toy.racing": faulty.racing_experiment}
    bench, words, saved = "tests.kernels.faulty_rehearsals:faulty", [], []
    if not GIVEN:
        recorded.save({**run.record, "status": "partial", "sweeps": [], "correct": {}}, folder / "try.json")
        words = ["--resume"]

    def full(record):
        """From the first point on, for two results."""
        saved.extend([1] if record["sweeps"] else [])
        return 0 < len(saved) <= 2

    return rehearsed(folder, some, *words, bench=bench, full=full)


def gap(record, kernel, size):
    axis = TWO[kernel].axis
    mine = [one for one in record["missing"] if one["experiment"] == kernel]
    return next(one for one in mine if one["sizes"][axis] == size)


def test_it_ends_with_the_exit_code_of_what_is_wrong(broken):
    assert broken.code == command.WRONG


@pytest.mark.skipif(bool(GIVEN), reason="the ceilings are measured again")
def test_what_was_measured_before_is_gone_on_with(broken, run):
    assert "measuring the ceilings" in run.said and "measuring the ceilings" not in broken.said
    assert broken.record["ceilings"] == run.record["ceilings"]


def test_a_wrong_kernel_is_found_as_compiled_and_is_not_timed(broken):
    assert "relative error" in broken.record["correct"]["toy.doubled"]["verdict"]


def test_a_race_is_found_as_compiled_and_is_not_timed(broken):
    assert "data races" in broken.record["correct"]["toy.racing"]["verdict"]
    assert {s["experiment"] for s in broken.record["sweeps"]} == {"gemv"}


def test_an_impossible_time_raises_the_alarm(broken):
    (point,) = points(broken.record, "gemv")
    assert "Impossible result: the bandwidth is" in point["alarms"][0]
    assert "impossible" in broken.said


@pytest.mark.parametrize(
    ("kernel", "size", "says"),
    [
        ("kv_append", 32, "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."),
        ("kv_append", 1, "CUDA error: an illegal memory access was encountered"),
        ("kv_append", 8, "killed by SIGKILL"),
        ("gemv", 64, "OutOfResources: out of resource: shared memory, Required: 300000"),
    ],
)
def test_a_fault_in_a_process_costs_the_point_it_was_at(broken, kernel, size, says):
    assert says in gap(broken.record, kernel, size)["reason"]


def test_after_an_illegal_access_another_process_went_on(broken):
    assert any("The card answered no more" in note for note in broken.record["notes"])


def test_a_full_disk_is_told_once_and_the_record_is_there_at_the_end(broken):
    assert broken.said.count("can't be written (No space left on device)") == 1
    assert f"wrote {broken.path}" in broken.said
