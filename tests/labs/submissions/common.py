# ruff: noqa: E501 (code that attackers and students write)
"""What is handed in for any lab: files of every kind, notebooks saved oddly, and attacks on the grader."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from labs import assignments
from tests.labs.submissions import attacks as sly
from tests.labs.submissions.made import EVERY, ROOT, Case, Copy


@dataclass(frozen=True)
class About:
    """Where in a lab the cases do their damage.

    first: a cell that many questions need, asked_first: those. last: the cell of asked_last alone, with one
    mistake in it, as (right, wrong, the comment on it). late: a cell to be moved up.
    """

    lab: str
    first: str
    asked_first: tuple[str, ...]
    last: str
    asked_last: str
    mistake: tuple[str, str, str]
    late: str


# No lab makes these any different, so one class has them: the one that is quicker to grade.
ONCE = {
    "a-zip", "nested-deeply", "huge-outputs", "windows-lines", "notebook-format-3", "two-files", "magics",
    "sleeps-forever", "segfault", "deep-recursion", "answers-a-gigabyte", "answers-a-million-lists",
    "leaves-early", "fills-the-disk", "opens-the-network", "starts-programs", "kills-its-parent", "leaves-a-daemon",
}  # fmt: skip


def cases(about: About, once: bool = False) -> list[Case]:
    """What any class has. once: those as well that one class suffices for."""
    every = [*files(about), *notebooks(about), *attacks(about)]
    return every if once else [case for case in every if case.name not in ONCE]


# ------------------------------------------------------------------------------ files of any kind


def files(about: About) -> list[Case]:
    """What is hardly a notebook."""
    png = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40

    def truncated(made: Copy) -> bytes:
        data = made.bytes()
        return data[: len(data) * 2 // 3]

    def outputs(made: Copy) -> bytes:
        made.cells[-1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x" * 21_000_000}]
        return made.bytes()

    def blank_lines(made: Copy) -> bytes:
        return b"\xef\xbb\xbf" + made.bytes().replace(b"\n", b"\r\n")

    return [
        Case("empty-file", lambda made: b"", {EVERY: "The file is empty"}),
        Case("a-picture", lambda made: png, {EVERY: "not a notebook"}),
        Case("a-zip", lambda made: b"PK\x03\x04" + bytes(500), {EVERY: "a ZIP file"}),
        Case("truncated", truncated, {EVERY: "The file ends in the middle"}, sample=True),
        Case("nested-deeply", lambda made: b"[" * 200_000, {EVERY: "notebook"}),
        Case("huge-outputs", outputs, {EVERY: "Clear the outputs"}),
        Case("windows-lines", blank_lines, notes=("not plain UTF-8",)),
    ]


# ------------------------------------------------------------------------ notebooks saved oddly


def notebooks(about: About) -> list[Case]:
    """Right answers, found wherever a platform or a student put them."""
    gone = {name: f"The cell {about.last} is missing" for name in (about.asked_last,)}

    def colab(made: Copy) -> None:
        for number, cell in enumerate(made.cells):
            cell["metadata"] = {"id": f"Zk{number}", "colab": {"base_uri": "https://localhost:8080/"}}
            cell["metadata"] |= {"outputId": "88b8", "cellView": "form"} if number % 2 else {}
            cell["source"] = cell["source"].splitlines(keepends=True)
            cell.pop("id", None)
        made.notebook["metadata"] = {"colab": {"provenance": [], "gpuType": "T4"}, "accelerator": "GPU"}
        made.notebook["nbformat_minor"] = 0

    def old(made: Copy) -> bytes:
        sheet = []
        for cell in made.cells:
            source = cell.pop("source")
            text = (
                {"input": source, "language": "python"} if cell["cell_type"] == "code" else {"source": source}
            )
            sheet.append({**cell, **text})
        return json.dumps({"nbformat": 3, "metadata": {}, "worksheets": [{"cells": sheet}]}).encode()

    def moved(made: Copy) -> None:
        made.cells.remove(cell := made.cell(about.late))
        made.cells.insert(2, cell)

    def twice(made: Copy) -> None:
        right, wrong, _ = about.mistake
        cell = made.cell(about.last)
        other = {**cell, "source": cell["source"].replace(right, wrong), "id": "copied"}
        made.cells.insert(made.cells.index(cell), other)

    def deleted(made: Copy) -> None:
        made.cells.remove(made.cell(about.last))

    def magics(made: Copy) -> None:
        made.after(about.first, "%matplotlib inline\n!nvidia-smi\n%timeit -n 1 len([])")

    def two(made: Copy) -> dict[str, bytes]:
        right = made.bytes()
        return {f"{about.lab}.ipynb": b"{}", f"{about.lab}-final (1).ipynb": right}

    def elsewhere(made: Copy) -> None:
        made.own("helper = lambda value: value")
        made.after(about.last, "helper(1)")
        made.swap(about.last, about.mistake[:2])

    return [
        Case("saved-by-colab", colab, notes=("lost their metadata",)),
        Case("notebook-format-3", old, notes=("old notebook format 3",)),
        Case("moved-a-cell", moved, notes=("Cells were moved",)),
        Case("copied-a-cell", twice, notes=("the last one was graded",)),
        Case("deleted-a-cell", deleted, gone, notes=(f"The cell {about.last} is missing",)),
        Case("magics", magics, notes=("lines for the notebook only (%matplotlib, !nvidia-smi",)),
        Case("two-files", two, notes=("2 files were handed in; the newest one counts",)),
        Case(
            "defined-elsewhere",
            elsewhere,
            {about.asked_last: "helper: defined in another cell"},
            notes=("helper: defined in another cell",),
        ),
    ]


# ------------------------------------------------------------------------------------- attacks


def attacks(about: About) -> list[Case]:
    """None of these may reach anything, and none may cost anybody else a point."""

    def hostile(cell: str, code: str) -> Callable[[Copy], None]:
        def make(made: Copy) -> None:
            at, package = made.places, assignments.find(about.lab).package
            told = sly.PLACES.format(
                canary=str(at.canary),
                others=str(at.others),
                grades=str(at.grades),
                root=str(ROOT),
                port=at.port,
                package=package,
                key=f"{ROOT}/{package.replace('.', '/')}/key.py",
            )
            # Above the answer, so that an attack which finds something loses it.
            made.before(cell, told + code)

        return make

    def stopped(name: str, code: str, why: str, **rest) -> Case:
        """Ends its process, and so costs itself the last question; all others are answered."""
        return Case(name, hostile(about.last, code), {about.asked_last: why}, **rest)

    def wrong_anyway(name: str, code: str, why: str = about.mistake[2], **rest) -> Case:
        """Has a mistake, and does something against being told."""
        right, wrong, _ = about.mistake

        def make(made: Copy) -> None:
            made.swap(about.last, (right, wrong))
            hostile(about.last, code)(made)

        return Case(name, make, {about.asked_last: why}, **rest)

    def in_vain(name: str, code: str, **rest) -> Case:
        """Right, and with an attack that must not work; nobody is punished for what did nothing."""
        return Case(name, hostile(about.first, code), **rest)

    return [
        stopped("endless-loop", "while True: pass", "and was stopped"),
        stopped("sleeps-forever", "import time\ntime.sleep(10**6)", "It ran longer than"),
        stopped("eats-memory", "x = []\nwhile True: x.append(bytearray(10**8))", "MiB of memory"),
        stopped("fork-bomb", sly.FORK_BOMB, "processes"),
        stopped("leaves-early", "os._exit(0)", "ended early"),
        stopped("segfault", "import ctypes\nctypes.string_at(0)", "signal SIGSEGV"),
        stopped("deep-recursion", sly.DEEP, "signal SIGSEGV"),
        stopped("answers-a-gigabyte", sly.ANSWERS, "It answered more than"),
        in_vain("answers-a-million-lists", sly.LISTS),
        in_vain("prints-100-mb", sly.PRINTS, notes=("It printed 10",)),
        in_vain("fills-the-disk", sly.FILLS),
        in_vain("deletes-files", sly.DELETES),
        in_vain("reads-everything", sly.READS, sample=True),
        in_vain("opens-the-network", sly.NETWORK),
        in_vain("starts-programs", sly.PROGRAMS),
        in_vain("kills-its-parent", sly.KILLS),
        in_vain("leaves-a-daemon", sly.DAEMON),
        wrong_anyway("patches-everything", sly.PATCHES),
        wrong_anyway("redefines-assert", sly.ASSERTS),
        Case(
            "forges-answers",
            hostile(about.first, sly.ASKED + sly.FORGES),
            {EVERY: ""},
            sample=True,
        ),
        Case("forges-junk", hostile(about.first, sly.ASKED + sly.JUNK), {EVERY: ""}),
        wrong_anyway("=1+1", sly.INJECTS, why="=HYPERLINK"),
    ]
