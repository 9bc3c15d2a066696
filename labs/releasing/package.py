"""The files of a release: folders, one archive, and how they come into place whole or not at all."""

from __future__ import annotations

import os
import re
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from labs.releasing.copies import Copies
from labs.releasing.settings import config_file

ARCHIVE = "inference-roofline-labs.zip"
README = """\
Labs of The Inference Roofline, version {version}

{table}

student/      What students get: one notebook a lab. Upload it alone to Colab, Kaggle or any Jupyter
              server; its first cell brings along what it needs.
instructor/   The same with solutions and hidden tests, in one file as well.
              NOT FOR STUDENTS: whoever has it has the answers and the key.
course/       For nbgrader: put what is in it into your course folder. source/ holds the instructor's
              notebooks, release/ the students'. `nbgrader generate_assignment` makes the second out
              of the first; it takes the key out together with the hidden tests.

The instructor's guide, on the book's site, says how submissions are graded.
"""


def files(labs: Sequence[Copies]) -> dict[str, str]:
    """path -> text of everything in the archive, for these labs."""
    rows = [
        f"{one.lab:<20}{one.title}" + (f" ({one.minutes} minutes)" if one.minutes else "") for one in labs
    ]
    version = ", ".join(sorted({one.version.partition("+")[0] for one in labs}))
    found = {
        "README.txt": README.format(version=version, table="\n".join(rows)),
        "course/nbgrader_config.py": config_file(),
    }
    for one in labs:
        name = f"{one.lab}/{one.lab}.ipynb"
        found |= {f"student/{name}": one.student, f"instructor/{name}": one.instructor}
        found |= {f"course/source/{name}": one.instructor, f"course/release/{name}": one.student}
    return found


def write_archive(path: Path, contents: Mapping[str, str]) -> None:
    """A zip file with the same bytes for the same contents, whenever and wherever it is made."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(contents):
            info = zipfile.ZipInfo(name)  # dated 1980-01-01
            info.compress_type, info.create_system, info.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            archive.writestr(info, contents[name])


def put(out: Path, contents: Mapping[str, str], archive: Mapping[str, str] | None = None) -> None:
    """Write `contents` (path -> text) and the archive under `out`.

    All of it is written elsewhere first; then each file takes its place in one step. Raises OSError
    if `out` can't be written.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=".making-") as making:
        for name, text in contents.items():
            path = Path(making, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        if archive is not None:
            write_archive(Path(making, ARCHIVE), archive)
        for name in [*contents, *([ARCHIVE] if archive is not None else [])]:
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(Path(making, name), out / name)


def folder_of(student: str) -> str:
    """A student's id as the name of a folder. Raises ValueError for one that would lead elsewhere."""
    if not re.fullmatch(r"\w[\w.@+ -]*", student):
        raise ValueError(
            f"student = {student!r}: this id can't name a folder; use letters, digits and any of . @ + - _."
        )
    return student
