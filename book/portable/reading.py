"""What one module says of others, found by reading its text and never by running it."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("book", "kernels", "labs")

# "kernels.linear", or "kernels.linear:experiment" as a child process is told
_MODULE_NAME = re.compile(rf"((?:{'|'.join(PACKAGES)})(?:\.\w+)+)(?::\w+)?\Z")
_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*\Z")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Import(NamedTuple):
    """One name that a module asks for: "book.cost", "book.cost.linear".

    later: only inside a function, for types, or named in a string. used: what the module takes from
    it, {"linear"} for `cost.linear(...)`; None where it is used in another way, or was imported by
    its whole dotted name, which makes all packages on the way available, too.
    """

    name: str
    later: bool
    used: frozenset[str] | None


@dataclass(frozen=True)
class Module:
    """What a module says.

    imports: what it asks for. paths: strings in it that may be paths of files. looked_in: packages
    whose modules it finds by looking (`pkgutil.iter_modules(kernels.__path__)`).
    exports: names that others can have from it, and where it has them from; face: those of them that
    stand in a table called FACE. source: its text.
    """

    imports: tuple[Import, ...]
    paths: frozenset[str]
    looked_in: frozenset[str]
    exports: Mapping[str, str]
    face: Mapping[str, str]
    source: str

    @cached_property
    def rest(self) -> str:
        """Its code without these imports, tables and comments; asked of packages alone."""
        body = ast.parse(self.source).body
        return ast.unparse(ast.Module([node for node in body if not _hands_on(node)], []))


def read(path: Path, root: Path) -> Module:
    """The module in this file, parsed once for each state of the file."""
    state = path.stat()
    package = ".".join(path.parent.relative_to(root).parts)
    return _read(path, package, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=1024)  # the chapters share most of their modules
def _read(path: Path, package: str, changed: int, size: int) -> Module:
    return parse(path.read_text(encoding="utf-8"), package)


@lru_cache(maxsize=512)
def parse(source: str, package: str = "") -> Module:
    """The module with this text. Raises SyntaxError."""
    tree = ast.parse(source)
    face = _face(tree)
    exports = {name: f"{module}.{name}" for name, module in face.items()}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            base = _base(node, package)
            exports |= {alias.asname or alias.name: f"{base}.{alias.name}" for alias in node.names}
    nodes = _in_order(tree)
    return Module(
        imports=tuple(_imports(nodes, package, frozenset(face.values()))),
        paths=frozenset(_paths(tree)),
        looked_in=frozenset(_looked_in(nodes, package)),
        exports=exports,
        face=face,
        source=source,
    )


Nodes = list[tuple[ast.AST, bool]]  # each with whether it runs only later, or never


def _in_order(tree: ast.Module) -> Nodes:
    """All nodes in the order of the text, walked once for all questions."""
    found: Nodes = []
    waiting: Nodes = [(tree, False)]
    while waiting:
        node, later = one = waiting.pop()
        found.append(one)
        inside = later or isinstance(node, _FUNCTIONS) or _for_types(node)
        waiting.extend((child, inside) for child in reversed(list(ast.iter_child_nodes(node))))
    return found


def cells(sources: Iterable[str]) -> Module:
    """A notebook's code cells as one module. A cell that is not Python is left out."""
    return parse("\n".join(filter(None, map(_plain, sources))))


def _plain(cell: str) -> str:
    """The cell without IPython's own syntax (%magic, !command); "" for one that Python can't read."""
    try:
        ast.parse(cell)
        return cell
    except SyntaxError:
        from IPython.core.inputtransformer2 import TransformerManager
    plain = TransformerManager().transform_cell(cell)
    try:
        ast.parse(plain)
    except SyntaxError:  # running the cell will say so much better
        return ""
    return plain


def _face(tree: ast.Module) -> dict[str, str]:
    for node in tree.body:
        if _assigns(node, "FACE"):
            return ast.literal_eval(node.value)
    return {}


def _assigns(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [name]


def _hands_on(node: ast.AST) -> bool:
    """Whether a statement only says what can be had here, or what the module is about."""
    about = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return isinstance(node, ast.ImportFrom) or about or _assigns(node, "FACE") or _assigns(node, "__all__")


def _imports(nodes: Nodes, package: str, face: frozenset[str]) -> Iterator[Import]:
    attributes, otherwise = _uses(nodes)
    for node, later in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                dots = [i for i, letter in enumerate(alias.name) if letter == "."] if not alias.asname else []
                yield from (Import(alias.name[:end], later, None) for end in [*dots, len(alias.name)])
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                here = alias.asname or alias.name
                used = None if here in otherwise or here not in attributes else frozenset(attributes[here])
                name = _base(node, package) + (f".{alias.name}" if alias.name != "*" else "")
                yield Import(name, later, used)
        elif (text := _text(node)) and (named := _MODULE_NAME.match(text)) and named[1] not in face:
            yield Import(named[1], True, None)


def _uses(nodes: Nodes) -> tuple[dict[str, set[str]], set[str]]:
    """What is taken from each name by `name.attribute`, and the names that stand in any other place."""
    attributes: dict[str, set[str]] = defaultdict(set)
    taken = set()
    names = []
    for node, _ in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            attributes[node.value.id].add(node.attr)
            taken.add(node.value)
        elif isinstance(node, ast.Name):
            names.append(node)
    return attributes, {node.id for node in names if node not in taken}


def _base(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parents = package.split(".")
    return ".".join([*parents[: len(parents) - node.level + 1], *filter(None, [node.module])])


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _looked_in(nodes: Nodes, package: str) -> Iterator[str]:
    for node, _ in nodes:
        if isinstance(node, ast.Name) and node.id == "__path__":
            yield package
        elif isinstance(node, ast.Attribute) and node.attr == "__path__":
            yield ast.unparse(node.value)


def _paths(tree: ast.AST) -> set[str]:
    """Constant strings that look like paths; `x / "a" / "b"` is read as "a/b"."""
    names: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            tail, left = [], node
            while isinstance(left, ast.BinOp) and isinstance(left.op, ast.Div) and _text(left.right):
                tail.insert(0, _text(left.right))
                left = left.left
            if tail:
                names.add("/".join(tail))
                visit(left)
                return
        if text := _text(node):
            names.add(text)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(tree)
    return {name for name in names if _PATH.match(name) and ".." not in name.split("/")}


def _text(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
