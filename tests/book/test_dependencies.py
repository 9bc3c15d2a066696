"""What a notebook depends on: what travels with it, and what makes it run again."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from book.portable.dependencies import closure, deciding, fingerprint
from book.site.contents import chapters
from kernels.evidence import child_process
from kernels.evidence.addresses import address
from kernels.evidence.experiments import all_experiments

ROOT = child_process.ROOT
PLACE = "from pathlib import Path\nHERE = Path(__file__).parent\n"
FILES = {
    "book/__init__.py": 'FACE = {"explore": "book.widgets"}\n',
    "book/widgets.py": "def explore(): ...\n",
    "book/rows.py": PLACE + 'ROWS = HERE / "data" / "rows.txt"\n',
    "book/data/rows.txt": "1\n",
    "book/data/other.txt": "2\n",
    "book/nobodys.yaml": "a: 1\n",
    "book/cost/__init__.py": "from book.cost.linear import linear\nfrom book.cost.mlp import mlp\nHERE = 1\n",
    "book/cost/linear.py": "def linear(): ...\n",
    "book/cost/mlp.py": "def mlp(): ...\n",
    "book/formulas/__init__.py": "import pkgutil\ndef every(): return list(pkgutil.iter_modules(__path__))\n",
    "book/formulas/one.py": "A = 1\n",
    "book/formulas/two.py": "B = 2\n",
    "kernels/__init__.py": "",
    "kernels/stream.py": "from book.cost import linear\n",
    "kernels/lazy.py": "def f():\n    from . import stream\n",
    "kernels/child.py": 'COMMAND = ["-m", "kernels.stream"]\n',
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small repository."""
    for name, text in FILES.items():
        put(tmp_path, name, text)
    return tmp_path


def put(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, encoding="utf-8")


def add(root: Path, name: str, text: str) -> None:
    put(root, name, (root / name).read_text(encoding="utf-8") + text)


def run_by(root: Path, *cells: str) -> set[str]:
    return {path.relative_to(root).as_posix() for path in closure(cells, root)}


def decided_by(root: Path, *cells: str) -> set[str]:
    """The files of which all counts."""
    return {path.relative_to(root).as_posix() for path, own in deciding(cells, root).items() if own is None}


# ------------------------------------------------------------------ what travels


def test_imports_are_followed_through_modules_and_packages(root):
    assert run_by(root, "from kernels import stream") == {
        "kernels/__init__.py",
        "kernels/stream.py",
        "book/__init__.py",
        "book/cost/__init__.py",
        "book/cost/linear.py",
        "book/cost/mlp.py",
    }


@pytest.mark.parametrize("cell", ["import kernels.lazy", "import kernels.child"])
def test_so_are_imports_inside_functions_relative_ones_and_names_for_a_child_process(root, cell):
    assert "kernels/stream.py" in run_by(root, cell) & decided_by(root, cell)


def test_data_counts_where_a_module_names_it_and_not_for_lying_beside_one(root):
    cell = "%matplotlib inline\nimport book.rows"
    for found in (run_by(root, cell), decided_by(root, cell)):
        assert "book/data/rows.txt" in found
        assert not found & {"book/data/other.txt", "book/nobodys.yaml"}


def test_of_a_folder_of_which_no_file_is_named_all_count(root):
    put(root, "book/whole.py", 'FILES = Path("data").iterdir()\n')
    assert {"book/data/rows.txt", "book/data/other.txt"} <= run_by(root, "import book.whole")


def test_the_face_of_a_package_is_followed_name_by_name(root):
    assert "book/widgets.py" in run_by(root, "from book import explore")
    assert "book/widgets.py" not in run_by(root, "from book import rows")


@pytest.mark.parametrize("cell", ["import numpy, torch", "this is not Python", ""])
def test_what_is_not_ours_or_not_python_asks_for_nothing(root, cell):
    assert run_by(root, cell) == decided_by(root, cell) == set()


# ------------------------------------------------------------------ what decides


@pytest.mark.parametrize(
    "cell",
    ["from book import cost\ncost.linear()", "from book.cost import linear", "from kernels import stream"],
)
def test_of_what_a_package_hands_on_only_what_is_taken_counts(root, cell):
    assert "book/cost/linear.py" in decided_by(root, cell)
    assert "book/cost/mlp.py" not in decided_by(root, cell)


@pytest.mark.parametrize(
    "cell",
    [
        "from book import cost\nsee(cost)",
        "from book import cost\nfrom book import cost as other\ngetattr(other, 'mlp')",
        "from book.cost import *",
        "import book.cost\nbook.cost.mlp()",
        "import book.cost as c\nc.mlp()",
    ],
)
def test_a_package_that_is_used_in_another_way_counts_whole(root, cell):
    assert {"book/cost/__init__.py", "book/cost/linear.py", "book/cost/mlp.py"} <= decided_by(root, cell)


