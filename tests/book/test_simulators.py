"""Simulators: what a trace may say, how it travels, and runs held against their closed forms."""

import json

import pytest

from book.simulators.trace import Span, Trace, packed, runs


def test_a_lane_does_one_thing_at_a_time():
    with pytest.raises(ValueError, match="lane 'slot 1' does two things at once"):
        Trace(("slot 1",), (Span(0, 0, 3, "useful"), Span(0, 2, 4, "useful")))
    assert Trace(("slot 1",), (Span(0, 0, 3, "useful"), Span(0, 3, 4, "useful"))).end == 4


def test_a_span_lies_in_a_lane_and_ends_after_it_starts():
    with pytest.raises(ValueError, match=r"lane = 1; there are 1 lanes, from 0"):
        Trace(("slot 1",), (Span(1, 0, 3, "useful"),))
    with pytest.raises(ValueError, match="end it after it starts"):
        Trace(("slot 1",), (Span(0, 3, 2, "useful"),))


def test_what_was_measured_is_finite():
    with pytest.raises(ValueError, match=r"measured 'efficiency' = nan"):
        Trace((), (), {"efficiency": float("nan")})


def test_a_packed_trace_is_in_order_and_short():
    third = Trace(
        ("a", "b"),
        (Span(1, 0, 1 / 3, "useful"), Span(0, 1, 200, "held", "7"), Span(0, 0, 1, "useful")),
        {"efficiency": 1 / 3, "requests": 3.0},
    )
    assert packed(third) == {
        "lanes": ["a", "b"],
        "kinds": ["held", "useful"],
        "spans": [[0, 0, 1, 1], [0, 1, 200, 0, "7"], [1, 0, 0.3, 1]],
        "measured": {"efficiency": 0.333333, "requests": 3},
    }


def test_runs_walk_the_whole_grid_the_last_symbol_fastest():
    def simulate(batch, mean):
        return Trace((), (), {"batch": batch, "mean": mean})

    made = runs(simulate, {"batch": (1, 8), "mean": (100, 500, 900)})
    assert [(r["measured"]["batch"], r["measured"]["mean"]) for r in made["runs"]] == [
        (1, 100),
        (1, 500),
        (1, 900),
        (8, 100),
        (8, 500),
        (8, 900),
    ]
    assert json.loads(json.dumps(made))["grid"] == {"batch": [1, 8], "mean": [100, 500, 900]}
    with pytest.raises(ValueError, match="grid: mean has no values"):
        runs(simulate, {"batch": (1,), "mean": ()})
