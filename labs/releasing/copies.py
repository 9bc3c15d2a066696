"""Makes the two notebooks of a lab from its master: the instructor's copy, and from that the student's.

Both carry the same set-up cell with the modules that students need. The key and what else hidden
tests need travels inside the first hidden test. So nbgrader, which takes hidden tests out, takes the
key out as well: `nbgrader generate_assignment` on an instructor's copy gives the student's.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import inspect
import json
import logging
import lzma
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from book.portable import bundle
from labs.releasing import unpack_key
from labs.releasing.regions import HIDDEN, released
from labs.releasing.settings import SETTINGS

COMMON_VARIANT = "variant=0"


@dataclass(frozen=True)
class Copies:
    """The two notebooks of one lab, as text. title and minutes: of the lab, as its first cells say.

    version: of the embedded modules. files: what the student's set-up cell carries.
    """

    lab: str
    title: str
    minutes: str
    version: str
    files: tuple[str, ...]
    student: str
    instructor: str


def make(lab: str, master: NotebookNode, without: Sequence[str], root: Path = bundle.ROOT) -> Copies:
    """Both copies of one lab. Raises ValueError saying what in the master stands in the way.

    without: the modules that must not travel with the student's, as `held_back.modules` finds them.
    """
    instructor, packed = instructor_copy(lab, master, without, root)
    student = _tidy(lab, student_copy(lab, instructor), packed.version)
    return Copies(
        lab,
        title(master),
        minutes(master),
        packed.version,
        packed.files,
        write(student),
        write(instructor),
    )


def instructor_copy(
    lab: str, master: NotebookNode, without: Sequence[str], root: Path = bundle.ROOT
) -> tuple[NotebookNode, bundle.Bundle]:
    """The master with its set-up cell and its key, and what the set-up cell carries."""
    kept = [released(source) for source in _code(master)]
    packed = bundle.pack(kept, root, without=without)
    made = bundle.with_cell(_tidy(lab, master, packed.version), packed)
    more = bundle.contents(_code(master), root)
    more = {name: text for name, text in more.items() if name not in packed.files}
    if more:
        _hide(made, more)
    return made, packed


def _hide(notebook: NotebookNode, files: dict[str, str]) -> None:
    """Put the files into the first hidden test, which brings them along when it runs."""
    for cell in notebook.cells:
        head, mark, tail = cell.source.partition(f"### BEGIN {HIDDEN}\n")
        if mark:
            cell.source = f"{head}{mark}{_brought(files)}\n{tail}"
            return
    names = ", ".join(sorted(files)[:3])
    raise ValueError(
        f"master: it has no '### BEGIN {HIDDEN}' line, but a solution imports what students don't have "
        f"({names}); import it in a cell that students keep."
    )


def _brought(files: dict[str, str]) -> str:
    text = json.dumps(files, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
    packed = lzma.compress(text, format=lzma.FORMAT_ALONE, preset=9 | lzma.PRESET_EXTREME)
    letters = base64.b85encode(packed).decode("ascii")
    lines = [letters[i : i + bundle.LINE] for i in range(0, len(letters), bundle.LINE)]
    code = inspect.getsource(unpack_key._unpack_key).rstrip("\n")
    about = "# The key travels in the text below. nbgrader takes it out of students' copies with this region."
    return "\n".join([about, code, "", "", '_unpack_key("""', *lines, '""")', "del _unpack_key"])


def student_copy(lab: str, instructor: NotebookNode) -> NotebookNode:
    """What nbgrader's generate_assignment makes of it, in a course folder of its own.

    Without nbgrader's database: nothing in it is needed here, and making one takes seconds.
    Raises ValueError with nbgrader's own words if it refuses the notebook.
    """
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.preprocessors import SaveCells
    from traitlets.config import Config

    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        source = Path(folder, "source", lab, f"{lab}.ipynb")
        source.parent.mkdir(parents=True)
        source.write_text(write(instructor), encoding="utf-8")
        config = Config(copy.deepcopy(SETTINGS))
        config.CourseDirectory.root = folder
        config.CourseDirectory.assignment_id = lab
        said = _Log()
        logger = logging.getLogger(f"labs.release.{lab}")
        logger.propagate, logger.handlers = False, [said]
        course = CourseDirectory(config=config, log=logger)
        converter = GenerateAssignment(coursedir=course, config=config, log=logger, no_database=True)
        converter.preprocessors = [one for one in converter.preprocessors if one is not SaveCells]
        try:
            converter.start()
        except Exception as error:
            raise ValueError(f"{lab}: nbgrader can't release it: {said.cause() or error}") from error
        return nbformat.read(Path(folder, "release", lab, f"{lab}.ipynb"), 4)


class _Log(logging.Handler):
    """Keeps what went wrong."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += record.getMessage().strip().splitlines()

    def cause(self) -> str:
        """The message of the first exception in the tracebacks that nbgrader logs, or all that it said."""
        causes = (re.match(r"[\w.]*(?:Error|Exception): (.+)", line) for line in self.lines)
        return next((cause[1] for cause in causes if cause), " ".join(self.lines))


