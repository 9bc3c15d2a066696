"""Finds what a reader is shown without going through `say`, by reading the code and never running it.

Three rules. A literal that is handed to what shows it (`SHOWN`: print, an axis label, a column's
heading, a formula's label, an alt text) has to stand in a `say`. So has, anywhere else, a literal
that reads like a sentence, or one with words between HTML tags. And a `say` takes one plain literal,
whose braces all have a value by keyword. What is no sentence, or nobody's but a developer's, is
listed in `EXCEPTIONS` with its reason.
"""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOUSES = ("book", "kernels", "labs")

# Who shows what it is given: positions and keywords. "*" is each positional argument.
SHOWN: dict[str, tuple[int | str, ...]] = {
    "print": ("*",),
    # matplotlib
    **dict.fromkeys(("set_xlabel", "set_ylabel", "set_title", "suptitle", "set_label", "annotate"), (0,)),
    "text": (2,),
    "place": (0,),
    # tables
    "Column": (1,),
    "Heading": (0,),
    "table": (1, 2),
    "sortable": (2,),
    # formulas and how they are shown
    "of_cost": (1,),
    "Parameter": (1,),
    "Alias": (1,),
    "Limit": (2,),
    "Shown": (1,),
    "Readouts": (0,),
    "Kind": (0,),
    # claims: what is said, and why it is right or wrong
    "right": (1, 4),
    "wrong": (1, 4),
    # labs
    "Verdict": (1,),
}
# Keywords that are shown, whoever takes them.
KEYWORDS = frozenset(
    {"alt", "caption", "comment", "description", "hint", "label", "note", "placeholder", "question"}
    | {"title", "tooltip", "xlabel", "ylabel"}
)

_EXCEPTION = re.compile(r"(Error|Warning|Exception|Unsupported|NoTriton|Disagrees|Unknown\w*)\Z")
# Exceptions whose message is what a student is told, in place of a result.
TOLD = frozenset({"NotYet", "Unreadable", "NotTriton", "_at", "BadPlan"})
_DEVELOPERS = frozenset({"add_argument", "ArgumentParser", "add_parser", "compile"})
_UNIT = re.compile(r"\b[kMGTP]?(FLOPs?|bytes?|B|tok(ens?)?|rows?)/(s|byte|token)\b|\bFLOPs?\b|\bms\b")
_WORD = re.compile(r"[A-Za-z][a-z'’]+(?![\w(=]|\.\w)")
_TAGGED = re.compile(r">[^<>{}]*[A-Za-z]{2,}[^<>{}]*<")
_VALUE = "\0"  # stands for an expression in an f-string
_CODE = re.compile(r"[;{}]\s*\n|\{[a-z-]+:|^\s*(import|from|def|class|export) |[a-z]+\.[a-z]+\(|^#")


@dataclass(frozen=True)
class Escaped:
    """One literal that a reader may see as it stands. path: from the root; why: the rule that it breaks."""

    path: str
    line: int
    where: str  # the function or the table that it stands in
    text: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} ({self.where}): {self.why}: {self.text!r}"


def in_source(source: str, path: str = "") -> list[Escaped]:
    """What escaped in this source. Raises SyntaxError."""
    tree = with_parents(ast.parse(source))
    return [
        Escaped(path, node.lineno, _where(node), written(node)[:120], why)
        for node in ast.walk(tree)
        for why in _broken(node)
    ]


def in_cell(source: str, path: str = "") -> list[Escaped]:
    """What a chapter's cell prints without `say`, or says wrongly. Raises SyntaxError.

    Whoever else takes words in a cell (`numeric`, `show`, `table`) looks them up itself.
    """
    tree = with_parents(ast.parse(source))
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and called(n) in ("print", "say")]
    return [
        Escaped(path, node.lineno, _where(node), written(node)[:120], why)
        for node in dict.fromkeys(inner for call in calls for inner in ast.walk(call))
        for why in _broken(node)
    ]


def written(node: ast.AST) -> str:
    """A literal's text, an f-string with its expressions in braces; anything else as its code."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(
            v.value if isinstance(v, ast.Constant) else f"{{{ast.unparse(v.value)}}}" for v in node.values
        )
    return ast.unparse(node)


def is_text(node: ast.AST) -> bool:
    """Whether it is a string literal or an f-string."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


# ------------------------------------------------------------------------------------- the rules


def _broken(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call) and called(node) == "say":
        yield from _bad_say(node)
    elif is_text(node) and not _inside_string(node) and not _excused(node):
        if words(_plain(node)) and _is_shown(node):
            yield "is shown without say"
        elif _TAGGED.search(_plain(node)) and not _CODE.search(_plain(node)):
            yield "has words between HTML tags"
        elif words(_plain(node)) >= 3 and _plain(node).count(" ") >= 2 and not _CODE.search(_plain(node)):
            yield "reads like a sentence, without say"


