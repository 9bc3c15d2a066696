"""`python -m kernels.measure`: polite without a GPU, atomic and complete with a (pretended) one."""

import dataclasses
import json
import os
import subprocess
import sys

import pytest
import torch

from kernels import decode_attention, measure
from kernels.contract.errors import Unsupported
from kernels.evidence import cpu, launch_overhead, recorded, timed
from kernels.evidence.recorded import write
from kernels.evidence.recorded.write import ROOT
from kernels.evidence.timed.ceilings import DATASHEET
from tests.kernels.fakes import CARD, Says
from tests.kernels.toy import experiment as toy


def no_counters(*_, **__):
    raise Unsupported("DRAM bytes were not counted: `ncu` is not installed here.")


def gpu(tmp_path, experiments=None, clock=None, counters=no_counters, launches=None, **options):
    record, lines = measure.empty(CARD, "python -m kernels.measure --out x.json"), []
    good = measure.measure_gpu(
        record,
        experiments or {"toy": toy},
        CARD,
        clock or Says(1e-3),
        tmp_path / "x.json",
        lines.append,
        counters=counters,
        launches=launches,
        dtype="fp16",  # the interpreter multiplies bf16 wrongly
        **options,
    )
    return good, recorded.load(tmp_path / "x.json"), lines


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_it_refuses_politely(tmp_path, capsys):
    assert measure.main(["--out", str(tmp_path / "x.json")]) == 2
    assert "Nothing to measure: no GPU here. Run this on a machine with a GPU" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_kernel_lists_the_known_ones(tmp_path, capsys):
    assert measure.main(["--out", str(tmp_path / "x.json"), "--kernels", "lineer"]) == 2
    assert "'lineer': there is no such kernel; choose from" in capsys.readouterr().err


def test_a_whole_run_makes_a_valid_and_complete_record(tmp_path):
    good, record, lines = gpu(tmp_path)
    assert good and record["status"] == "complete"
    assert record["device"]["name"] == "Pretended H100"
    assert record["correct"]["toy"]["verdict"] == "correct"
    assert [p["sizes"]["m"] for p in record["sweeps"][0]["points"]] == [1, 16, 256]
    assert record["ceilings"]["fp16"]["peak_by"] in ("torch.matmul 2048", "kernels.matmul")
    assert record["notes"] == ["DRAM bytes were not counted: `ncu` is not installed here."]
    assert lines[0].startswith("Pretended H100: checking 1 kernels")
    assert "[1/1] toy: 3 points" in lines[-1]
    assert "of roof" in measure.table(record)


def test_hardware_counters_are_kept_where_they_can_be_read(tmp_path):
    _, record, _ = gpu(tmp_path, counters=lambda *_, **__: (1000.0, 24.0))
    assert [p["dram_bytes"] for p in record["sweeps"][0]["points"]] == [1024.0, None, 1024.0]


def test_the_cost_of_a_launch_is_kept_with_the_bandwidth_just_measured(tmp_path):
    line = launch_overhead.Line("noop", "graph", (1, 2), (3e-6, 5e-6))
    law = launch_overhead.Law("graph", 32, (512, 1024), (1e-5, 4e-5), (3e-5, 6e-5))
    asked = {}

    def launches(device, **options):
        asked.update(options)
        return launch_overhead.Overhead(device.name, *options["bandwidth"], (line,), (law,))

    _, record, lines = gpu(tmp_path, launches=launches)
    assert asked["bandwidth"][0] == record["ceilings"]["fp16"]["bandwidth"]
    assert "launch: noop, graph: 2.00 µs each" in lines
    (kept,) = launch_overhead.recorded([record])
    assert (kept.lines, kept.laws, kept.rung) == ((line,), (law,), "recorded")


def test_a_launch_that_cannot_be_timed_is_a_note(tmp_path):
    def launches(device, **options):
        raise Unsupported("The cost of a launch is not measured yet: no clock.")

    good, record, _ = gpu(tmp_path, launches=launches)
    assert good and "overhead" not in record
    assert record["notes"][-1] == "The cost of a launch is not measured yet: no clock."


def test_a_wrong_kernel_is_named_and_not_timed(tmp_path):
    wrong = dataclasses.replace(toy, run=lambda x, w: torch.zeros(x.shape[0], w.shape[1]))
    good, record, _ = gpu(tmp_path, {"toy": wrong})
    assert not good and record["sweeps"] == []
    assert "relative error" in record["correct"]["toy"]["verdict"]


