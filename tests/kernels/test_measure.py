"""`python -m kernels.measure`: whatever becomes of a child, what was measured is kept, the rest named."""

import dataclasses
import functools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

from kernels import decode_attention, linear, matmul, measure, stream
from kernels.contract.errors import Unsupported
from kernels.evidence import cpu, recorded
from kernels.evidence.recorded import write
from kernels.evidence.recorded.write import ROOT
from kernels.evidence.timed import dram
from kernels.evidence.timed.ceilings import DATASHEET, Ceilings
from kernels.measure import __main__, command, counters, work
from kernels.measure.children import PATIENCE, Child, Children, Died, TooLate
from kernels.measure.report import ending, table
from kernels.measure.run import BUDGET_SPENT, Run
from tests.kernels import fake_child, with_torch
from tests.kernels.fakes import CARD
from tests.kernels.toy import experiment as toy

FAKE = Path(__file__).with_name("fake_child.py")
TWO = {"stream": stream.experiment, "linear": linear.experiment}


@pytest.fixture(autouse=True)
def asked(tmp_path, monkeypatch):
    """The log of what children were asked, a line each."""
    log = tmp_path / "asked"
    log.write_text("", encoding="utf-8")
    monkeypatch.setenv("ASKED", str(log))
    return lambda: log.read_text(encoding="utf-8").splitlines()


def fakes(faults=None, patience=20.0):
    return Children([sys.executable, str(FAKE), json.dumps(faults or {})], patience=patience)


def measured(tmp_path, faults=None, experiments=None, seconds=None, patience=20.0, **options):
    """A whole run with children that are made up: (run, the record as it lies on the disk, what it told)."""
    record = {**write.empty(CARD, "python -m kernels.measure --out x.json"), "missing": []}
    lines, children = [], fakes(faults, patience)
    until = None if seconds is None else time.monotonic() + seconds
    run = Run(record, tmp_path / "x.json", CARD, children.ask, lines.append, until, quick=True)
    try:
        run.measure(experiments or TWO, **{"launches": False, **options})
    finally:
        children.close()
    return run, recorded.load(tmp_path / "x.json"), lines


def points(record, name="linear"):
    return [p["sizes"] for sweep in record["sweeps"] if sweep["experiment"] == name for p in sweep["points"]]


def gaps(record):
    return [(g["experiment"], g["sizes"] and g["sizes"].get("m"), g["why"]) for g in record["missing"]]


# ------------------------------------------------------------------------------- a whole run


def test_a_whole_run_makes_a_valid_and_complete_record(tmp_path, asked):
    run, record, lines = measured(tmp_path, launches=True)
    assert run.good and record["status"] == "complete" and record["missing"] == []
    assert record["correct"]["linear"]["verdict"] == "correct"
    assert [p["m"] for p in points(record)] == [1, 64, 4096], "in the order of the axis, not of worth"
    assert list(record["ceilings"]) == ["fp32", "bf16"] and "overhead" in record
    assert asked() == [
        "check stream", "check linear", "ceilings fp32", "ceilings bf16",
        "points stream n=268435456 n=16777216 n=67108864", "points linear m=4096 m=1 m=64", "launches",
    ]  # fmt: skip
    assert "of vendor" in table(record) and "90 % of theirs" in table(record)
    assert ending(record, ["--out", "x.json"]) == ["Nothing is missing."]


def test_kernels_with_a_goal_come_first_and_the_ends_of_a_sweep_before_its_middle():
    some = {"mlp": toy, "linear": linear.experiment, "stream.triad": toy, "stream": stream.experiment}
    every, _ = work.jobs(some, CARD, None, quick=False)
    assert [job.key for job in every] == ["stream", "linear", "mlp", "stream.triad"]
    assert [row["m"] for row in every[1].rows][:4] == [4096, 1, 64, 2048]


def test_with_minutes_one_point_of_each_kernel_and_what_a_launch_costs_come_before_the_others(
    tmp_path, asked
):
    measured(tmp_path, seconds=60, launches=True)
    assert asked()[4:] == [
        "points stream n=268435456", "points linear m=4096", "launches",
        "points stream n=16777216 n=67108864", "points linear m=1 m=64",
    ]  # fmt: skip


# ------------------------------------------------------------------------------- what goes wrong


def test_out_of_memory_in_the_middle_of_a_sweep_costs_that_point(tmp_path):
    oom = "failed OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    run, record, lines = measured(tmp_path, {"linear m=1": oom})
    assert [p["m"] for p in points(record)] == [64, 4096]
    assert gaps(record) == [("linear", 1, "failed")] and record["status"] == "partial"
    assert any("linear in bf16 at m = 1" in line and "Tried to allocate 2.00 GiB" in line for line in lines)
    assert run.good, "a failure is not a wrong result"


