"""The clocks: on a simulated card that knows true times, what each of them reads."""

import itertools

import pytest

from kernels.contract.errors import Unsupported
from kernels.evidence.rehearsal.stream import Costs, Kernel, SimulatedGpu
from kernels.evidence.timed import clocks, cold_cache, gpu
from kernels.evidence.timed.clocks import GraphClock
from tests.kernels.fakes import CARD

MIB = 2**20
US = 1e-6
BANDWIDTH = {"A100": 1.94e12, "H100": 3.35e12, "H200": 4.8e12, "B200": 8e12}
L2 = {"A100": 40 * MIB, "H100": 50 * MIB, "H200": 50 * MIB, "B200": 126 * MIB}

# Microseconds of the card, of Python that launches, and how many launches; whether the old clock reads the
# card's (True) or Python's.
CASES = {
    ("decode_step, batch 1", "H200"): (110.7, 238, 10, False),
    ("decode_step, batch 1", "H100"): (154, 238, 10, False),
    ("decode_step, batch 1", "B200"): (70.4, 238, 10, False),
    ("decode_step, batch 1", "A100"): (255, 238, 10, True),
    ("decode_step, batch 16", "H200"): (139, 238, 10, False),
    ("decode_step, batch 16", "H100"): (198, 238, 10, True),
    ("decode_step, batch 16", "B200"): (88, 238, 10, False),
    ("decode_step, batch 16", "A100"): (330, 238, 10, True),
    ("gemv, n = 1,024", "H200"): (6.1, 39, 1, True),
    ("gemv, n = 1,024", "H100"): (7.3, 39, 1, True),
    ("gemv, n = 1,024", "B200"): (4.1, 39, 1, False),
    ("gemv, n = 1,024", "A100"): (9.2, 39, 1, True),
    ("flash_attention, 512 tokens", "B200"): (8, 40, 1, False),
    ("flash_attention, 512 tokens", "H100"): (13, 40, 1, True),
    ("linear, m = 1, 8192 wide", "H200"): (31.2, 44, 1, True),
    ("mlp, m = 1", "H200"): (83, 71, 2, True),
}


class EventClock:
    """The clock of before: events around a launch by Python, the cache overwritten ahead of it."""

    def __init__(self, gpu):
        self.gpu = gpu

    def time(self, work, budget=0.3):
        return clocks.summarise(clocks.between(self.gpu, work, self.gpu.overwrite, 200)[5:])


def pretended(card, **options):
    return SimulatedGpu(bandwidth=BANDWIDTH[card], l2_bytes=L2[card], **options)


def simulated(case, card, seed=0, **options):
    """The card, the work as it comes, and the true time."""
    true, python, launches, _ = CASES[case, card]
    here = pretended(card, seed=seed, **options)
    return here, here.work(*[true * US / launches] * launches, launch=python * US / launches), true * US


def moving(case, card, seed=0, **options):
    """As `simulated`, but each launch moves what the card's bandwidth allows in its time."""
    true, python, launches, _ = CASES[case, card]
    each = true * US / launches
    kernels = [Kernel(each, int(each * BANDWIDTH[card]), f"data {i}") for i in range(launches)]
    here = pretended(card, seed=seed, **options)
    return here, here.work(*kernels, launch=python * US / launches), true * US


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("head", [0, 5])
@pytest.mark.parametrize(("case", "card"), CASES)
def test_the_clock_of_a_card_reads_the_kernels_own_time_and_a_graph_s_head(case, card, head, seed):
    """Never too short, and within 3 % of both, on a card whose clock swings; what the head is, it says."""
    costs = Costs(head=head * US, nothing=1 * US, noise=0.01, drift=0.01)
    here, work, true = moving(case, card, seed, costs=costs)
    clock, _ = cold_cache.gpu_clock(CARD, here, reads(here, card))
    timing = clock.time(work)
    step = here.costs.resolution
    assert 0.98 * true - step <= timing.seconds <= 1.03 * (true + head * US) + step
    assert timing.low <= timing.seconds <= timing.high and timing.runs >= 10
    assert timing.way == "graph"
    assert timing.empty_seconds == pytest.approx((head + 1) * US, abs=step)


@pytest.mark.parametrize(("case", "card"), CASES)
def test_behind_a_written_cache_each_of_them_would_have_paid_for_what_goes_back(case, card):
    here, work, true = moving(case, card)
    late = GraphClock(here, "overwritten").time(work).seconds - true
    written_back = min(true, L2[card] / BANDWIDTH[card])
    assert late == pytest.approx(written_back, rel=0.1, abs=1 * US) and late > 0.04 * true


@pytest.mark.parametrize(("case", "card"), CASES)
def test_the_clock_of_launches_reads_python_where_a_launch_is_longer_than_the_flushing(case, card):
    here, work, true = simulated(case, card)
    read, right = EventClock(here).time(work).seconds, CASES[case, card][3]
    if right:
        assert read == pytest.approx(true, rel=0.05)
    else:
        assert read > 1.05 * true


