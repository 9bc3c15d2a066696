"""What is said of a record that somebody sends in: each fault a sentence, with what mends it."""

import json
import os
import re

import pytest

from book import catalog
from kernels.evidence import record_tables, recorded
from kernels.evidence.recorded import __main__ as command
from kernels.evidence.recorded import plausible, schema
from tests.kernels import with_torch
from tests.kernels.records import made, rehearsal


def complaints(record):
    recorded.validate(record, "x.json")
    return plausible.judge(record).complaints


def test_a_good_record_has_nothing_against_it():
    assert plausible.judge(made()) == plausible.Verdict((), ())


def changed(path, value):
    """A made record with one thing in it changed; value: a function of the old one, or the new."""
    record = made()
    *way, last = path
    holder = record
    for step in way:
        holder = holder[step]
    holder[last] = value(holder.get(last)) if callable(value) else value
    return record


POINT = ("sweeps", 0, "points", 0)

FAULTS = {
    "a rehearsal": (("kind",), "rehearsed", "It is a rehearsal: nothing in it was measured"),
    "a device of no kind": (("device", "kind"), None, "device.kind is missing: it must be gpu"),
    "a CPU": (("device", "kind"), "cpu", "of a CPU, where torch's kernels were timed"),
    "a rehearsal's torch device": (("device", "torch_device"), "cpu", "torch_device = 'cpu'.*a card that is"),
    "a torch device of nobody": (("device", "torch_device"), None, "torch_device = None"),
    "a torch without CUDA": (("software", "torch"), "2.13.0+cpu", "this torch knows no GPU"),
    "an imaginary card": (("device", "name"), "imaginary H100 SXM", "an imaginary card; measure on a card"),
    "a command that rehearses": (
        ("command",),
        "python -m kernels.measure --rehearse",
        "asked for a rehearsal",
    ),
    "a rehearsal's note": (
        ("notes",),
        ["A rehearsal: compiled code was executed on a CPU."],
        "they say that this is a rehearsal",
    ),
    "AMD without clocks": (
        ("software",),
        {"python": "3", "torch": "2", "triton": "3", "hip": "6.4"},
        "No point has clocks: put amd-smi",
    ),
    "no version of Triton": (("software", "triton"), None, "software.triton is missing.*measure again"),
    "a torch without a GPU": (("software", "cuda"), None, "torch had no GPU"),
    "no clocks": (("clocks",), {}, "clocks.before is empty: put nvidia-smi on the PATH"),
    "changed files": (("commit",), "0123456789ab+", "files had been changed; commit or stash"),
    "a commit of nobody": (("commit",), "my own fork, trust me", "no commit's name; measure in a clone"),
    "a day before the book": (("date",), "1970-01-01T00:00:00+00:00", "older than this book"),
    "twin points": (("sweeps", 0, "points"), lambda old: old * 2, "linear: .*m = 1, .* is there twice"),
    "twin sweeps": (("sweeps",), lambda old: [*old, old[0]], "sweeps: one of linear is there twice"),
    "an unknown commit": (("commit",), "unknown", "measure in a clone of the repository"),
    "a day that is none": (("date",), "yesterday", "date = 'yesterday': must be a time of ISO 8601"),
    "a day that names a folder": (("date",), "20260203/040506+0000", "must be a time of ISO 8601"),
    "a day without its offset": (("date",), "2026-02-03T04:05:06", "with its offset"),
    "a day to come": (("date",), "2999-01-01T00:00:00+00:00", "it lies ahead; set the clock"),
    "a slice": (("device", "name"), "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "a slice of a card"),
    "another card": (("device", "accelerator"), "b200", "speaks of h100_sxm; correct it"),
    "a card that is none": (("device", "accelerator"), "h900", "the catalog has no such row"),
    "half the memory": (("device", "memory_bytes"), lambda n: n // 2, "memory_bytes.*a part of one"),
    "half the processors": (("device", "sm_count"), lambda n: n // 2, "sm_count.*a part of one"),
    "a wrong kernel": (
        ("correct", "linear", "verdict"),
        "linear: relative error 1.00e+00.",
        "correct.linear: .* report",
    ),
    "a wrong result at one size": (
        ("missing",),
        [{"experiment": "linear", "why": "wrong", "reason": "relative error 1."}],
        "missing: linear gave a wrong result at a size: relative error 1. .* report",
    ),
    "a kernel that nobody checked": (("correct",), {}, "correct.linear is missing.*never held against"),
    "a bandwidth above the datasheet": (
        ("ceilings", "bf16", "bandwidth"),
        lambda rate: 1.3 * rate,
        "ceilings.bf16: Impossible result: the bandwidth is 1\\d\\d % of the card's dense datasheet",
    ),
    "a peak above the datasheet": (
        ("ceilings", "bf16", "peak"),
        lambda rate: 2 * rate,
        "ceilings.bf16: Impossible result: the arithmetic rate is 170 %",
    ),
    "a share that is none": ((*POINT, "of_roof"), 42.0, "of_roof = 42: by the formula .* was edited"),
    "a share of bandwidth": ((*POINT, "of_bandwidth"), 0.99999, "of_bandwidth = 0.99999: by the formula"),
    "a share of the peak": ((*POINT, "of_peak"), 3.0, "of_peak = 3: by the formula"),
    "a share of the datasheet": ((*POINT, "of_datasheet"), 9.9, "of_datasheet = 9.9: by the formula"),
    "a low below the floor": ((*POINT, "low"), 1e-12, "low = 1e-12: Impossible result"),
    "a counter that saw too much": ((*POINT, "dram_bytes"), 1e30, "the counter saw more than this run"),
    "a vendor of days": (
        (*POINT, "baseline"),
        {"name": "torch.matmul", "seconds": 3000.0},
        "over 100 times ours, isn't its kernel's",
    ),
    "another vendor faster than light": (
        (*POINT, "baseline", "others"),
        {"torch mm": 1e-9},
        "baseline torch mm: Impossible result: the speed",
    ),
    "a vendor's share": ((*POINT, "baseline", "share"), 5.0, "baseline.share = 5: its seconds over ours"),
    "a bandwidth that isn't the best": (
        ("ceilings", "bf16", "bandwidths"),
        {"torch copy": 1.0},
        "ceilings.bf16.bandwidth = .*: it must be the best of bandwidths",
    ),
    "a peak that isn't the best": (
        ("ceilings", "bf16", "peaks"),
        {"torch": 1.0},
        "ceilings.bf16.peak = .*: it must be the best of peaks",
    ),
    "a datasheet that is none": (
        ("ceilings", "bf16", "peak_by"),
        "the datasheet, not measured",
        "bf16.peak = .*: it is not the datasheet's",
    ),
    "ceilings of another dtype": (("ceilings", "bf16", "dtype"), "fp4", "it is kept as bf16"),
    "ceilings of no dtype": (("ceilings", "int3"), made()["ceilings"]["bf16"], "int3: the catalog has no"),
    "a name that says no card": (("device", "name"), "NVIDIA GeForce GTX 1080 Ti", "doesn't say that; take"),
    "no memory": (("device", "memory_bytes"), None, "device.memory_bytes is missing"),
    "no processors": (("device", "sm_count"), None, "device.sm_count is missing"),
    "no ceiling": (("ceilings",), {}, "linear: ceilings.bf16 is missing.*measure again"),
    "a kernel of nobody": (("sweeps", 0, "experiment"), "torch linear", "'torch linear' is no kernel"),
    "a dtype that it hasn't": (("sweeps", 0, "dtype"), "int3", "linear: dtype = 'int3': choose bf16"),
    "nothing timed": (("sweeps",), [], "Nothing was timed"),
    "a size of nobody": ((*POINT, "sizes"), {"m": 1}, "sizes: must be m, k, n"),
    "a rate that was edited": ((*POINT, "bytes_per_s"), lambda r: 0.9 * r, "bytes_per_s = .* was edited"),
    "a median that is none": ((*POINT, "high"), lambda s: s / 2, "not between low and high"),
    "a result that is wrong": ((*POINT, "relative_error"), 0.5, "relative_error = 0.5: must be"),
    "a result that nobody looked at": ((*POINT, "relative_error"), None, "relative_error = None"),
    "an alarm": ((*POINT, "alarms"), ["Impossible result: x."], "Impossible result: x. Mend the cause"),
    "a counter that saw a part": ((*POINT, "dram_bytes"), 1000, "the counter saw less than a whole run"),
    "a vendor faster than light": (
        (*POINT, "baseline"),
        {"name": "torch.matmul", "seconds": 1e-9},
        "baseline torch.matmul: Impossible result: the speed",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_and_said_with_what_mends_it(fault):
    path, value, words = FAULTS[fault]
    found = complaints(changed(path, value))
    assert re.search(words, "\n".join(found)), found


def renamed(record):
    """A rehearsal that calls itself measured, by the three fields that decide it."""
    record["kind"], record["device"]["imaginary"], record["software"]["hip"] = "measured", False, "6.4"
    return record


def test_a_rehearsal_that_was_renamed_by_three_fields_is_found_by_what_it_leaves():
    record = renamed(rehearsal())
    record["device"] |= {"name": "imaginary H100 SXM", "torch_device": "cpu"}
    assert sum("measure on a card that is there" in words for words in complaints(record)) == 2
    old = rehearsal() | {"schema": 1, "kind": "gpu", "command": "python -m kernels.measure --rehearse"}
    old["device"]["imaginary"] = None
    assert any("asked for a rehearsal" in words for words in complaints(schema.upgraded(old)))


def slower(point, factor):
    for name in ("seconds", "low", "high"):
        point[name] *= factor
    for name in ("bytes_per_s", "flops_per_s"):
        point[name] /= factor


def test_a_time_below_the_floor_is_found_though_the_record_says_nothing_of_it():
    record = made()
    slower(record["sweeps"][0]["points"][0], 0.5)
    floor, roof = complaints(record)
    assert floor.startswith(
        "linear, bf16, m = 1, k = 8,192, n = 8,192: Impossible result: the bandwidth is 160"
    )
    assert "the ceiling measured in this run" in roof


def test_a_card_of_no_row_is_held_to_the_best_of_all():
    record = made()
    record["device"] |= {"name": "NVIDIA Wonder 9000", "accelerator": None}
    assert complaints(record) == ()
    for sweep in record["sweeps"]:
        for point in sweep["points"]:
            slower(point, 1e-6)
            point["baseline"]["seconds"] *= 1e-6
    for kept in record["ceilings"].values():
        for name in ("bandwidth", "peak"):
            kept[name] *= 1e6
            kept[f"{name}s"] = {kept[f"{name}_by"]: kept[name]}
    found = complaints(record)
    assert sum("best rates of the whole catalog" in words for words in found) >= 7
    assert record_tables.times([record]) == ()


def test_more_work_that_took_much_less_time_is_found_and_a_little_less_is_not():
    record = made()
    smaller, larger = record["sweeps"][1]["points"]
    slower(smaller, 1.1 * larger["seconds"] / smaller["seconds"])
    assert complaints(record) == ()
    slower(smaller, 2)
    (found,) = complaints(record)
    assert "context = 4,096" in found and "context = 512" in found and "at most half the work" in found


def test_what_is_to_be_known_keeps_nothing_off_the_shelf():
    record = made(status="partial", by=None)
    record["device"] |= {"name": "Some Card", "accelerator": None}
    verdict = plausible.judge(record)
    assert verdict.complaints == ()
    assert [words.split(":")[0].split(";")[0] for words in verdict.remarks] == [
        "The run was cut short",
        "The catalog has no row of Some Card",
        "Nobody is named as having measured it",
    ]


def test_what_is_missing_and_what_slowed_the_card_is_told():
    record = made(missing=[{"experiment": "mlp", "why": "time", "reason": "the minutes were spent"}])
    record["sweeps"][0]["points"][0]["clocks"] = {"reasons": ["power cap"]}
    record["sweeps"][0]["points"][1]["clocks"] = {"reasons": []}
    assert plausible.judge(record) == plausible.Verdict(
        (),
        (
            "Not all was measured: it says of 1 what is missing, and why.",
            "The card was slowed down during 1 of 5 points: power cap.",
        ),
    )


def test_a_card_that_is_short_of_power_is_a_remark():
    record = made()
    record["ceilings"]["bf16"]["peak"] = 0.4 * catalog.accelerator("h100_sxm").peak("bf16")
    record["ceilings"]["bf16"]["peaks"] = {"torch.matmul 8192": record["ceilings"]["bf16"]["peak"]}
    assert any("bf16.peak is 40 % of the datasheet" in words for words in plausible.judge(record).remarks)


# ------------------------------------------------------------------------------------ the command


@pytest.fixture
def sent(tmp_path):
    path = tmp_path / "my-card.json"
    record = made(by=None)
    record["device"] |= {"uuid": "GPU-1234", "pci": "0000:1b:00.0"}
    recorded.save(record, path)
    return path


def test_check_says_what_it_found_and_exits_with_it(sent, capsys):
    assert command.main(["check", str(sent)]) == 0
    assert "5 points, and nothing against them" in capsys.readouterr().out
    recorded.save(made(commit="unknown"), sent)
    assert command.main(["check", str(sent)]) == 1
    assert "complaint: commit = 'unknown'" in capsys.readouterr().out
    sent.write_text("{", encoding="utf-8")
    assert command.main(["check", str(sent)]) == 2
    assert "not JSON" in capsys.readouterr().err


def test_a_record_that_was_added_appears_with_card_day_and_name(sent, tmp_path, capsys):
    shelf = tmp_path / "records"
    for hour in ("03", "04"):  # a second run of a day stands beside the first
        record = recorded.load(sent)
        recorded.save({**record, "date": f"2026-02-03T{hour}:05:06+00:00"}, sent)
        assert command.main(["add", str(sent), "--by", "Ada Lovelace", "--to", str(shelf)]) == 0
    assert sorted(p.name for p in shelf.iterdir()) == [
        "h100_sxm-2026-02-03-2.json",
        "h100_sxm-2026-02-03.json",
    ]
    assert {one["by"] for one in recorded.load_all(shelf)} == {"Ada Lovelace"}
    assert not {"uuid", "pci"} & {key for one in recorded.load_all(shelf) for key in one["device"]}
    (series, _) = recorded.points("linear", records=recorded.load_all(shelf))
    assert series["label"] == "NVIDIA H100 80GB HBM3, bf16, 2026-02-03"


def test_nothing_on_the_shelf_tells_one_card_from_another(tmp_path):
    record = made(notes=["GPU-1234abcd-12 at 00000000:1B:00.0 fell off the bus"])
    record["device"] |= {"uuid": "GPU-1234", "pci": "0000:1b:00.0"}
    record["clocks"] |= {"after": {"clocks.sm": "1980", "pci.bus_id": "00000000:1B:00.0", "uuid": "GPU-1234"}}
    text = command.shelved(record, tmp_path).read_text(encoding="utf-8").lower()
    assert "1b:00" not in text and "1234" not in text.replace("0123456789ab", "") and "bus_id" not in text
    assert "fell off the bus" in text and "1980" in text


def test_the_same_run_is_not_shelved_twice_and_neither_is_what_no_page_can_show(
    sent, tmp_path, capsys, monkeypatch
):
    add = ["add", str(sent), "--to", str(tmp_path / "records")]
    with monkeypatch.context() as broken:
        broken.setattr(record_tables, "times", lambda *_, **__: 1 / 0)
        assert command.main(add) == 1
    said = capsys.readouterr()
    assert "no page can show it" in said.err and "commit it" not in said.out
    assert command.main(add) == 0 and "commit it" in capsys.readouterr().out
    assert command.main(add) == 1 and "on the shelf already" in capsys.readouterr().err
    assert len(list((tmp_path / "records").iterdir())) == 1


def test_what_cannot_be_judged_is_a_complaint_and_no_traceback(monkeypatch):
    monkeypatch.setattr(plausible.provenance, "of_run", lambda *_: 1 / 0)
    (found,) = plausible.judge(made()).complaints
    assert found.startswith("It can't be judged (ZeroDivisionError")


def test_a_file_is_named_by_the_day_however_it_was_written(tmp_path):
    record = made(date="20260203T040506+0000")
    record["device"] |= {"name": "Z/" * 60, "accelerator": None}
    path = command.shelved(record, tmp_path)
    assert path.parent == tmp_path and path.name == "z_" * 30 + "-2026-02-03.json"


def test_a_name_that_is_no_name_is_refused(sent, tmp_path, capsys):
    assert command.main(["add", str(sent), "--by", "A" * 500, "--to", str(tmp_path / "records")]) == 2
    assert "printable letters" in capsys.readouterr().err and not (tmp_path / "records").exists()


def test_what_has_a_complaint_is_not_added(sent, tmp_path):
    recorded.save(made(commit="unknown"), sent)
    assert command.main(["add", str(sent), "--to", str(tmp_path / "records")]) == 1
    assert not (tmp_path / "records").exists()


def test_the_command_is_there_and_needs_no_drawing(sent):
    absent = ("matplotlib", "anywidget", "ipywidgets", "IPython")
    code = (
        f"import runpy, sys\nsys.modules.update(dict.fromkeys({absent!r}))\n"
        f"sys.argv = ['recorded', 'check', {str(sent)!r}]\n"
        "runpy.run_module('kernels.evidence.recorded', run_name='__main__')\n"
    )
    done = with_torch.python(code, dict(os.environ))
    assert done.returncode == 0 and "nothing against them" in done.stdout, done.stderr
    assert json.loads(sent.read_text(encoding="utf-8"))["kind"] == "measured"


def test_a_rounding_in_the_fifths_is_no_complaint():
    record = made()
    point = record["sweeps"][0]["points"][0]
    point["high"] = point["seconds"] * (1 - 1e-15)
    assert plausible.judge(record).complaints == ()
