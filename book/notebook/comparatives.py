"""Which words make a sentence a claim, and which assertion beside it holds such a claim up.

"At least" wants an order, "the same" an equality, "every" any assertion at all. An equality says
nothing about "seldom more than". Words that mostly do other work ("each", "any", "first") are left
out: a list that rings at every sentence is heard at none.
"""

from __future__ import annotations

import ast
import re
from typing import Literal

Need = Literal["order", "same", "all"]

# "On the same card" says which card, and "the same explorer" which explorer; neither compares.
_POINTING = "explorer|file|page|cell|table|code|source|notebook|example|question|chapter"
# "All of a cache" is a part and its whole; all cards, all rows are what a claim is about.
_SETS = "cards|models|rows|points|sizes|series|kernels|engines|shapes|formats|peaks|measurements|cases|chips"
_BEFORE = "".join(
    rf"(?<!\b{word} )" for word in ("at", "all", "on", "of", "from", "by", "for", "with", "the")
)
_TIMES = r"(?:twice|half|thrice|[a-z]+ times)"
_WORDS: dict[Need, tuple[str, ...]] = {
    "order": (
        r"at (?:least|most)",
        r"no (?:more|less|fewer|\w+er) than",
        r"(?:more|less|fewer|faster|slower|larger|smaller|longer|shorter|higher|lower) than(?! one\b)",
        r"(?:cheaper|better|worse) than",
        r"(?:faster|slower)\b(?! than)",
        rf"{_TIMES} (?:as|the) \w+",
        rf"{_TIMES} (?:faster|slower|more|larger|longer)",
        r"(?:seldom|rarely|hardly|scarcely|usually|mostly|nearly all|almost all|most of)",
        r"(?<!how )(?<!too )(?<!as )often(?! as)",
        r"as (?:close|good|fast|slow|large|small|little|much|many|high|low|long) as",
        r"(?:about|nearly|almost|roughly) (?:as|the same)",
        r"within (?:one|two|three|five|ten|\d[\d.]*) (?:%|per ?cent)",
        r"(?:the )?(?:best|worst|fastest|slowest|largest|smallest)",
    ),
    "same": (
        rf"{_BEFORE}the same(?! (?:{_POINTING}))",
        rf"{_BEFORE}same(?! (?:{_POINTING}))",
        r"identical(?:ly)?",
        r"to the (?:byte|unit|last \w+)",
        r"(?:stays?|stayed|remains?|unchanged)(?: as it is| put)?",
        r"exactly",
    ),
    "all": (
        r"always",
        r"never",
        r"nobody|no one|no-one|nothing(?! but)|none",
        r"every(?:body|one|thing|where)?",
        rf"all (?:of )?(?:the |these |its |our )?(?:\w+ )?(?:{_SETS})",
        r"can(?:'t|not| not) (?:be|reach|help|hold|beat|exceed|have)",
        r"must (?:be|have)",
        r"(?<!not )only",
    ),
}
_CLAIMS = {need: re.compile(rf"\b(?:{'|'.join(words)})(?!\w)", re.I) for need, words in _WORDS.items()}
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_SAME = (ast.Eq, ast.Is, ast.In)
_CLOSE = ("isclose", "allclose", "approx", "array_equal")
# What a chapter calls that asserts by itself: counted bytes equal the formula, or the call fails.
_ASSERTS = {"confirm": frozenset[Need]({"same", "all"})}


def words(sentence: str) -> dict[str, Need]:
    """The words that make it a claim, each with the assertion that it asks for; none in a question."""
    if sentence.rstrip("*_ )").endswith("?"):
        return {}
    return {
        found[0].lower(): need for need, pattern in _CLAIMS.items() for found in pattern.finditer(sentence)
    }


def asserted(source: str) -> frozenset[Need]:
    """What a code cell's assertions may hold up. A cell that isn't Python asserts nothing."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return frozenset()
    found: set[Need] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            found |= {"all"} | _compared(node.test)
        elif isinstance(node, ast.Call):
            found |= _ASSERTS.get(_called(node), frozenset())
    return frozenset(found)


def _compared(test: ast.expr) -> set[Need]:
    inner = list(ast.walk(test))
    operators = [operator for node in inner if isinstance(node, ast.Compare) for operator in node.ops]
    calls = {_called(node) for node in inner if isinstance(node, ast.Call)}
    found: set[Need] = set()
    if any(isinstance(operator, _ORDER) for operator in operators):
        found |= {"order"} | ({"same"} if "abs" in calls else set())
    if any(isinstance(operator, _SAME) for operator in operators) or calls & set(_CLOSE):
        found.add("same")
    return found


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
