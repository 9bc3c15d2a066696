"""Whatever is handed in as .ipynb is read, and what was odd about it is said."""

from __future__ import annotations

import codecs
import json
import os
import time

import nbformat
import pytest

from labs.grading import master, submission
from tests.labs import toy


@pytest.fixture
def lab(tmp_path):
    return toy.assignment(tmp_path / "master")


@pytest.fixture
def path(tmp_path):
    return toy.hand_in(tmp_path / "in.ipynb")


def _reread(path, lab, notebook):
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return submission.read(path, lab)


def _cell(notebook, name):
    return next(c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == name)


def test_an_ordinary_one(lab, path):
    read = submission.read(path, lab)
    assert dict(read.cells) == {name: text for name, text in toy.RIGHT.items()}
    assert (read.notes, dict(read.missing), read.untouched, read.unreadable) == ((), {}, frozenset(), "")
    assert read.digest == submission.digest_of(path)


def test_a_stub_is_untouched_until_it_is_filled_in(lab, tmp_path):
    blank = submission.read(toy.hand_in(tmp_path / "b.ipynb", toy.BLANKS), lab)
    assert blank.untouched == set(toy.RIGHT)
    other = toy.BLANKS["toy-values"].replace("your code here", "I don't know") + "\n\n# nothing"
    commented = submission.read(toy.hand_in(tmp_path / "c.ipynb", toy.BLANKS, toy_values=other), lab)
    assert "toy-values" in commented.untouched
    begun = submission.read(toy.hand_in(tmp_path / "d.ipynb", toy.BLANKS, toy_values="size = 3"), lab)
    assert "toy-values" not in begun.untouched


@pytest.mark.parametrize(
    "data, said",
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"PK\x03\x04....", "ZIP"),
        (b"%PDF-1.7", "PDF"),
        (b"<!DOCTYPE html><html>", "web page"),
        (b'{"cells": [{"cell_type": "code", "sou', "ends in the middle"),
        (b"hello", "not a notebook"),
        (b"[1, 2]", "no notebook"),
        (b'"cells"', "no notebook"),
        (b"{}", "no cells"),
        (b'{"cells": {"a": 1}}', "no cells"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"cells": ' + b"1" * 5000 + b"}", "not a notebook"),
        (os.urandom(3000), "not a notebook"),
        (b"\xff\xfe\x00", "not a notebook"),
    ],
)
def test_what_is_no_notebook(lab, path, data, said):
    path.write_bytes(data)
    read = submission.read(path, lab)
    assert said in read.unreadable
    assert set(read.missing) == set(toy.RIGHT) and not read.cells
    assert read.unreadable in read.notes


