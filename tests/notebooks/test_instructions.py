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
    ("04-decode-floor", "103 on an H200", the_rate_is_a_straight_line_up_to_103_users),
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
]


@pytest.mark.parametrize(("chapter", "words", "check"), INSTRUCTIONS, ids=lambda x: getattr(x, "__name__", x))
def test_a_move_does_what_the_chapter_says(chapter, words, check):
    cells = nbformat.read(CHAPTERS / f"{chapter}.ipynb", 4).cells
    said = " ".join(" ".join(c.source.split()) for c in cells)  # an answered question tells to move, too
    assert words in said, f"{chapter} no longer says {words!r}; take its row out, or write the new one"
    check()