def test_after_an_illegal_access_another_child_measures_the_rest(tmp_path, asked):
    fault = "lost AcceleratorError: CUDA error: an illegal memory access was encountered"
    _, record, _ = measured(tmp_path, {"linear m=4096": fault})
    assert [p["m"] for p in points(record)] == [1, 64]
    assert asked()[-2:] == ["points linear m=4096 m=1 m=64", "points linear m=1 m=64"]
    assert "illegal memory access" in record["missing"][0]["reason"]
    assert any("The card answered no more" in note for note in record["notes"])


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("killed", "killed by SIGKILL (as the system does when memory runs out)"),
        ("segfault", "killed by SIGSEGV"),
        ("exits", "ended with code 7: ValueError: last words"),
        (
            "failed OutOfResources: out of resource: shared memory, Required: 240000",
            "shared memory, Required",
        ),
    ],
)
def test_a_child_that_dies_or_a_launch_that_is_refused_costs_one_point(tmp_path, fault, says):
    _, record, _ = measured(tmp_path, {"linear m=1": fault})
    assert [p["m"] for p in points(record)] == [64, 4096]
    assert len(points(record, "stream")) == 3
    (gap,) = record["missing"]
    assert (gap["sizes"]["m"], gap["why"]) == (1, "failed") and says in gap["reason"]


@pytest.mark.parametrize("fault", ["killed", "hangs", "segfault", "exits"])
def test_a_vendor_s_kernel_that_takes_the_process_costs_no_time_of_ours(tmp_path, asked, fault):
    """FlashInfer compiles for a minute when it is first called, another library is built for another card."""
    run, record, lines = measured(tmp_path, {"linear m=1": f"beside {fault}"}, patience=1.5)
    assert record["missing"] == [] and record["status"] == "complete" and run.good
    (sweep,) = [one for one in record["sweeps"] if one["experiment"] == "linear"]
    assert [(p["sizes"]["m"], bool(p["baseline"])) for p in sweep["points"]] == [
        (1, False), (64, False), (4096, True),
    ]  # fmt: skip
    (note,) = record["notes"]
    assert note.startswith("linear in bf16 at m = 1, k = 8,192, n = 8,192: beside it a vendor's kernel took")
    assert asked()[-2:] == ["points linear m=4096 m=1 m=64", "points linear m=64"]
    assert any(line.startswith("linear: 3 points") for line in lines)


def test_a_vendor_s_illegal_access_costs_no_time_of_ours_and_no_vendor_is_tried_again(tmp_path, asked):
    """The card is lost after the size was told again: that is no death of our kernel's."""
    lost = "beside lost AcceleratorError: CUDA error: an illegal memory access was encountered"
    faults = {f"linear m={m}": lost for m in (1, 64, 4096)}
    run, record, _ = measured(tmp_path, faults)
    assert record["missing"] == [] and record["status"] == "complete" and run.good
    assert [p["m"] for p in points(record)] == [1, 64, 4096]
    assert asked()[-2:] == ["points linear m=4096 m=1 m=64", "points linear m=1 m=64"]
    lost_at = "linear in bf16 at m = 4,096, k = 8,192, n = 8,192: beside it a vendor's kernel took the card"
    assert lost_at in record["notes"]


@pytest.mark.parametrize("fault", ["hangs", "lost AcceleratorError: CUDA error"])
def test_what_a_vendor_did_in_the_first_pass_is_remembered_in_the_second(tmp_path, asked, fault):
    """With minutes each kernel has two passes; a vendor's kernel that hangs may cost the patience once."""
    faults = {f"linear m={m}": f"beside {fault}" for m in (1, 64, 4096)}
    _, record, _ = measured(tmp_path, faults, seconds=60, patience=1.5)
    assert record["missing"] == [] and [p["m"] for p in points(record)] == [1, 64, 4096]
    assert [line for line in asked() if line.startswith("points linear")] == [
        "points linear m=4096", "points linear m=1 m=64",
    ]  # fmt: skip
    assert sum("beside it a vendor's kernel took" in note for note in record["notes"]) == 1


def test_a_child_that_dies_at_once_after_a_vendor_s_took_one_ends_the_kernel(tmp_path):
    """What the child before was at is not asked of this one: that would go on for ever."""
    faults = {"linear m=4096": "beside killed"}
    children, asks = fakes(faults), []

    def ask(request, **options):
        asks.append(request["task"])
        assert len(asks) < 12
        if request["task"] == "points" and "beside" in seen:
            raise Died("its process ended with code 1")
        for event in children.ask(request, **options):
            seen.add(event["is"])
            yield event

    seen = set()
    record = {**write.empty(CARD, "x"), "missing": []}
    run = Run(record, tmp_path / "x.json", CARD, ask, lambda line: None, quick=True)
    run.measure({"linear": linear.experiment}, launches=False)
    children.close()
    assert [gap["reason"] for gap in record["missing"]] == ["its process ended with code 1"]


