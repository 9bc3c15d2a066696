"""Sphinx extension: every page loads what it needs, once, and nothing from anywhere else."""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Writes the palette's stylesheet and trims each page's scripts."""
    app.connect("builder-inited", write_palette)
    app.connect("html-page-context", trim_scripts, priority=900)
    app.connect("html-page-context", name_early_fonts)
    app.connect("html-page-context", name_folds)
    app.connect("html-page-context", name_tables)
    app.connect("html-page-context", keep_styles_once, priority=900)  # after the still pictures are in
    app.connect("doctree-read", drop_empty_heads)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_palette(app: Sphinx) -> None:
    """The colours of book/drawing/palette.py as CSS variables."""
    if app.builder.format != "html":
        return
    sys.path.insert(0, str(app.srcdir))
    from book.drawing import palette

    static = Path(app.outdir) / "_static"
    static.mkdir(parents=True, exist_ok=True)
    (static / "palette.css").write_text(palette.css(), encoding="utf-8")


def trim_scripts(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Drops what repeats, Thebe (it would load from a CDN), MathJax, widget state, unused grids and sorting.

    The state of live widgets holds their whole front-end once for each of them, for a widget manager
    that these pages don't load: their HTML output carries what they need.
    """
    sorts = "rl-sortable" in context.get("body", "")
    has_grids = re.search(r'class="[^"]*\bsd-', context.get("body", "")) is not None
    if not has_grids:
        context["css_files"] = [
            f for f in context.get("css_files", []) if "sphinx-design" not in str(f.filename)
        ]
    seen: set[str] = set()
    kept = []
    for script in context.get("script_files", []):
        attributes = getattr(script, "attributes", {})
        body = attributes.get("body") or ""
        name = body or str(getattr(script, "filename", script))
        unwanted = (
            "thebe" in name.lower()
            or "mathjax" in name.lower()  # math is set already (typeset_math.py)
            or (not has_grids and "design-tabs" in name)
            or (not sorts and "sortable" in name)
            or "jupyter.widget-state" in attributes.get("type", "")
        )
        if name in seen or unwanted:
            continue
        seen.add(name)
        kept.append(script)
    context["script_files"] = kept


def name_early_fonts(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """The fonts that a page's first lines are set in, for the template to ask for before the stylesheets."""
    body = context.get("body", "")
    fonts = ["fonts/source-serif-4-latin-wght-normal.woff2"]
    if "<em>" in body:
        fonts.append("fonts/source-serif-4-latin-wght-italic.woff2")
    if "<math" in body:
        fonts.append("math/stix-two-math.woff2")
    context["early_fonts"] = fonts


def name_folds(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """A folded cell is called what it shows ("Show code cell content"), also for a screen reader."""
    if "body" in context:
        context["body"] = context["body"].replace(' aria-label="Toggle hidden content"', "")


def name_tables(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """A table of a page can be scrolled by keyboard where it is cut, and is called by its first row."""
    if "body" in context:
        context["body"] = tables_named(context["body"])


def tables_named(body: str) -> str:
    """A page's HTML whose scrolling tables are focusable groups named by their headings."""

    def named(found: re.Match[str]) -> str:
        cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", found[2].partition("</tr>")[0], flags=re.S)
        words = (" ".join(html.unescape(re.sub(r"<[^>]+>", " ", cell)).split()) for cell in cells)
        name = html.escape(", ".join(filter(None, words)))
        return f'{found[1]} role="group" tabindex="0" aria-label="{name}">{found[2]}'

    opened = r'(<div class="pst-scrollable-table-container")>(\s*<table.*?</table>)'
    return re.sub(opened, named, body, flags=re.S)


def keep_styles_once(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Each figure and table of a notebook brings its style along; on a page the first serves all."""
    if "body" in context:
        context["body"] = styles_once(context["body"])


def styles_once(body: str) -> str:
    """A page's HTML without the style elements that repeat an earlier one to the letter."""
    seen: set[str] = set()

    def first(found: re.Match[str]) -> str:
        known = found[0] in seen
        seen.add(found[0])
        return "" if known else found[0]

    return re.sub(r"<style>.*?</style>", first, body, flags=re.S)


def drop_empty_heads(app: Sphinx, doctree: nodes.document) -> None:
    """Markdown can't write a table without a head; one whose head is empty has none."""
    for head in list(doctree.findall(nodes.thead)):
        if not head.astext().strip():
            head.parent.remove(head)
