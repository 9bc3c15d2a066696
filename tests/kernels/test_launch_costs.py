"""evidence.timed.launch_fit: which lines through the times of steps are believed, and which are not."""

import dataclasses
import math

import pytest
import torch

from book.serving import step_law
from kernels.contract.errors import Unsupported
from kernels.evidence import launch_overhead
from kernels.evidence.launch_results import UNTRUSTED, Overhead
from kernels.evidence.timed.clocks import Timing
from kernels.evidence.timed.launch_fit import Law, Line
from tests.kernels.fakes import CARD

COUNTS = (8, 16, 32, 64, 128)
FLOORS = (1e-4, 4e-4, 16e-4)


def line(seconds):
    return Line("noop", "eager", COUNTS, tuple(seconds))


def law(seconds, floors=FLOORS):
    return Law("eager", 32, (64, 128, 256), floors, tuple(seconds))


def shown(one, two):
    return repr(Overhead("a pretended machine", 1e10, "a pretended copy", (one,), (two,)))


GOOD_LINE = line(5e-6 * n + 20e-6 for n in COUNTS)
GOOD_LAW = law(f / 0.8 + 1e-4 for f in FLOORS)


def test_points_on_a_line_are_believed_and_shown():
    assert GOOD_LINE.doubts == GOOD_LAW.doubts == ()
    text = shown(GOOD_LINE, GOOD_LAW)
    assert "5.00 µs" in text and "0.80" in text
    assert UNTRUSTED not in text


def test_what_is_said_of_a_launch_follows_from_the_times():
    both = Overhead("a pretended machine", 1e10, "a pretended copy", (GOOD_LINE,), (GOOD_LAW,))
    assert "one more launch adds 5.00 µs" in both.finding and "a step costs 20.0 µs once" in both.finding
    assert "each launch costs 3.13 µs" in both.finding
    assert both.finding in repr(both) and both.finding in both._repr_html_()
    busy = Overhead("a pretended machine", 1e10, "a pretended copy", (line([1e-3] * 5),), (GOOD_LAW,))
    assert "make no line that can be believed" in busy.finding and "5.00 µs" not in busy.finding


def test_a_burst_of_other_work_on_one_point_is_no_line():
    spoilt = line([*GOOD_LINE.seconds[:3], 10 * GOOD_LINE.seconds[3], GOOD_LINE.seconds[4]])
    assert "the points are no line" in spoilt.doubts[0]
    text = shown(spoilt, GOOD_LAW)
    assert "noop, eager: the points are no line" in text
    assert "0.80" in text and "5.00 µs" not in text


def test_no_step_begins_before_it_is_asked_for():
    assert line(5e-6 * n - 20e-6 for n in COUNTS).doubts == ("the intercept is below nought",)


def test_an_intercept_a_little_below_nought_is_about_nought():
    nearly = line(5e-6 * n - 1e-6 for n in COUNTS)
    assert nearly.doubts == () and nearly.per_step < 0
    assert "about 0" in shown(nearly, GOOD_LAW)


def test_more_work_takes_longer():
    assert "more launches took no longer" in line([1e-3] * 5).doubts
    assert "larger layers took no longer" in law([1e-3] * 3).doubts


def test_an_efficiency_above_one_raises_the_alarm_and_is_not_shown():
    impossible = law(f / 1.3 + 2e-3 for f in FLOORS)
    (alarm,) = impossible.alarms(1e10)
    assert "130 % of the ceiling measured in this run" in alarm.sentence
    assert impossible.doubts == ("impossible: it beats the bandwidth",)
    assert "1.30" not in shown(GOOD_LINE, impossible)


def test_a_step_that_ends_before_its_floor_raises_the_alarm():
    early = law([1.0e-4, 3.9e-4, 15.0e-4])
    assert any("the floor" in a.sentence for a in early.alarms(1e10))
    assert "impossible: it beats the bandwidth" in early.doubts


def test_noise_within_the_tolerance_raises_none():
    assert law(f / 1.02 + 1e-4 for f in FLOORS).alarms(1e10) == ()


def test_each_step_has_its_quietest_round():
    class Bursts:
        """Every other time something else is running."""

        calls = 0

        def time(self, work, budget=0.3):
            self.calls += 1
            busy = 9.0 if self.calls % 2 else 1.0
            return Timing(2 * busy * work, busy * work, 3 * busy * work, 5)

    clock = Bursts()
    assert launch_overhead.quietest(clock, [1e-3, 2e-3, 3e-3], 0.1) == (1e-3, 2e-3, 3e-3)
    assert clock.calls == 3 * launch_overhead.ROUNDS


def test_the_number_of_threads_is_as_it_was():
    before = torch.get_num_threads()
    with pytest.raises(KeyError), launch_overhead._one_thread():
        assert torch.get_num_threads() == 1
        raise KeyError
    assert torch.get_num_threads() == before


def test_a_relative_fit_sees_the_overhead_that_a_long_point_hides():
    floors, overhead_s = [1e-5, 1e-4, 1e-3, 1e-2], 2e-5
    times = [f + overhead_s for f in floors]
    times[-1] *= 0.98
    plain, relative = (step_law.fit(floors, times, relative=r) for r in (False, True))
    assert math.isclose(relative.overhead, overhead_s, rel_tol=0.1)
    assert not math.isclose(plain.overhead, overhead_s, rel_tol=0.2)


def test_where_there_is_a_gpu_it_is_the_one_that_is_timed(monkeypatch):
    monkeypatch.setattr(launch_overhead, "gpu_here", lambda: CARD)
    monkeypatch.setattr(launch_overhead, "gpu", lambda: "timed on the GPU")
    assert launch_overhead.here() == "timed on the GPU"


def test_a_card_without_a_datasheet_needs_a_bandwidth_that_was_measured():
    unknown = dataclasses.replace(CARD, accelerator=None)
    with pytest.raises(Unsupported, match=r"Pretended H100 is not in the catalog: pass bandwidth="):
        launch_overhead.gpu(unknown)
