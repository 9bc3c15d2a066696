"""Which of our files a notebook's outputs depend on, found by reading and never by running.

A cell imports modules of `book`, `kernels` and `labs`; those import others; some of them read data
files. The closure errs on the large side: imports inside functions count, so does a module that is
only named in a string (work handed to a child process), and so do data files beside a module.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path

PACKAGES = ("book", "kernels", "labs")
DATA_SUFFIXES = {".yaml", ".yml", ".json", ".csv", ".toml"}

# "kernels.linear", or "kernels.linear:experiment" as a child process is told
_MODULE_NAME = re.compile(rf"((?:{'|'.join(PACKAGES)})(?:\.\w+)+)(?::\w+)?\Z")
_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*\Z")


def closure(cells: Iterable[str], root: Path) -> set[Path]:
    """Every file under `root` that code cells with these sources depend on."""
    return set(askers(cells, root))


def askers(cells: Iterable[str], root: Path, without: Sequence[str] = ()) -> dict[Path, Path | None]:
    """The closure, each file with the module that first asks for it; None if a cell does.

    without: modules that are left out, and all below them, where they are only imported later (inside
    a function, or named in a string). Where an import at the top of a module needs one, it is found.
    """
    named = cache(lambda name: tuple(_module_files(name, root)))  # many modules import the same ones

    def files(imports: Iterable[tuple[str, bool]]) -> list[Path]:
        wanted = ((file, later) for name, later in imports for file in named(name))
        return [file for file, later in wanted if not (later and left_out(file, root, without))]

    found: dict[Path, Path | None] = {}
    waiting = [(file, None) for cell in cells for file in files(_imported_names(_parse_cell(cell), ""))]
    while waiting:
        path, asker = waiting.pop()
        if path in found:
            continue
        found[path] = asker
        imports, paths = _read_module(path, root)
        waiting += [(file, path) for file in files(imports)]
        for file in _data(paths, path, root):
            found.setdefault(file, path)
    return found


def left_out(path: Path, root: Path, without: Iterable[str]) -> tuple[str, str] | None:
    """The name in `without` that this file falls under, and the module that the file is; else None."""
    module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    return next(((name, module) for name in without if f"{module}.".startswith(f"{name}.")), None)


def _read_module(path: Path, root: Path) -> tuple[tuple[tuple[str, bool], ...], frozenset[str]]:
    """What a module imports (see `_imported_names`), and the paths that it names."""
    state = path.stat()
    return _parsed(path, _package(path, root), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=1024)  # the chapters share most of their modules
def _parsed(
    path: Path, package: str, changed: int, size: int
) -> tuple[tuple[tuple[str, bool], ...], frozenset[str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return tuple(_imported_names(tree, package)), frozenset(_named_paths(tree))


def unnamed_data(files: Iterable[Path], root: Path) -> set[Path]:
    """Data files of a closure that count only because they lie beside a module: none of it names them."""
    files = set(files)
    modules = [path for path in files if path.suffix == ".py"]
    names = {name.split("/")[-1] for path in modules for name in _read_module(path, root)[1]}

    def named(path: Path) -> bool:
        folders = [f for f in path.parents if f.is_relative_to(root) and not any(f.glob("*.py"))]
        return path.name in names or any(folder.name in names for folder in folders)

    return {path for path in files.difference(modules) if not named(path)}


def fingerprint(cells: Iterable[str], root: Path, *more: str) -> str:
    """A hash of the closure's names and contents, and of `more` (versions, the device)."""
    digest = hashlib.sha256("\0".join(more).encode())
    for path in sorted(closure(cells, root)):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _parse_cell(source: str) -> ast.AST:
    from IPython.core.inputtransformer2 import TransformerManager

    try:
        return ast.parse(TransformerManager().transform_cell(source))
    except SyntaxError:  # running the cell will say so much better
        return ast.Module([], [])


def _package(path: Path, root: Path) -> str:
    return ".".join(path.parent.relative_to(root).parts)


def _imported_names(tree: ast.AST, package: str) -> Iterator[tuple[str, bool]]:
    """Each imported name, and whether it is only needed later: inside a function, or named in a string."""
    face = set(_face_table(tree).values())  # a table of names for others: it imports nothing
    waiting = deque([(tree, False)])
    while waiting:
        node, later = waiting.popleft()
        if isinstance(node, ast.Import):
            yield from ((alias.name, later) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                parents = parents[: len(parents) - node.level + 1]
                base = ".".join([*parents, *filter(None, [base])])
            yield from ((f"{base}.{alias.name}", later) for alias in node.names)
        elif (named := _MODULE_NAME.match(_text(node))) and named[1] not in face:
            yield named[1], True
        inside = later or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or _for_types(node)
        waiting.extend((child, inside) for child in ast.iter_child_nodes(node))


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _module_files(name: str, root: Path) -> Iterator[Path]:
    """The files that importing `name` runs: each parent package, then the module.

    The last part of the name may be an attribute of a module; then it names no file.
    """
    name = _face(root).get(name, name)
    parts = name.split(".")
    if parts[0] not in PACKAGES:
        return
    for n in range(1, len(parts) + 1):
        base = root.joinpath(*parts[:n])
        for path in (base / "__init__.py", base.with_suffix(".py")):
            if path.is_file():
                yield path


@cache
def _face(root: Path) -> dict[str, str]:
    """What can be imported from `book` itself, "book.explore", and the module that has it: its FACE table."""
    path = root / "book" / "__init__.py"
    tree = ast.parse(path.read_text(encoding="utf-8")) if path.is_file() else ast.Module([], [])
    return {f"book.{name}": module for name, module in _face_table(tree).items()}


def _face_table(tree: ast.AST) -> dict[str, str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == ["FACE"]:
            return ast.literal_eval(node.value)
    return {}


def _data(names: Iterable[str], module: Path, root: Path) -> set[Path]:
    """Data files beside the module, and the files and data folders that it names.

    Of a folder, those files count that the module names too; if it names none, all of them.
    """
    found = {p for p in module.parent.iterdir() if p.suffix in DATA_SUFFIXES}
    bases = [p for p in module.parents if p == root or root in p.parents]
    # Most names are no paths: don't ask for each. And what is hidden, such as .git, is nobody's data.
    there = {base: {name for name in os.listdir(base) if not name.startswith(".")} for base in bases}
    for path in (base / name for base in bases for name in names if name.split("/")[0] in there[base]):
        if path.is_file():
            found.add(path)
        elif path.is_dir() and not any(path.rglob("*.py")):
            files = {p for p in path.rglob("*") if p.is_file()}
            found |= {p for p in files if p.name in names} or files
    return {p for p in found if p.suffix != ".py"}


def _named_paths(tree: ast.AST) -> set[str]:
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