def test_a_truncated_file_at_every_length(lab, path):
    notebook = toy.as_json(path)
    notebook["metadata"]["odd"] = ['\u00e9 \\ "', True, None, -1.5e-7, {}]
    for data in (path.read_bytes().rstrip(), json.dumps(notebook).encode()):
        for end in range(1, len(data)):
            with pytest.raises(submission.Unreadable, match="ends in the middle"):
                submission._notebook(data[:end], [])
        path.write_bytes(data[: len(data) // 2])
        assert "ends in the middle" in submission.read(path, lab).unreadable


def test_a_file_broken_elsewhere_does_not_end_in_the_middle(lab, path):
    whole = path.read_bytes().rstrip()
    for broken in (
        whole + b"}",
        whole.replace(b": ", b" ", 1),
        whole[: len(whole) // 2] + b",, " + whole[5:],
    ):
        path.write_bytes(broken)
        assert "is not a notebook" in submission.read(path, lab).unreadable


def test_too_large_a_file_says_what_to_do(lab, path, monkeypatch):
    monkeypatch.setattr(submission, "LARGEST_FILE", 1000)
    assert "Clear the outputs" in submission.read(path, lab).unreadable


@pytest.mark.parametrize(
    "junk", [None, 3, "x", [], {}, {"cell_type": 3}, {"source": {"a": 1}}, {"metadata": []}]
)
def test_junk_among_the_cells_is_passed_over(lab, path, junk):
    notebook = toy.as_json(path)
    notebook["cells"].insert(1, junk)
    assert dict(_reread(path, lab, notebook).cells) == toy.RIGHT


@pytest.mark.parametrize("junk", [3, "x", [], {"grade_id": 7}, {"grade_id": ["a"]}, {"grade_id": "nobody's"}])
def test_odd_metadata_is_no_metadata(lab, path, junk):
    notebook = toy.as_json(path)
    _cell(notebook, "toy-calls")["metadata"]["nbgrader"] = junk
    read = _reread(path, lab, notebook)
    assert dict(read.cells) == toy.RIGHT
    assert read.notes == ("toy-calls lost its metadata; it was recognised by its first line.",)


def test_saved_by_colab_without_nbgrader_metadata(lab, path):
    notebook = toy.as_json(path)
    notebook["metadata"] = {"colab": {"provenance": []}, "accelerator": "GPU"}
    notebook["nbformat_minor"] = 0
    for number, cell in enumerate(notebook["cells"]):
        cell["metadata"] = {"id": f"x{number}", "colab": {"base_uri": "x"}, "outputId": "1-2"}
        cell["metadata"]["executionInfo"] = {"status": "ok", "user": {"displayName": "A"}}
        cell.pop("id")
    read = _reread(path, lab, notebook)
    assert dict(read.cells) == toy.RIGHT and not read.missing


def test_a_newer_minor_version_and_the_old_format_3(lab, path):
    notebook = toy.as_json(path)
    notebook["nbformat_minor"] = 99
    assert dict(_reread(path, lab, notebook).cells) == toy.RIGHT
    old = nbformat.convert(nbformat.reads(json.dumps(toy.as_json(path)), 4), 3)
    read = _reread(path, lab, old)
    assert {name: text.rstrip() for name, text in read.cells.items()} == {
        name: text.rstrip() for name, text in toy.RIGHT.items()
    }
    assert any("format 3" in note for note in read.notes)


def test_bom_utf_16_and_carriage_returns(lab, path):
    text = path.read_text(encoding="utf-8")
    path.write_bytes(codecs.BOM_UTF8 + text.replace("\n", "\r\n").encode())
    assert dict(submission.read(path, lab).cells) == toy.RIGHT
    path.write_bytes(text.encode("utf-16"))
    assert dict(submission.read(path, lab).cells) == toy.RIGHT
    notebook = toy.as_json(toy.hand_in(path))
    cell = _cell(notebook, "toy-calls")
    cell["source"] = "".join(cell["source"]).replace("\n", "\r\n")
    assert dict(_reread(path, lab, notebook).cells) == toy.RIGHT


def test_half_a_character_and_a_null_byte(lab, path):
    path.write_text(
        path.read_text(encoding="utf-8").replace("size = 2 * 8", "size = 2 * 8 # \\ud800\\u0000"),
        encoding="utf-8",
    )
    assert submission.read(path, lab).cells["toy-values"].endswith("size = 2 * 8 # ?\n")


def test_moved_cells_run_in_the_labs_order(lab, path):
    notebook = toy.as_json(path)
    notebook["cells"].reverse()
    read = _reread(path, lab, notebook)
    assert list(read.cells) == list(toy.RIGHT)
    assert read.notes == ("Cells were moved; they were run in the lab's order.",)


def test_a_deleted_cell_is_missing_and_said(lab, path):
    notebook = toy.as_json(path)
    notebook["cells"].remove(_cell(notebook, "toy-calls"))
    read = _reread(path, lab, notebook)
    assert set(read.missing) == {"toy-calls"}
    assert "toy-calls is missing" in read.missing["toy-calls"] and read.missing["toy-calls"] in read.notes


def test_another_notebook_altogether(lab, path):
    read = _reread(path, lab, {"cells": [{"cell_type": "code", "source": "x = 1", "metadata": {}}]})
    assert "another notebook" in read.notes[0] and set(read.missing) == set(toy.RIGHT)


def test_equal_duplicates_are_one(lab, path):
    notebook = toy.as_json(path)
    notebook["cells"].append(_cell(notebook, "toy-kernel"))
    assert _reread(path, lab, notebook).notes == ()


def test_of_different_duplicates_the_last_that_is_no_stub_counts(lab, path):
    notebook = toy.as_json(path)
    cell = _cell(notebook, "toy-kernel")
    second, stub = dict(cell, source="# [toy-kernel]\nx = 2"), dict(cell, source=toy.BLANKS["toy-kernel"])
    notebook["cells"] += [second, stub]
    read = _reread(path, lab, notebook)
    assert read.cells["toy-kernel"] == "# [toy-kernel]\nx = 2"
    assert "toy-kernel is there 2 times (cells 7 and 9); the last one was graded." in read.notes


def test_metadata_and_marker_disagree(lab, path):
    notebook = toy.as_json(path)
    _cell(notebook, "toy-calls")["source"] = "# [toy-values]\ndef twice(x): return x + x"
    read = _reread(path, lab, notebook)
    assert "x + x" in read.cells["toy-calls"] and "2 * 8" in read.cells["toy-values"]
    assert "Cell 5 is toy-calls by its metadata and toy-values by its first line" in read.notes[0]


def test_a_copied_cell_that_brought_metadata_along(lab, path):
    notebook = toy.as_json(path)
    notebook["cells"].remove(_cell(notebook, "toy-calls"))
    copied = dict(_cell(notebook, "toy-values"), source=toy.RIGHT["toy-calls"])
    notebook["cells"].append(copied)
    read = _reread(path, lab, notebook)
    assert dict(read.cells) == toy.RIGHT


def test_a_cell_that_became_markdown_is_code(lab, path):
    notebook = toy.as_json(path)
    _cell(notebook, "toy-values")["cell_type"] = "markdown"
    read = _reread(path, lab, notebook)
    assert read.cells["toy-values"] == toy.RIGHT["toy-values"]
    assert "toy-values is no code cell any more; its text was taken as code." in read.notes


@pytest.mark.parametrize(
    "source, run, said",
    [
        ("%%time\n# [toy-values]\nsize = 3", "pass  # %%time\n# [toy-values]\nsize = 3", "%%time"),
        ("%time size = 3", "size = 3", ""),
        ("!pip install foo\nsize = 3", "pass  # !pip install foo\nsize = 3", "!pip"),
        (
            "if 1:\n    %matplotlib inline\nsize = 3",
            "if 1:\n    pass  # %matplotlib inline\nsize = 3",
            "%mat",
        ),
        ("size?\nsize = 3", "pass  # size?\nsize = 3", "size?"),
        ("files = !ls\nsize = 3", "pass  # files = !ls\nsize = 3", "files"),
        ("size = (7\n%4)", "size = (7\n%4)", ""),
        ('"""\n%d of\n!x\n"""\nsize = 3', '"""\n%d of\n!x\n"""\nsize = 3', ""),
        ("size = = 3\n!ls", "size = = 3\n!ls", ""),
    ],
)
def test_magics(lab, path, source, run, said):
    read = submission.read(toy.hand_in(path, toy_values=source), lab)
    assert read.cells["toy-values"] == run
    assert [said in note for note in read.notes] == ([True] if said else [])


def test_names_of_the_students_own_cells(lab, path):
    notebook = toy.as_json(path)
    own = "import os.path as p\ndef helper(): inner = 1\nfor i in []:\n    a, *b = 1, 2\n%time c = 1"
    notebook["cells"].append({"cell_type": "code", "source": own, "metadata": {}})
    names = _reread(path, lab, notebook).elsewhere
    assert {"p", "helper", "a", "b", "c", "i"} <= names and "inner" not in names and "twice" not in names


def test_a_cell_longer_than_anybody_writes(lab, path):
    read = submission.read(toy.hand_in(path, toy_values="x = 1\n" * 20_000), lab)
    assert "120,000 characters" in read.missing["toy-values"]


def test_source_that_no_parser_takes(lab, path):
    for source in ("(" * 5000, "-" * 90_000 + "1", "x" + ".x" * 40_000, "\x00\x01", "size = 1" + "1" * 5000):
        assert "toy-values" in submission.read(toy.hand_in(path, toy_values=source), lab).cells


def test_the_master_of_a_lab(lab):
    read = master.read(lab)
    assert dict(read.points) == toy.POINTS and list(read.solutions) == list(toy.RIGHT)
    assert not any(master.is_stub(toy.RIGHT[name], read.solutions[name]) for name in toy.RIGHT)


@pytest.mark.parametrize("line", [" " * 90_000, "a " * 45_000, "a?" * 45_000, "a?" + " " * 90_000])
def test_no_line_takes_long_to_read(lab, tmp_path, line):
    handed_in = toy.hand_in(tmp_path / "in.ipynb", toy_values=f"(\n{line}x")
    started = time.monotonic()
    submission.read(handed_in, lab)
    assert time.monotonic() - started < 5


def test_more_cells_than_anybody_makes(lab, path):
    notebook = toy.as_json(path)
    notebook["cells"] += [_cell(notebook, "toy-calls")] * submission.MOST_CELLS
    assert "at most 1,000 are read" in _reread(path, lab, notebook).unreadable
