"""The scheduler: nobody is served twice or before coming, and its means are those of the closed forms.

Every comparison with a closed form is of many seeds: the closed form lies within four standard errors
of their mean, and forms that are wrong in the way people get them wrong do not.
"""

import math

import numpy as np
import pytest
import sympy

from book.simulators import scheduler
from book.simulators.scheduler import HELD, USEFUL, continuous, draw, side_by_side, static
from book.simulators.trace import packed

LENGTHS = [226, 655, 1596, 2050, 104, 46, 250, 158]
ARRIVALS = [22.049031, 30.194003, 46.33389, 77.68701]
SCHEDULERS = (static, continuous)
QUEUES = {
    "all at once": {"rate": math.inf},
    "few at a time": {"rate": 0.02},
    "too many": {"rate": 1.0},
    "of one length": {"rate": 0.1, "lengths": "constant"},
}


@pytest.fixture(params=QUEUES)
def queue(request):
    """600 requests of 20 tokens."""
    return draw(600, 20, seed=3, **QUEUES[request.param])


def off(samples, closed_form):
    """How many standard errors the mean of the samples lies from the closed form."""
    samples = np.asarray(samples, float)
    return abs(samples.mean() - float(closed_form)) / (samples.std(ddof=1) / math.sqrt(len(samples)))


# ------------------------------------------------------------------------------------- invariants


@pytest.mark.parametrize("schedule", SCHEDULERS)
@pytest.mark.parametrize("slots", [1, 2, 8])
def test_no_slot_does_two_things_at_once(schedule, queue, slots):
    made = schedule(queue, slots)
    assert set(made.slot) <= set(range(slots))
    for slot in range(slots):
        mine = np.flatnonzero(made.slot == slot)
        order = mine[np.argsort(made.start[mine])]
        assert (made.start[order][1:] >= made.freed[order][:-1]).all()


@pytest.mark.parametrize("schedule", SCHEDULERS)
def test_every_request_is_served_once_and_whole(schedule, queue):
    made = schedule(queue, 4)
    useful = [s for s in scheduler.spans(made, math.inf) if s.kind == USEFUL]
    assert len(useful) == len(queue.lengths) == len(made.start)
    assert sorted(s.end - s.start for s in useful) == sorted(queue.lengths)


@pytest.mark.parametrize("schedule", SCHEDULERS)
def test_nobody_starts_before_arriving_or_before_those_ahead(schedule, queue):
    made = schedule(queue, 4)
    assert (made.wait >= 0).all()
    assert (np.diff(made.start) >= 0).all()


@pytest.mark.parametrize("slots", [1, 2, 8])
def test_static_batching_frees_all_slots_of_a_batch_together(queue, slots):
    made = static(queue, slots)
    for start in set(made.start):
        batch = made.start == start
        assert batch.sum() <= slots
        assert set(made.freed[batch]) == {made.done[batch].max()}


def test_continuous_batching_leaves_no_slot_empty_while_somebody_waits(queue):
    slots = 4
    made = continuous(queue, slots)
    for now in np.unique(made.start):
        waiting = (queue.arrivals <= now) & (made.start > now)
        if waiting.any():
            assert ((made.start <= now) & (made.freed > now)).sum() == slots, now


def test_continuous_batching_ends_no_later_than_the_last_request_can_make_it():
    """Graham's bound: the work divided by the slots, and at most one longest request more."""
    requests = draw(4000, 500, seed=1)
    made = continuous(requests, 8)
    ideal = requests.lengths.sum() / 8
    assert ideal <= made.done.max() <= ideal + requests.lengths.max()
    assert made.efficiency >= ideal / (ideal + requests.lengths.max())


def test_efficiency_is_what_the_drawn_spans_say():
    made = static(draw(64, 20, seed=5, rate=0.3), 4)
    drawn = scheduler.spans(made, math.inf)
    useful = sum(s.end - s.start for s in drawn if s.kind == USEFUL)
    busy = {t for s in drawn for t in range(int(s.start), int(s.end))}
    assert made.efficiency == pytest.approx(useful / (4 * len(busy)), rel=1e-15)


