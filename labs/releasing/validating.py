"""nbgrader's validator, run on a lab's two copies, and what each graded cell got.

A notebook is run alone in an empty folder, as a student would; nothing of this repository is on its
path but what its set-up cell unpacks.
"""

from __future__ import annotations

import contextlib
import copy
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from labs.releasing.settings import SETTINGS

# How an untouched copy may fail: with the check's own words, with a blank, or for want of a name
# that a blank would have defined.
BLANK_ERRORS = {"NotYet", "NotImplementedError", "NameError", "AssertionError"}
OURS = ("PYTHONPATH", "TRITON_INTERPRET")
CACHE = "INFERENCE_ROOFLINE_CACHE"


@dataclass(frozen=True)
class Ran:
    """scores: (points, of how many) by grade_id. problems: what is wrong, a sentence each."""

    scores: dict[str, tuple[float, float]]
    problems: tuple[str, ...]
    seconds: float


def solved(lab: str, text: str) -> Ran:
    """An instructor's copy must pass each of its tests, and no other cell may fail."""
    results, notebook, seconds = _validate(lab, text, invert=False)
    found = [f"{lab}: nbgrader says that a locked cell was changed." for _ in results.get("changed", ())]
    for cell in _code(notebook):
        error = _error(cell)
        if error is not None:
            found.append(f"{lab}, {_name(cell)}: it fails with the solutions in place: {error[1]}")
        elif (score := _score(cell)) and score[0] < score[1]:
            found.append(f"{lab}, {_name(cell)}: it gets {score[0]:g} of {score[1]:g} points.")
    if results.get("failed") and not found:
        found.append(f"{lab}: nbgrader counts {len(results['failed'])} cells as failed.")
    return Ran(_scores(notebook), tuple(found), seconds)


def untouched(lab: str, text: str) -> Ran:
    """A student's copy with its blanks must fail each of its tests, and for want of an answer."""
    results, notebook, seconds = _validate(lab, text, invert=True)
    found = [f"{lab}: nbgrader says that a locked cell was changed." for _ in results.get("changed", ())]
    answered = False  # is the first blank above?
    for cell in _code(notebook):
        error, score = _error(cell), _score(cell)
        answered = answered or bool(cell.metadata.get("nbgrader", {}).get("solution"))
        if score and score[0]:
            found.append(f"{lab}, {_name(cell)}: it gives {score[0]:g} points for no answer.")
        elif error is not None and (not answered or (score and error[0] not in BLANK_ERRORS)):
            found.append(f"{lab}, {_name(cell)}: it fails, but not for want of an answer: {error[1]}")
    if results.get("passed") and not found:
        found.append(f"{lab}: nbgrader counts {len(results['passed'])} untouched cells as passed.")
    return Ran(_scores(notebook), tuple(found), seconds)


def _validate(lab: str, text: str, *, invert: bool) -> tuple[dict, NotebookNode, float]:
    """nbgrader's verdict, the executed notebook, and how long it took in seconds."""
    from nbgrader.validator import Validator
    from traitlets.config import Config

    class Watched(Validator):
        """Keeps the notebook that it ran: the verdict names cells by their text alone."""

        def _preprocess(self, nb: NotebookNode) -> NotebookNode:
            self.ran = super()._preprocess(nb)
            return self.ran

    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="validate-") as folder, _alone(Path(folder)):
        path = Path(folder, "here", f"{lab}.ipynb")
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8")
        config = Config(copy.deepcopy(SETTINGS))
        config.Execute.extra_arguments = ["--IPKernelApp.log_level=40"]  # errors; not how it was started
        validator = Watched(config=config, invert=invert)
        results = validator.validate(str(path))
    if "type_changed" in results:
        raise ValueError(f"{lab}: nbgrader says that a cell changed its type; look at its metadata.")
    return results, validator.ran, time.monotonic() - started


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Variables for a kernel that sees nothing of ours; measurements and compiled kernels stay cached."""
    before = dict(os.environ)
    kept = None
    if CACHE not in before:
        from kernels.evidence.child_process import cache_dir  # here, since it imports torch

        kept = cache_dir()
    for name in OURS:
        os.environ.pop(name, None)
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
    if kept is not None:
        os.environ[CACHE] = str(kept)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _code(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _name(cell: NotebookNode) -> str:
    return str(cell.metadata.get("nbgrader", {}).get("grade_id") or f"cell {cell.get('id', '')}")


def _score(cell: NotebookNode) -> tuple[float, float] | None:
    from nbgrader import utils

    if not utils.is_grade(cell):
        return None
    score, most = utils.determine_grade(cell)
    return float(score or 0), float(most)


def _scores(notebook: NotebookNode) -> dict[str, tuple[float, float]]:
    return {_name(cell): score for cell in _code(notebook) if (score := _score(cell))}


def _error(cell: NotebookNode) -> tuple[str, str] | None:
    """The kind of error that a cell ended with, and its words in one line; None if it had none."""
    for output in cell.outputs:
        if output.output_type == "error":
            words = " ".join(str(output.evalue).split())
            return output.ename, f"{output.ename}: {words}"[:500]
        if output.output_type == "stream" and output.name == "stderr":  # nbgrader gives no points for it
            return "stderr", f"it wrote to standard error: {' '.join(output.text.split())}"[:500]
    return None
