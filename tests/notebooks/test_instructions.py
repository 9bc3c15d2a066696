"""What a chapter tells a reader to do to an explorer, done: each move is made, and what is promised comes.

A row is the sentence, as it stands in the chapter, and a function that makes its moves. A sentence
that was rewritten and a promise that no longer holds both fail.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from book.formulas import (
    ch01_roofline,
    ch02_linear_layers,
    ch03_prefill_and_decode,
    ch04_decode_floor,
    ch05_kv_cache,
    ch06_attention,
    ch07_batching,
    ch08_prefill_attention,
    ch09_step_law,
    ch09_step_terms,
)
from book.formulas.models import READ
from book.widgets.applied import applied
from book.widgets.explorer import explore

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"
FIVE = ["h100_sxm", "h200_sxm", "b200", "a100_80gb_sxm", "l4"]


def roofline(**moves):
    return applied(explore(ch01_roofline.attainable, FIVE), **moves)


def layer(**moves):
    shown = explore(ch02_linear_layers.linear, FIVE, model="llama3.1-8b", layer="gate")
    return applied(shown, **moves)


def square(**moves):
    shown = explore(ch02_linear_layers.linear, ["h100_sxm"], view="formula", m=1024, k=8192, n=8192)
    return applied(shown, **moves)


def rows(**moves):
    return applied(explore(ch03_prefill_and_decode.utilisation, FIVE), **moves)


def step(**moves):
    cards = ["a100_80gb_sxm", "h100_sxm"]
    return applied(explore(ch04_decode_floor.decode_floor, cards, model="llama2-7b", layer=READ), **moves)


def heads(**moves):
    return applied(explore(ch06_attention.decode_attention, FIVE, model="llama3.1-70b", batch=64), **moves)


def whole_step(**moves):
    return applied(explore(ch07_batching.decode_step, FIVE, view="bars", batch=32, context=4096), **moves)


def prompt(**moves):
    return applied(explore(ch08_prefill_attention.prefill, FIVE, view="bars", length=8192), **moves)


def stack(**moves):
    return applied(explore(ch09_step_terms.step_terms, [], view="stack"), **moves)


def timeline(**moves):
    shown = explore(ch09_step_law.step_law, FIVE[:4], model="llama3.1-8b", view="timeline")
    return applied(shown, **moves)


def rate(**moves):
    cards = ["h200_sxm", "h100_sxm", "b200"]
    chosen = {"model": "llama3.1-70b", "layer": READ, "weight_itemsize": 1}
    return applied(explore(ch04_decode_floor.decode_rate, cards, **chosen), **moves)


def cached(**moves):
    shown = explore(ch05_kv_cache.kv_bytes_per_token, FIVE[:3], model="llama3.1-8b", context=32768, batch=4)
    return applied(shown, **moves)


def fits(**moves):
    shown = explore(
        ch05_kv_cache.kv_capacity,
        ["h200_sxm", "h100_sxm", "b200", "mi300x"],
        model="llama3.1-70b",
        weight_itemsize=1,
    )
    return applied(shown, **moves)["sequences"]


def a_doubling_doubles_the_speed_up_to_the_ridge():
    speeds = [roofline(intensity=2.0**power)["attainable"] for power in range(11)]
    ridge = roofline()["ridge"]
    for power, (before, after) in enumerate(zip(speeds, speeds[1:], strict=False)):
        if 2 ** (power + 1) <= ridge:
            assert after == 2 * before
        elif 2**power >= ridge:
            assert after == before


def fp8_is_not_one_bit_faster_at_16():
    before, after = (roofline(intensity=16, dtype=d) for d in ("bf16", "fp8"))
    assert after["ridge"] == pytest.approx(2 * before["ridge"], rel=1e-3)
    assert after["attainable"] == before["attainable"] == pytest.approx(53.6e12)


def another_card_is_43_percent_faster_at_16():
    h100, h200 = (roofline(intensity=16, accelerator=c)["attainable"] for c in FIVE[:2])
    assert h200 / h100 == pytest.approx(1.43, abs=0.005)


def rows_to_128_add_four_percent():
    def time(m):
        said = layer(m=m)
        return said["flops"] / said["attainable"]

    assert time(128) / time(1) == pytest.approx(1.04, abs=0.005)
    assert 3 < time(1024) / time(1) < 4


def another_models_layer_hardly_moves_the_point():
    before = layer(m=32)["intensity"]
    after = layer(m=32, preset="Llama-3.1-70B / gate")["intensity"]
    assert (f"{before:.1f}", f"{after:.1f}") == ("31.7", "31.8")


def another_precision_moves_point_and_ridge_alike():
    before, after = (layer(m=32, dtype=d) for d in ("bf16", "fp8"))
    assert after["intensity"] == pytest.approx(2 * before["intensity"])
    assert after["ridge"] == pytest.approx(2 * before["ridge"], rel=1e-3)


def inputs_move_the_intensity_at_many_rows():
    ends = [square(m=1024, k=k)["intensity"] for k in (256, 32768)]
    assert [f"{i:.0f}" for i in ends] == ["200", "886"]


def inputs_move_little_at_32_rows():
    ends = [square(m=32, k=k)["intensity"] for k in (256, 32768)]
    assert [f"{i:.0f}" for i in ends] == ["28", "32"]


def rows_use_the_peak():
    assert rows(m=32)["utilisation"] == pytest.approx(0.108, abs=5e-4)
    assert rows(m=2048)["utilisation"] == 1


def eight_bits_double_the_share():
    assert rows(m=32, weight_itemsize=1)["utilisation"] == pytest.approx(0.217, abs=5e-4)


def sixty_four_users_wait_as_long_as_one():
    one, many = step(batch=1), step(batch=64)
    assert one["time"] == many["time"] == pytest.approx(6.48e-3, abs=5e-6)
    assert many["per_user"] == pytest.approx(154, abs=0.5)
    assert many["throughput"] == pytest.approx(64 * one["throughput"])


def past_153_users_the_time_grows():
    assert step(batch=153)["time"] == step(batch=1)["time"] < step(batch=160)["time"]


def the_rate_is_a_straight_line_up_to_103_users():
    one = rate(batch=1)
    assert one["memory"] == "fits"
    assert rate(batch=103)["throughput"] == pytest.approx(103 * one["throughput"])
    assert rate(batch=206)["throughput"] < 1.01 * rate(batch=104)["throughput"]


def eight_kv_heads_make_a_fourfold_smaller_cache():
    many, few = (cached(kv_heads=heads)["per_token"] for heads in (32, 8))
    assert (many, few) == (524_288, 131_072) and cached()["per_token"] == few


def four_bits_make_room_for_59():
    assert (fits(), fits(weight_itemsize=0.5)) == (38, 59)


def on_a_b200_eight_bits_more_than_double_the_sequences():
    before, after = (fits(accelerator="b200", weight_itemsize=size) for size in (2, 1))
    assert (before, after) == (18, 60) and after > 2 * before


def only_heads_and_cached_bytes_move_the_point_sideways():
    at = heads()["intensity"]
    for still in ({"batch": 1}, {"batch": 512}, {"context": 1024}, {"context": 131072}, {"head_dim": 64}):
        assert heads(**still)["intensity"] == pytest.approx(at, rel=0.02)
    assert heads(kv_heads=64)["intensity"] == pytest.approx(at / 8, rel=0.01)
    assert heads(kv_itemsize=1)["intensity"] == pytest.approx(2 * at, rel=0.01)


def the_bars_of_weights_and_cache_trade_places():
    near, far = (whole_step(context=c) for c in (2048, 16384))
    assert near["kv_time"] < near["weight_time"] == far["weight_time"] < far["kv_time"]


def the_bar_of_the_weights_stands_still():
    assert whole_step(batch=1)["weight_time"] == whole_step(batch=1024)["weight_time"]


def the_bar_of_attention_overtakes_the_other():
    short, long = (prompt(length=n) for n in (8192, 131072))
    assert long["linear_time"] == pytest.approx(16 * short["linear_time"])
    assert short["attention_time"] < short["linear_time"]
    assert long["attention_time"] > long["linear_time"]


def another_card_changes_both_bars_by_one_factor():
    here, there = (prompt(accelerator=c) for c in ("h100_sxm", "b200"))
    factors = [there[name] / here[name] for name in ("linear_time", "attention_time")]
    assert factors[0] == pytest.approx(factors[1]) and factors[0] < 0.5


def a_trade_of_efficiency_for_overhead_holds_at_one_number_of_cards():
    eight, two = stack(gpus=8), stack(gpus=2)
    traded = {"eta_w": 0.6, "overhead": stack()["constant"] - eight["weights"] * (0.96 / 0.6 - 1)}
    assert 0 < traded["overhead"] < 5e-3
    off = [stack(gpus=n, **traded)["tpot"] - before["tpot"] for n, before in ((8, eight), (2, two))]
    assert abs(off[0]) < 0.1e-3 < 4e-3 < off[1]


def from_16_users_to_64_the_step_jumps_and_then_grows_by_half_of_that():
    few, more, many = (stack(preset="H200 SXM, vLLM", gpus=1, users=u)["measured"] for u in (16, 32, 64))
    assert 0.4 < (many - more) / (more - few) < 0.55


def smaller_chunks_make_a_stutter_of_the_gap():
    shown = [timeline(chunk=c) for c in (8192, 2048, 512)]
    for before, after in zip(shown, shown[1:], strict=False):
        assert after["stall"] < before["stall"] and after["stall_at_once"] < before["stall_at_once"]
        assert after["chunks"] > before["chunks"]


INSTRUCTIONS: list[tuple[str, str, Callable[[], None]]] = [
    ("01-roofline", "each doubling doubles the speed", a_doubling_doubles_the_speed_up_to_the_ridge),
    ("01-roofline", "53.6 TFLOP/s, not one bit faster", fp8_is_not_one_bit_faster_at_16),
    ("01-roofline", "your speed grows by 43 percent", another_card_is_43_percent_faster_at_16),
    ("02-linear-layers", "127 more rows add four percent to the wait", rows_to_128_add_four_percent),
    ("02-linear-layers", "more than three times as long as for one", rows_to_128_add_four_percent),
    ("02-linear-layers", "goes from 31.7 to 31.8", another_models_layer_hardly_moves_the_point),
    (
        "02-linear-layers",
        "intensity doubles; the ridge doubles with it",
        another_precision_moves_point_and_ridge_alike,
    ),
    (
        "02-linear-layers",
        "200 FLOP/byte at 256 inputs to 886 at 32,768",
        inputs_move_the_intensity_at_many_rows,
    ),
    ("02-linear-layers", "from 28 to 32", inputs_move_little_at_32_rows),
    ("03-prefill-and-decode", "at 32 rows 10.8 percent of the peak are used", rows_use_the_peak),
    ("03-prefill-and-decode", "the share doubles at once, to 21.7 percent", eight_bits_double_the_share),
    ("04-decode-floor", "each user keeps 154 tokens/s", sixty_four_users_wait_as_long_as_one),
    ("04-decode-floor", "Drag on past 153 users, and the time begins to grow", past_153_users_the_time_grows),
    ("04-decode-floor", "At 103 users, on an H200", the_rate_is_a_straight_line_up_to_103_users),
    (
        "05-kv-cache",
        "move the KV heads to 32, one for each query head of the 8B, and back to 8",
        eight_kv_heads_make_a_fourfold_smaller_cache,
    ),
    (
        "05-kv-cache",
        "Now set 4 bits per weight and see: from 38 to 59 sequences of 5,120 tokens.",
        four_bits_make_room_for_59,
    ),
    (
        "05-kv-cache",
        "On a B200, from 16 bits to 8, it is more than twice.",
        on_a_b200_eight_bits_more_than_double_the_sequences,
    ),
    (
        "06-attention",
        "look for anything that moves the point sideways",
        only_heads_and_cached_bytes_move_the_point_sideways,
    ),
    ("07-batching", "Drag the context and they trade places", the_bars_of_weights_and_cache_trade_places),
    ("07-batching", "look at the first bar: it doesn't move", the_bar_of_the_weights_stands_still),
    ("08-prefill-attention", "the second one overtakes it", the_bar_of_attention_overtakes_the_other),
    ("08-prefill-attention", "Try another card", another_card_changes_both_bars_by_one_factor),
    (
        "09-step-law",
        r"Move $\eta_w$ to the left and $\tau$ towards nought",
        a_trade_of_efficiency_for_overhead_holds_at_one_number_of_cards,
    ),
    (
        "09-step-law",
        "walk from 16 users to 32 and on to 64. The step jumps, and then grows by half of that",
        from_16_users_to_64_the_step_jumps_and_then_grows_by_half_of_that,
    ),
    ("09-step-law", "The gap becomes a stutter", smaller_chunks_make_a_stutter_of_the_gap),
]


@pytest.mark.parametrize(("chapter", "words", "check"), INSTRUCTIONS, ids=lambda x: getattr(x, "__name__", x))
def test_a_move_does_what_the_chapter_says(chapter, words, check):
    cells = nbformat.read(CHAPTERS / f"{chapter}.ipynb", 4).cells
    said = " ".join(" ".join(c.source.split()) for c in cells)  # an answered question tells to move, too
    assert words in said, f"{chapter} no longer says {words!r}; take its row out, or write the new one"
    check()
