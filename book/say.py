"""Every sentence that code prints or shows goes through `say`: a second language needs no second code.

    say("counted: {count} sizes, every byte as the formula says", count=3)

The text is looked up in the catalog of the language that the reader chose ($BOOK_LANGUAGE; English
if there is none), then the values are put in its braces. Formats work there: {share:.1f}.
"""

from __future__ import annotations

import functools
import gettext
import os
from pathlib import Path
from typing import Any

DOMAIN = "inference-roofline"
LOCALES = Path(__file__).parent / "locales"


@functools.cache
def _catalog(language: str) -> gettext.NullTranslations:
    return gettext.translation(DOMAIN, LOCALES, languages=[language] if language else [], fallback=True)


def say(text: str, **values: Any) -> str:
    """`text` in the reader's language, `values` put in. Raises KeyError for a brace without one."""
    translated = _catalog(os.environ.get("BOOK_LANGUAGE", "")).gettext(text) if text else text
    return translated.format(**values) if values else translated
