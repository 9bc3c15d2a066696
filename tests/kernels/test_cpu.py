"""The roofline of this CPU: what is measured, and what is said of it, whatever the machine shows."""

import dataclasses
from types import SimpleNamespace

import pytest

from kernels.evidence import cpu, cpu_dial
from kernels.evidence.timed import cpu as timing
from kernels.evidence.timed.clocks import Timing, gain
from tests.kernels.fakes import Says

pytestmark = pytest.mark.quiet


@pytest.fixture(scope="module")
def line():
    return cpu.cpu_roofline(size=4096, rows=(1, 2, 256), widths=(4, 64), budget=0.15)


def made(line, *, two, many, noise=0.01):
    """The same line, with two rows at `two` times the FLOP/s of one, the last at `many` times."""
    seconds = (1.0, 2 / two, 256 / many)
    points = [
        dict(p, seconds=s, low=s, high=s * (1 + noise)) for p, s in zip(line.linear, seconds, strict=True)
    ]
    return dataclasses.replace(line, linear=tuple(points))


def test_more_rows_read_the_same_weights(line):
    shared = line.gain(2).above(cpu.SHARED * 2), line.gain(256).above(cpu.MANY)
    if shared != (True, True):  # a matter of the machine and of its neighbours: reported, and no failure
        pytest.skip(line.finding)
    assert "the weights were read once for all" in line.finding


def test_the_form_of_each_point_is_one_that_torch_has(line):
    assert {p["form"] for p in line.linear} <= {"x @ w.T", "w @ x.T", "w @ x"}
    assert all(p["form"] in repr(line) for p in line.linear)


def test_every_form_is_the_same_product():
    import torch

    for m in (1, 2, 7):
        x, w = torch.rand(m, 33), torch.rand(65, 33)
        for form, run in timing.forms(x, w).items():
            result = run().reshape(65, m).T if form != "x @ w.T" else run()
            assert torch.allclose(result, x @ w.T, rtol=1e-4), (m, form)


def test_a_point_is_timed_in_its_quickest_form():
    clock = Says(*[3.0, 2.0, 9.0], *[8.0, 4.0])  # one row: three forms, two rows: two
    one, two = timing.linear(clock, 8, (1, 2))
    assert (one["form"], one["seconds"], two["form"], two["seconds"]) == ("w @ x.T", 2.0, "w @ x.T", 4.0)


def test_a_burst_of_other_work_spoils_a_round_and_not_a_point():
    clock = Says(*[0.05, 0.02, 0.05], *[0.06, 0.07], *[0.01, 0.02, 0.05], *[0.04, 0.09])
    one, two = timing.linear(clock, 8, (1, 2))
    assert (one["form"], one["seconds"], two["form"], two["seconds"]) == ("x @ w.T", 0.01, "x @ w.T", 0.04)


def test_rates_are_those_of_a_machine(line):
    assert 1e8 < line.copy < 1e13 and 1e8 < line.triad < 1e13 and 1e8 < line.read < 1e13
    assert line.ceilings.peak == line.product and 1e8 < line.product < 1e15
    assert line.rate(256) == line.linear[-1]["flops_per_s"]


def under(line, *, bandwidth=1e20, peak=1e20, dial=None):
    """The same run with other streams and another product, and a dial of these rates."""
    turned = line.dial if dial is None else dialled(line, *dial).dial
    streams = {"copy": bandwidth, "triad": bandwidth, "read": bandwidth}
    return dataclasses.replace(line, **streams, product=peak, dial=turned)


def roofs_in(figure):
    return [
        one for one in figure.axes[0].get_lines() if one.get_linestyle() == "-" and len(one.get_xdata()) == 3
    ]


def test_the_roof_is_made_of_none_of_the_points_that_are_drawn_under_it(line):
    quick = tuple(dict(p, flops_per_s=1e30, bytes_per_s=1e30) for p in line.linear)
    assert dataclasses.replace(line, linear=quick, dial=quick).ceilings == line.ceilings
    assert set(line.ceilings.bandwidths) == {"torch copy", "torch triad", "torch read"}


@pytest.mark.parametrize(
    ("dial", "bandwidth", "peak", "said"),
    [
        ((4, 8, 16, 30, 32), 4.1, 33.0, "The roof is that of a stream"),
        ((4, 8, 16, 24, 32), 4.1, 33.0, "No roof is drawn, since this run shows none."),
        ((4, 8, 16, 30, 32), 2.0, 33.0, "No roof is drawn: a point lies at 2.00 times what"),
    ],
)
def test_no_roof_is_drawn_where_the_run_denies_it(line, dial, bandwidth, peak, said):
    figure = under(line, dial=dial, bandwidth=bandwidth, peak=peak).figure(
        "dial", caption="It.", number="1.1"
    )
    assert said in figure.caption and said in figure.get_label()
    assert bool(roofs_in(figure)) == said.startswith("The roof")


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
        return {len(one.get_xdata()) for one in figure.axes[0].get_lines() if one.get_marker() in ("o", "s")}

    assert points(line.figure()) >= {2, 3} and points(line.figure("linear")) >= {3}
    assert 2 not in points(line.figure("linear"))


