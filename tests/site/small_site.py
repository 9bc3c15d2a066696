"""A site of a few pages, built with the book's own extensions by Sphinx in this process."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

from tests.site.built import ROOT

EXTENSIONS = ROOT / "book" / "site" / "extensions"


def build(folder: Path, extension: str, pages: Mapping[str, str], options: str = "") -> tuple[Path, str]:
    """Where it was built, and what it warned of.

    pages: {path: Markdown}, `index.md` among them. options: more lines of its configuration.
    """
    for name, text in pages.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "conf.py").write_text(
        f"import sys\nsys.path[:0] = [{str(ROOT)!r}, {str(EXTENSIONS)!r}]\n"
        f'extensions = ["myst_parser", {extension!r}]\nexclude_patterns = ["_build"]\n'
        # Said here: another Sphinx of the same process may have left its own for .md.
        'source_suffix = {".rst": "restructuredtext", ".md": "markdown"}\n' + options,
        encoding="utf-8",
    )
    before = list(sys.path)
    warned = io.StringIO()
    out = folder / "_build"
    with docutils_namespace():
        app = Sphinx(str(folder), str(folder), str(out), str(out), "html", status=None, warning=warned)
        app.build()
    sys.path[:] = before
    return out, warned.getvalue()