def test_a_point_that_is_told_again_with_the_vendor_s_time_is_one_point(tmp_path):
    _, record, lines = measured(tmp_path, {"linear m=1": "beside slow 0"})
    (sweep,) = [one for one in record["sweeps"] if one["experiment"] == "linear"]
    assert [(p["sizes"]["m"], p["baseline"]["name"]) for p in sweep["points"]] == [
        (1, "theirs"), (64, "theirs"), (4096, "theirs"),
    ]  # fmt: skip
    assert any(line.startswith("linear: 3 points") for line in lines)


def test_a_child_that_hangs_is_stopped_and_noted(tmp_path):
    _, record, _ = measured(tmp_path, {"linear m=1": "hangs"}, patience=1.0)
    assert [p["m"] for p in points(record)] == [64, 4096]
    assert "said nothing for 1 s" in record["missing"][0]["reason"]


def test_a_kernel_that_costs_two_children_is_left(tmp_path, asked):
    _, record, _ = measured(tmp_path, {"stream n=268435456": "killed", "stream n=16777216": "killed"})
    assert points(record, "stream") == [] and len(points(record)) == 3
    assert [gap["sizes"]["n"] for gap in record["missing"]] == [2**28, 2**24, 2**26]
    assert "2 processes were lost" in record["missing"][-1]["reason"]


def test_a_check_that_kills_its_process_costs_that_kernel(tmp_path):
    run, record, _ = measured(tmp_path, {"check stream": "segfault"})
    assert list(record["correct"]) == ["linear"] and len(points(record)) == 3
    assert record["missing"][0]["sizes"] is None and run.good


def test_kernels_are_checked_by_one_process_until_it_dies_and_the_rest_by_the_next(tmp_path, asked):
    three = {**TWO, "matmul": matmul.experiment}
    for fault, ends in (("segfault", 2), ("failed RuntimeError: no kernel image", 1), (None, 1)):
        children = fakes({"check matmul": fault} if fault else None)
        started = []
        record = {**write.empty(CARD, "x"), "missing": []}

        def ask(request, children=children, started=started, **options):
            started.append(request["task"])
            return children.ask(request, **options)

        run = Run(record, tmp_path / "x.json", CARD, ask, lambda line: None, quick=True)
        run.measure(three, launches=False)
        children.close()
        assert started.count("check") == ends
        right = ["stream", "linear"] if fault else ["stream", "matmul", "linear"]
        assert list(record["correct"]) == right, "in the order of worth"
        assert [gap["experiment"] for gap in record["missing"]] == (["matmul"] if fault else [])


def test_a_wrong_result_is_named_and_the_run_is_not_good(tmp_path):
    run, record, _ = measured(tmp_path, {"linear m=1": "wrong"})
    assert not run.good and gaps(record) == [("linear", 1, "wrong")]


def test_a_point_that_does_not_fit_is_left_out_with_its_numbers_and_the_record_is_whole(tmp_path):
    run, record, _ = measured(tmp_path, {"linear m=4096": "memory"})
    assert gaps(record) == [("linear", 4096, "memory")] and "needs 9.00 GB" in record["missing"][0]["reason"]
    assert record["status"] == "complete" and record["sweeps"][-1]["fixed"] == {"k": 8192, "n": 8192}
    assert ending(record, [])[0] == "Missing:" and len(ending(record, [])) == 2, "no run here will have it"


def test_ceilings_that_fail_are_tried_once_more_and_then_named(tmp_path, asked):
    _, record, _ = measured(tmp_path, {"ceilings": "killed"})
    assert [line for line in asked() if "ceilings" in line] == ["ceilings fp32"] * 2 + ["ceilings bf16"] * 2
    assert all("no ceiling in" in gap["reason"] for gap in record["missing"])


def test_what_a_library_prints_between_the_lines_is_passed_over(tmp_path):
    _, record, _ = measured(tmp_path, {"linear m=1": "garbled"})
    assert len(points(record)) == 3 and record["missing"] == []


def test_a_disk_that_is_full_is_told_and_the_run_goes_on(tmp_path, monkeypatch):
    save, full = recorded.save, [True]

    def saves(record, path):
        if full[0] and record["sweeps"]:
            raise OSError(28, "No space left on device")
        save(record, path)

    monkeypatch.setattr(recorded, "save", saves)
    record = {**write.empty(CARD, "x"), "missing": []}
    lines, children = [], fakes()
    run = Run(record, tmp_path / "x.json", CARD, children.ask, lines.append, quick=True)
    run.measure(TWO, launches=False)
    children.close()
    assert run.unsaved == "No space left on device" and len(points(run.record)) == 3
    assert sum("can't be written (No space left on device)" in line for line in lines) == 1
    assert recorded.load(tmp_path / "x.json")["sweeps"] == [], "what was whole before is whole still"
    monkeypatch.setattr(command.tempfile, "gettempdir", lambda: str(tmp_path / "elsewhere"))
    assert command._kept(run) is None  # neither there
    full[0] = False
    assert command._kept(run) == tmp_path / "x.json" and run.unsaved == ""


