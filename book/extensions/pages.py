"""Sphinx extension: every page loads what it needs, once, and nothing from anywhere else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Writes the palette's stylesheet and trims the list of scripts of each page."""
    app.connect("builder-inited", write_palette)
    app.connect("html-page-context", trim_scripts, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_palette(app: Sphinx) -> None:
    """The colours of book/palette.py as CSS variables."""
    if app.builder.format != "html":
        return
    sys.path.insert(0, str(app.srcdir))
    from book import palette

    static = Path(app.outdir) / "_static"
    static.mkdir(parents=True, exist_ok=True)
    (static / "palette.css").write_text(palette.css(), encoding="utf-8")


def trim_scripts(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Drops scripts that repeat, Thebe (it would load from a CDN), and MathJax where there is no math."""
    has_math = app.env.get_domain("math").data["has_equations"].get(pagename, False)
    seen: set[str] = set()
    kept = []
    for script in context.get("script_files", []):
        body = getattr(script, "attributes", {}).get("body") or ""
        name = body or str(getattr(script, "filename", script))
        unwanted = "thebe" in name.lower() or (not has_math and "mathjax" in name.lower())
        if name in seen or unwanted:
            continue
        seen.add(name)
        kept.append(script)
    context["script_files"] = kept
