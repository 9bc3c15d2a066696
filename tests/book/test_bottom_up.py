"""A step from its kernels' measured times, and what can't be told apart."""

import numpy as np
import pytest

from book.serving import bottom_up, served

by_group = pytest.mark.parametrize("of", served.GROUPS, ids=lambda g: g.name)


def row(of, gpus, users, prompt=1024, output=1024):
    wanted = (gpus, users, prompt, output)
    columns = ("gpus", "concurrency", "input_tokens", "output_tokens")
    return next(r for r in served.rows(of) if tuple(r[c] for c in columns) == wanted)


def told(r):
    return sum(bottom_up.kernels(r).values())


def test_nine_milliseconds():
    found = {k: round(v * 1e3, 2) for k, v in bottom_up.kernels(row(served.GROUPS[0], 8, 4)).items()}
    assert found == pytest.approx(
        {
            "weights": 2.59,
            "products": 2.32,
            "cache": 0.07,
            "attention": 1.03,
            "all_reduces": 1.02,
            "prompts": 0.08,
        },
        abs=0.012,
    )


def test_the_sum_of_tables_is_near_for_vllm_and_above_for_tensorrt():
    off = {of.name: [told(r) / r["tpot_s"] - 1 for r in served.rows(of)] for of in served.GROUPS}
    h100, h200, trt = off.values()
    assert np.mean(np.abs(h100)) == pytest.approx(0.14, abs=0.01)
    assert np.mean(np.abs(h200)) == pytest.approx(0.11, abs=0.01)
    assert np.mean(trt) > 0.1 > max(np.mean(h100), np.mean(h200))


def test_what_is_left_over_depends_on_the_version_of_the_tables():
    h100 = served.GROUPS[0]
    off: dict[int, list[float]] = {}
    for r in served.rows(h100):
        older = sum(bottom_up.kernels(r, "0.14.0").values())
        off.setdefault(r["gpus"], []).append(older / r["tpot_s"] - 1)
    means = {gpus: float(np.mean(found)) for gpus, found in off.items()}
    assert means == pytest.approx({2: 0.027, 4: 0.016, 8: -0.010}, abs=0.002)
    nine = row(h100, 8, 4)
    assert (
        told(nine)
        < nine["tpot_s"] - 1.9e-3
        < nine["tpot_s"]
        < sum(bottom_up.kernels(nine, "0.14.0").values())
    )


def test_the_bump_at_32_users_is_in_the_table_and_in_the_step():
    for users in (16, 32, 64):
        one = row(served.GROUPS[1], 1, users)
        assert told(one) == pytest.approx(one["tpot_s"], rel=0.05)
    measured = [row(served.GROUPS[1], 1, u)["tpot_s"] for u in (8, 16, 32, 64)]
    assert measured[2] - measured[1] > 1.9 * (measured[3] - measured[2]) > 0


@by_group
def test_three_splits_of_one_error(of):
    found = bottom_up.splits(of)
    held = {name: f.held_out().mean() for name, f in found.items()}
    assert max(held.values()) - min(held.values()) < 0.01 and max(held.values()) < 0.04
    constant = {name: f.factors["overhead"] for name, f in found.items()}
    assert constant["floor"] > constant["scaled"] + 1e-3 > constant["tables"] + 2e-3
    assert found["floor"].factors == pytest.approx(served.fitted(of).fitted.factors)