def test_with_the_disk_full_to_the_end_the_record_goes_to_the_temporary_folder(tmp_path, monkeypatch):
    save = recorded.save

    def saves(record, path):
        if path.parent == tmp_path:
            raise OSError(28, "No space left on device")
        save(record, path)

    run, *_ = measured(tmp_path)
    monkeypatch.setattr(recorded, "save", saves)
    monkeypatch.setattr(command.tempfile, "gettempdir", lambda: str(tmp_path / "elsewhere"))
    run.save()
    assert command._kept(run) == tmp_path / "elsewhere" / "x.json"
    assert len(points(recorded.load(tmp_path / "elsewhere" / "x.json"))) == 3


# ---------------------------------------------------------------------------------- the budget


def test_the_run_stops_in_time_and_says_what_was_left_out(tmp_path):
    began = time.monotonic()
    _, record, _ = measured(tmp_path, {"stream n=67108864": "slow 30"}, seconds=2.5)
    assert time.monotonic() - began < 8
    assert record["status"] == "partial" and len(points(record, "stream")) >= 1
    left = [gap for gap in record["missing"] if gap["why"] == "time"]
    assert left and all(gap["reason"] == BUDGET_SPENT for gap in left)


def test_without_time_nothing_is_asked_and_all_is_listed(tmp_path, asked):
    _, record, _ = measured(tmp_path, seconds=0.0)
    assert asked() == []
    assert [(g["experiment"], g["why"]) for g in record["missing"]] == [
        ("stream", "time"),
        ("linear", "time"),
    ]


class Day:
    """Children that take so many seconds of a clock of their own, and a run that goes by it.

    seconds: of a request, by the word that it begins with; "points" is for each size.
    """

    def __init__(self, tmp_path, minutes, seconds):
        self.now, self.seconds, self.asked, self.told = 0.0, seconds, [], []
        record = {**write.empty(CARD, "python -m kernels.measure --out x.json"), "missing": []}
        until = 60 * minutes - command.RESERVE
        self.run = Run(
            record, tmp_path / "x.json", CARD, self.ask, self.told.append, until, now=lambda: self.now
        )

    def ask(self, request, until, ahead):
        assert ahead == (request["task"] != "launches"), "which times Python itself"
        self.asked.append(request["task"])
        for sizes in request.get("sizes", request.get("kernels", [None])):
            takes = self.seconds.get(request["task"], 0.0)
            if self.now + takes > until:
                self.now = until
                raise TooLate
            self.now += takes
            if request["task"] == "check":
                yield {"is": "begins", **sizes}
                outcome = {"dtype": sizes["dtype"], "verdict": "correct"}
                yield {"is": "checked", "outcome": outcome, "arithmetic": sizes["dtype"]}
                continue
            if request["task"] == "ceilings":
                tops = {"dtype": request["dtype"], **fake_child.TOPS}
                yield {"is": "ceilings", "dtype": request["dtype"], "ceilings": tops, "clock": {}}
            if request["task"] == "launches":
                kept = {"bandwidth": 3e12, "bandwidth_by": "torch copy", "lines": [], "laws": []}
                yield {"is": "launches", "overhead": kept}
            if sizes:
                point = fake_child.point(sizes)
                yield {"is": "point", "point": point, "began": self.now, "ended": self.now}

    def count(self, taken):
        """Counters that are given what is left, and say nothing until it is over."""

        def read(requests, timeout):
            taken.append(timeout)
            self.now += timeout
            raise Unsupported(f"DRAM bytes were not counted: `ncu` was not done after {timeout:.0f} s.")

        return lambda run, jobs: counters.count(run, jobs, read)


def test_in_eight_minutes_all_stages_have_their_turn_and_the_end_has_its_reserve(tmp_path):
    taken, day = [], Day(tmp_path, 8, {"check": 10, "ceilings": 20, "points": 15, "launches": 30})
    day.run.measure(TWO, counters=day.count(taken))
    # 2 checks, 2 ceilings, 3 sizes of stream and 13 of linear
    assert taken == [480 - command.RESERVE - 2 * 10 - 2 * 20 - 16 * 15 - 30]
    assert day.now == 480 - command.RESERVE, "ncu had what was left, and no more"
    assert day.run.record["status"] == "complete" and "overhead" in day.run.record


