"""Figures: what is drawn, in which colour, and what reaches the page."""

import json
import re

import matplotlib
import numpy as np
import pytest
from matplotlib.text import Text

from book import cost
from book.drawing import figures
from book.drawing.label_placement import Labels, Place, around, spread
from book.drawing.palette import PALETTE
from book.formulas.formula import Formula, Limit, Parameter, symbol
from book.roofline import Roof

H100 = Roof("H100 SXM", 989.4e12, 3.35e12)
H200 = Roof("H200", 989.4e12, 4.8e12)
L4 = Roof("L4", 121e12, 300e9)
COUNTED = {"rung": "counted", "label": "counted", "points": [{"m": 1, "intensity": 1.0, "flops_per_s": None}]}
PUBLISHED = {
    "rung": "published",
    "label": "published",
    "points": [{"m": m, "intensity": m, "flops_per_s": 2e12 * m} for m in (1, 4, 16, 64)],
}
LINEAR = Formula.of_cost(
    "linear",
    "A linear layer",
    cost.linear,
    (
        Parameter("m", "rows", 32, 1, 8192, latex="M"),
        Parameter("k", "inputs", 4096, 256, 32768, latex="K"),
        Parameter("n", "outputs", 4096, 256, 131072, latex="N"),
        Parameter("itemsize", "bytes per element", 2, latex="s", source="dtype"),
    ),
    limit=Limit("m", 2 * symbol("m") / symbol("itemsize"), "weights only"),
)


def words(figure):
    return [t.get_text() for t in figure.axes[0].texts]


@pytest.fixture(scope="module")
def full():
    return figures.roofline(
        [H100, H200, L4], [COUNTED, PUBLISHED], operating=(32, "M = 32"), alt="All on one line."
    )


def test_the_rungs_are_drawn_as_the_book_draws_them(full):
    lines = [line for line in full.axes[0].lines if line.get_marker() in ("o", "D")]
    published, counted, operating = lines[:3]
    assert counted.get_markerfacecolor() == PALETTE["background"][0]
    assert counted.get_markeredgecolor() == PALETTE["counted"][0]
    assert published.get_marker() == "D"
    assert published.get_markerfacecolor() == PALETTE["published"][0]
    assert operating.get_color() == PALETTE["predicted"][0]
    assert operating.get_ydata()[0] == pytest.approx(32 * 3.35e12)


def on_axis(figure):
    """Marks that have no height: their y is a part of the axes', 0 the axis, and below it negative."""
    axes = figure.axes[0]
    across = axes.get_xaxis_transform()
    ours = [line for line in axes.lines if line.get_transform() == across]
    return [line for line in ours if list(line.get_ydata()) != [0, 1]]  # a ridge goes from edge to edge


MISTAKEN = {
    "rung": "mistaken",
    "label": "with the mistake",
    "points": [{"intensity": i, "flops_per_s": None} for i in (0.5, 0.6)],
}


def test_a_count_has_no_time_and_stands_on_the_intensity_axis_whatever_the_roof():
    for highlight in ("H100 SXM", "H200"):
        figure = figures.roofline([H100, H200], [COUNTED], highlight=highlight)
        [counted] = [line for line in on_axis(figure) if line.get_marker() == "o"]
        assert (list(counted.get_xdata()), list(counted.get_ydata())) == ([1.0], [0])
        assert not counted.get_clip_on()
    marks = [line for line in figure.axes[0].lines if line.get_marker() in ("o", "D")]
    assert marks == [counted], "nothing that was only counted has FLOP/s"


def test_workspace_is_a_second_mark_joined_to_the_first():
    point = {"intensity": 15.5, "intensity_of_all": 10.4, "flops_per_s": None}
    figure = figures.roofline([H100], [{**COUNTED, "points": [*COUNTED["points"], point]}])
    join, end = [line for line in on_axis(figure) if line.get_marker() != "o"]
    assert list(join.get_xdata()) == [15.5, 10.4] and list(end.get_xdata()) == [10.4]
    assert "counted, ├ with workspace" in words(figure)


def test_the_wrong_kernel_has_a_sign_of_its_own_below_the_axis():
    figure = figures.roofline([H100], [COUNTED, MISTAKEN])
    right, wrong = on_axis(figure)
    assert (right.get_marker(), wrong.get_marker()) == ("o", "X")
    assert wrong.get_markeredgecolor() == PALETTE["mistaken"][0]
    assert right.get_ydata()[0] == 0 > wrong.get_ydata()[0]
    assert "with the mistake" in words(figure)