def test_the_alt_text_says_what_the_points_did(line):
    flat = dataclasses.replace(line, dial=tuple(dict(p, flops_per_s=1e9) for p in line.dial))
    assert (
        "from 1 to 16 FLOP/byte the rate goes from 1.00 GFLOP/s to 1.00 GFLOP/s"
        in flat.figure("dial").get_label()
    )


@pytest.mark.parametrize(
    ("two", "many", "noise", "said"),
    [
        (1.9, 40, 0.01, ["2 rows ran at 1.9 times", "read once for all", "256 rows ran at 40 times"]),
        (1.2, 40, 0.20, ["2 rows ran at 1.2 times", "too busy to show it", "256 rows ran at 40 times"]),
        (1.0, 40, 0.01, ["2 rows ran at only 1.0 times", "does not show it", "256 rows ran at 40 times"]),
        (1.9, 5.0, 0.20, ["read once for all", "it was 5.0 times, which is no more certain"]),
        (1.9, 3.0, 0.01, ["read once for all", "it was 3.0 times: here arithmetic binds early"]),
    ],
)
def test_what_is_said_follows_from_the_times(line, two, many, noise, said):
    it = made(line, two=two, many=many, noise=noise)
    for words in said:
        assert words in it.finding and words in repr(it) and words in it._repr_html_()


def dialled(line, *rates, noise=0.01):
    """The same run, with a dial whose intensities double from 1 and whose quiet runs had these FLOP/s.

    The roof is 32 FLOP/s high and 4 bytes/s steep, so its ridge is at 8 FLOP/byte.
    """
    points = tuple(
        {"k": 4, "intensity": 2.0**i, "flops_per_s": r, "seconds": 1.0, "low": 1.0, "high": 1 + noise}
        for i, r in enumerate(rates)
    )
    tops = dataclasses.replace(line.ceilings, peak=32.0, bandwidth=4.0)
    return SimpleNamespace(dial=points, ceilings=tops)


@pytest.mark.parametrize(
    ("rates", "noise", "said"),
    [
        (
            (4, 8, 16, 30, 32),
            0.01,
            ["8 times the intensity, the rate grew 7.5 times. That is a slope", ": a roof."],
        ),
        (
            (0.4, 2, 8, 20, 32),
            0.01,
            ["the rate grew 50 times. That is no slope", "10% of what", "reach a roof"],
        ),
        (
            (4, 4.1, 4.2, 4.3, 4.4),
            0.01,
            ["the rate grew 1.07 times. That is less", "binds before memory", ": a roof."],
        ),
        ((4, 8, 16, 30, 20), 0.01, ["That is a slope", "was 0.67 times that of the point before: it fell"]),
        ((2, 8, 16, 30, 32), 0.9, ["the rate grew 15 times. The times scatter too much", "too busy"]),
    ],
)
def test_what_is_said_of_the_dial_follows_from_its_times(line, rates, noise, said):
    it = dialled(line, *rates, noise=noise)
    for words in said:
        assert words in cpu_dial.finding(it)


def test_a_ridge_that_leaves_one_point_on_its_left_shows_no_slope(line):
    it = dialled(line, 4, 4, 4)
    it.ceilings = dataclasses.replace(it.ceilings, peak=4.0)  # the ridge is at 1
    assert "fewer than two points" in cpu_dial.finding(it) and "shows no slope" in cpu_dial.finding(it)


def test_the_dials_figure_says_in_caption_and_alt_text_what_its_run_showed(line):
    figure = line.figure("dial", caption="The dial.", number="1.1")
    assert figure.caption.startswith(f"The dial. {line.finding_of('dial')} ")
    assert line.finding_of("dial") in figure.get_label()
    assert line.figure("linear", caption="Rows.", number="2.1").caption.startswith("Rows. ")
    assert line.finding_of("linear") == line.finding in line.figure("linear").get_label()


def test_a_gain_is_sure_only_beyond_the_noise():
    slow, fast = Timing(2.0, 2.0, 2.4, 9), Timing(1.0, 1.0, 1.0, 9)
    found = gain(slow, fast)
    assert (found.likely, found.low, found.high) == pytest.approx((2.0, 2 / 1.2, 2.4))
    assert [found.above(least) for least in (1.9, 2.1, 2.5)] == [True, None, False]


def test_rows_that_were_not_timed_are_named(line):
    with pytest.raises(ValueError, match="m = 7: not timed; choose one of 1, 2, 256"):
        line.rate(7)