def test_a_package_on_the_way_counts_with_its_own_code_and_the_names_that_were_taken(root):
    cell = ["from book.cost import linear"]
    before = fingerprint(cell, root)
    add(root, "book/cost/__init__.py", "from book.cost.base import base\n# a comment\n")
    assert fingerprint(cell, root) == before, "another name that it hands on"
    put(root, "book/__init__.py", 'FACE = {"explore": "book.widgets", "other": "book.other"}\n')
    assert fingerprint(cell, root) == before, "another name of the face"
    add(root, "book/cost/__init__.py", "HERE = 2\n")
    own = fingerprint(cell, root)
    assert own != before
    put(root, "book/cost/other.py", FILES["book/cost/linear.py"])
    add(root, "book/cost/__init__.py", "from book.cost.other import linear\n")
    assert fingerprint(cell, root) != own, "the same name from elsewhere"


def test_modules_that_are_found_by_looking_count_for_those_who_look(root):
    assert "book/formulas/two.py" in decided_by(root, "from book.formulas import every")
    assert "book/formulas/two.py" not in decided_by(root, "from book.formulas import one")


def test_the_fingerprint_changes_with_contents_and_with_the_machine(root):
    cells = ["from kernels import stream"]
    before = fingerprint(cells, root, "torch 1")
    assert before == fingerprint(cells, root, "torch 1")
    assert before != fingerprint(cells, root, "torch 2")
    add(root, "kernels/stream.py", "# other\n")
    assert before != fingerprint(cells, root, "torch 1")


# ------------------------------------------------------------------ this book: only what changed runs again


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """The repository's files, to be changed at will."""
    to = tmp_path_factory.mktemp("copy")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "book", "kernels", "labs"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to / name)
    return to


CELLS = {
    chapter.path.split("/")[-1]: [
        "".join(cell["source"])
        for cell in json.loads((ROOT / f"{chapter.path}.ipynb").read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
    ]
    for chapter in chapters()
}
EXPERIMENTS = {name: address(one) for name, one in all_experiments().items()}


@pytest.fixture(scope="module")
def decided() -> dict[str, dict[Path, str | None]]:
    """The files that decide each chapter."""
    return {name: deciding(cells, ROOT) for name, cells in CELLS.items()}


def state(root: Path) -> dict[str, str]:
    """What decides each chapter and each compiled experiment of the repository at `root`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child_process, "ROOT", root)
        return {name: fingerprint(cells, root) for name, cells in CELLS.items()} | {
            f"compile {name}": child_process.decided_by("compile", where)
            for name, where in EXPERIMENTS.items()
        }


@pytest.fixture(scope="module")
def before(copy) -> dict[str, str]:
    return state(copy)


@pytest.fixture
def again(copy, before):
    """A function: which chapters run again, and which experiments are compiled again, after changes."""

    def changed(*names: str, text: str = "# a comment\n") -> set[str]:
        paths = [copy / name for name in names]
        old = [path.read_text(encoding="utf-8") if path.exists() else None for path in paths]
        for name, was in zip(names, old, strict=True):
            put(copy, name, (was or "") + text)
        try:
            return {one for one, value in state(copy).items() if value != before[one]}
        finally:
            for name, path, was in zip(names, paths, old, strict=True):
                path.unlink()
                if was is not None:
                    put(copy, name, was)

    return changed


def test_a_comment_in_one_chapters_formulas_runs_one_chapter(again):
    assert again("book/formulas/ch05_kv_cache.py") == {"05-kv-cache"}


def test_a_chapters_formulas_count_for_the_chapters_that_name_the_file(decided):
    for path in sorted(ROOT.glob("book/formulas/ch[0-9]*.py")):
        naming = {name for name, cells in CELLS.items() if re.search(rf"\b{path.stem}\b", "\n".join(cells))}
        assert {name for name, files in decided.items() if path in files} == naming, path.name
        assert len(naming) == (0 if path.stem == "ch00_deployment" else 1), "the front page's is no chapter's"


def test_a_new_row_of_the_ledger_runs_no_chapter_and_compiles_nothing(again, decided):
    rows = sorted(ROOT.glob("book/claims/*.py"))[-1].relative_to(ROOT).as_posix()
    changes = (rows, "book/claims/ch99_new.py")
    assert not again(*changes), {name: again(name) for name in changes}
    assert not [path for files in decided.values() for path in files if "claims" in path.as_posix()]


def test_a_new_kernel_runs_no_chapter_and_compiles_no_other(again):
    kernel = "from kernels.linear import experiment as other\n"
    changes = ("kernels/new_kernel.py", "kernels/measure/run.py", "kernels/measure/worker.py")
    assert not again(*changes, text=kernel), {name: again(name, text=kernel) for name in changes}


def test_a_changed_kernel_is_compiled_again_with_those_that_are_built_of_it(again):
    moved = again("kernels/matmul.py")
    assert {"compile linear", "compile gemv", "compile mlp"} <= moved
    assert not moved & {"compile stream", "compile decode_attention", "compile flash_attention"}
    assert not {name for name in again("kernels/stream.py") if name.startswith("compile")} - {
        "compile stream",
        "compile stream.triad",
        "compile fma_chain",
    }


def test_a_widgets_words_run_every_chapter_that_shows_one(again):
    assert again("book/widgets/words.py") == set(CELLS)
