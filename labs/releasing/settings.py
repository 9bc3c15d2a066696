"""nbgrader's settings for these labs: for our own runs, and as the file that goes with a release."""

from __future__ import annotations

from typing import Any

from labs.kit.blanks import STUB

CELL_SECONDS = 180  # the slowest cell of a master takes a tenth of it on a quiet machine

SETTINGS: dict[str, dict[str, Any]] = {
    "ClearSolutions": {"code_stub": {"python": STUB}, "text_stub": "*Your answer here.*"},
    "Execute": {"timeout": CELL_SECONDS},
}
COURSE = "inference-roofline"


def config_file() -> str:
    """The text of nbgrader_config.py for an instructor's course folder."""
    lines = [
        "# Settings that these labs were released with. Put this file at the top of the course folder.",
        "c = get_config()",
        "",
        "# Change it to the name that your course has on your JupyterHub.",
        f"c.CourseDirectory.course_id = {COURSE!r}",
    ]
    for section, values in SETTINGS.items():
        lines += ["", *(f"c.{section}.{name} = {value!r}" for name, value in values.items())]
    return "\n".join(lines) + "\n"
