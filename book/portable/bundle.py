"""Makes a notebook self-contained: what its cells import of ours travels in a cell of its own.

That cell holds the modules as text (JSON, lzma, base 85), writes them to a version-stamped folder
of the user's and puts it first on the path. So the notebook runs wherever torch, Triton, NumPy,
Matplotlib and ipywidgets are: on Colab, on Kaggle, on a bare Jupyter server, with no network.
It neither installs nor changes anything else: torch and Triton stay the platform's own.

The embedded modules win over a clone in which the notebook may lie, and over installed packages of
the same names: they are what the notebook was released with.

    bundle.pack(["from book import cost"]).files
    bundle.self_contained(notebook)
"""

from __future__ import annotations

import base64
import copy
import hashlib
import inspect
import json
import lzma
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from book.portable import unpack
from book.portable.dependencies import askers, left_out
from book.say import LANGUAGE

if TYPE_CHECKING:
    from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[2]
CELL_ID = "setup-embedded"
TITLE = "#@title Set up (run this first)"  # Colab shows this in place of the code
ABOUT = """\
# The modules that this notebook imports travel in the text at the end of this cell. Running it
# writes them to a folder of your own and puts that first on Python's path. Nothing is downloaded,
# nothing is installed: torch and Triton stay the ones that are here."""
# What needn't travel where it is only asked for late: what makes notebooks portable, and vendors' kernels
# and a card to rehearse on, which only the command that measures asks for.
AT_HOME = (
    "book.portable",
    "kernels.evidence.rehearsal",
    "kernels.evidence.timed.baselines",
)
LINE = 2000  # characters; one endless line makes editors slow, many short ones make the cell long


@dataclass(frozen=True)
class Bundle:
    """What travels. files: paths from the root. digest: SHA-256 of names and contents.

    version: the project's, with the start of the digest. text: the source of the cell.
    """

    files: tuple[str, ...]
    digest: str
    version: str
    text: str

    @property
    def size(self) -> int:
        """Bytes that the cell adds to the notebook's file."""
        import nbformat  # here: with its grammars it takes a second, and packing needs none of it

        return len(nbformat.v4.writes(nbformat.v4.new_notebook(cells=[cell(self)])).encode())


def pack(
    cells: Iterable[str], root: Path = ROOT, *, extra: Iterable[Path] = (), without: Iterable[str] = ()
) -> Bundle:
    """The files of ours that code cells with these sources need, and the cell that brings them along.

    extra: more files or folders under `root`. without: modules that must not travel, such as
    "labs.lab9.key"; a name stands for everything below it too. They stay behind where something asks for
    them only later, inside a function or by name in a string. Raises ValueError naming the module and
    who asks for it where an import at the top of a module needs one, and for a file that is not text.
    """
    found = contents(list(cells), root, extra=extra, without=without)
    text, version = _as_json(found), version_of(found, root)
    # The old container format is the smallest; Python can read it everywhere.
    packed = lzma.compress(text, format=lzma.FORMAT_ALONE, preset=9 | lzma.PRESET_EXTREME)
    letters = base64.b85encode(packed).decode("ascii")
    lines = [letters[i : i + LINE] for i in range(0, len(letters), LINE)]
    call = "\n".join([f'_set_up("{version}", """', *lines, '""")', "del _set_up"])
    code = inspect.getsource(unpack._set_up).rstrip("\n")
    return Bundle(tuple(found), digest_of(found), version, f"{TITLE}\n{ABOUT}\n\n\n{code}\n\n\n{call}")


def self_contained(
    notebook: NotebookNode,
    root: Path = ROOT,
    *,
    extra: Iterable[Path] = (),
    without: Iterable[str] = (),
) -> NotebookNode:
    """A copy of `notebook` with that cell: below the title if it has one, else at the top.

    A cell from an earlier call is replaced. A notebook that imports nothing of ours gets none. In
    an nbgrader notebook the cell is read-only. Raises what `pack` raises.
    """
    code = [c.source for c in notebook.cells if c.cell_type == "code" and c.get("id") != CELL_ID]
    return with_cell(notebook, pack(code, root, extra=extra, without=without))


