"""Goals are judged by the points of a record and nothing else: met, missed by how much, or not measured."""

import pytest

from book import catalog
from kernels.decode_attention import heads_experiment as heads
from kernels.evidence.experiments import all_experiments
from kernels.evidence.recorded import goals
from kernels.evidence.sweeps import sweep as rows_of
from kernels.evidence.timed import baselines
from kernels.linear import experiment as linear
from kernels.measure import work
from kernels.measure.report import ending
from tests.kernels.records import made, point, rehearsal, sweep

WIDE = {"k": 8192, "n": 8192}


def of(record, kernel, where=None):
    return [
        outcome
        for outcome in goals.judge(record)
        if outcome.goal.kernel == kernel and where in (None, outcome.goal.where)
    ]


def timed(ratio, **sizes):
    """A point of linear whose torch took `ratio` times as long."""
    one = point(linear, **sizes, **WIDE)
    one["baseline"] = {"name": "torch.matmul", "seconds": ratio * one["seconds"], "others": {}}
    return one


def test_each_goal_is_held_to_its_worst_size():
    record = made(sweeps=[sweep(linear, "m", [timed(1.2, m=1), timed(0.97, m=64), timed(0.9, m=4096)])])
    few, many = of(record, "linear")
    assert (few.dtype, few.met, len(few.ratios)) == ("bf16", False, 2) and few.reached == pytest.approx(0.97)
    assert few.words == "missed by 0.03"
    assert (many.met, many.words) == (True, "met")


def noisy(low, high, **sizes):
    """A point of linear of whose times, and torch's, a fifth took less than `low` of the median, and more."""
    one = timed(1.02, **sizes)
    for time in (one, one["baseline"]):
        time["low"], time["high"] = low * time["seconds"], high * time["seconds"]
    return one


def test_a_goal_that_the_noise_hides_is_neither_met_nor_missed():
    for low, high, words in [
        (0.995, 1.005, "met"),
        (0.9, 1.1, "too noisy to tell: 0.835 to 1.247"),
        (0.98, 1.03, "too noisy to tell: 0.970 to 1.072"),
    ]:
        few, _ = of(made(sweeps=[sweep(linear, "m", [noisy(low, high, m=1)])]), "linear")
        assert few.words == words and few.met == (words == "met") and few.missed is False
    both = [noisy(0.9, 1.1, m=1), timed(0.9, m=16)]
    (few, _) = of(made(sweeps=[sweep(linear, "m", both)]), "linear")
    assert (few.met, few.words) == (False, "missed by 0.1"), "one size that was missed for sure is enough"


def test_the_noise_of_the_torch_kernel_that_counts_is_what_counts():
    one = timed(1.0, m=1)
    fast = {"seconds": 1.2 * one["seconds"], "low": 0.8 * one["seconds"], "high": 1.3 * one["seconds"]}
    one["baseline"] = {
        "name": "flash_attn",
        "seconds": 0.5 * one["seconds"],
        "others": {"torch.matmul": fast["seconds"]},
        "timings": {"torch.matmul": fast},
    }
    few, _ = of(made(sweeps=[sweep(linear, "m", [one])]), "linear")
    assert few.reached == pytest.approx(1.2) and few.words.startswith("too noisy to tell: 0.777 to")


def test_a_card_that_slowed_down_between_ours_and_the_vendor_s_tells_nothing():
    one = timed(0.95, m=1)
    slower = 1.2 * one["seconds"]
    one["baseline"]["again"] = {"seconds": slower, "low": slower, "high": slower}
    few, _ = of(made(sweeps=[sweep(linear, "m", [one])]), "linear")
    assert few.met is False and few.missed, "slower before and slower after it"
    one["baseline"]["seconds"] = 1.1 * one["seconds"]
    few, _ = of(made(sweeps=[sweep(linear, "m", [one])]), "linear")
    assert few.words.startswith("too noisy to tell")


def test_a_share_of_bandwidth_and_a_flat_time_are_as_noisy_as_their_times():
    record = made()
    (one,) = record["sweeps"][1]["points"][1:]
    one["sizes"]["batch"] = 64
    share = one["bytes_per_s"] / record["ceilings"][record["sweeps"][1]["arithmetic"]]["bandwidth"]
    (decode,) = of(record, "decode_attention")
    (ratio,) = decode.ratios
    assert (ratio.low, ratio.high) == (pytest.approx(share / 1.03), pytest.approx(share / 0.98))
    points = [point(heads, **row) for row in rows_of(heads, "timed")]
    for one in points:
        one["seconds"], one["low"], one["high"] = 1e-3, 0.96e-3, 1.04e-3
    (flat,) = of(made(sweeps=[sweep(heads, "heads", points)]), heads.key)
    assert flat.reached == 1.0 and flat.met is False and flat.words.startswith("too noisy to tell: 0.923")


