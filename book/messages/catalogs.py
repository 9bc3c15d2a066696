"""Catalogs as files: templates (.pot) to translate, and translations (.po) made into what is read (.mo)."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from book import say
from book.messages import in_code, in_pages

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "_build" / "locale"


def extract(to: Path = TEMPLATES) -> list[tuple[Path, int]]:
    """Write both templates below `to`; returns each with the number of its messages."""
    made = {say.DOMAIN: in_code.catalog(), say.PAGES: in_pages.catalog()}
    return [(write(catalog, to / f"{domain}.pot"), len(catalog)) for domain, catalog in made.items()]


def write(catalog: Catalog, path: Path) -> Path:
    """Write a template, whole or not at all."""
    text = BytesIO()
    catalog.project, catalog.version = "The Inference Roofline", ""
    write_po(text, catalog, width=100, sort_by_file=True)
    return _whole(path, text.getvalue())


def compile_all(locales: Path = say.LOCALES) -> list[Path]:
    """Make a .mo of each .po below `locales`. A message that is marked fuzzy stays English."""
    found = []
    for source in sorted(locales.glob("*/LC_MESSAGES/*.po")):
        with source.open("rb") as file:
            catalog = read_po(file, locale=source.parts[-3], domain=source.stem)
        made = BytesIO()
        write_mo(made, catalog)
        found.append(_whole(source.with_suffix(".mo"), made.getvalue()))
    return found


def _whole(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".new")
    temporary.write_bytes(content)
    return temporary.replace(path)
