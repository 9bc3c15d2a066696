"""The figures of measured steps: every row drawn, and the finding in words from the rows."""

import pytest

from book.drawing import step_figures

TIMES = [5e-3, 10e-3, 40e-3]


def test_every_row_is_a_mark_and_the_errors_are_said():
    figure = step_figures.missed(TIMES, {"two": [5e-3, 20e-3, 40e-3], "four": [5e-3, 11e-3, 40e-3]})
    (axes,) = figure.axes
    marks = [line for line in axes.lines if len(line.get_xdata()) == 3]
    assert [list(m.get_ydata()) for m in marks] == [pytest.approx([1, 2, 1]), pytest.approx([1, 1.1, 1])]
    said = figure.get_label()
    assert "3 measured steps" in said and "two is off by 33.3 % on average and by 100 %" in said
    assert "four is off by 3.3 % on average and by 10 %" in said


def test_a_rest_may_be_negative_and_is_said():
    steps = {
        "2 cards": {"weights": 4e-3, "rest of it": 3e-3},
        "8 cards": {"weights": 1e-3, "rest of it": 1e-3},
    }
    figure = step_figures.stacked(steps, {"2 cards": 6e-3, "8 cards": 3e-3})
    (axes,) = figure.axes
    assert [round(bar.get_width(), 9) for bar in axes.patches] == [4, 3, -1, 1, 1, 1]
    assert (
        "2 cards: 7.0 of 6.0 ms, -1.0 left over; 8 cards: 2.0 of 3.0 ms, +1.0 left over" in figure.get_label()
    )


@pytest.mark.parametrize("told", [{"one": TIMES}, {"one": TIMES, "two": TIMES[:2]}])
def test_other_rows_are_refused(told):
    with pytest.raises(ValueError, match="told: "):
        step_figures.missed(TIMES, told)


def test_steps_of_other_parts_are_refused():
    with pytest.raises(ValueError, match="the same ones"):
        step_figures.stacked({"a": {"x": 1e-3}, "b": {"y": 1e-3}}, {"a": 1e-3, "b": 1e-3})
    with pytest.raises(ValueError, match="a time for each step"):
        step_figures.stacked({"a": {"x": 1e-3}}, {"b": 1e-3})
