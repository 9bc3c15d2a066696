"""A notebook that carries its modules: what travels, how it unpacks, and what must stay behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from book.portable import bundle
from book.site.contents import chapters

CELL = "from book import catalog\nfrom kernels.evidence import confirm"
FILES = {
    "pyproject.toml": '[project]\nname = "x"\nversion = "1.2"\n',
    "book/__init__.py": "",
    "book/numbers.py": 'from pathlib import Path\nROWS = Path(__file__).with_name("rows.yaml").read_text()\n',
    "book/rows.yaml": "rows: [{id: a, value: 0.5}]\n",
    "book/other.yaml": "nobody: names this\n",
    "kernels/__init__.py": "",
    "kernels/linear.py": "from book import numbers\n",
    "labs/__init__.py": "",
    "labs/keys/__init__.py": "ANSWER = 42\n",
    "labs/kit.py": "import labs.keys\n",
    "labs/words.txt": "Grüße\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small repository."""
    for name, text in FILES.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "root"


def run(code: str, home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """`code` in a fresh Python whose home is `home`, in an empty folder, with nothing of ours on its path."""
    home.mkdir(exist_ok=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), **variables}
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


def test_what_the_cells_import_travels_and_data_that_a_module_names(root):
    packed = bundle.pack(["from kernels import linear"], root)
    assert packed.files == (
        "book/__init__.py",
        "book/numbers.py",
        "book/rows.yaml",
        "kernels/__init__.py",
        "kernels/linear.py",
    )
    assert packed.version == f"1.2+{packed.digest[:10]}"


def test_the_same_files_make_the_same_cell_and_others_another(root):
    first = bundle.pack(["import kernels.linear"], root)
    assert bundle.pack(["import kernels.linear"], root) == first
    (root / "book/numbers.py").write_text("ROWS = 2\n", encoding="utf-8")
    assert bundle.pack(["import kernels.linear"], root).version != first.version


def test_extra_files_travel_and_only_text_can(root):
    assert "labs/words.txt" in bundle.pack([], root, extra=[root / "labs/words.txt"]).files
    assert "labs/kit.py" in bundle.pack([], root, extra=[Path("labs")]).files
    (root / "labs/picture.png").write_bytes(b"\x89PNG\xff")
    with pytest.raises(ValueError, match=r"picture\.png: only text can travel"):
        bundle.pack([], root, extra=[Path("labs")])


@pytest.mark.parametrize(
    "cells, extra, who", [(["import labs.kit"], [], "labs/kit.py"), ([], ["labs"], "extra")]
)
def test_what_must_stay_behind_is_refused_by_name(root, cells, extra, who):
    with pytest.raises(ValueError, match=rf"labs\.keys must not travel .*{who}"):
        bundle.pack(cells, root, extra=map(Path, extra), without=["labs.keys"])
    bundle.pack(["import kernels.linear"], root, without=["kernels.line", "labs.keys"])


LATER = """import typing
if typing.TYPE_CHECKING:
    import labs.keys
def solve():
    from labs import keys
NAMED = 'labs.keys:ANSWER'
"""


def test_what_is_only_imported_later_may_stay_behind(root):
    (root / "labs/kit.py").write_text(LATER, encoding="utf-8")
    assert "labs/keys/__init__.py" in bundle.pack(["import labs.kit"], root).files
    packed = bundle.pack(["import labs.kit"], root, without=["labs.keys"])
    assert packed.files == ("labs/__init__.py", "labs/kit.py")
    (root / "labs/kit.py").write_text("def solve():\n    import labs.other\n", encoding="utf-8")
    (root / "labs/other.py").write_text(
        "try:\n    import labs.keys\nexcept ImportError:\n    pass\n", encoding="utf-8"
    )
    with pytest.raises(ValueError, match=r"labs\.keys must not travel .*labs/other\.py"):
        bundle.pack(["import labs.kit"], root, without=["labs.keys"])


def test_a_notebook_in_a_folder_that_a_module_names_stays_behind(root):
    (root / "labs/kit.py").write_text("NAMES = 'lab1-roof', '.git'\n", encoding="utf-8")
    (root / ".git").mkdir()
    (root / ".git/index").write_bytes(b"\xff")
    (root / "labs/lab1-roof").mkdir()
    (root / "labs/lab1-roof/lab1-roof.ipynb").write_text("{}", encoding="utf-8")
    assert "labs/lab1-roof/lab1-roof.ipynb" not in bundle.pack(["import labs.kit"], root).files


def test_the_cell_unpacks_once_mends_damage_and_says_one_line(root, tmp_path):
    packed = bundle.pack(["from kernels import linear"], root)
    home = tmp_path / "home"
    code = packed.text + "\nfrom kernels import linear\nprint(linear.numbers.ROWS)"
    first = run(code, home)
    said, rows = first.stdout.splitlines()
    folder = home / ".cache/inference-roofline/notebooks" / packed.version
    assert said == f"The Inference Roofline, version {packed.version}: 5 files unpacked to {folder}"
    assert first.stderr == ""
    assert json.loads(rows) == {"rows": [{"id": "a", "value": 0.5}]}, "YAML travels as JSON"
    assert "5 files were already in" in run(code, home).stdout

    (folder / "book/numbers.py").write_text("ROWS = 'damaged'\n", encoding="utf-8")
    mended = run(code, home)
    assert "unpacked to" in mended.stdout and "damaged" not in mended.stdout


