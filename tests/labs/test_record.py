"""What a student measured becomes a record of the book, and a chapter's figure shows it."""

import dataclasses
import json

import pytest
import torch

from kernels import fma_chain, linear
from kernels.contract.errors import PhysicsDisagrees
from kernels.evidence import confirm, recorded
from kernels.evidence.recorded import write
from kernels.evidence.timed.ceilings import Ceilings
from kernels.evidence.timed.clocks import Timing
from kernels.evidence.timed.machine import cpu_here
from labs.kit import record
from labs.lab1_your_roofline import bench
from tests.kernels.fakes import CARD, Says

POINT = {"m": 16, "k": 8192, "n": 8192, "seconds": 5e-5, "intensity": 15.9}
POINT |= {"bytes_per_s": 2.7e12, "flops_per_s": 4.3e13}


def tops(dtype, bandwidth, peak):
    return Ceilings(dtype, bandwidth, "copy", peak, "product", {"copy": bandwidth}, {"product": peak})


def exported(path, kind):
    """A made record of one sweep, as a lab would write it."""
    device, dtype, name = (
        (CARD, "bf16", "own linear") if kind == "gpu" else (cpu_here(), "fp32", "torch linear")
    )
    walls = tops(dtype, 3e12, 7e14) if kind == "gpu" else tops(dtype, 2e10, 1e11)
    point = (
        POINT if kind == "gpu" else POINT | {"seconds": 2e-2, "flops_per_s": 8.9e10, "bytes_per_s": 1.3e10}
    )
    sweep = {
        "experiment": name,
        "axis": "m",
        "dtype": dtype,
        "fixed": {"k": 8192, "n": 8192},
        "points": [point],
    }
    return record.export(path, device, {dtype: walls}, [sweep], command="lab2-linear")


@pytest.mark.parametrize(("kind", "whose"), [("gpu", "own kernel"), ("cpu", "CPU, torch")])
def test_an_exported_point_is_in_the_chapters_series_and_figure(tmp_path, kind, whose):
    path = exported(tmp_path / "my-roofline.json", kind)
    evidence = confirm(linear.experiment, rungs=["recorded"], m=[1], k=256, n=256, records=path)
    (series,) = evidence.points()
    assert series["rung"] == "recorded" and series["label"].startswith(whose)
    (point,) = series["points"]
    assert (point["m"], point["k"]) == (16, 8192) and series["label"] in evidence.status["recorded"]
    lines = evidence.figure().axes[0].get_lines()
    assert [(point["intensity"], point["flops_per_s"])] in [
        list(zip(line.get_xdata(), line.get_ydata(), strict=True)) for line in lines
    ]
    roof = recorded.load(path)["ceilings"]["bf16" if kind == "gpu" else "fp32"]
    assert any(roof["peak"] in list(line.get_ydata()) for line in lines)  # the roof that was measured


def test_the_card_of_the_record_is_the_one_that_is_drawn(tmp_path):
    path = exported(tmp_path / "mine.json", "gpu")
    made = recorded.load(path)
    made["device"] |= {"name": "NVIDIA L4", "accelerator": None}
    recorded.save(made, path)
    assert confirm(linear.experiment, rungs=["recorded"], records=path).accelerator == "l4"
    chosen = confirm(linear.experiment, rungs=["recorded"], records=path, accelerator="b200")
    assert chosen.accelerator == "b200"


def test_the_books_own_series_hold_no_stand_ins(tmp_path):
    made = recorded.load(exported(tmp_path / "mine.json", "gpu"))
    assert recorded.points("linear", records=[made]) == ()
    assert recorded.points("linear", records=[made], others=True)


def test_a_record_says_the_lab_and_the_machine_and_nobodys_name(tmp_path, monkeypatch):
    monkeypatch.setenv("USER", "somebody-special")
    monkeypatch.setenv("HOSTNAME", "somebodys-laptop")
    path = exported(tmp_path / "mine.json", "cpu")
    made = json.loads(path.read_text(encoding="utf-8"))
    assert made["command"] == "lab2-linear" and made["status"] == "complete"
    assert (made["kind"], made["device"]["kind"]) == ("measured", "cpu")
    assert "somebod" not in path.read_text(encoding="utf-8") and str(tmp_path) not in path.read_text(
        encoding="utf-8"
    )


