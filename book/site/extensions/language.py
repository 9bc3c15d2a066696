"""Sphinx extension: pages are built in the language that code speaks, $BOOK_LANGUAGE (see `book.say`).

Their prose is taken from `book/locales/<language>/LC_MESSAGES/inference-roofline-pages.po`; a
paragraph that isn't there stays English.
"""

from __future__ import annotations

from sphinx import locale
from sphinx.application import Sphinx
from sphinx.config import Config

from book.say import LANGUAGE, LOCALES, PAGES


def setup(app: Sphinx) -> dict[str, bool]:
    """Connects to the moment when the configuration is known."""
    if LANGUAGE:
        app.connect("config-inited", speak)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def speak(app: Sphinx, config: Config) -> None:
    """Sets the language of prose, and of what Sphinx and the theme say themselves."""
    config.language, config.locale_dirs, config.gettext_compact = LANGUAGE, [str(LOCALES)], PAGES
    app.translator, _ = locale.init([str(LOCALES), None], LANGUAGE)
