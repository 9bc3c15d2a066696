"""Sphinx extension: what a link to a page shows elsewhere, and under which address the page is known.

A page that sets no description is described by whole sentences: a chapter by the question and the
promise of its card, any other page by how its first paragraph begins. The tags of previews (`og:`,
`twitter:`) say the same.

`repository.url` in `_config.yml` gives the address that a page names as its own (canonical): that of
GitHub's pages, or `repository.site_url` where the site is published elsewhere. While there is none, no
page names one, and each build says so once. That is no warning, as `make site` fails at warnings and a
copy that nobody has published yet isn't wrong.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
LENGTH = 200  # characters of a description, unless its first sentence is longer
SHORTEST = 40  # a paragraph below it is a label
NUMBER = re.compile(r'<span class="section-number">[^<]*</span>')
VIEWPORT = re.compile(r'\s*<meta name="viewport"[^>]*>')
DESCRIPTION = re.compile(r'<meta (?=[^>]*name="description")[^>]*content="([^"]*)"[^>]*>')


def setup(app: Sphinx) -> dict[str, bool]:
    """Connects to the reading of the configuration and to the writing of a page."""
    app.connect("config-inited", set_address)
    app.connect("html-page-context", preview)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def site_address(repository: dict[str, Any]) -> str:
    """Where the site is published, with a slash at its end; "" if that isn't known.

    repository: {url, site_url} as in _config.yml; without `site_url` it is GitHub's pages of `url`.
    """
    if told := repository.get("site_url"):
        return told.rstrip("/") + "/"
    url = (repository.get("url") or "").rstrip("/").removesuffix(".git")
    found = re.fullmatch(r"https?://github\.com/([^/]+)/([^/]+)", url)
    return f"https://{found[1].lower()}.github.io/{found[2]}/" if found else ""


def set_address(app: Sphinx, config: Config) -> None:
    """Pages name their address if the site has one; if not, the build says what is missing."""
    path = Path(app.confdir) / "_config.yml"
    told = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}
    address = site_address(told.get("repository") or {})
    if address:
        config.html_baseurl = address
    elif not config.html_baseurl:
        LOGGER.info(
            "The site has no address: `repository.url` in _config.yml is empty. Its pages name no"
            " canonical address and no source, and previews of shared links have no address."
        )


def preview(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Adds the description and the tags of previews; the template has a viewport of its own already."""
    tags = VIEWPORT.sub("", context.get("metatags", ""))
    if doctree is not None:
        told = DESCRIPTION.search(tags)
        text = html.unescape(told[1]) if told else description(doctree)
        if text and not told:
            tags += _tag("name", "description", text)
        tags += "".join(_tag(*one) for one in _shared(context, app.config, text) if one[2])
    context["metatags"] = tags


def description(doctree: nodes.document) -> str:
    """Whole sentences that say what a page is about; "" for one that has none."""
    for card in doctree.findall(nodes.admonition):
        if "chapter-card" in card["classes"]:
            return " ".join(_text(part) for part in card.children[:2])
    for paragraph in doctree.findall(nodes.paragraph):
        if len(text := _text(paragraph)) > SHORTEST:
            return _whole_sentences(text)
    return ""


def _whole_sentences(text: str) -> str:
    first, *others = re.split(r"(?<=[.?!]) (?=[A-Z])", text)
    for sentence in others:
        if len(first) + len(sentence) >= LENGTH:
            break
        first = f"{first} {sentence}"
    return first


def _text(node: nodes.Node) -> str:
    return " ".join(node.astext().split())


def _shared(context: dict[str, Any], config: Config, text: str) -> list[tuple[str, str, str]]:
    title = html.unescape(re.sub(r"<[^>]*>", "", NUMBER.sub("", context.get("title", ""))))
    return [
        ("property", "og:type", "article"),
        ("property", "og:site_name", config.html_title if title != config.html_title else ""),
        ("property", "og:title", title),
        ("property", "og:description", text),
        ("property", "og:url", context.get("pageurl") or ""),
        ("name", "twitter:card", "summary"),
    ]


def _tag(kind: str, name: str, content: str) -> str:
    return f'\n<meta {kind}="{name}" content="{html.escape(content)}" />'