def test_constant_lengths_waste_nothing():
    for schedule in SCHEDULERS:
        made = schedule(draw(64, 20, seed=0, lengths="constant"), 8)
        assert made.efficiency == 1 and (made.freed == made.done).all()


# ----------------------------------------------------------------------------- the same everywhere


def test_the_same_seed_draws_the_same_requests_on_every_machine():
    assert list(draw(8, 500, seed=0).lengths) == LENGTHS
    assert list(draw(8, 500, seed=0, rate=0.1).lengths) == LENGTHS  # arrivals have a stream of their own
    np.testing.assert_allclose(draw(4, 500, seed=0, rate=0.1).arrivals, ARRIVALS, rtol=0, atol=1e-9)


def test_another_seed_draws_others_and_nothing_else_does():
    state = np.random.get_state()[1].copy()
    assert list(draw(8, 500, seed=1).lengths) != LENGTHS
    assert packed(side_by_side(4, 500, seed=7)) == packed(side_by_side(4, 500, seed=7))
    assert (np.random.get_state()[1] == state).all()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: draw(0, 500, 0), "count = 0"),
        (lambda: draw(8, 500, 0, rate=0), "rate = 0: give at least one request, and a positive rate"),
        (lambda: draw(8, 0.5, 0), "mean = 0.5: a request has at least one token"),
        (lambda: draw(8, 20.5, 0, "constant"), "mean = 20.5: .* a constant length is whole"),
        (lambda: static(draw(8, 20, 0), 0), "slots = 0: give a whole number of slots"),
        (lambda: continuous(draw(8, 20, 0), 1.5), "slots = 1.5: give a whole number of slots"),
    ],
)
def test_what_cannot_be_is_refused(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


# ------------------------------------------------------------------------------- the closed forms


def test_lengths_are_geometric_with_the_mean_that_was_asked_for():
    for mean in (1, 1.25, 20, 500):
        lengths = [draw(2000, mean, seed).lengths for seed in range(40)]
        assert min(x.min() for x in lengths) == 1
        if mean == 1:
            assert all((x == 1).all() for x in lengths)
            continue
        assert off([x.mean() for x in lengths], mean) < 4
        assert off([x.var() for x in lengths], mean * (mean - 1)) < 4  # geometric: (1 - p)/p²
        assert off([(x > mean).mean() for x in lengths], (1 - 1 / mean) ** math.floor(mean)) < 4


def whole_tokens_longest(batch, mean):
    """E[max] of lengths in whole tokens: the sum over n of P(max > n), with no exponential in it."""
    n = np.arange(math.ceil(60 * mean) + 1)
    return float((1 - (1 - (1 - 1 / mean) ** n) ** batch).sum())


def static_efficiencies(batch, mean, seeds=40, batches=500):
    return [static(draw(batch * batches, mean, seed), batch).efficiency for seed in range(seeds)]


@pytest.mark.parametrize("batch", [2, 8, 32])
def test_static_efficiency_is_the_mean_over_the_expected_longest(batch):
    measured = static_efficiencies(batch, 4)
    assert off(measured, 4 / whole_tokens_longest(batch, 4)) < 4
    # of four tokens a request, whole tokens are seen: the exponential's form is not theirs
    assert off(measured, scheduler.static_efficiency(batch)) > 10


@pytest.mark.parametrize("batch", [2, 8, 32])
def test_of_many_tokens_it_is_one_over_the_harmonic_number(batch):
    measured = static_efficiencies(batch, 500)
    assert off(measured, scheduler.static_efficiency(batch)) < 4
    harmonic = scheduler.harmonic(batch)
    wrong = {
        "the last term forgotten": 1 / (harmonic - 1 / batch),
        "one term too many": 1 / (harmonic + 1 / (batch + 1)),
        "a logarithm": 1 / (1 + math.log(batch)),
        "uniform lengths": (batch + 1) / (2 * batch),
    }
    assert {name: off(measured, value) > 4 for name, value in wrong.items()} == dict.fromkeys(wrong, True)


def test_the_exponential_form_is_as_near_as_a_token_is_short():
    for batch in (2, 8, 32):
        exact = 500 / whole_tokens_longest(batch, 500)
        assert scheduler.static_efficiency(batch) == pytest.approx(exact, rel=1 / 500)


def test_the_numbers_of_the_chapter():
    assert scheduler.static_efficiency(8) == pytest.approx(0.368, abs=5e-4)
    assert scheduler.static_efficiency(32) == pytest.approx(0.246, abs=5e-4)
    assert scheduler.static_efficiency(1) == 1


def test_closed_forms_take_symbols():
    b, s, rho = sympy.symbols("b s rho", positive=True)
    assert scheduler.static_efficiency(b) == 1 / sympy.harmonic(b)
    assert scheduler.expected_longest(b, s).subs({b: 3, s: 6}) == 11
    assert sympy.simplify(scheduler.queue_wait(rho, s) - rho * s / (1 - rho)) == 0
    assert sympy.simplify(scheduler.queue_wait(rho, s, 0) * 2 - rho * s / (1 - rho)) == 0


def waits(utilisation, mean, lengths, count=6000, seeds=60):
    """The mean wait for one slot, one number a seed; the first thousand only fill the queue."""
    runs = (draw(count, mean, seed, lengths, rate=utilisation / mean) for seed in range(seeds))
    return [continuous(requests, 1).wait[1000:].mean() for requests in runs]


@pytest.mark.parametrize("utilisation", [0.3, 0.7])
@pytest.mark.parametrize(("lengths", "variation"), [("exponential", 1 - 1 / 20), ("constant", 0)])
def test_the_wait_in_a_queue_for_one_slot(utilisation, lengths, variation):
    measured = waits(utilisation, 20, lengths)
    assert off(measured, scheduler.queue_wait(utilisation, 20, variation) + 0.5) < 4
    wrong = {
        "the other lengths": scheduler.queue_wait(utilisation, 20, 1 - variation),
        "no queue": utilisation * 20,
        "service counted as wait": scheduler.queue_wait(utilisation, 20, variation) + 20,
    }
    assert {name: off(measured, value) > 4 for name, value in wrong.items()} == dict.fromkeys(wrong, True)


def test_a_scheduler_that_looks_between_iterations_adds_half_of_one():
    measured = waits(0.3, 2, "constant")
    assert off(measured, scheduler.queue_wait(0.3, 2, 0) + 0.5) < 4
    assert off(measured, scheduler.queue_wait(0.3, 2, 0)) > 10


# --------------------------------------------------------------------------------------- the trace


def test_side_by_side_draws_both_and_measures_the_whole_run():
    trace = side_by_side(8, 500, seed=0)
    assert len(trace.lanes) == 16
    kinds = {
        half: {s.kind for s in trace.spans if (s.lane < 8) == (half == "static")}
        for half in ("static", "other")
    }
    assert kinds == {"static": {USEFUL, HELD}, "other": {USEFUL}}
    useful = [s for s in trace.spans if s.kind == USEFUL]
    assert sum(s.lane >= 8 for s in useful) > 1.5 * sum(s.lane < 8 for s in useful)
    assert all(s.end <= trace.end for s in trace.spans)


def test_what_is_measured_lies_within_its_own_error_of_the_closed_form():
    far = []
    for seed in range(40):
        got = side_by_side(8, 500, seed, batches=128).measured
        far.append((got["efficiency"] - scheduler.static_efficiency(8)) / got["efficiency_error"])
        assert got["continuous_efficiency"] > 0.95
        assert got["longest"] == pytest.approx(scheduler.expected_longest(8, 500), rel=0.2)
    assert 0.6 < np.std(far) < 1.5  # the error that it states is the error that it makes


@pytest.mark.parametrize("batch", [1, 2, 3, 5, 8, 16, 33])
def test_a_trace_of_any_batch_can_be_drawn(batch):
    assert side_by_side(batch, 20, seed=2, batches=16).end > 0
