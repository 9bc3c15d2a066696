"""The catalog without PyYAML: it is read as PyYAML reads it, and what may be read otherwise is refused."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from book.catalog import plain_yaml, rows

FILES = sorted(Path(rows.__file__).parent.glob("*.yaml"))

DOCUMENT = r"""
# a comment
a: 1  # another
b: {c: "x # no comment, \"quoted\"", d: 'it''s', e: [1, -2.50, 3e4, null, true], 'f g': http://a.b/c}
list:
- {id: x, points: [[1, 2],  # in a bracket
   [3, 4]]}
- name: y
  deeper:
    two: words in a row
- plain words, and a comma
nothing:
"last one": "8.9"
"""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_file_of_the_catalog_is_read_as_pyyaml_reads_it(path):
    text = path.read_text(encoding="utf-8")
    assert repr(plain_yaml.load(text)) == repr(yaml.safe_load(text))


def test_all_that_it_knows_is_read_as_pyyaml_reads_it():
    assert plain_yaml.load(DOCUMENT) == yaml.safe_load(DOCUMENT)
    assert plain_yaml.load("# nothing") is yaml.safe_load("# nothing") is None


@pytest.mark.parametrize(
    "text",
    [
        "a: yes",  # true, to PyYAML
        "a: 2026-11-29",  # a date
        "a: 010",  # eight
        "a: 1:30",  # ninety
        "a: &anchor x",
        "a: *anchor",
        "a: |\n  text",
        "a: {b: 1",
        "a: {b: 1}}",
        "a: {b}",
        "a: [1 2: 3]",
        "a: 1\n  b: 2",
        "a: 1\na: 2",
        "words alone",
        "a: 'open",
    ],
)
def test_what_may_be_something_else_is_refused(text):
    with pytest.raises(ValueError):
        plain_yaml.load(text)


def test_the_catalog_and_the_command_do_without_pyyaml():
    code = (
        "import sys\n"
        "sys.modules['yaml'] = None\n"  # an import of it fails
        "from book import catalog\n"
        "print(catalog.accelerator('h100_sxm').short_name, len(catalog.accelerators()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8")
    with_it = subprocess.run(
        [sys.executable, "-c", code.replace("sys.modules['yaml'] = None\n", "")],
        capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip
    assert done.stdout == with_it.stdout and done.stdout.startswith("H100 SXM "), done.stderr


def test_a_file_that_is_not_read_names_itself_and_the_remedy(tmp_path, monkeypatch):
    path = tmp_path / "cards.yaml"
    path.write_text("schema_version: yes\n")
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(rows.CatalogError, match="cards.yaml: 'yes': put it in quotes.*install PyYAML"):
        rows.read(path)