def test_without_a_home_to_write_in_it_unpacks_elsewhere(root, tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    (tmp_path / "tmp").mkdir()
    packed = bundle.pack(["import kernels"], root)
    done = run(
        packed.text + "\nimport kernels; print(kernels.__file__)",
        tmp_path / "home",
        XDG_CACHE_HOME=str(tmp_path / "file"),
        TMPDIR=str(tmp_path / "tmp"),
    )
    assert done.stdout.splitlines()[1].startswith(str(tmp_path / "tmp/inference-roofline-")), done.stderr


def test_the_embedded_modules_win_over_others_of_their_name(root, tmp_path):
    """A clone in the working folder, an installed package, and one that was imported already."""
    home = tmp_path / "home"
    (home / "kernels").mkdir(parents=True)
    (home / "kernels/__init__.py").write_text("linear = 'theirs'\n", encoding="utf-8")
    packed = bundle.pack(["import kernels.linear"], root)
    before = f"import sys; sys.path.insert(0, {str(home)!r}); import kernels\n"
    done = run(before + packed.text + "\nimport kernels.linear; print(kernels.linear.numbers.ROWS)", home)
    assert done.returncode == 0, done.stderr


def test_it_leaves_nothing_but_the_path_behind(root, tmp_path):
    code = bundle.pack(["import kernels"], root).text
    look = (
        "import os, sys\nsee = lambda: (sorted(k for k in globals() if k != 'before'), dict(os.environ))\n"
        f"before = see()\nexec({code!r})\nassert see() == before, see()\nprint('same', len(sys.modules) > 0)"
    )
    done = run(look, tmp_path / "home")
    assert "same True" in done.stdout, done.stderr


def test_an_old_python_is_told_in_a_sentence(root, tmp_path):
    code = bundle.pack(["import kernels"], root).text
    done = run("import sys; sys.version_info = (3, 9, 1)\n" + code, tmp_path / "home")
    assert "RuntimeError: This is Python 3.9, and this notebook needs 3.11 or newer." in done.stderr
    assert not list((tmp_path / "home").iterdir())


def notebook(*cells: str, graded: bool = False) -> nbformat.NotebookNode:
    made = new_notebook(cells=[new_markdown_cell("# Title"), *map(new_code_cell, cells)])
    if graded:
        made.cells[1].metadata["nbgrader"] = {"grade": True, "grade_id": "q1"}
    return made


def test_the_cell_stands_below_the_title_folded_and_valid(root):
    before = notebook("import kernels.linear")
    made = bundle.self_contained(before, root)
    assert [cell.cell_type for cell in made.cells] == ["markdown", "code", "code"]
    assert len(before.cells) == 2, "the notebook that was given stays as it is"
    cell = made.cells[1]
    assert cell.source.startswith("#@title Set up (run this first)\n")
    assert cell.metadata["jupyter"]["source_hidden"] and cell.metadata["cellView"] == "form"
    assert "nbgrader" not in cell.metadata
    nbformat.validate(made)
    again = bundle.self_contained(made, root)
    assert again == made, "a second time changes nothing"
    assert bundle.self_contained(notebook("import numpy"), root).cells[1].source == "import numpy"


def test_in_an_nbgrader_notebook_the_cell_is_read_only(root):
    cell = bundle.self_contained(notebook("import kernels", graded=True), root).cells[1]
    assert cell.metadata["nbgrader"] == {
        "grade": False,
        "grade_id": "setup-embedded",
        "locked": True,
        "schema_version": 3,
        "solution": False,
        "task": False,
    }


def test_a_chapter_takes_what_it_needs_and_no_more():
    packed = bundle.pack([CELL])
    assert {"book/catalog/accelerators.yaml", "kernels/evidence/compiled/machine_code.py"} <= set(
        packed.files
    )
    at_home = ("book/claims", "book/portable", "book/site", "book/pages", "labs", "tests")
    at_home += ("kernels/measure", "kernels/evidence/rehearsal")
    assert not [name for name in packed.files if name.startswith(at_home)]


def built(path: str, found: dict[str, str]) -> bundle.Bundle | None:
    """What the site's build packed for this chapter, if it is of these files; None where it isn't."""
    download = bundle.ROOT / "_build/html/_sources" / f"{path}.ipynb"
    if not (os.environ.get("SITE_IS_BUILT") and download.exists()):
        return None
    text = next(c.source for c in nbformat.read(download, 4).cells if c.get("id") == bundle.CELL_ID)
    digest, version = bundle.digest_of(found), bundle.version_of(found, bundle.ROOT)
    return bundle.Bundle(tuple(found), digest, version, text) if f'_set_up("{version}"' in text else None


@pytest.mark.parametrize("chapter", chapters(), ids=lambda chapter: chapter.path)
def test_each_chapter_stays_small(chapter):
    code = [
        c.source
        for c in nbformat.read(bundle.ROOT / f"{chapter.path}.ipynb", 4).cells
        if c.cell_type == "code"
    ]
    packed = built(chapter.path, bundle.contents(code)) or bundle.pack(code)
    assert "book/site/static/explorer.js" in packed.files
    # The largest, chapter 09, carries the measured tables from which its steps are told.
    assert packed.size < 650_000
    assert max(map(len, packed.text.splitlines())) <= bundle.LINE
