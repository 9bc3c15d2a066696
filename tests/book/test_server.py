"""The server's run against its closed forms, over seeds."""

import numpy as np
import pytest

from book.simulators import server

STEP, PROMPT = 20e-3, 100e-3


def run(users=16, output=200, seed=0, **more):
    return server.serve(
        users,
        400,
        output,
        step=lambda batch: STEP,
        part=lambda tokens, done, length, batch: PROMPT * tokens / length,
        **{"chunk": 400, "seed": seed} | more,
    )


def sampled(f, **options):
    found = [f(run(seed=seed, **options)) for seed in range(12)]
    return np.mean(found), 4 * np.std(found, ddof=1) / np.sqrt(12)


def test_a_user_alone_never_waits_for_a_prompt():
    one = run(users=1)
    assert one.mean == one.percentile(0.99) == pytest.approx(STEP)
    assert one.first == pytest.approx([PROMPT] * 10)


def test_the_mean_wait_is_a_step_and_a_share_of_others_prompts():
    mean, error = sampled(lambda r: r.mean)
    told = server.mean_wait(STEP, PROMPT, 16, 0.9 * 200)
    assert abs(mean - told) < error + 0.01 * told
    assert abs(mean - server.mean_wait(STEP, PROMPT, 16, 0.9 * 200, rounds=1)) > 3 * error
    assert abs(mean - STEP) > 10 * error


def test_chunks_move_the_wait_and_leave_its_mean():
    whole, chunked = run(), run(chunk=50)
    assert chunked.mean == pytest.approx(whole.mean, rel=0.03)
    assert chunked.percentile(0.99) < whole.percentile(0.99)
    assert chunked.percentile(0.5) >= whole.percentile(0.5) == pytest.approx(STEP)


def test_the_share_of_stalls():
    share, error = sampled(lambda r: float(r.waiting[r.gaps > 1.5 * STEP].sum() / r.waiting.sum()))
    told = server.share_of_stalls(16, 0.9 * 200)
    assert share == pytest.approx(told, abs=error + 0.1 * told)


def test_the_99th_percentile_is_a_stall_where_more_than_one_wait_in_a_hundred_is():
    often, seldom = run(users=16, output=200), run(users=2, output=2000)
    assert server.share_of_stalls(16, 180) > 0.01 > server.share_of_stalls(2, 1800)
    assert often.percentile(0.99) >= STEP + 0.9 * PROMPT and seldom.percentile(0.99) == pytest.approx(STEP)


def test_at_once_is_never_slower_and_hides_what_fits():
    small = {"chunk": 40}  # a tenth of a prompt: 10 ms, less than a step
    assert run(at_once=True, **small).percentile(0.99) == pytest.approx(STEP)
    assert run(at_once=True).seconds < run().seconds


def test_goodput_counts_requests_that_keep_both_limits():
    one = run()
    all_of_them = one.good(first=1e9, between=1e9)
    assert all_of_them == pytest.approx(160 / one.seconds)
    assert one.good(first=1e9, between=STEP / 2) == 0
    assert 0 < one.good(first=float(np.median(one.first)), between=1e9) < all_of_them


def test_the_same_seed_is_the_same_run_and_another_is_another():
    assert (run().gaps == run().gaps).all()
    assert run().seconds != run(seed=1).seconds


@pytest.mark.parametrize("bad", [{"users": 0}, {"output": 1}, {"chunk": 0}, {"shortest": 0.0}])
def test_sizes_that_can_not_be_are_refused(bad):
    with pytest.raises(ValueError, match="counts start at 1"):
        run(**bad)
