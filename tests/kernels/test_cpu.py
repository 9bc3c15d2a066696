"""The roofline of this CPU: the two shapes that every CPU shows, and what is said about them."""

import dataclasses

import pytest

from kernels.contract.errors import PhysicsDisagrees
from kernels.evidence.timed import cpu

pytestmark = pytest.mark.quiet


@pytest.fixture(scope="module")
def line():
    return cpu.cpu_roofline(size=4096, rows=(1, 2, 256), widths=(4, 64), budget=0.15)


def test_more_rows_read_the_same_weights(line):
    try:
        line.check()
    except PhysicsDisagrees:  # another program took the cores just then: once more, and no oftener
        cpu.cpu_roofline(size=4096, rows=(1, 2, 256), widths=(4, 64), budget=0.3).check()


def test_bandwidth_and_rates_are_those_of_a_machine(line):
    assert 1e9 < line.copy < 1e12 and 1e9 < line.triad < 1e12
    assert line.ceilings.peak == max(line.rate(256), line.dial[-1]["flops_per_s"], line.rate(2))


def test_no_point_lies_above_the_roof_that_it_is_drawn_under(line):
    roof = line.ceilings.roof("here")
    for p in (*line.dial, *line.linear):
        assert p["flops_per_s"] <= roof.attainable(p["intensity"]) * (1 + 1e-9)


def test_the_dial_turns_by_a_quarter_of_its_width(line):
    assert [p["intensity"] for p in line.dial] == pytest.approx([1, 16], rel=1e-3)


def test_it_says_whose_machine_and_whose_kernels(line):
    (series,) = line.points()
    assert series["rung"] == "timed" and series["label"] == "linear, this CPU, torch"
    assert series["accelerator"] is None
    assert [p["m"] for p in series["points"]] == [1, 2, 256]
    assert "timed, this CPU, torch" in repr(line) and "timed, this CPU, torch" in line._repr_html_()


def test_the_figure_shows_both_series_or_the_one_that_was_asked_for(line):
    def points(figure):
        return {len(one.get_xdata()) for one in figure.axes[0].get_lines() if one.get_marker() == "o"}

    assert points(line.figure()) >= {2, 3} and points(line.figure("linear")) >= {3}
    assert 2 not in points(line.figure("linear"))


def test_a_flat_curve_is_refused_with_the_usual_cause(line):
    flat = [dict(p, low=p["low"] * p["m"] / 1.1) if p["m"] == 2 else p for p in line.linear]
    flat[1]["low"] = flat[0]["low"] * 2
    with pytest.raises(PhysicsDisagrees, match="2 rows ran at 1.00 times.*close other programs"):
        dataclasses.replace(line, linear=tuple(flat)).check()


def test_rows_that_were_not_timed_are_named(line):
    with pytest.raises(ValueError, match="m = 7: not timed; choose one of 1, 2, 256"):
        line.rate(7)