def test_the_name_of_a_series_below_the_axis_is_inside_the_figure_whichever_side_its_marks_are_on():
    for x in (1, 30, 2000):
        counted, below = (
            {**COUNTED, "label": label, "points": [{"intensity": at, "intensity_of_all": 0.9 * at}]}
            for label, at in (("counted", 1), ("counted: 2 sequences, some tokens", x))
        )
        figure = figures.roofline([H100], [counted, below])
        figure.draw_without_rendering()
        [text] = [t for t in figure.axes[0].texts if "2 sequences" in t.get_text()]
        box = text.get_window_extent()
        assert box.x0 >= 0 and box.x1 <= figure.bbox.x1, x
        assert sum("with workspace" in w for w in words(figure)) == 1


def reaching(label, rung, *ats):
    """A counted series that reaches further left with its workspace."""
    points = [{"intensity": at, "intensity_of_all": 0.9 * at, "flops_per_s": None} for at in ats]
    return {"rung": rung, "label": label, "points": points}


LONG = "published, k = 16,384, n = 16,384, of an engine"
CROWDED = [{**PUBLISHED, "label": f"{LONG} {i}", "points": PUBLISHED["points"] * 40} for i in (1, 2)]


@pytest.mark.parametrize(
    "series",
    [
        CROWDED,
        [
            reaching("counted", "counted", 1, 16, 128),
            reaching("counted, with the mistake", "mistaken", 1, 16, 72),
        ],
        [COUNTED, reaching("counted, with the mistake", "mistaken", 0.6, 1500)],
    ],
    ids=["a key of two", "a mistake with workspace", "marks at both ends"],
)
def test_every_word_of_a_figure_is_inside_it(series):
    figure = figures.roofline([H100], series)
    figure.draw_without_rendering()
    for text in figure.findobj(Text):
        box = text.get_window_extent()
        inside = box.x0 >= -1 and box.x1 <= figure.bbox.x1 + 1
        assert inside or not text.get_text(), (text.get_text(), box.x0, box.x1, figure.bbox.x1)


def test_workspace_is_explained_once_in_a_figure():
    figure = figures.roofline([H100], [reaching("ours", "counted", 9), reaching("wrong", "mistaken", 5)])
    assert [w for w in words(figure) if "ours" in w or "wrong" in w] == ["ours, ├ with workspace", "wrong"]


def test_series_of_one_rung_are_told_apart_by_their_marks():
    figure = figures.roofline([H100], [{**PUBLISHED, "label": f"engine {i}"} for i in range(4)])
    marks = [
        (line.get_marker(), line.get_markerfacecolor() == PALETTE["published"][0])
        for line in figure.axes[0].lines
        if line.get_marker() in "Dd" and len(line.get_xdata())
    ]
    assert len(marks) == len(set(marks)) == 4
    counts = figures.roofline([H100], [COUNTED, {**COUNTED, "label": "counted, otherwise"}])
    assert len({line.get_marker() for line in on_axis(counts)}) == 2


def test_roofs_with_ridges_of_their_own_are_all_marked_and_only_what_is_sure_is_tinted():
    roofs = [Roof("fp32", 66.9e12, 3.35e12), H100, Roof("fp8", 1978.9e12, 3.35e12)]
    figure = figures.roofline(roofs)
    assert {"ridge 20.0", "ridge 295", "ridge 591"} <= set(words(figure))
    spans = [patch.get_extents() for patch in figure.axes[0].patches]
    edges = figure.axes[0].transData.inverted()
    left, right = sorted((edges.transform(s.p0)[0], edges.transform(s.p1)[0]) for s in spans)
    assert left[1] == pytest.approx(roofs[0].ridge, rel=1e-3)
    assert right[0] == pytest.approx(roofs[2].ridge, rel=1e-3)
    one = figures.roofline(roofs, highlight="H100 SXM")
    assert [w for w in words(one) if w.startswith("ridge")] == ["ridge 295"]


def test_a_predicted_series_is_a_blue_line():
    series = {"rung": "predicted", "label": "predicted", "points": [{"intensity": i} for i in (1, 10)]}
    figure = figures.roofline([H100], [series])
    assert figure.axes[0].lines[-1].get_color() == PALETTE["predicted"][0]