def test_where_points_take_all_the_minutes_each_kernel_has_one_and_the_rest_is_told(tmp_path):
    taken, day = [], Day(tmp_path, 8, {"check": 10, "ceilings": 20, "points": 60, "launches": 30})
    day.run.measure(TWO, counters=day.count(taken))
    record = day.run.record
    assert len(points(record, "stream")) == 3 and points(record)[-1]["m"] == 4096 and "overhead" in record
    assert {gap["why"] for gap in record["missing"]} == {"time"} and record["status"] == "partial"
    assert taken == [], "with no time left ncu is not begun"
    (note,) = [note for note in record["notes"] if "DRAM" in note]
    assert "of the minutes 0 s were left, and 30 s is the least" in note and "--resume counts them" in note
    assert f"  {note}" in day.told and day.now <= 480 - command.RESERVE


def test_counters_are_not_begun_with_too_little_time_to_end(tmp_path):
    left, taken = 20.0, []
    used = {"check": 10, "ceilings": 20, "points": 15}
    spare = (480 - command.RESERVE - 2 * 10 - 2 * 20 - 16 * 15) - left
    day = Day(tmp_path, 8, {**used, "launches": spare})
    day.run.measure(TWO, counters=day.count(taken))
    assert taken == [] and any("of the minutes 20 s were left" in note for note in day.run.record["notes"])
    assert day.run.record["status"] == "complete", "the times are all there"


def test_a_child_that_hangs_leaves_time_for_the_others():
    assert command._patience(None) == PATIENCE == 240
    assert command._patience(8) == 80 and command._patience(1) == 30 and command._patience(60) == PATIENCE


@pytest.mark.parametrize("fault", ["describe", "check linear", "ceilings", "linear m=1", "launches"])
def test_the_command_ends_within_its_minutes_whatever_hangs(tmp_path, fault, monkeypatch):
    """With a second in hand: until then each child works, or is silent."""
    monkeypatch.setattr(command, "RESERVE", 3.0)
    began = time.monotonic()
    words = ["--out", str(tmp_path / "x.json"), "--quick", "--no-counters", "--minutes", "0.1"]
    code = command.main(words, children=fakes({fault: "hangs"}), began=began)
    assert time.monotonic() - began < 6.0
    assert code in (0, 2) and (code == 2) is (fault == "describe")


def test_the_seconds_before_the_command_began_are_of_its_minutes(tmp_path, asked):
    words = ["--out", str(tmp_path / "x.json"), "--kernels", "linear", "--no-counters", "--minutes", "8"]
    assert command.main(words, children=fakes(), began=time.monotonic() - 8 * 60) == 2
    assert asked() == []
    assert __main__.age() > 0.1, "this process has imported torch"


def test_an_ncu_that_hangs_ends_with_the_minutes(tmp_path, monkeypatch):
    ncu = tmp_path / "ncu"
    ncu.write_text("#!/bin/sh\nsleep 60\n", encoding="utf-8")
    ncu.chmod(0o755)
    monkeypatch.setattr(counters, "LEAST", 0.5)
    read = functools.partial(dram.all_bytes, ncu=str(ncu))
    began = time.monotonic()
    _, record, _ = measured(tmp_path, seconds=4.0, counters=lambda run, jobs: counters.count(run, jobs, read))
    assert time.monotonic() - began < 4.0 + command.RESERVE / 2
    assert any("`ncu` was not done after" in note for note in record["notes"])


def test_a_process_that_the_driver_holds_is_left_behind(monkeypatch):
    """A killed process that waits for a card that hangs is not gone before the driver lets it go."""
    children, kill = fakes({"describe": "hangs"}), os.killpg
    held = []
    monkeypatch.setattr(os, "killpg", lambda process, signal: held.append(process))
    began = time.monotonic()
    with pytest.raises(TooLate):
        list(children.ask({"task": "describe"}, until=began + 0.5, ahead=False))
    assert time.monotonic() - began < 3.0 and len(held) == 1
    kill(held[0], signal.SIGKILL)


# ------------------------------------------------------------------------------ the command itself


def main(tmp_path, faults=None, *words, patience=20.0):
    given = ["--out", str(tmp_path / "x.json"), "--kernels", "linear", "--quick", "--no-counters", *words]
    return command.main(given, children=fakes(faults, patience))


def test_what_is_missing_is_listed_with_the_command_that_measures_only_that(tmp_path, asked, capsys):
    assert main(tmp_path, {"linear m=1": "killed"}) == 3
    said = capsys.readouterr().out
    assert "Missing:\n  linear in bf16 at m = 1, k = 8,192, n = 8,192: its process was killed" in said
    words = said.partition("python -m kernels.measure ")[2].splitlines()[0]
    assert words.endswith("--no-counters --resume")
    before = len(asked())
    assert main(tmp_path, None, "--resume") == 0
    assert asked()[before:] == ["describe", "check linear", "points linear m=1"], "and nothing again"
    record = recorded.load(tmp_path / "x.json")
    assert [p["m"] for p in points(record)] == [1, 64, 4096] and record["status"] == "complete"
    assert "Nothing is missing." in capsys.readouterr().out