def test_an_impossible_record_is_refused_and_the_old_file_stays(tmp_path):
    path = exported(tmp_path / "mine.json", "gpu")
    before = path.read_text(encoding="utf-8")
    sweep = {"experiment": "own linear", "axis": "m", "dtype": "bf16", "points": [POINT | {"seconds": -1.0}]}
    with pytest.raises(recorded.RecordError, match=r"seconds = -1.0: must be a positive number"):
        record.export(path, CARD, {}, [sweep], command="lab2-linear")
    assert path.read_text(encoding="utf-8") == before and list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_no_record_is_named(tmp_path):
    with pytest.raises(recorded.RecordError, match=r"nothing\.json: cannot be read"):
        confirm(linear.experiment, rungs=["recorded"], records=tmp_path / "nothing.json")


def test_the_version_is_the_checkouts_or_the_notebooks(tmp_path):
    unpacked = tmp_path / "inference-roofline" / "notebooks" / "0.1.0+abc"
    unpacked.mkdir(parents=True)
    assert write.version(unpacked) == "release 0.1.0+abc"
    (tmp_path / "somewhere").mkdir()
    assert write.version(tmp_path / "somewhere") == "unknown"


# ------------------------------------------------------------------------------------- the bench


class Quick:
    """A clock that runs the work once, and always says a millisecond."""

    def time(self, work, budget=0.3):
        work()
        return Timing(1e-3, 1e-3, 1e-3, 1)


def test_on_a_cpu_torch_is_timed_and_the_record_opens(tmp_path, monkeypatch):
    monkeypatch.setattr(bench.cpu, "STREAM", 2**16)
    monkeypatch.setattr(bench.cpu, "WIDTHS", (4, 64))
    machine = bench.Bench(cpu_here(), Quick(), "fp32", 2**22)
    copied, added, big = machine.copy(), machine.triad(), machine.matmul()
    assert (copied.n, copied.itemsize, copied.seconds) == (2**16, 4, 1e-3) and added.n == 2**16
    assert big.m == big.k == big.n == 1024
    machine.dial(None), machine.linear(256, (1, 16))
    walls = machine.ceilings()
    assert walls.peak == max(walls.peaks.values()) >= 2 * big.m**3 / 1e-3
    assert walls.bandwidths["triad"] == 1.5 * walls.bandwidths["copy"] == 3 * 2**16 * 4 / 1e-3
    assert len(machine.figure("dial", "linear").axes) == 1
    path = machine.export(tmp_path / "my-roofline.json")
    for experiment, axis in ((linear.experiment, [1, 16]), (fma_chain.experiment, [4, 64])):
        (series,) = confirm(experiment, rungs=["recorded"], records=path).points()
        assert [p[experiment.axis] for p in series["points"]] == axis


def test_on_a_gpu_kernels_are_timed_in_two_dtypes(tmp_path):
    machine = bench.look(dataclasses.replace(CARD, free_bytes=4 * 10**7), Says(1e-2))
    machine.copy(), machine.triad(), machine.matmul()
    machine.dial(fma_chain.fma_chain)
    points = machine.linear(128, (1, 16))
    assert [p["m"] for p in points] == [1, 16] and all(p["relative_error"] < 1e-2 for p in points)
    made = recorded.load(machine.export(tmp_path / "mine.json"))
    assert made["device"]["kind"] == "gpu" and made["device"]["accelerator"] == "h100_sxm"
    assert {s["experiment"]: s["dtype"] for s in made["sweeps"]} == {
        "own fma_chain": "fp32",
        "linear": machine.dtype,
    }
    assert set(made["ceilings"]) == {"fp32", machine.dtype}
    shown = confirm(fma_chain.experiment, rungs=["recorded"], records=tmp_path / "mine.json")
    assert shown.points()[0]["label"].startswith("own kernel") and len(shown.measured) == 1


def test_a_dial_that_is_wrong_is_not_timed():
    machine = bench.look(CARD, Says(1e-2))
    with pytest.raises(PhysicsDisagrees, match="not right at n = 1,001"):
        machine.dial(lambda x, k: torch.clone(x))


def test_the_dials_intensity_is_counted_from_its_bytes_and_operations():
    machine = bench.Bench(cpu_here(), Says(1e-3), "fp32", 2**22)
    points = machine.count(fma_chain.fma_chain, (1, 16))
    assert [p["intensity"] for p in points] == [0.25, 4] and bench.SCALE == fma_chain.SCALE


def test_nothing_is_drawn_before_something_is_measured():
    with pytest.raises(ValueError, match=r"run copy\(\)"):
        bench.Bench(cpu_here(), Says(1e-3), "fp32", 2**22).figure()
