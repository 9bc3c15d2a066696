"""Every sentence that code prints or shows goes through `say`: a second language needs no second code.

    say("counted: {count} sizes, every byte as the formula says", count=3)

The text is looked up in the catalog of the reader's language, then the values are put in its braces.
Formats work there: {share:.1f}. The text stands in the call as one plain literal, so that
`make messages` finds it; `book.messages` holds both.

The language is $BOOK_LANGUAGE ("de"), read once, when this module is first imported; English if there
is none. Tables of words are said while their modules are imported, so a language that was chosen
later would reach only half of what is shown: set the variable before Python starts. Catalogs are
gettext's, `book/locales/<language>/LC_MESSAGES/`; a language without one, or a message that its
catalog lacks, is English.
"""

from __future__ import annotations

import base64
import gettext
import io
import os
from pathlib import Path
from typing import Any

DOMAIN = "inference-roofline"  # the catalog of what code says
PAGES = f"{DOMAIN}-pages"  # and that of the pages' prose
LOCALES = Path(os.environ.get("BOOK_LOCALES") or Path(__file__).parent / "locales")


def _language() -> str:
    """The reader's choice, or what a notebook that travelled speaks."""
    travelled = LOCALES / "language"
    own = travelled.read_text(encoding="utf-8").strip() if travelled.is_file() else ""
    return os.environ.get("BOOK_LANGUAGE", own)


LANGUAGE = _language()


def catalog(language: str, locales: Path = LOCALES) -> gettext.NullTranslations:
    """The messages of a language; those of English, which are the code's own, where there are none."""
    if not language:
        return gettext.NullTranslations()
    folder = locales / language / "LC_MESSAGES"
    try:
        if (travelled := folder / f"{DOMAIN}.mo.txt").exists():  # in a notebook only text can travel
            return gettext.GNUTranslations(
                io.BytesIO(base64.b85decode(travelled.read_text(encoding="ascii").strip()))
            )
        return gettext.translation(DOMAIN, locales, languages=[language])
    except (OSError, ValueError):
        return gettext.NullTranslations()


_CATALOG = catalog(LANGUAGE)


def say(text: str, /, **values: Any) -> str:
    """`text` in the reader's language, `values` put in its braces. Raises KeyError for a brace without one.

    Without values nothing is put in, and braces stay as they are: those of words that a page fills in.
    """
    return translated(text, **values)


def translated(text: str, /, **values: Any) -> str:
    """As `say`, of a text that somebody else wrote down: a chapter's cell, for the function it calls."""
    found = _CATALOG.gettext(text) if text else text
    return found.format(**values) if values else found
