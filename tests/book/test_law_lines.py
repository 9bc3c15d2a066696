"""The step law's figure: a line through each group, named, and said in words."""

import pytest

from book.drawing.law_lines import law_lines

FLOORS = [2e-3, 4e-3, 8e-3]


def test_each_group_has_its_points_its_line_and_its_name():
    figure = law_lines({"one": (FLOORS, [7e-3, 9e-3, 13e-3]), "two": (FLOORS, [4e-3, 8e-3, 16e-3])})
    (axes,) = figure.axes
    drawn = [[list(map(float, line.get_xdata())), list(map(float, line.get_ydata()))] for line in axes.lines]
    assert drawn[0] == [[0, 8], pytest.approx([5, 13])]
    assert drawn[1] == [[0, 8], pytest.approx([0, 16], abs=1e-9)]
    assert drawn[2] == [[2, 4, 8], [7, 9, 13]]
    assert {t.get_text() for t in axes.texts} >= {"one", "two"}
    assert "one slope 1.00 and 5.0 ms at nought; two slope 2.00" in figure.get_label()


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="groups is empty"):
        law_lines({})