def with_cell(notebook: NotebookNode, bundle: Bundle) -> NotebookNode:
    """A copy of `notebook` with the cell of this bundle; see `self_contained`."""
    made = copy.deepcopy(notebook)
    made.cells = [c for c in made.cells if c.get("id") != CELL_ID]
    if not bundle.files:
        return made
    titled = bool(made.cells) and made.cells[0].cell_type == "markdown"
    graded = any("nbgrader" in c.metadata for c in made.cells)
    made.cells.insert(int(titled), cell(bundle, graded=graded))
    made.nbformat, made.nbformat_minor = 4, max(made.nbformat_minor, 5)  # cells have ids since 4.5
    return made


def cell(bundle: Bundle, *, graded: bool = False) -> NotebookNode:
    """The notebook cell: folded in JupyterLab and on Colab. graded: read-only to nbgrader."""
    metadata: dict[str, Any] = {
        "cellView": "form",
        "jupyter": {"source_hidden": True},
        "tags": ["setup", "hide-input"],
    }
    if graded:
        metadata["nbgrader"] = {
            "grade": False,
            "grade_id": CELL_ID,
            "locked": True,
            "schema_version": 3,
            "solution": False,
            "task": False,
        }
    import nbformat  # see Bundle.size

    return nbformat.v4.new_code_cell(bundle.text, id=CELL_ID, metadata=metadata)


def contents(
    cells: Iterable[str], root: Path = ROOT, *, extra: Iterable[Path] = (), without: Iterable[str] = ()
) -> dict[str, str]:
    """path -> text of everything that travels, sorted; see `pack`."""
    without = tuple(without)
    asked: Mapping[Path, Path | None] = askers(cells, root, (*without, *AT_HOME))
    _refuse(asked, root, without)
    # A notebook is never read by a module that travels. A lab's master stands in a folder of a name
    # that its modules say, and must not come along.
    files = {path for path in asked if path.suffix != ".ipynb"}
    for path in extra:
        path = root / path
        inside = [p for p in path.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
        files.update(inside if path.is_dir() else [path])
    _refuse(dict.fromkeys(files), root, without)
    catalogs = {path for path in files if path.suffix == ".mo"}
    found = {path.relative_to(root).as_posix(): _text(path) for path in sorted(files - catalogs)}
    for path in catalogs:  # as `book.say` reads it again, with the language that the notebook speaks
        text = base64.b85encode(path.read_bytes()).decode("ascii")
        found |= {f"{path.relative_to(root).as_posix()}.txt": text, "book/locales/language": LANGUAGE}
    return dict(sorted(found.items()))


def _as_json(found: Mapping[str, str]) -> bytes:
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()


def digest_of(found: Mapping[str, str]) -> str:
    """SHA-256 of names and texts, as `contents` gives them."""
    return hashlib.sha256(_as_json(found)).hexdigest()


def version_of(found: Mapping[str, str], root: Path = ROOT) -> str:
    """The project's version, with the start of that digest."""
    return f"{_project_version(root)}+{digest_of(found)[:10]}"


def _refuse(files: Mapping[Path, Path | None], root: Path, without: tuple[str, ...]) -> None:
    for path, asker in files.items():
        if found := left_out(path, root, without):
            name, module = found
            who = asker.relative_to(root).as_posix() if asker else "a cell or `extra`"
            raise ValueError(
                f"without = {name!r}: {module} must not travel with this notebook, but {who} asks for "
                "it; import it elsewhere, or take it out of `without`."
            )


def _text(path: Path) -> str:
    """A file as it travels. YAML becomes JSON, which needs no PyYAML where it is read."""
    state = path.stat()
    return _travelling(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=512)  # most notebooks take the same files along, and YAML is slow to read
def _travelling(path: Path, changed: int, size: int) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: only text can travel in a notebook; leave this file out.") from None
    if path.suffix not in (".yaml", ".yml"):
        return text
    import yaml

    document = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    converted = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    if json.loads(converted) != document:  # a key that is a number, say
        raise ValueError(f"{path}: holds something that JSON does not; write keys as text.")
    return converted


def _project_version(root: Path) -> str:
    try:
        return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    except (OSError, KeyError):
        return "0"
