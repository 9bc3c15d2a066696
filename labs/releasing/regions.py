"""The marked regions of a master's cells, read without nbgrader, to hold nbgrader's work to."""

from __future__ import annotations

import re

from labs.kit.blanks import STUB

SOLUTION = "SOLUTION"
HIDDEN = "HIDDEN TESTS"


def regions(source: str, kind: str) -> list[list[str]]:
    """The lines inside each region of this kind. Raises ValueError if one isn't closed, or holds another."""
    return [lines for found, lines in _parts(source) if found == kind]


def released(source: str) -> str:
    """What a student gets of this cell: a stub for each solution, nothing for hidden tests."""
    lines: list[str] = []
    for kind, part in _parts(source):
        if kind == "":
            lines += part
        elif kind.startswith("indent of "):
            lines += [kind.removeprefix("indent of ") + line for line in STUB.split("\n")]
    return "\n".join(lines)


def _parts(source: str) -> list[tuple[str, list[str]]]:
    """The cell in order: ("", lines outside), (kind, lines of a region), and the indent of solutions."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    inside = ""
    for line in source.split("\n"):
        marked = re.search(rf"(BEGIN|END) ({SOLUTION}|{HIDDEN})", line)
        if marked is None:
            parts[-1][1].append(line)
            continue
        verb, kind = marked.groups()
        if (verb == "BEGIN") == bool(inside) or (verb == "END" and kind != inside):
            raise ValueError(
                f"{line.strip()!r}: it stands inside {inside or 'no region'}; close what is open."
            )
        if verb == "BEGIN":
            inside = kind
            if kind == SOLUTION:
                parts.append((f"indent of {line[: len(line) - len(line.lstrip())]}", []))
            parts.append((kind, []))
        else:
            inside = ""
            parts.append(("", []))
    if inside:
        raise ValueError(f"'BEGIN {inside}': its END is missing from the cell.")
    return parts
