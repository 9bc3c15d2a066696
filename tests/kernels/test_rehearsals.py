"""A rehearsal is never shown as measured: one gate, and every way that a record has to a reader's eye.

Each test shows a measured record first, so that a way which shows nothing at all can't pass.
"""

import ast
import dataclasses

import pytest

from book.widgets import evidence_series
from kernels import linear
from kernels.evidence import confirm, launch_overhead, record_tables, recorded
from kernels.evidence.recorded import plausible, write
from kernels.evidence.recorded.write import ROOT
from kernels.measure import report
from labs.kit import record as lab_record
from labs.lab2_linear import other_cards
from tests.kernels.fakes import CARD
from tests.kernels.records import made, rehearsal

IMAGINARY = dataclasses.replace(CARD, imaginary=True)


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """The book's folder of records, with nothing in it: `shelf(record)` puts one there."""
    folder = tmp_path / "records"
    folder.mkdir()
    monkeypatch.setattr(recorded, "FOLDER", folder)

    def fill(record):
        recorded.save(record, folder / "x.json")
        return folder / "x.json"

    return fill


def test_the_gate_lets_measurements_through_and_nothing_else():
    without = {name: value for name, value in made().items() if name != "kind"}
    assert recorded.measured([made(), rehearsal(), without, made(kind="gpu")]) == (made(),)


def test_the_books_records_hold_none(shelf):
    shelf(made())
    assert len(recorded.load_all()) == 1
    shelf(rehearsal())
    assert recorded.load_all() == ()


def test_a_run_on_an_imaginary_device_is_a_rehearsal_whoever_writes_it(tmp_path):
    assert write.empty(CARD, "x")["kind"] == "measured"
    assert write.empty(IMAGINARY, "x")["kind"] == "rehearsed"
    for device, kind in ((CARD, "measured"), (IMAGINARY, "rehearsed")):  # what a lab exports
        path = lab_record.export(tmp_path / "mine.json", device, {}, [], command="lab2-linear")
        assert recorded.load(path)["kind"] == kind


def test_a_rehearsal_cannot_be_renamed_into_a_measurement():
    with pytest.raises(recorded.RecordError, match="its device is imaginary, so it is rehearsed"):
        recorded.validate(rehearsal() | {"kind": "measured"}, "x.json")


def test_series_for_the_explorer():
    assert recorded.points("linear", records=[made()])
    assert recorded.points("linear", records=[rehearsal()], others=True) == ()


def test_the_cost_of_a_launch():
    kept = {"overhead": rehearsal()["overhead"]}
    assert launch_overhead.recorded([made(**kept)])
    assert launch_overhead.recorded([rehearsal()]) == ()


def shown(path):
    return confirm(linear.experiment, rungs=["recorded"], records=path)


def test_the_recorded_rung_and_the_points_of_a_chapter(shelf):
    path = shelf(made())
    assert [s["rung"] for s in shown(path).points()] == ["recorded", "recorded"]  # the book's, and one's own
    evidence = shown(shelf(rehearsal()))
    assert evidence.points() == [] and evidence.recorded == ()
    assert evidence.status["recorded"] == ("not measured yet; x.json is a rehearsal, and is none of evidence")
    assert "not measured yet; x.json is a rehearsal" in evidence._repr_html_()


def test_a_chapters_figure_says_rehearsed_at_every_mark_and_every_roof(shelf):
    def words(evidence):
        figure = evidence.figure()
        labels = [text.get_text() for axes in figure.axes for text in axes.texts]
        keys = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
        return [w for w in labels + keys if "NVIDIA H100" in w], figure.axes[0].get_lines()

    said, lines = words(shown(shelf(made())))
    assert any(w.startswith("measured") for w in said) and "x" not in {line.get_marker() for line in lines}
    said, lines = words(shown(shelf(rehearsal())))
    assert said and all(w.startswith("rehearsed") for w in said)
    assert {line.get_marker() for line in lines} <= {"None", "", "x"}  # no filled circle is among them


