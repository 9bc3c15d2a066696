"""The messages of pages and code, for a second language: found, extracted, and held to their form.

python -m book.messages extract    the templates (.pot) of all that code and pages say, in _build/locale
python -m book.messages compile    catalogs that were translated (.po) into those that `book.say` reads (.mo)

A second language is a folder, `book/locales/<language>/LC_MESSAGES/`, with the two templates
translated: `inference-roofline.po` is what code says, `inference-roofline-pages.po` the prose.
"""