def test_an_impossible_result_is_kept_flagged_and_out_of_figures(tmp_path):
    good, record, _ = gpu(tmp_path, clock=Says(*[1e-3] * 5, 1e-12))
    assert not good
    assert all("Impossible result" in p["alarms"][0] for p in record["sweeps"][0]["points"])
    assert recorded.points("toy", records=[record]) == ()
    assert "impossible" in measure.table(record)


def test_a_run_that_is_cut_short_keeps_the_sweeps_it_had(tmp_path):
    class Dying(Says):
        def time(self, work, budget=0.3):
            if len(self.budgets) >= 8:
                raise KeyboardInterrupt
            return super().time(work, budget)

    with pytest.raises(KeyboardInterrupt):
        gpu(tmp_path, {"toy": toy, "again": dataclasses.replace(toy, name="again")}, Dying(1e-3))
    record = recorded.load(tmp_path / "x.json")
    assert record["status"] == "partial"
    assert [s["experiment"] for s in record["sweeps"]] == ["toy"]


def test_the_cpu_must_be_asked_for_and_is_labelled(tmp_path, monkeypatch, capsys):
    small = lambda **_: cpu.cpu_roofline(size=256, rows=(1, 8), widths=(4,), budget=0.01)  # noqa: E731
    monkeypatch.setattr(measure, "cpu_roofline", small)
    assert measure.main(["--device", "cpu", "--out", str(tmp_path / "cpu.json")]) == 0
    record = recorded.load(tmp_path / "cpu.json")
    assert record["kind"] == "cpu" and "torch's kernels" in record["notes"][0]
    assert {s["experiment"] for s in record["sweeps"]} == {"torch linear", "torch dial"}
    assert recorded.points("linear", records=[record]) == ()
    assert "wrote" in capsys.readouterr().out


def test_the_command_needs_no_package_of_the_book(tmp_path):
    absent = ("matplotlib", "anywidget", "ipywidgets", "IPython", "nbformat")
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({absent!r}))\n"  # None makes an import of it fail
        "from kernels import measure\n"
        f"sys.exit(measure.main(['--out', {str(tmp_path / 'x.json')!r}, '--kernels', 'nothing']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ,
        encoding="utf-8",
    )
    assert (done.returncode, "there is no such kernel" in done.stderr) == (2, True), done.stderr


def test_provenance_is_complete(tmp_path):
    record = measure.empty(CARD, "python -m kernels.measure --out x.json")
    assert json.loads(json.dumps(record))["software"].keys() >= {"python", "torch", "triton", "numpy", "cuda"}
    assert record["commit"] and record["date"].endswith("+00:00")


def test_two_dtypes_of_one_run_whose_ratio_is_impossible_are_noted(tmp_path):
    record, lines = measure.empty(CARD, "python -m kernels.measure --out x.json"), []
    bf16 = timed.Ceilings("bf16", 3e12, "torch copy", 7e14, "torch.matmul 8192", {}, {})
    fp8 = dataclasses.replace(bf16, dtype="fp8", peak=7e14 * 2.5)
    record["ceilings"] = {tops.dtype: write.ceilings_as_record(tops) for tops in (bf16, fp8)}
    out = tmp_path / "x.json"
    assert not measure.measure_gpu(record, {}, CARD, Says(1e-3), out, lines.append, launches=None)
    assert "Impossible result: FP8 over BF16 is 125 % of the ratio 2" in recorded.load(out)["notes"][0]
    from_datasheet = dataclasses.replace(fp8, peak_by=DATASHEET)
    record["ceilings"]["fp8"], record["notes"] = write.ceilings_as_record(from_datasheet), []
    assert measure.measure_gpu(record, {}, CARD, Says(1e-3), out, lines.append, launches=None)


def test_a_kernel_whose_ceiling_nothing_can_say_is_left_out_with_a_sentence(tmp_path, monkeypatch):
    def refuses(*_):
        raise Unsupported("dtype = 'fp16': nothing says how fast Some card is in it.")

    monkeypatch.setattr(timed, "ceilings", refuses)
    good, record, lines = gpu(tmp_path)
    assert good and record["status"] == "complete" and record["sweeps"] == []
    assert record["notes"] == ["Not timed: toy: dtype = 'fp16': nothing says how fast Some card is in it."]
    assert any("nothing says how fast" in line for line in lines)


def test_a_dtype_that_the_card_lacks_is_not_taken_though_it_was_asked_for():
    a100 = dataclasses.replace(CARD, accelerator="a100_80gb_sxm", target="sm_80")
    assert measure._dtype(decode_attention.experiment, CARD, "fp8") == "fp8"
    assert measure._dtype(decode_attention.experiment, a100, "fp8") == "bf16"