@pytest.mark.parametrize(("fault", "code"), [(None, 0), ("wrong", 1), ("memory", 0), ("killed", 3)])
def test_the_exit_code_says_how_it_went(tmp_path, fault, code):
    assert main(tmp_path, {"linear m=1": fault} if fault else None) == code


def test_a_record_of_another_card_or_code_is_not_gone_on_with(tmp_path, capsys):
    main(tmp_path)
    record = recorded.load(tmp_path / "x.json")
    recorded.save({**record, "commit": "0123456"}, tmp_path / "x.json")
    assert main(tmp_path, None, "--resume") == 2
    assert "commit = '0123456', and here it is" in capsys.readouterr().err
    (tmp_path / "x.json").unlink()
    assert main(tmp_path, None, "--resume") == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_record_of_before_is_put_aside_and_nothing_of_it_is_lost(tmp_path, capsys):
    for _ in range(3):
        assert main(tmp_path) == 0
    names = sorted(path.name for path in tmp_path.glob("*.json"))
    assert names == ["x-before-1.json", "x-before-2.json", "x.json"]
    assert len(points(recorded.load(tmp_path / "x-before-1.json"))) == 3
    assert "x-before-2.json now; --resume would have added to it" in capsys.readouterr().out


def test_what_the_check_will_refuse_is_said_before_the_minutes_are_spent(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(write, "version", lambda root: "0123456+")
    main(tmp_path)
    said = capsys.readouterr().out
    place = said.index(
        "before it begins, as the check will say it: commit = '0123456+': files had been changed"
    )
    assert place < said.index("checking 1 kernels")


def test_ctrl_c_while_the_card_is_described_ends_quietly(tmp_path, monkeypatch):
    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "_device", pressed)
    assert main(tmp_path) == 130 and not list(tmp_path.glob("*.json"))


def test_nowhere_to_write_is_said_before_anything_is_measured(tmp_path, asked, capsys):
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert command.main(["--out", str(tmp_path / "file" / "x.json")], children=fakes()) == 2
    assert "--out" in capsys.readouterr().err and asked() == ["describe"]


def test_a_card_that_can_not_be_described_is_nothing_to_measure_on(tmp_path, capsys):
    assert main(tmp_path, {"describe": "segfault"}) == 2
    assert "could not even be described: its process was killed by SIGSEGV" in capsys.readouterr().err