def test_the_old_clock_would_have_called_batching_free():
    read = {
        clock: [clock(here).time(work).seconds for here, work, _ in both]
        for clock in (EventClock, GraphClock)
        for both in [[simulated(f"decode_step, batch {n}", "H200") for n in (1, 16)]]
    }
    ratio = {clock: more / one for clock, (one, more) in read.items()}
    assert ratio[GraphClock] == pytest.approx(139 / 110.7, rel=0.03)
    assert ratio[EventClock] < 1.05


def test_python_s_own_time_and_that_of_nothing_stand_beside_the_kernels():
    here, work, true = simulated("decode_step, batch 1", "B200")
    timing = GraphClock(here).time(work)
    assert timing.launch_seconds == pytest.approx(238 * US)
    assert timing.empty_seconds == 0.0
    assert timing.notes == (
        "Python takes 238 µs to launch this, and its kernels 70.5 µs to run: "
        "without a graph the launches decide.",
    )
    here, work, _ = simulated("decode_step, batch 1", "A100")
    assert GraphClock(here).time(work).notes == ()


@pytest.mark.parametrize("true", [4.1, 8, 15, 40])
@pytest.mark.parametrize("costs", [Costs(head=5 * US), Costs(event_gap=5 * US), Costs(nothing=5 * US)])
def test_what_a_graph_of_nothing_reads_is_said_and_not_subtracted(true, costs):
    """Two events with nothing between them would read 0, where a graph's start is what takes long."""
    here = pretended("B200", costs=costs)
    timing = GraphClock(here).time(here.work(true * US))
    assert timing.empty_seconds == pytest.approx(5 * US, abs=0.5 * US)
    own = 0 if costs.nothing else 5
    assert timing.seconds == pytest.approx((true + own) * US, rel=0.02, abs=0.5 * US)
    assert (
        timing.notes[-1].startswith("A kernel that does nothing reads ") and "may be the" in timing.notes[-1]
    )
    long = GraphClock(here).time(here.work(400 * US))
    assert long.notes == () and long.seconds == pytest.approx(400 * US, rel=0.03)


def test_nothing_is_started_as_the_work_is():
    """A card with a head for graphs, on which the work can't be one."""
    here = pretended("H100", costs=Costs(head=5 * US, nothing=1 * US))
    clock = GraphClock(here)
    assert clock.time(here.work(8 * US)).empty_seconds == pytest.approx(6 * US, abs=0.6 * US)
    here.captures = False
    assert clock.time(here.work(8 * US)).empty_seconds == pytest.approx(1 * US, abs=0.6 * US)


@pytest.mark.parametrize("card", BANDWIDTH)
def test_what_cannot_be_captured_waits_behind_enough_flushing(card):
    here = pretended(card, captures=False)
    timing = GraphClock(here).time(here.work(*[7 * US] * 10, launch=23.8 * US))
    assert timing.seconds == pytest.approx(70 * US, rel=0.03)
    assert timing.way == "eager"
    assert timing.notes[0] == "Launched by Python, not from a graph: this card can't record graphs"
    assert not any("the time is Python's" in note for note in timing.notes)


def test_a_work_that_python_cannot_launch_in_time_says_whose_time_it_is():
    here = pretended("B200", captures=False)
    timing = GraphClock(here, "overwritten").time(here.work(70 * US, launch=5e-3))
    assert timing.seconds > 1e-3
    assert "the time is Python's" in timing.notes[1]


def test_a_work_that_waits_for_its_result_is_timed_and_marked():
    here = pretended("H100")

    def waits():
        here.launch(200 * US)
        here.synchronize()

    timing = GraphClock(here).time(waits)
    assert timing.way == "eager" and "not permitted when stream is capturing" in timing.notes[0]
    assert 200 * US <= timing.seconds < 220 * US  # and the host's waking up


def test_a_larger_budget_buys_runs_within_bounds():
    here = pretended("H100")
    few, some, many = (GraphClock(here).time(here.work(1e-3), b).runs for b in (1e-9, 0.05, 100.0))
    assert (few, many) == (clocks.FEWEST, clocks.MOST)
    assert few < some < many


def test_a_work_that_takes_long_is_not_run_again_after_the_first_look():
    """A matrix product without tensor cores takes a T4 a third of a second."""
    here = pretended("H100")
    timing = GraphClock(here).time(here.work(0.3))
    assert (timing.runs, timing.seconds) == (clocks.FIRST, pytest.approx(0.3, rel=0.03))
    before = len(here.launched)
    assert before < 15, "with warming up, Python's own time and the graph's first start"


def test_nothing_of_the_last_run_is_in_the_cache():
    """A work that fits the cache: warm, it would take no time at all in this simulation."""
    here = pretended("H100")
    work = here.work(Kernel(15 * US, 30 * MIB, "w"))
    assert GraphClock(here, "clean").time(work).seconds == pytest.approx(15 * US, rel=0.03)
    warm = clocks.between(here, work, here.work(50 * US), 5)
    assert max(warm[1:]) < 1 * US