def test_the_explorer_has_no_place_for_it():
    (series, *_) = recorded.rehearsed("linear", [rehearsal()])
    with pytest.raises(ValueError, match="rung = 'rehearsed'; use one of counted"):
        evidence_series.series(None, series)
    assert recorded.rehearsed("linear", [made()]) == ()


def test_the_tables_of_the_pages_records_and_status():
    assert "NVIDIA H100" in repr(record_tables.runs([made()])) and record_tables.times([made()])
    assert "NVIDIA H100" not in repr(record_tables.runs([rehearsal()]))
    assert record_tables.times([rehearsal()]) == ()
    assert repr(record_tables.shelf([rehearsal()])).startswith("No card has been measured yet.")


def test_the_table_of_lab_2(shelf):
    sizes = made()["sweeps"][0]["points"][1]["sizes"]
    numbers = {**sizes, "cards": {"h100_sxm": {"name": "H100 SXM"}}}
    shelf(made())
    (row,) = other_cards.reveal({}, numbers).cells
    assert row[2] != "not measured yet"
    shelf(rehearsal())
    (row,) = other_cards.reveal({}, numbers).cells
    assert row[2] == "not measured yet"


def test_the_table_that_the_command_prints_says_it_first():
    assert report.table(made()).startswith("NVIDIA H100 80GB HBM3, complete")
    assert report.table(rehearsal()).startswith("Rehearsed on an imaginary card, nothing here was measured")


def test_the_check_of_a_record():
    assert plausible.judge(made()).complaints == ()
    assert "rehearsal" in plausible.judge(rehearsal()).complaints[0]


def readers(text):
    """Functions that take times out of a record and don't pass the gate."""

    def keys(node):
        if isinstance(node, ast.Subscript):
            return [node.slice]
        asks = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get"
        return node.args if asks else []

    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        nodes = list(ast.walk(function))
        asked = {key.value for n in nodes for key in keys(n) if isinstance(key, ast.Constant)}
        names = {n.attr for n in nodes if isinstance(n, ast.Attribute)}
        names |= {n.id for n in nodes if isinstance(n, ast.Name)}
        if asked & {"sweeps", "overhead"} and "measured" not in names:
            yield function.name


WRITERS = (
    "kernels/evidence/recorded",
    "kernels/evidence/rehearsal",
    "kernels/measure",
    "labs/kit/record.py",
    "book/serving",  # a law's own overhead: it lies below the records and can't see one
)


def test_nobody_else_takes_a_time_from_a_record_and_passes_the_gate_by():
    reads = "def f(record):\n    return record['sweeps'], record.get('overhead')"
    assert list(readers(reads)) == ["f"] and list(readers(reads + ", measured([record])")) == []
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for house in ("book", "kernels", "labs")
        for path in (ROOT / house).rglob("*.py")
        if not str(path.relative_to(ROOT)).startswith(WRITERS) and "node_modules" not in path.parts
        for name in readers(path.read_text(encoding="utf-8"))
    }
    assert found == set()


def asks_for_rehearsals(text):
    """Calls that let rehearsals through the gate: with anything but a caller's own word for it."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.keyword)
        and node.arg == "rehearsals"
        and not (isinstance(node.value, ast.Name | ast.Attribute) and "rehearsals" in ast.unparse(node.value))
    ]


def test_nothing_of_the_book_asks_for_rehearsals():
    assert asks_for_rehearsals("f(rehearsals=True)") and not asks_for_rehearsals("f(rehearsals=rehearsals)")
    allowed = {"kernels/evidence/recorded/__main__.py"}  # `check --rehearsal`, by somebody's hand
    found = {
        str(path.relative_to(ROOT))
        for house in ("book", "kernels", "labs")
        for path in (ROOT / house).rglob("*.py")
        if "node_modules" not in path.parts and asks_for_rehearsals(path.read_text(encoding="utf-8"))
    }
    pages = [*(ROOT / "book/pages").glob("*.md"), *(ROOT / "chapters").glob("*.ipynb")]
    assert found == allowed
    assert not [path.name for path in pages if "rehearsals=" in path.read_text(encoding="utf-8")]