def with_variant(notebook: NotebookNode, variant: int) -> NotebookNode:
    """A student's copy with numbers of its own: `variant=0` of the set-up becomes this one.

    Raises ValueError unless exactly one cell says `variant=0`.
    """
    from nbgrader.utils import compute_checksum

    made = copy.deepcopy(notebook)
    cells = [cell for cell in made.cells if cell.cell_type == "code" and COMMON_VARIANT in cell.source]
    cells = [cell for cell in cells if cell.get("id") != bundle.CELL_ID]
    if len(cells) != 1:
        raise ValueError(
            f"{COMMON_VARIANT!r}: {len(cells)} cells of the notebook say it; exactly one, the set-up, must."
        )
    (cell,) = cells
    cell.source = cell.source.replace(COMMON_VARIANT, f"variant={variant}")
    if "checksum" in cell.metadata.get("nbgrader", {}):
        cell.metadata.nbgrader.checksum = compute_checksum(cell)
    return made


# ------------------------------------------------------------------------------- the notebook file


def write(notebook: NotebookNode) -> str:
    """The notebook as JSON, one space of indentation, keys in order."""
    return nbformat.writes(notebook, 4) + "\n"


def _tidy(lab: str, notebook: NotebookNode, version: str) -> NotebookNode:
    """A copy without outputs and traces of a machine; every cell has an id that stays the same."""
    made = copy.deepcopy(notebook)
    made.nbformat, made.nbformat_minor = 4, 5
    made.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
            "colab": {"name": f"{lab}.ipynb", "provenance": []},
            "inference_roofline": {"lab": lab, "version": version},
        }
    )
    for place, cell in enumerate(made.cells):
        name = cell.metadata.get("nbgrader", {}).get("grade_id") or f"{place} {cell.source}"
        if notebook.nbformat_minor < 5 or not cell.get("id"):
            cell.id = "c" + hashlib.sha256(f"{lab} {name}".encode()).hexdigest()[:10]
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return made


def _code(notebook: NotebookNode) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def title(master: NotebookNode) -> str:
    """The first heading."""
    for cell in master.cells:
        if cell.cell_type == "markdown" and (found := re.search(r"^# +(.+)$", cell.source, re.M)):
            return found[1].strip()
    raise ValueError("master: no cell starts with '# ' and a title; give it one.")


def minutes(master: NotebookNode) -> str:
    """How long it takes, as its first cells say: "90", or "60 to 90"; "" if they don't."""
    text = "\n".join(cell.source for cell in master.cells[:4] if cell.cell_type == "markdown")
    number = r"\d+(?:\s*(?:to|-|–)\s*\d+)?"
    found = re.search(rf"({number})\s*(?:minutes|min)\b", text)
    return found[1] if found else ""