# ------------------------------------------------------------------------- clean or overwritten


def reads(here, card):
    seconds, start = L2[card] / BANDWIDTH[card], here.costs.nothing
    kernels = [Kernel(seconds, L2[card], f"buffer {i}", start) for i in range(cold_cache.BUFFERS)]
    return [here.work(kernel) for kernel in kernels]


STARTS = [Costs(), Costs(head=5 * US), Costs(head=3 * US, nothing=1.5 * US, event_gap=1 * US)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("costs", STARTS)
@pytest.mark.parametrize("card", BANDWIDTH)
def test_where_written_lines_cost_time_the_cache_is_cleaned(card, costs, seed):
    here = pretended(card, costs=costs, seed=seed)
    found = cold_cache.decide(here, reads(here, card), L2[card])
    assert found.kept == "clean"
    assert found.overwritten == pytest.approx(2 * found.clean, rel=0.05)  # as much goes back as is read
    assert found.clean == pytest.approx(found.in_turn, rel=0.05)
    assert found.as_record() == {
        "kept": "clean",
        "overwritten": found.overwritten,
        "clean": found.clean,
        "in_turn": found.in_turn,
        "bytes_read": L2[card],
    }


class WritesThrough(SimulatedGpu):
    """A card whose cache holds no line that memory doesn't have."""

    def overwrite(self):
        super().overwrite()
        self._dirty = 0


def test_where_they_cost_none_overwriting_is_kept():
    here = WritesThrough(bandwidth=BANDWIDTH["H100"], l2_bytes=L2["H100"])
    found = cold_cache.decide(here, reads(here, "H100"), L2["H100"])
    assert found.kept == "overwritten"
    assert found.overwritten == pytest.approx(found.clean, rel=0.02)


class ReadsBringBack(SimulatedGpu):
    """A card on which cleaning goes wrong: afterwards the work finds a part of its data in the cache."""

    def clean(self):
        super().clean()
        self._cached["buffer 0"] = self.l2_bytes // 4


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("costs", STARTS)
@pytest.mark.parametrize("card", BANDWIDTH)
def test_a_clean_cache_that_is_a_warm_one_is_not_kept(card, costs, seed):
    """Also where a graph's start takes as long as what the warm data saves."""
    here = ReadsBringBack(bandwidth=BANDWIDTH[card], l2_bytes=L2[card], costs=costs, seed=seed)
    found = cold_cache.decide(here, reads(here, card), L2[card])
    assert found.clean == pytest.approx(0.75 * found.in_turn, rel=0.05)
    assert found.kept == "overwritten"


def test_the_clock_of_a_card_is_the_one_that_was_decided():
    for kind, kept in ((SimulatedGpu, "clean"), (WritesThrough, "overwritten")):
        here = kind(bandwidth=BANDWIDTH["H100"], l2_bytes=L2["H100"])
        clock, found = cold_cache.gpu_clock(CARD, here, reads(here, "H100"))
        assert (clock.cold, found.kept) == (kept, kept)


def test_without_reads_of_its_own_it_reads_with_torch():
    card = CARD.__class__("gpu", "Small", "cpu", l2_bytes=4 * MIB)
    here = SimulatedGpu(l2_bytes=4 * MIB)
    _, found = cold_cache.gpu_clock(card, here)
    assert found.bytes_read == 4 * MIB
    scarce = SimulatedGpu(l2_bytes=4 * MIB, memory=2**20)
    assert cold_cache.gpu_clock(card, scarce)[1].bytes_read == 2**16


# ------------------------------------------------------------------------------- summaries and the CPU


def test_a_summary_is_the_median_with_the_fifths_around_it():
    timing = clocks.summarise([5.0, 1.0, 2.0, 3.0, 4.0, 100.0])
    assert (timing.seconds, timing.low, timing.high, timing.runs) == (3.5, 2.0, 5.0, 6)
    with pytest.raises(ValueError, match="nothing was timed"):
        clocks.summarise([])


def test_no_fifth_is_beyond_the_middle_where_all_samples_are_the_same():
    for seconds in (1.2499999999999999e-05, 7e-6):  # which the fifths' arithmetic rounds up, and down
        timing = clocks.summarise([seconds] * 15)
        assert timing.low <= timing.seconds <= timing.high


@pytest.mark.parametrize(("l2", "buffer"), [(None, 256), (50, 256), (126, 256), (256, 512)])
def test_the_flushed_buffer_covers_the_cache(l2, buffer):
    assert gpu.flush_bytes(l2 and l2 * MIB) == buffer * MIB


def test_the_wall_clock_warms_up_and_stops_at_its_budget():
    ticks = itertools.count()
    ran = []
    timing = clocks.WallClock(now=lambda: float(next(ticks))).time(lambda: ran.append(1), budget=0.0)
    assert (timing.seconds, timing.runs, len(ran)) == (1.0, 3, 4)


def test_a_work_that_is_not_captured_is_an_unsupported_one():
    assert issubclass(gpu.NotCaptured, Unsupported)