def test_everything_is_named_and_no_two_labels_touch(full):
    renderer = full.canvas.get_renderer()
    assert {"H100 SXM, H200", "L4", "M = 32", "ridge 295"} <= set(words(full))
    boxes = [t.get_window_extent(renderer) for t in full.axes[0].texts]
    assert not [(i, j) for i, a in enumerate(boxes) for j, b in enumerate(boxes[:i]) if a.overlaps(b)]
    assert all(full.bbox.x0 <= b.x0 and b.x1 <= full.bbox.x1 for b in boxes)


def test_a_series_without_room_beside_it_gets_a_key_instead():
    crowd = [{**PUBLISHED, "label": f"a rather long name, number {i}" * 2} for i in range(3)]
    figure = figures.roofline([H100], crowd)
    assert len(figure.legends) == 1
    assert [t.get_text() for t in figure.legends[0].get_texts()] == [s["label"] for s in crowd]


def test_every_point_and_roof_is_inside_the_frame(full):
    axes = full.axes[0]
    low, high = axes.get_ylim()
    for line in axes.lines[1:]:
        if line in on_axis(full):
            continue
        assert low < np.min(line.get_ydata())
        assert np.max(line.get_ydata()) < high


def test_a_formula_is_drawn_with_its_limit_dashed_and_its_points():
    figure = figures.formula(LINEAR, "m", [COUNTED], k=8192, n=8192)
    limit, curve, counted = figure.axes[0].lines
    assert limit.get_linestyle() == "--"
    assert limit.get_ydata()[-1] == pytest.approx(8192)
    assert curve.get_ydata()[-1] == pytest.approx(2730.667, rel=1e-5)
    assert curve.get_color() == PALETTE["predicted"][0]
    assert (counted.get_xdata()[0], counted.get_ydata()[0]) == (1, 1.0)
    assert "K = 8,192, N = 8,192, s = 2" in words(figure)
    assert "weights only" in words(figure)


def test_against_another_parameter_there_is_no_limit():
    assert len(figures.formula(LINEAR, "k").axes[0].lines) == 1


def test_shown_html_has_alt_text_theme_colours_and_nothing_that_leaks(full):
    page = figures.show(full, caption="Five & one").html
    svg = page[page.index("<svg") : page.index("</svg>")]
    assert 'role="img" aria-label="All on one line."' in svg
    assert "<figcaption>Five &amp; one</figcaption>" in page
    assert 'html[data-theme="dark"]' in page
    known = {f"var(--rl-{role},{light})" for role, (light, _) in PALETTE.items()}
    used = set(re.findall(r"var\([^)]*\)", svg))
    assert used <= known
    assert not re.search(r"#[0-9a-f]{6}", re.sub(r"var\([^)]*\)", "", svg)), (
        "a colour from outside the palette"
    )
    assert "<style" not in svg, "a style inside an inline SVG applies to the whole page"
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", svg)
    ids = set(re.findall(r'id="([^"]*)"', svg))
    assert ids == {i for i in re.findall(r"#(rl-[\w-]*)", svg)}


def test_shown_is_small_and_the_same_each_time(full):
    def bundle():
        figure = figures.roofline([H100, L4], [COUNTED, PUBLISHED], alt="One line.")
        return json.dumps(figures.show(figure)._repr_mimebundle_())

    first = bundle()
    assert first == bundle()
    assert len(first) < 100_000
    assert len(figures.show(full).html) < 30_000
    assert len(figures.show(full).png) < 60_000
    assert figures.show(full).png.startswith(b"\x89PNG")


def test_nothing_global_changes():
    before = dict(matplotlib.rcParams)
    figures.show(figures.roofline([H100]), alt="A roof.")
    assert dict(matplotlib.rcParams) == before


LENGTHS = [64, 128, 256, 512]
FUSED = {"label": "fused", "length": LENGTHS, "intensity": [n / 3 for n in LENGTHS]}
UNFUSED = {"label": "unfused", "length": LENGTHS, "intensity": [13.0] * 4}


