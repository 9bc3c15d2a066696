"""Numbers set large: the same in a page and in a terminal."""

import pytest

from book import headline


def test_a_page_shows_each_number_with_what_it_is_and_its_unit_smaller():
    page = headline(("207 µs", "one row"), ("0.83%", "of <peak>"))._repr_html_()
    assert "<b>207 <small>µs</small></b> <span>one row</span>" in page
    assert "<b>0.83%</b> <span>of &lt;peak&gt;</span>" in page


def test_a_terminal_shows_them_below_each_other():
    assert repr(headline(("207 µs", "one row"), ("1.2 ms", "1,024 rows"))) == (
        "207 µs  one row\n1.2 ms  1,024 rows"
    )


@pytest.mark.parametrize("count", [0, 5])
def test_none_and_too_many_are_refused(count):
    with pytest.raises(ValueError, match=f"headline: {count} values; give one to four"):
        headline(*[("1", "one")] * count)
