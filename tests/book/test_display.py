"""Numbers and tables as people read them."""

import numpy as np
import pytest

from book.drawing.number_text import gibibytes, gigabytes, number, si
from book.drawing.tables import Column, table


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (3.35e12, "B/s", "3.35 TB/s"),
        (989.4e12, "FLOP/s", "989 TFLOP/s"),
        (0.04212, "s", "42.1 ms"),
        (353.7e-6, "s", "354 µs"),
        (117_477_376, "B", "117 MB"),
        (117_477_376, "byte", "117 MB"),
        (5.2e3, "s", "5,200 s"),
        (0, "s", "0 s"),
        (-2.5e9, "B/s", "−2.50 GB/s"),
        (512, "B", "512 B"),
        (295.34, "FLOP/byte", "295 FLOP/byte"),
        (2730.67, "FLOP/byte", "2,731 FLOP/byte"),
        (np.float64(1e-3), "s", "1.00 ms"),
    ],
)
def test_si_picks_the_prefix_people_use(value, unit, text):
    assert si(value, unit) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(999.4, "999"), (999.96, "1.00 k"), (1000, "1.00 k"), (999_499.0, "999 k"), (999_999.0, "1.00 M")],
)
def test_si_rounds_before_it_picks_the_prefix(value, text):
    assert si(value, "") == text


def test_si_keeps_as_many_digits_as_asked():
    assert si(3.3512e12, "B/s", digits=4) == "3.351 TB/s"
    assert si(989.4e12, "FLOP/s", digits=2) == "989 TFLOP/s"


def test_number_never_uses_powers_of_ten():
    assert number(117_440_512) == "117,440,512"
    assert number(np.int64(1234)) == "1,234"
    assert number(0.0033856) == "0.00339"
    assert number(1.0) == "1.00"
    assert number(float("inf")) == "∞"


def test_gigabytes_and_gibibytes_differ_and_say_so():
    assert gigabytes(80 * 2**30) == "85.9 GB"
    assert gibibytes(80 * 2**30) == "80.0 GiB"
    assert gigabytes(131_072) == "0.000131 GB"


ROWS = [{"m": 1, "time": "4.79 ms", "rung": "counted"}, {"m": 4096, "time": None, "rung": "not measured yet"}]


def test_table_aligns_numbers_right_and_words_left():
    t = table(ROWS, ["m", "time", "rung"], caption="Two rows")
    assert t.right == (True, True, False)
    assert repr(t).splitlines() == [
        "Two rows",
        "    m     time  rung",
        "-----  -------  ----------------",
        "    1  4.79 ms  counted",
        "4,096           not measured yet",
    ]


def test_table_html_has_scopes_a_caption_and_a_focusable_region():
    page = table(ROWS, ["m", "time"], caption="A < B")._repr_html_()
    assert '<th scope="col" class="rl-n">m</th>' in page
    assert '<th scope="row" class="rl-n">4,096</th>' in page
    assert "<caption>A &lt; B</caption>" in page
    assert 'role="group" tabindex="0" aria-label="A &lt; B"' in page


def test_table_takes_sequences_and_formats():
    t = table([(1, 0.5)], [Column(0, "M"), Column(1, "share", "{:.0%}".format, "left")])
    assert t.cells == (("1", "50%"),)
    assert t.right == (True, False)


def test_table_refuses_a_row_without_a_column():
    with pytest.raises(ValueError, match=r"row 0 has no 'seconds'; it has \['m'\]"):
        table([{"m": 1}], ["m", "seconds"])
    with pytest.raises(ValueError, match="columns is empty"):
        table([], [])
