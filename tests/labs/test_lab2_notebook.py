"""What lab 2's notebook shows besides checks: counted traffic, times here, and other people's times."""

import importlib.util
import math

import nbformat
import pytest
import torch

from book import catalog, cost
from kernels.evidence import recorded
from kernels.evidence.timed import clocks
from kernels.evidence.timed.ceilings import Ceilings
from kernels.evidence.timed.machine import Device
from labs import assignments
from labs import lab2_linear as lab2
from labs.kit import this_machine as banner
from labs.lab2_linear import key, questions
from labs.lab2_linear import timings as timings_module

HEAD = "import math\n\nimport torch\n\nfrom kernels.contract.devices import tl, triton\n\n\n"


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    """The master's launcher, in a file: Triton reads a kernel's source."""
    notebook = nbformat.read(assignments.find("lab2").master, as_version=4)
    cells = {c.metadata["nbgrader"]["grade_id"]: c.source for c in notebook.cells if "nbgrader" in c.metadata}
    path = tmp_path_factory.mktemp("lab2") / "lab2_solution.py"
    path.write_text(HEAD + cells["lab2-kernel"] + "\n\n\n" + cells["lab2-launcher"] + "\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location("lab2_solution", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.linear


def test_count_says_which_tensor_is_read_how_often(linear):
    table = lab2.count(linear, m=100, k=40, n=130)
    cells = {row[0]: row for row in table.cells}
    assert [cells[name][-1] for name in ("x", "w", "y")] == ["3.00", "2.00", "1.00"]
    assert cells["w"][2] == f"{2 * 40 * 130 * 2:,} B" and "6 programs" in table.caption


def test_reveal_tells_measured_from_not_measured():
    mine = questions.numbers(0)
    table = lab2.reveal(key.answers(0), mine)
    rows = {row[0]: row for row in table.cells}
    there = catalog.series("linear", accelerator="h100_sxm", k=8192).points
    seconds = next(p["seconds"] for p in there if p["m"] == mine["m"])
    assert f"{seconds / key.answers(0)['h100_sxm']:.2f} times yours" in rows["H100 SXM"][3]
    assert rows["B200"][3] == recorded.NOT_MEASURED
    assert "nothing" in lab2.reveal({}, mine).cells[0]


@pytest.mark.parametrize("variant", [0, 5])
def test_the_figure_says_what_it_shows(variant):
    figure = lab2.roofs(questions.numbers(variant))
    assert "Five rooflines" in figure.get_label()


@pytest.fixture
def on_a_gpu(monkeypatch):
    """A GPU that is really this CPU: everything but the clock and the card's name is as on a card."""
    device = Device("gpu", "Made-up Card", "cpu", memory_bytes=2**33, free_bytes=2**33)
    tops = Ceilings("fp16", 1e15, "made up", 1e18, "made up", {"made up": 1e15}, {"made up": 1e18})
    monkeypatch.setattr(timings_module.machine, "gpu_here", lambda: device)
    monkeypatch.setattr(timings_module, "gpu_clock", lambda *_: (clocks.WallClock(), None))
    monkeypatch.setattr(timings_module, "ceilings", lambda *_: tops)
    monkeypatch.setattr(timings_module, "ROWS", (1, 8))
    monkeypatch.setattr(timings_module, "WIDTH", 64)
    return banner.ThisMachine("gpu", "cpu", "Made-up Card", "fp16", 2**30, ("",))


def test_on_a_gpu_both_are_timed_and_kept_as_a_record(on_a_gpu, tmp_path):
    called = []

    def launcher(x, w):
        called.append(tuple(x.shape))
        return (x.float() @ w.float()).to(x.dtype)

    timings = lab2.timed(launcher, on_a_gpu)
    assert {p["m"] for p in timings.yours} == {1, 8} and {(1, 64), (8, 64)} == set(called)
    assert "not timed here" not in repr(timings) and "share of the roof, yours" in repr(timings)
    path = tmp_path / "mine.json"
    assert str(path) in timings.export(path)
    kept = recorded.load(path)
    assert [s["experiment"] for s in kept["sweeps"]] == ["torch linear", "own linear"]
    assert kept["command"] == "lab2-linear" and kept["sweeps"][0]["fixed"] == {"k": 64, "n": 64}
    point = kept["sweeps"][1]["points"][0]
    assert math.isclose(point["bytes_per_s"] * point["seconds"], cost.linear(1, 64, 64).bytes)
    assert len(recorded.points("linear", records=[kept], others=True)) == 2


def test_a_wrong_kernel_is_not_timed(on_a_gpu):
    with pytest.raises(Exception, match="relative error"):
        lab2.timed(lambda x, w: torch.zeros(x.shape[0], w.shape[1]), on_a_gpu)


def test_without_a_gpu_torch_is_timed_and_nothing_kept(monkeypatch, tmp_path):
    points = [
        {"m": m, "k": 64, "n": 64, "seconds": 1e-3 * m, "intensity": m / 2, "flops_per_s": 1e9}
        for m in (1, 2)
    ]
    tops = Ceilings("fp32", 1e10, "read", 1e11, "linear", {}, {})
    timings = timings_module.Timings(
        Device("cpu", "A CPU", "cpu"), tops, (), points, {"torch linear": points}
    )
    assert "not timed here" in repr(timings) and "share of the roof, torch" in timings._repr_html_()
    assert timings.figure().get_label().startswith("The measured roofline of A CPU")
    assert timings.export(tmp_path / "mine.json").startswith("No GPU") and not list(tmp_path.iterdir())
