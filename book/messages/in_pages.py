"""The messages of pages and of chapters' prose, by Sphinx's own gettext builder.

Sphinx reads the book as for the site, through Jupyter Book's configuration, and writes each
paragraph as a message instead of HTML. No notebook runs: what cells print is the code's to say.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po

from book.say import PAGES

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {
    "latex_individualpages": False,  # Jupyter Book's own command line gives this one
    "nb_execution_mode": "off",
    "gettext_compact": PAGES,  # one catalog of all pages
}


def catalog(root: Path = ROOT) -> Catalog:
    """Every message of the pages, with the files and lines where it stands. About ten seconds.

    Raises RuntimeError where Sphinx can't read the pages.
    """
    from jupyter_book.sphinx import build_sphinx

    with tempfile.TemporaryDirectory() as work:
        out = Path(work) / "gettext"
        failed = build_sphinx(
            root,
            out,
            noconfig=True,  # no conf.py: _config.yml is all
            path_config=root / "_config.yml",
            confoverrides=dict(SETTINGS),
            doctreedir=Path(work) / "doctrees",
            builder="gettext",
            really_quiet=True,
        )
        made = out / f"{PAGES}.pot"
        if failed or not made.exists():
            raise RuntimeError(f"Sphinx could not read the pages ({failed}); does `make site` build?")
        found = read_po(made.read_bytes().splitlines(keepends=True))
        for message in found:
            message.locations = [(_from_root(out / path, root), line) for path, line in message.locations]
    return found


def _from_root(path: Path, root: Path) -> str:
    """Sphinx writes paths from where it writes; nobody else has that folder."""
    path = path.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