def test_curves_carry_the_marks_of_what_was_counted_of_each():
    points = [
        {"rung": "counted", "label": label, "points": [{"length": 128, "intensity": y}, {"length": 9}]}
        for label, y in (("fused, counted", 128 / 3), ("unfused, counted", 13.0))
    ]
    axis = {"across": "length", "value": "intensity", "xlabel": "tokens", "ylabel": "FLOP/byte"}
    figure = figures.curves([FUSED, UNFUSED], points, level=(295, "ridge 295"), alt="Two.", **axis)
    assert {"fused", "unfused", "fused, counted", "unfused, counted", "ridge 295"} <= set(words(figure))
    blue = [line for line in figure.axes[0].lines if line.get_color() == PALETTE["predicted"][0]]
    assert [list(line.get_ydata()) for line in blue] == [FUSED["intensity"], UNFUSED["intensity"]]
    assert blue[0].get_linestyle() != blue[1].get_linestyle()
    marks = [line for line in figure.axes[0].lines if line.get_marker() in ("o", "s")]
    assert [m.get_marker() for m in marks] == ["o", "s"]
    assert [(m.get_xdata()[0], m.get_ydata()[0]) for m in marks] == [(128, 128 / 3), (128, 13.0)]
    with pytest.raises(ValueError, match="lines is empty"):
        figures.curves([], **axis)


def test_labels_keep_apart_and_inside_also_where_a_key_has_moved_the_axes():
    crowd = [{**PUBLISHED, "label": f"a rather long name, number {i}" * 2} for i in range(3)]
    figure = figures.roofline([H100], [COUNTED, MISTAKEN, *crowd])
    figure.draw_without_rendering()
    renderer, frame = figure.canvas.get_renderer(), figure.axes[0].bbox
    boxes = [Text.get_window_extent(t, renderer) for t in figure.axes[0].texts]
    assert not [(i, j) for i, a in enumerate(boxes) for j, b in enumerate(boxes[:i]) if a.overlaps(b)]
    assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 for box in boxes)


def test_bad_input_is_refused_with_a_sentence():
    with pytest.raises(ValueError, match="roofs is empty"):
        figures.roofline([])
    with pytest.raises(ValueError, match="highlight 'B200' is none of"):
        figures.roofline([H100], highlight="B200")
    with pytest.raises(ValueError, match="rung 'guessed' is none of predicted, counted"):
        figures.roofline([H100], [{**COUNTED, "rung": "guessed"}])
    with pytest.raises(ValueError, match="alt is empty"):
        figures.show(figures.roofline([H100]))
    with pytest.raises(KeyError, match="no parameter 'rows'"):
        figures.formula(LINEAR, "rows")
    with pytest.raises(KeyError, match="no colour is called 'pink'"):
        figures.colour("pink")


def test_a_label_steps_aside_for_a_line_and_gives_up_at_its_limit():
    figure, axes = figures.new()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    figure.draw_without_rendering()
    labels = Labels(axes)
    labels.avoid_line([0.5, 1], [0.5, 0.5])
    first, *_ = around(0.5, 0.5)
    on_the_line = Place(0.5, 0.5, 5, 0)
    text = labels.place("name", [on_the_line, first], colour="black")
    assert text.get_va() == "top"
    assert labels.place("name", [on_the_line], colour="black", limit=0) is None
    assert len(axes.texts) == 1


def test_roofs_too_near_each_other_are_named_in_the_margin():
    mi300x = Roof("MI300X", 1307.4e12, 5.3e12)
    b200 = Roof("B200", 2250e12, 8e12)
    figure = figures.roofline([H100, H200, mi300x, b200, L4], operating=1)
    frame, names = figure.axes[0].bbox, {"H100 SXM", "H200", "MI300X", "B200", "L4"}
    boxes = {t.get_text(): Text.get_window_extent(t) for t in figure.axes[0].texts if t.get_text() in names}
    assert set(boxes) == names
    assert all(frame.x1 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes.values())
    assert not [1 for a in boxes for b in boxes if a < b and boxes[a].overlaps(boxes[b])]
    assert boxes["B200"].y0 > boxes["MI300X"].y0 > boxes["H200"].y0 > boxes["H100 SXM"].y0 > boxes["L4"].y0


def test_spreading_moves_as_little_as_it_can():
    assert spread([0, 30, 60], 10) == [0, 30, 60]
    assert spread([0, 0], 10) == [-5, 5]
    assert spread([0, 100, 101, 102], 10) == [0, 91, 101, 111]
    assert spread([], 10) == []


def test_a_notebook_shows_a_figure_by_itself(full):
    """Without it a cell that ends in a figure prints "<Figure size ...>": no pyplot, so no backend draws."""
    from IPython.core.formatters import DisplayFormatter

    data, _ = DisplayFormatter().format(full)
    assert {"text/html", "image/png"} <= set(data)
    assert data["text/html"] == figures.show(full).html
    assert data["text/plain"] == "Figure: All on one line."