@pytest.mark.parametrize("ends", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_or_a_lost_connection_keeps_what_was_measured_and_lists_the_rest(tmp_path, capsys, ends):
    def press():
        while not (tmp_path / "x.json").exists() or not points(recorded.load(tmp_path / "x.json")):
            time.sleep(0.05)
        signal.pthread_kill(threading.get_ident(), ends)  # the system may give it to any thread

    threading.Thread(target=press, daemon=True).start()
    began = time.monotonic()
    assert main(tmp_path, {"linear m=1": "hangs"}, patience=120.0) == 130
    assert time.monotonic() - began < 60, "and not when the child's patience is over"
    record = recorded.load(tmp_path / "x.json")
    assert record["status"] == "partial" and [p["m"] for p in points(record)] == [4096]
    assert gaps(record) == [("linear", 1, "stopped"), ("linear", 64, "stopped")]
    assert "--resume" in capsys.readouterr().out


def test_under_nohup_a_lost_connection_ends_nothing():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with command._terminated():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) not in (signal.SIG_IGN, signal.SIG_DFL)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_nobody_who_reads_what_is_told_is_no_reason_to_stop(monkeypatch):
    class Closed:
        def write(self, text):
            raise BrokenPipeError(32, "Broken pipe")

        flush = None

    monkeypatch.setattr(sys, "stdout", Closed())
    assert command.tell("linear: 3 points") is None


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_it_refuses_politely(tmp_path, capsys):
    assert command.main(["--out", str(tmp_path / "new" / "x.json")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("Nothing to measure: no GPU here") and ". Run this on a machine with a GPU" in said
    assert not (tmp_path / "new").exists()


def test_an_unknown_kernel_lists_the_known_ones(tmp_path, capsys):
    assert command.main(["--out", str(tmp_path / "x.json"), "--kernels", "lineer"]) == 2
    assert "'lineer': there is no such kernel; choose from" in capsys.readouterr().err


@pytest.mark.parametrize("minutes", ["0", "-1", "soon", "nan"])
def test_minutes_are_some(tmp_path, minutes, capsys):
    with pytest.raises(SystemExit):
        measure.arguments(["--out", "x.json", "--minutes", minutes])
    assert "give the minutes that it may take" in capsys.readouterr().err


def test_every_dtype_of_a_kernel_may_be_asked_for():
    assert measure.arguments(["--out", "x.json", "--dtype", "fp8"]).dtype == "fp8"
    assert measure.arguments(["--out", "x.json"]).counters
    assert not measure.arguments(["--out", "x.json", "--no-counters"]).counters


def test_a_dtype_that_the_card_lacks_is_not_taken_though_it_was_asked_for():
    a100 = dataclasses.replace(CARD, accelerator="a100_80gb_sxm", target="sm_80")
    assert work.chosen_dtype(decode_attention.experiment, CARD, "fp8") == "fp8"
    assert work.chosen_dtype(decode_attention.experiment, a100, "fp8") == "bf16"


def test_a_kernel_that_this_card_can_not_run_is_noted(tmp_path):
    only = dataclasses.replace(decode_attention.experiment, dtypes=("fp8",))
    t4 = dataclasses.replace(CARD, name="Pretended T4", accelerator="t4", target="sm_75")
    found, refused = work.jobs({"decode_attention": only}, t4, None, quick=True)
    assert found == [] and "runs in fp8; Pretended T4 has" in refused[0][1]


def test_the_cpu_must_be_asked_for_and_is_labelled(tmp_path, monkeypatch, capsys):
    small = lambda **_: cpu.cpu_roofline(size=256, rows=(1, 8), widths=(4,), budget=0.01)  # noqa: E731
    monkeypatch.setattr(command, "cpu_roofline", small)
    assert command.main(["--device", "cpu", "--out", str(tmp_path / "cpu.json")]) == 0
    record = recorded.load(tmp_path / "cpu.json")
    assert record["device"]["kind"] == "cpu" and "torch's kernels" in record["notes"][0]
    assert {s["experiment"] for s in record["sweeps"]} == {"torch linear", "torch dial"}
    assert recorded.points("linear", records=[record]) == ()
    assert "wrote" in capsys.readouterr().out


def test_the_command_needs_no_package_of_the_book(tmp_path):
    absent = ("matplotlib", "anywidget", "ipywidgets", "IPython", "nbformat")
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({absent!r}))\n"  # None makes an import of it fail
        "from book import catalog\n"
        "from kernels.measure import worker\n"
        "from kernels.measure.command import main\n"
        "assert catalog.card_called('NVIDIA H100 80GB HBM3').id == 'h100_sxm'\n"
        f"sys.exit(main(['--out', {str(tmp_path / 'x.json')!r}, '--kernels', 'nothing']))\n"
    )
    done = _python(code)
    assert (done.returncode, "there is no such kernel" in done.stderr) == (2, True), done.stderr


