"""The front page's list of chapters is read from the chapters themselves."""

import json

import pytest

from book.site import contents


def test_every_chapter_is_listed_in_order_with_its_question():
    found = contents.chapters()
    assert [c.number for c in found] == list(range(1, len(found) + 1))
    assert found[0].path == "chapters/01-roofline"
    assert found[0].title == "The roofline"
    assert all(c.question.endswith("?") and c.minutes > 0 for c in found)


def test_the_table_links_to_the_pages_of_the_site():
    html = contents.table()._repr_html_()
    for c in contents.chapters():
        assert f'<a href="{c.path}.html">{c.title}</a>' in html


def test_a_chapter_without_a_card_is_refused(tmp_path):
    (tmp_path / "chapters").mkdir()
    (tmp_path / "_toc.yml").write_text(
        "parts: [{caption: P, chapters: [{file: chapters/01-x}]}]", encoding="utf-8"
    )
    notebook = {"cells": [{"cell_type": "markdown", "source": ["# X\n"]}]}
    (tmp_path / "chapters/01-x.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    with pytest.raises(ValueError, match=r"chapters/01-x.ipynb: its first cell lacks"):
        contents.chapters(tmp_path)