def _bad_say(call: ast.Call) -> Iterator[str]:
    if len(call.args) != 1:
        yield "say takes one text, and its values by keyword"
        return
    (text,) = call.args
    if isinstance(text, ast.JoinedStr):
        yield "an f-string inside say: no catalog has it; put values in by keyword"
    elif not (isinstance(text, ast.Constant) and isinstance(text.value, str)):
        yield "say needs a literal: what isn't written there can't be extracted"
    elif any(k.arg is None for k in call.keywords):
        yield "say takes each value by its name, so that its braces can be checked"
    elif call.keywords:
        given, wanted = {k.arg for k in call.keywords}, fields(text.value)
        if given != wanted:
            yield f"say has braces for {sorted(wanted)} and values for {sorted(given)}"
    elif not call.keywords and fields(text.value):
        yield f"say has braces for {sorted(fields(text.value))} and no values"


def fields(text: str) -> set[str]:
    """The names in a text's braces, those in formats too. Raises ValueError for a lone brace."""
    found = set()
    for _, name, spec, _ in string.Formatter().parse(text):
        if name is not None:
            found.add(re.split(r"[.\[]", name)[0])
            found |= fields(spec or "")
    return found


def words(text: str) -> int:
    """How many words of at least two letters a text has; names of code are none."""
    text = re.sub(r"<[^<>]*(>|$)", " ", text)
    return len(_WORD.findall(_UNIT.sub(" ", re.sub(r"https?://\S+|`[^`]*`|\w*_\w+", " ", text))))


def _plain(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(v.value if isinstance(v, ast.Constant) else _VALUE for v in node.values)
    return written(node)


def _is_shown(node: ast.AST) -> bool:
    """Whether it is an argument of what shows it, through conditionals, lists and concatenations."""
    child, parent = node, parent_of(node)
    if isinstance(parent, ast.List) and any(
        isinstance(one, ast.Call) and called(one) == "Column" for one in parent.elts
    ):
        return True  # the heading of a column that needs no more than that
    while isinstance(parent, ast.IfExp | ast.List | ast.Tuple | ast.BinOp | ast.Dict | ast.Starred):
        if isinstance(parent, ast.IfExp) and child is parent.test:
            return False
        if isinstance(parent, ast.BinOp) and not isinstance(parent.op, ast.Add):
            return False
        child, parent = parent, parent_of(parent)
    if isinstance(parent, ast.keyword):
        return parent.arg in KEYWORDS and not isinstance(child, ast.Dict)
    if isinstance(parent, ast.Call) and child in parent.args:
        shown = SHOWN.get(called(parent), ())
        return "*" in shown or parent.args.index(child) in shown
    return False


def _excused(node: ast.AST) -> bool:
    """Whether it is a docstring, is in an exception's message, or talks to developers."""
    above = parent_of(node)
    if isinstance(above, ast.Expr):
        return True
    while above is not None and not isinstance(above, ast.stmt | ast.Lambda):
        if isinstance(above, ast.Call):
            name = called(above)
            if name in TOLD:
                return False
            if name == "say" or name in _DEVELOPERS or _EXCEPTION.search(name) or _logs(above):
                return True
        above = parent_of(above)
    return isinstance(above, ast.Raise | ast.Assert)


def _logs(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and "log" in ast.unparse(call.func.value).lower()


def _inside_string(node: ast.AST) -> bool:
    return isinstance(parent_of(node), ast.JoinedStr)


def called(call: ast.Call) -> str:
    """The last name of what is called: "print", "set_xlabel"."""
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def with_parents(tree: ast.Module) -> ast.Module:
    """The tree, each node of which knows the one above it (`parent_of`)."""
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            child.above = node  # type: ignore[attr-defined]
    return tree


def parent_of(node: ast.AST) -> ast.AST | None:
    """The node above this one, in a tree of `with_parents`."""
    return getattr(node, "above", None)


def _where(node: ast.AST) -> str:
    """The function, or the name at the top of the module, that a node stands in."""
    names = []
    above: ast.AST | None = node
    while above is not None:
        if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.insert(0, above.name)
        elif isinstance(above, ast.Assign | ast.AnnAssign) and isinstance(parent_of(above), ast.Module):
            target = above.targets[0] if isinstance(above, ast.Assign) else above.target
            names.insert(0, ast.unparse(target))
        above = parent_of(above)
    return ".".join(names) or "the module"
