"""The built site as files: links, titles, assets. No browser needed."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from book.drawing import palette
from tests.site.built import ROOT, pages, parsed

EVERY_PAGE = pytest.mark.parametrize("name", pages())


@cache
def leads_somewhere(page: Path, link: str) -> bool:
    """Links inside the site name a file, and an element of it; links to others are whole addresses."""
    parts = urlsplit(link)
    if parts.scheme in ("http", "https"):
        return bool(parts.netloc)
    if parts.scheme in ("mailto", "data"):
        return bool(parts.path)
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not target.is_file():
        return False
    return (
        not parts.fragment
        or target.suffix != ".html"
        or parsed(target).find(id=unquote(parts.fragment)) is not None
    )


@EVERY_PAGE
def test_every_page_has_a_title_and_a_description(site, name):
    soup = parsed(site / name)
    assert "The Inference Roofline" in soup.title.text
    if name != "search.html":
        description = soup.find("meta", attrs={"name": "description"})
        assert description is not None and len(description["content"]) > 40, (
            f"{name} describes itself nowhere"
        )


@EVERY_PAGE
def test_every_link_leads_somewhere(site, name):
    tags = parsed(site / name).find_all(["a", "link", "script", "img", "source"])
    links = [tag[key] for tag in tags for key in ("href", "src", "srcset") if tag.get(key) is not None]
    assert links
    broken = [link for link in links if not leads_somewhere(site / name, link)]
    assert not broken, f"{name}: {broken}"


@EVERY_PAGE
def test_no_script_or_style_comes_from_elsewhere(site, name):
    for tag in parsed(site / name).find_all(["script", "link", "img", "iframe"]):
        link = tag.get("src") or tag.get("href") or ""
        assert not link.startswith(("http:", "https:", "//")), tag
    assert "unpkg" not in (site / name).read_text(encoding="utf-8")


@EVERY_PAGE
def test_every_icon_of_the_theme_is_in_the_subset(site, name):
    css = (site / "_static" / "icons" / "icons.css").read_text(encoding="utf-8")
    known = set(re.findall(r"\.(fa-[\w-]+)", css))
    used = {
        c for tag in parsed(site / name).select("[class*=fa-]") for c in tag["class"] if c.startswith("fa-")
    }
    assert used <= known, "book/site/vendor.py did not find it in the themes"


@EVERY_PAGE
def test_no_style_stands_twice_on_a_page(site, name):
    styles = re.findall(r"<style>.*?</style>", (site / name).read_text(encoding="utf-8"), flags=re.S)
    assert len(styles) == len(set(styles))


def test_the_stylesheet_has_the_palette(site):
    assert (site / "_static" / "palette.css").read_text(encoding="utf-8") == palette.css()


def test_colours_live_in_the_palette_alone(site):
    """Stylesheets name roles; an opaque colour there would be a second definition."""
    for name in ("book.css", "explorer.css", "check.css"):
        css = re.sub(
            r"/\*.*?\*/",
            "",
            (ROOT / "book" / "site" / "static" / name).read_text(encoding="utf-8"),
            flags=re.S,
        )
        assert not re.search(r"#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})\b", css), f"{name} types a colour"


def test_the_licences_are_there_and_the_page_names_them(site):
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Attribution 4.0 International" in (ROOT / "LICENSE-text").read_text(encoding="utf-8")
    footer = " ".join(footer.text for footer in parsed(site / "index.html").find_all("footer"))
    assert "CC BY 4.0" in footer and "Apache-2.0" in footer


@pytest.mark.parametrize("folder", ["math", "fonts", "icons"])
def test_what_others_made_carries_its_licence(site, folder):
    assert list((site / "_static" / folder).glob("LICENSE*"))
