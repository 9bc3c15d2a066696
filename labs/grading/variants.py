"""Numbers of each student's own: a variant from the student's id and the instructor's secret.

The release stamps `variant=N` into a student's copy, the grader computes the same N again: what a
submitted notebook says about its variant counts for nothing. Who has the public repository but not the
secret can't compute anybody's.
"""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import re
import unicodedata
from pathlib import Path

LARGEST = 999_999  # six digits at most: it stands in a cell that people read
SHORTEST_SECRET = 12  # characters
ID_COLUMNS = ("student", "student_id", "id", "student id", "login", "username", "sis login id", "email")
NAME_COLUMNS = ("name", "student name", "full name", "display name")


def variant_of(student: str, secret: str) -> int:
    """The variant of one student, from 1 to 999,999; always the same for the same id and secret.

    Without a secret (""), every student has variant 0, the one of the common release.
    """
    if not secret:
        return 0
    made = hmac.new(secret.encode(), identity(student).encode(), hashlib.sha256).digest()
    return 1 + int.from_bytes(made[:8], "big") % LARGEST


def identity(student: str) -> str:
    """An id as it is compared: "Ada " in a roster and "ada" in a file name are one student.

    Raises ValueError if it is empty.
    """
    same = unicodedata.normalize("NFKC", student).strip().casefold()
    if not same:
        raise ValueError(f"student = {student!r}: it is empty; give an id, such as 'ada'.")
    return same


def read_secret(path: Path) -> str:
    """The secret in a file: its text without the spaces and the newline around it.

    A file, since words on a command line can be read by everybody on the machine. Raises ValueError
    when it is missing or so short that it could be guessed.
    """
    try:
        secret = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"secret = {str(path)!r}: it can't be read ({error}); write a random line into a file, "
            'for example with `python -c "import secrets; print(secrets.token_hex())" > secret.txt`.'
        ) from None
    if len(secret) < SHORTEST_SECRET:
        raise ValueError(
            f"secret = {str(path)!r}: it holds {len(secret)} characters; give it {SHORTEST_SECRET} or more."
        )
    return secret


def roster(path: Path) -> dict[str, str]:
    """The students of a course: {id: name, or "" where the file has none}, in the file's order.

    A CSV file, with a header that names a column of ids (`student`, `id`, `login`, `email`, ...) and
    perhaps `name`, or with one id a line and no header. Raises ValueError naming the line that is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"roster = {str(path)!r}: it can't be read ({error}); give a CSV file.") from None
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    rows = [
        [field.strip() for field in row] for row in csv.reader(io.StringIO(text), delimiter=separator) if row
    ]
    header = [re.sub(r"\s+", " ", field).casefold() for field in rows[0]] if rows else []
    column = next((header.index(name) for name in ID_COLUMNS if name in header), None)
    named = next((header.index(name) for name in NAME_COLUMNS if name in header), None)
    if column is None and len(header) > 1:
        raise ValueError(
            f"roster = {str(path)!r}: no column holds the ids; call one of {', '.join(rows[0])} 'student'."
        )
    students: dict[str, str] = {}
    seen: set[str] = set()
    start = 0 if column is None else 1
    for number, row in enumerate(rows[start:], start + 1):
        student = row[column or 0] if len(row) > (column or 0) else ""
        if not student:
            continue
        if identity(student) in seen:
            raise ValueError(
                f"roster = {str(path)!r}, line {number}: {student!r} stands there twice; leave one out."
            )
        seen.add(identity(student))
        students[student] = row[named] if named is not None and len(row) > named else ""
    if not students:
        raise ValueError(f"roster = {str(path)!r}: it names no students; give one id a line.")
    return students