def test_what_no_point_tells_is_not_measured_and_neither_is_an_impossible_one():
    alone = timed(2.0, m=1)
    alone["alarms"] = ["Impossible result"]
    record = made(sweeps=[sweep(linear, "m", [alone])])
    assert {outcome.words for outcome in goals.judge(record)} == {"not measured yet"}
    assert [outcome.goal for outcome in goals.judge(record)] == list(goals.GOALS)


def test_torch_is_what_counts_also_where_another_vendor_is_faster():
    one = timed(1.1, m=1)
    one["baseline"] = {
        "name": "flash_attn",
        "seconds": 0.5 * one["seconds"],
        "others": {"torch.matmul": one["seconds"], "torch slow": 2 * one["seconds"]},
    }
    record = made(sweeps=[sweep(linear, "m", [one])])
    assert of(record, "linear", "m ≤ 64")[0].reached == pytest.approx(1.0)


def test_flat_takes_both_ends_of_the_heads_and_compares_the_longest_with_the_shortest():
    points = [{**point(heads, **row), "seconds": s, "low": None, "high": None} for row, s in zip(
        rows_of(heads, "timed"), (1e-3, 1.01e-3, 1.02e-3, 1.04e-3), strict=True)]  # fmt: skip
    (flat,) = of(made(sweeps=[sweep(heads, "heads", points)]), heads.key)
    assert flat.met and flat.reached == pytest.approx(1 / 1.04)
    points[1]["seconds"] = 0.98e-3
    (bent,) = of(made(sweeps=[sweep(heads, "heads", points)]), heads.key)
    assert bent.met is False and bent.words == "missed by 0.0077"
    (half,) = of(made(sweeps=[sweep(heads, "heads", points[:3])]), heads.key)
    assert half.met is None, "64 heads are not there"


def test_a_share_of_bandwidth_is_that_of_its_own_run_and_computed():
    record = made()
    for one in record["sweeps"][1]["points"]:
        one["sizes"]["batch"], one["of_bandwidth"] = 64, 0.999
    (decode,) = of(record, "decode_attention")
    rate = record["ceilings"][record["sweeps"][1]["arithmetic"]]["bandwidth"]
    share = record["sweeps"][1]["points"][1]["bytes_per_s"] / rate
    (ratio,) = decode.ratios
    assert ratio.likely == pytest.approx(share), "only where the goal is set, whatever the point says"


def test_nothing_of_a_rehearsal_is_judged_and_sizes_of_another_version_are_passed_over():
    assert all(outcome.met is None for outcome in goals.judge(rehearsal()))
    record = made()
    for one in record["sweeps"][0]["points"]:
        one["sizes"] = {"rows": 1}
    assert of(record, "linear", "m ≤ 64")[0].met is None


def test_a_goal_is_set_for_sizes_that_the_sweep_of_its_kernel_times_and_a_vendor_that_is_timed():
    known = all_experiments()
    for goal in goals.GOALS:
        rows = rows_of(known[goal.kernel], "timed")
        assert any(map(goal.holds_at, rows)), goal
        assert all(any(end.items() <= row.items() for row in rows) for end in goal.ends), goal
        if goal.ratio == goals.TORCH:
            small = known[goal.kernel].inputs(**rows_of(known[goal.kernel], "counted")[0], dtype="fp16")
            names = baselines.of(known[goal.kernel], small, "fp16")
            assert any(name.startswith(goals.TORCH) for name in names), goal


START = 5e-6  # s: what a graph takes to start on a card where that is slow


def test_a_share_of_bandwidth_leaves_more_than_the_start_of_a_graph_on_every_card():
    for goal in goals.GOALS:
        if goal.ratio != "bandwidth":
            continue
        experiment = all_experiments()[goal.kernel]
        cards = [card for card in catalog.accelerators() if not experiment.why_not(card, "bf16")]
        for row in filter(goal.holds_at, rows_of(experiment, "timed")):
            moved = experiment.formula("bf16", **row).bytes
            short = {c.id: s for c in cards if (s := (1 / goal.bound - 1) * moved / c.bandwidth) < 2 * START}
            assert not short, (goal, row)


def test_a_size_that_a_goal_is_set_at_is_measured_before_others():
    experiment = all_experiments()["decode_attention"]
    rows = work.by_worth(rows_of(experiment, "timed"), experiment.key)
    assert [row["context"] for row in rows] == [4096, 8192, 512, 2048]
    few_and_many = work.by_worth(rows_of(linear, "timed"), linear.key)
    assert [row["m"] for row in few_and_many][:3] == [4096, 1, 64]


def test_the_command_ends_with_the_goals_and_without_a_point_with_none():
    text = "\n".join(ending(made(missing=[]), []))
    row = next(line for line in text.splitlines() if line.startswith("linear bf16") and "m ≤ 64" in line)
    assert "torch's time over ours" in row and "0.900" in row and "missed by 0.1" in row
    assert "flash_attention" in text and "not measured yet" in text
    assert "Goals" not in "\n".join(ending(made(missing=[], sweeps=[]), []))
