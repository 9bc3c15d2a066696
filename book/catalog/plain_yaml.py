"""The part of YAML that the catalog's files use, read where PyYAML is absent: on a machine with torch alone.

Mappings and lists, indented or in brackets (which may go on over several lines); text plain, in 'single'
or in "double" quotes; numbers, true, false, null; comments. Anything else is refused rather than guessed.
A test holds it against PyYAML on every file of the catalog.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
WHOLE = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
DECIMAL = re.compile(r"[-+]?[0-9][0-9_]*\.[0-9_]*([eE][-+][0-9]+)?")
# What YAML 1.1 reads as something else than text: dates, hours, octals, other words for true.
TRAPS = re.compile(r"(?i)yes|no|on|off|null|true|false|[-+]?0[0-7xob]\S*|[-+]?\.\S*|[-+\d][\d:_.-]*[:-]\d\S*")
QUOTED = re.compile(r""" "(?:[^"\\]|\\.)*" | '(?:[^']|'')*' """, re.VERBOSE)
BREAK = re.compile(r",|\]|\}|:(?=\s|$)")  # what ends plain text in brackets
OPEN = {"{": "}", "[": "]"}

Line = tuple[int, str]


def load(text: str) -> Any:
    """The document. Raises ValueError with the text that isn't read."""
    lines = list(_lines(text))
    if not lines:
        return None
    found, rest = _block(lines, lines[0][0])
    if rest:
        raise ValueError(f"{rest[0][1]!r}: its indentation fits nothing above it")
    return found


def _lines(text: str) -> Iterator[Line]:
    """(indentation, content) of each line without comments, those joined that a bracket holds together."""
    held, depth = "", 0
    for raw in text.splitlines():
        content, change = _stripped(raw)
        if not content.strip():
            continue
        held = f"{held} {content.strip()}" if depth else content
        depth += change
        if depth <= 0:
            yield len(held) - len(held.lstrip()), held.strip()
            held, depth = "", 0
    if held:
        raise ValueError(f"{held.strip()[:60]!r}: a bracket is never closed")


def _stripped(raw: str) -> tuple[str, int]:
    """A line without its comment, and how many more brackets it opens than it closes."""
    change = at = 0
    while at < len(raw):
        letter = raw[at]
        if (
            letter in "\"'"
            and (not raw[:at].strip() or raw[at - 1] in " ,[{")
            and (text := QUOTED.match(raw, at))
        ):
            at = text.end()
            continue
        if letter == "#" and (at == 0 or raw[at - 1] in " \t"):
            return raw[:at], change
        change += (letter in "{[") - (letter in "}]")
        at += 1
    return raw, change


def _block(lines: list[Line], indent: int) -> tuple[Any, list[Line]]:
    """What begins at the first line, all of it indented by `indent`; and the lines after it."""
    if lines[0][1].startswith("- "):
        items = []
        while lines and lines[0][0] == indent and lines[0][1].startswith("- "):
            (_, content), inner = lines[0], indent + 2
            content = content[2:].strip()
            if _key(content):  # a mapping that begins behind the dash
                item, lines = _block([(inner, content), *lines[1:]], inner)
            else:
                item, lines = _value(content), lines[1:]
            items.append(item)
        return items, lines
    found: dict[str, Any] = {}
    while lines and lines[0][0] == indent and not lines[0][1].startswith("- "):
        content = lines[0][1]
        if not (name := _key(content)):
            raise ValueError(f"{content!r}: must be `name: value`")
        value, lines = content[len(name) + 1 :].strip(), lines[1:]
        key = _value(name)
        if key in found:
            raise ValueError(f"{name!r}: stands there twice")
        if value:
            found[key] = _value(value)
        elif lines and (lines[0][0] > indent or (lines[0][0] == indent and lines[0][1].startswith("- "))):
            found[key], lines = _block(lines, lines[0][0])
        else:
            found[key] = None
    return found, lines


def _key(content: str) -> str:
    """The text before the colon, if it is `name: value`; else ""."""
    if content[0] in "{[":
        return ""
    start = quoted.end() if (quoted := QUOTED.match(content)) else 0
    colon = re.compile(r":(?=\s|$)").search(content, start)
    return content[: colon.start()] if colon and (not start or colon.start() == start) else ""


def _value(content: str) -> Any:
    found, at = _flow(content, 0, inside=False)
    if content[at:].strip():
        raise ValueError(f"{content!r}: {content[at:].strip()!r} is too much")
    return found


def _flow(text: str, at: int, inside: bool = True) -> tuple[Any, int]:
    """One value from `at` on, and where it ends. inside: brackets, so that a comma ends plain text."""
    at = _skip(text, at)
    if at < len(text) and text[at] in OPEN:
        return _brackets(text, at)
    if quoted := QUOTED.match(text, at):
        raw = quoted.group()
        return json.loads(raw) if raw[0] == '"' else raw[1:-1].replace("''", "'"), quoted.end()
    end = BREAK.search(text, at) if inside else None
    stop = end.start() if end else len(text)
    return _scalar(text[at:stop].strip()), stop


def _brackets(text: str, at: int) -> tuple[Any, int]:
    close = OPEN[text[at]]
    pairs: dict[Any, Any] = {}
    items: list[Any] = []
    at = _skip(text, at + 1)
    while at < len(text) and text[at] != close:
        item, at = _flow(text, at)
        at = _skip(text, at)
        if close == "}":
            if text[at : at + 1] != ":":
                raise ValueError(f"{text[:60]!r}: {item!r} has no value")
            pairs[item], at = _flow(text, at + 1)
            at = _skip(text, at)
        items.append(item)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != close:
            raise ValueError(f"{text[:60]!r}: {text[at : at + 20]!r}: a comma is missing")
    return (pairs if close == "}" else items), at + 1


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _scalar(text: str) -> Any:
    if text in WORDS:
        return WORDS[text]
    if WHOLE.fullmatch(text):
        return int(text.replace("_", ""))
    if DECIMAL.fullmatch(text):
        return float(text.replace("_", ""))
    if text[0] in "&*!|>%@`\"'" or TRAPS.fullmatch(text):
        raise ValueError(f"{text!r}: put it in quotes; YAML may read it as something else than text")
    return text