def test_without_pyyaml_it_says_at_once_what_to_install(tmp_path):
    done = _python(
        "import sys\n"
        "sys.modules['yaml'] = None\n"
        "from kernels.measure.command import main\n"
        f"sys.exit(main(['--out', {str(tmp_path / 'x.json')!r}]))\n"
    )
    assert (done.returncode, "`python3 -m pip install pyyaml`" in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr


def test_a_python_that_is_too_old_is_told_so():
    done = _python("import sys, kernels; sys.version_info = (3, 10, 12); import kernels.measure")
    assert done.returncode and done.stderr == "Python 3.10 is too old here: take 3.11 or newer.\n"


def _python(code):
    return with_torch.python(code, dict(os.environ))


def test_provenance_is_complete():
    record = write.empty(CARD, "python -m kernels.measure --out x.json")
    assert json.loads(json.dumps(record))["software"].keys() >= {
        "python", "torch", "triton", "numpy", "cuda", "cudnn",
    }  # fmt: skip
    assert record["commit"] and record["date"].endswith("+00:00")


def test_two_dtypes_of_one_run_whose_ratio_is_impossible_are_noted(tmp_path):
    bf16 = Ceilings("bf16", 3e12, "torch copy", 7e14, "torch.matmul 8192", {}, {})
    fp8 = dataclasses.replace(bf16, dtype="fp8", peak=7e14 * 2.5)
    for other, good in ((fp8, False), (dataclasses.replace(fp8, peak_by=DATASHEET), True)):
        record = {**write.empty(CARD, "x"), "missing": []}
        record["ceilings"] = {tops.dtype: write.ceilings_as_record(tops) for tops in (bf16, other)}
        run = Run(record, tmp_path / "x.json", CARD, fakes().ask, lambda line: None)
        run.measure({}, launches=False)
        assert run.good is good
        noted = any("FP8 over BF16 is 125 % of the ratio 2" in note for note in record["notes"])
        assert noted is not good


# --------------------------------------------------------------------------- counters and children


def test_counters_come_last_for_the_ends_of_each_sweep_in_one_process(tmp_path):
    calls = []

    def read(requests, timeout):
        calls.append(requests)
        return ["DRAM bytes were not counted: no", *[(1000.0, 24.0)] * (len(requests) - 1)]

    *_, lines = measured(tmp_path, counters=lambda run, jobs: counters.count(run, jobs, read))
    record = recorded.load(tmp_path / "x.json")
    (requests,) = calls
    assert [r["sizes"].get("m") for r in requests] == [None, None, 1, 4096]
    assert requests[2]["experiment"] == "kernels.linear:experiment"
    assert [p["dram_bytes"] for p in record["sweeps"][-1]["points"]] == [1024.0, None, 1024.0]
    assert record["sweeps"][0]["points"][0]["dram_bytes"] is None
    assert "stream: DRAM bytes were not counted: no" in record["notes"], "and linear's were counted"


def test_counters_are_not_looked_for_on_a_card_of_amd_s(tmp_path):
    record = {**write.empty(CARD, "x"), "missing": []}
    amd, lines = dataclasses.replace(CARD, architecture="gfx942:sramecc+"), []
    job = work.Job("linear", linear.experiment, "bf16", ())
    kept = {"experiment": "linear", "dtype": "bf16", "points": [fake_child.point({"m": 1})]}
    run = Run({**record, "sweeps": [kept]}, tmp_path / "x.json", amd, fakes().ask, lines.append)
    counters.count(run, [job], read=None)
    assert "this is a card of AMD's" in lines[0]


def test_a_child_that_is_started_ahead_does_the_next_work():
    children = Children([sys.executable, str(FAKE), "{}"], spares=2)
    list(children.ask({"task": "describe"}))
    first, second = children._spares
    assert first.alive and second.alive
    list(children.ask({"task": "describe"}))
    assert not first.alive and children._spares[0] is second
    ahead = list(children._spares)
    children.close()
    assert len(ahead) == 2 and not any(child.alive for child in ahead) and not children._spares


def test_a_child_that_has_the_machine_for_itself_was_started_ahead_and_ends_the_others():
    children = Children([sys.executable, str(FAKE), "{}"], spares=2)
    list(children.ask({"task": "describe"}))
    first, second = children._spares
    told = children.ask({"task": "describe"}, ahead=False)
    assert first.alive and not second.alive and not children._spares, "before it is asked"
    assert [event["is"] for event in told] == ["device"] and not first.alive
    list(children.ask({"task": "describe"}, ahead=False))  # by a fresh one
    assert not children._spares


def test_while_launches_are_timed_no_other_child_imports_beside_them(tmp_path, monkeypatch):
    """What Python takes for a launch is measured: a child that imports torch would take a core of it."""
    beside, answers = {}, Child.events

    def events(child, request, *rest):
        beside[request["task"]] = sum(one.alive for one in started if one is not child)
        return answers(child, request, *rest)

    started, start = [], Children._start
    monkeypatch.setattr(Children, "_start", lambda self: started.append(start(self)) or started[-1])
    monkeypatch.setattr(Child, "events", events)
    measured(tmp_path, seconds=60, launches=True)
    assert beside["launches"] == 0 and beside["points"] > 0


def test_a_child_is_gone_when_its_work_is_over_however_it_ended():
    for fault, error in (("hangs", TooLate), ("killed", Died)):
        children = fakes({"describe": fault})
        with pytest.raises(error):
            list(children.ask({"task": "describe"}, until=time.monotonic() + 2, ahead=False))
    children.close()


def test_the_real_worker_ends_with_its_parent():
    """Its standard input ends when the parent dies: it must not go on with the card for itself."""
    code = "import os, sys, threading, time\nfrom kernels.measure import worker\n" \
           "threading.Thread(target=worker._end_with_parent).start()\ntime.sleep(60)\n"  # fmt: skip
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, cwd=ROOT)
    child.stdin.close()
    assert child.wait(timeout=50) == 1


def test_one_kernel_from_end_to_end_in_real_children(tmp_path):
    """On the pretended card, in Triton's interpreter: the protocol of the parent is that of the worker."""
    record, lines = {**write.empty(CARD, "x"), "missing": []}, []
    children = Children(interpret=True)
    run = Run(record, tmp_path / "x.json", CARD, children.ask, lines.append, quick=True,
              bench="tests.kernels.fakes:bench")  # fmt: skip
    run.measure({"toy": toy}, dtype="fp16", launches=False)  # the interpreter multiplies bf16 wrongly
    children.close()
    kept = recorded.load(tmp_path / "x.json")
    assert run.good and kept["status"] == "complete" and kept["missing"] == [], (lines, kept["missing"])
    assert [p["sizes"]["m"] for p in kept["sweeps"][0]["points"]] == [1, 16, 256]
    assert kept["cold_cache"] == {"kept": "pretended"}
