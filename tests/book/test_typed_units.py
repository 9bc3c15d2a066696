"""What may be typed behind a number: any unit that measures the same, and what is said to others."""

import pytest

from book.widgets.self_check import numeric
from book.widgets.typed_units import kind_of, spellings


def asks(unit, answer, **more):
    given = {"tolerance": 0.002, "mistakes": {answer * 17: "One.", answer * 19: "Two."}, **more}
    return numeric("ex-asked", question="How much?", answer=answer, unit=unit, **given)


@pytest.mark.parametrize(
    ("unit", "answer", "typed"),
    [
        (
            "MB",
            117.477,
            ["117.477", "117.477 MB", "0.117477 GB", "0.117477gb", "117477 kB", "117,477,000 bytes"],
        ),
        ("MB", 117.477, ["112.035 MiB", "0.10941 GiB", "117.477 megabytes", "939.8 Mbit", "1.17477e8 B"]),
        ("GB", 17.18, ["16 GiB", "17,180 MB", "0.01718 TB", "17.18 gigabytes", "137.44 Gbits"]),
        ("bytes", 131072, ["128 KiB", "131.072 kB", "131,072", "0.125 MiB"]),
        ("ms", 4.79, ["4.79", "4.79 ms", "0.00479 s", "4790 µs", "4790 μs", "4790 us", "4.79 milliseconds"]),
        ("µs", 597, ["597 us", "0.597 ms", "597 microseconds", "5.97e-4 s", "597000 ns"]),
        ("s", 90, ["1.5 min", "90 seconds", "1.5 minutes"]),
        (
            "TFLOP/s",
            167.5,
            ["167.5 TFLOPS", "167.5 TFLOP/s", "0.1675 PFLOP/s", "167500 gflops", "167.5 TFLOPs/s"],
        ),
        ("GB/s", 3350, ["3.35 TB/s", "3350 gb/s", "3.35 TB per second", "3.35 TB/sec", "26.8 Tbit/s"]),
        (
            "tokens/s",
            2209,
            ["2209 tok/s", "2209 tokens per second", "2.209 tokens/ms", "2209 tps", "2,209 token/s"],
        ),
        ("FLOP/byte", 295.3, ["295.3 FLOPs/byte", "295.3 flop/B", "0.2953 kFLOP/byte", "295.3 GFLOP/GB"]),
        ("%", 29.8, ["29.8 %", "29.8%", "29.8 percent"]),
        ("times", 1.33, ["1.33x", "1.33 ×", "1.33 times", "1.33-fold"]),
        ("rows", 345, ["345 rows", "345 row", "0.345k", "345 tokens", "345 users", "345 sequences"]),
        ("users", 281, ["281 users", "281 sequences", "281 rows", "281 tokens"]),
        ("times", 4 / 3, ["4/3", "4/3 times", "1.3333x", "8/6", "4,000/3,000"]),
        ("prompts/s", 30.1, ["30.1 prompts/s", "30.1 prompt/s", "30.1 prompts per second"]),
        ("", 4, ["4", "4x"]),
    ],
)
def test_a_right_answer_is_right_in_any_unit_that_measures_the_same(unit, answer, typed):
    check = asks(unit, answer)
    assert [(text, check.judge(text).kind) for text in typed] == [(text, "right") for text in typed]


@pytest.mark.parametrize(
    ("unit", "typed"),
    [
        ("MB", "117 ms"),
        ("MB", "117 MB/s"),
        ("ms", "4.79 GB"),
        ("tokens/s", "2209 tokens"),
        ("rows", "345 GB"),
        ("heads", "64 tokens"),
        ("users", "4 cards"),
    ],
)
def test_a_unit_of_something_else_is_named_and_is_no_try(unit, typed):
    verdict = asks(unit, 117).judge(typed)
    assert verdict.kind == "unreadable"
    assert typed in verdict.message and verdict.message.endswith(f"is in {unit}.")


@pytest.mark.parametrize("typed", ["4/0", "4/", "/3", "1/2/3", "4/x", "4,5/3"])
def test_what_is_no_fraction_is_not_read_as_one(typed):
    assert asks("times", 4 / 3).judge(typed).kind == "unreadable"


def test_a_bare_number_takes_no_unit():
    assert asks("", 117).judge("117 GB").message.endswith("the answer is a bare number.")


def test_without_a_unit_the_right_digits_elsewhere_are_named_and_not_accepted():
    verdict = asks("MB", 117.477).judge("0.1175")
    assert verdict.kind == "scale"
    assert "1,000 times too small" in verdict.message


def test_a_typed_unit_is_believed():
    check = asks("MB", 117.477, mistakes={112.035: "Those are MiB.", 58.7: "Two bytes."})
    assert check.judge("112.035").message == "Those are MiB."
    assert check.judge("112.035 MiB").right
    assert check.judge("117.477 GB").kind == "scale"


@pytest.mark.parametrize(
    ("unit", "kind"),
    [
        ("GB", "bytes"),
        ("bytes", "bytes"),
        ("GiB", "bytes"),
        ("GFLOP", "operations"),
        ("ms", "time"),
        ("µs", "time"),
        ("TB/s", "rate"),
        ("TFLOP/s", "rate"),
        ("tok/s", "rate"),
        ("prompts/s", "rate"),
        ("FLOP/byte", "intensity"),
        ("%", "share"),
        ("times", "ratio"),
        ("", "ratio"),
        ("rows", "count"),
        ("heads", "count"),
        ("bytes/token", "count"),
    ],
)
def test_a_unit_tells_what_is_asked_for(unit, kind):
    assert kind_of(unit) == kind


def test_a_megabyte_and_a_millisecond_do_not_meet():
    assert spellings("MB")["parts"][0]["mb"] == 1
    assert spellings("s")["parts"][0]["ms"] == 1e-3
    assert "mb" not in spellings("s")["parts"][0]
