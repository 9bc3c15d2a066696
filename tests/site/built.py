"""Where the built site is, and which pages it has."""

from pathlib import Path

import yaml
from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
AXE = ROOT / "book" / "site" / "node_modules" / "axe-core" / "axe.min.js"


def pages() -> list[str]:
    """Every page of _toc.yml as a path inside the site, the front page first; and the search page."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    chapters = [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    return [f"{name}.html" for name in [toc["root"], *chapters, "search"]]


def parsed(path: Path) -> BeautifulSoup:
    """A built page."""
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
