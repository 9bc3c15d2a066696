"""No form without a test: whatever a family lets through has been executed by a test beside this one."""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]

import pytest

from kernels.evidence.executed import machine  # noqa: F401 - with it come all families
from kernels.evidence.executed.forms import FAMILIES, Family
from kernels.evidence.executed.ptx import CONTROL, NotExecutable
from tests.kernels.executed import snippets, test_scheduler
from tests.kernels.executed.oracles import ORACLES

# Each test file of instructions says in FORMS what it executes, and in REFUSED what has to be refused.
MODULES = [
    importlib.import_module(f"tests.kernels.executed.{file.stem}")
    for file in sorted(Path(__file__).parent.glob("test_*.py"))
    if "\nFORMS = [" in file.read_text(encoding="utf-8") and file != Path(__file__)
]
TESTED = {*ORACLES, *(form for module in MODULES for form in module.FORMS)}
REFUSED = [line for module in MODULES for line in module.REFUSED]


def text_of(tree) -> str:
    """A regular expression's tree as its text again."""
    found = ""
    for kind, what in tree:
        if kind is op.LITERAL:
            found += re.escape(chr(what))
        elif kind is op.IN:
            found += "[" + "".join(_one_of(*one) for one in what) + "]"
        elif kind is op.BRANCH:
            found += "(?:" + "|".join(text_of(one) for one in what[1]) + ")"
        elif kind is op.SUBPATTERN:
            found += f"(?:{text_of(what[-1])})"
        elif kind is op.MAX_REPEAT:
            low, high, inner = what
            found += f"(?:{text_of(inner)}){{{low},{'' if high is op.MAXREPEAT else high}}}"
        else:
            raise NotImplementedError(f"{kind} in the pattern of a family")
    return found


def _one_of(kind, what) -> str:
    if kind is op.LITERAL:
        return re.escape(chr(what))
    return {op.CATEGORY_DIGIT: r"\d", op.CATEGORY_WORD: r"\w"}[what]


def choices(tree) -> Iterator[str]:
    """The pattern once for each thing that it leaves open, with that one decided."""
    items = list(tree)
    for i, (kind, what) in enumerate(items):
        decided: list[str] = []
        if kind is op.BRANCH:
            for one in what[1]:
                decided += list(choices(one)) or [text_of(one)]
        elif kind is op.IN and all(one[0] is op.LITERAL for one in what):
            decided = [_one_of(*one) for one in what]
        elif kind is op.SUBPATTERN:
            decided = list(choices(what[-1]))
        elif kind is op.MAX_REPEAT:
            decided = list(choices(what[-1])) or ([text_of(what[-1])] if what[0] == 0 else [])
            decided += [""] if what[0] == 0 else []
        for one in decided:
            yield text_of(items[:i]) + f"(?:{one})" + text_of(items[i + 1 :])


def untested(pattern: str, forms: set[str]) -> list[str]:
    """What `pattern` leaves open and none of `forms` is an example of."""
    tree = _parser.parse(pattern)
    every = list(choices(tree)) or [text_of(tree)]
    return [one for one in every if not any(re.fullmatch(one, form) for form in forms)]


@pytest.mark.parametrize("pattern", FAMILIES, ids=lambda pattern: pattern.pattern[:40])
def test_everything_that_a_family_lets_through_is_tested(pattern):
    mine = {form for form in TESTED if pattern.fullmatch(form)}
    assert not untested(pattern.pattern, mine)


def test_every_form_that_is_said_to_be_tested_is_known_to_one_family():
    for form in TESTED:
        assert sum(pattern.fullmatch(form) is not None for pattern in FAMILIES) == 1, form


def test_what_the_scheduler_does_itself_is_tested():
    text = Path(test_scheduler.__file__).read_text(encoding="utf-8")
    assert [form for form in CONTROL if not re.search(rf"\b{re.escape(form)}[ ;]", text)] == []


@pytest.mark.parametrize("line", REFUSED)
def test_what_no_card_has_or_nobody_tried_is_refused_while_decoding(line):
    form = re.escape(line.split()[0])
    with pytest.raises(NotExecutable, match=f"snippet: 1 instructions are not known here: {form}"):
        snippets.kernel(f"{line};")


@pytest.mark.parametrize("pattern", FAMILIES, ids=lambda pattern: pattern.pattern[:40])
@pytest.mark.parametrize("operand", ["%r1", "%unheard", "[%rd1]", "{%r1, _}", "1.5"])
def test_operands_that_a_form_has_not_are_not_known_whatever_they_are(pattern, operand):
    """No other error: a newer Triton's code would read as a mistake of ours, or ours as a newer Triton."""
    mine = sorted(form for form in TESTED if pattern.fullmatch(form))
    for form in mine[:: max(1, len(mine) // 5)]:
        for count in range(10):
            line = f"{form} {', '.join([operand] * count)}; ret;"
            if count in FAMILIES[pattern].operands:
                with contextlib.suppress(NotExecutable):  # it may be one that this form can have
                    snippets.kernel(line, threads=128)
            else:
                with pytest.raises(NotExecutable, match=f"{re.escape(form)} of {count} operands"):
                    snippets.kernel(line, threads=128)


def test_a_mistake_of_ours_is_no_newer_triton(monkeypatch):
    def wrong(kernel, one, found):
        raise KeyError("a table of ours lacks it")

    monkeypatch.setitem(FAMILIES, re.compile("ours"), Family(wrong, (0,)))
    with pytest.raises(KeyError, match="a table of ours"):
        snippets.kernel("ours;")


def test_a_form_that_has_no_test_is_seen():
    """The check itself: an alternative, a qualifier that may be left out, one more of many."""
    pattern = r"add\.(s32|u32)(?:\.sat)?(?:\.x[12])*"
    every = {"add.s32", "add.u32", "add.s32.sat", "add.s32.x1", "add.s32.x2"}
    assert untested(pattern, every) == []
    for form in every - {"add.s32"}:
        assert untested(pattern, every - {form})
