"""Which of our files a notebook or a kernel depends on, found by reading and never by running.

A cell imports modules of `book`, `kernels` and `labs`; those import others; some of them name data
files. Two sets of files follow from that, and both err on the large side: imports inside functions
count, and so does a module that is only named in a string (work handed to a child process).

    closure(cells, root)      every file that importing runs: what must travel with a notebook
    fingerprint(cells, root)  a hash of what can change what the cells do: run them again if it moved

The second set is the smaller one. Importing `book.cost` runs all files of `book/cost/`, but
`cost.linear(...)` comes from one of them, and the package's `__init__.py` only hands it on. So a
package that is on the way counts with its own code, its imports don't, and of what it hands on only
what somebody takes. (Our packages import nothing for the sake of an effect.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from book.portable import reading
from book.portable.reading import PACKAGES, Import, Module
from book.say import DOMAIN, LANGUAGE

CATALOGS = ("book", "locales")  # the folder where `book.say` finds other languages


def closure(cells: Iterable[str], root: Path) -> set[Path]:
    """Every file under `root` that code cells with these sources run or read."""
    return set(askers(cells, root))


def askers(cells: Iterable[str], root: Path, without: Sequence[str] = ()) -> dict[Path, Path | None]:
    """The closure, each file with the module that first asks for it; None if a cell does.

    without: modules that are left out, and all below them, where they are only imported later (inside
    a function, or named in a string). Where an import at the top of a module needs one, it is found.
    """
    named = cache(lambda name: tuple(_run_by(name, root)))  # many modules import the same ones

    def files(module: Module) -> list[Path]:
        wanted = ((file, one.later) for one in module.imports for file in named(one.name))
        return [file for file, later in wanted if not (later and left_out(file, root, without))]

    there = cache(_names)  # and they lie in the same folders
    found: dict[Path, Path | None] = {}
    waiting: list[tuple[Path, Path | None]] = [(file, None) for file in files(reading.cells(cells))]
    while waiting:
        path, asker = waiting.pop()
        if path in found:
            continue
        found[path] = asker
        module = reading.read(path, root)
        waiting += [(file, path) for file in files(module)]
        for file in _data(module, path, root, there):
            found.setdefault(file, path)
    return found


def left_out(path: Path, root: Path, without: Iterable[str]) -> tuple[str, str] | None:
    """The name in `without` that this file falls under, and the module that the file is; else None."""
    module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    return next(((name, module) for name in without if f"{module}.".startswith(f"{name}.")), None)


def fingerprint(cells: Iterable[str], root: Path, *more: str, whole: bool = False) -> str:
    """A hash of all that decides what these cells do, and of `more` (versions, the device).

    whole: of the closure instead, for what is made of the files themselves.
    """
    digest = hashlib.sha256("\0".join(more).encode())
    files = dict.fromkeys(closure(cells, root)) if whole else deciding(cells, root)
    for path, own in sorted(files.items()):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes() if own is None else own.encode()).digest())
    return digest.hexdigest()


def deciding(cells: Iterable[str], root: Path) -> dict[Path, str | None]:
    """The files that decide what these cells do, each with what counts of it.

    None: all of the file. Text: it is a package on the way, of which its own code counts, and of the
    names that it hands on those that were taken, with where they come from.
    """
    there, inits = cache(_names), cache(_inits)  # many names are of the same packages
    whole: set[Path] = set()
    taken: dict[Path, set[str]] = {}
    waiting = list(reading.cells(cells).imports)
    asked: set[Import] = set()
    while waiting:
        one = waiting.pop()
        if one in asked or one.name.split(".")[0] not in PACKAGES:
            continue
        asked.add(one)
        packages, target, more = _decided_by(one, root, inits)
        for package in packages:
            taken.setdefault(package, set())
        for package, line, name in more:
            taken.setdefault(package, set()).add(line)
            waiting.append(name)
        if target is not None and target not in whole:
            module = reading.read(target, root)
            whole |= {target, *_data(module, target, root, there)}
            waiting += [*module.imports, *_looked_for(module, root)]
    kept = {path: "\n".join([reading.read(path, root).rest, *sorted(lines)]) for path, lines in taken.items()}
    return {**kept, **dict.fromkeys(whole)}


def _run_by(name: str, root: Path) -> Iterator[Path]:
    """The files that importing `name` runs: each parent package, then the module.

    The last part of the name may be an attribute of a module; then it names no file.
    """
    first, _, last = name.rpartition(".")
    if first in PACKAGES and (root / first / "__init__.py").is_file():
        name = reading.read(root / first / "__init__.py", root).face.get(last, name)
    parts = name.split(".")
    if parts[0] not in PACKAGES:
        return
    for n in range(1, len(parts) + 1):
        base = root.joinpath(*parts[:n])
        for path in (base / "__init__.py", base.with_suffix(".py")):
            if path.is_file():
                yield path


Handed = tuple[Path, str, Import]  # by which package, "name = where from", and what is asked next


def _inits(parents: tuple[str, ...], root: Path) -> tuple[list[Path], Path | None]:
    """Packages on the way to a name, and the last one's file, None if the last is none."""
    inits = [root.joinpath(*parents[: n + 1], "__init__.py") for n in range(len(parents))]
    way = [path for path in inits if path.is_file()]
    return way, inits[-1] if way and way[-1] == inits[-1] else None


def _decided_by(
    one: Import, root: Path, inits: Callable[[tuple[str, ...], Path], tuple[list[Path], Path | None]]
) -> tuple[list[Path], Path | None, list[Handed]]:
    """Packages on the way to a name, the file that it means (if it is one), and what they hand on."""
    *parents, last = one.name.split(".")
    way, package = inits(tuple(parents), root)
    source = reading.read(package, root).exports.get(last) if package else None
    more: list[Handed] = []
    if package and source not in (None, one.name):
        more.append((package, f"{last} = {source}", Import(source, one.later, one.used)))

    base = root.joinpath(*parents, last)
    init, module = base / "__init__.py", base.with_suffix(".py")
    if module.is_file():
        return way, module, more
    if init.is_file() and one.used is not None:  # only for names of it: each is asked for in its turn
        names = [Import(f"{one.name}.{name}", one.later, None) for name in sorted(one.used)]
        return [*way, init], None, more + [(init, name.name, name) for name in names]
    if init.is_file():
        return way, init, more
    if package:  # it is defined in the package itself, or not at all
        return way, None if more else package, more
    owner = root.joinpath(*parents).with_suffix(".py")  # a name in a module
    return way, owner if parents and owner.is_file() else None, more


def _looked_for(module: Module, root: Path) -> list[Import]:
    """The modules that a module finds by looking into packages."""
    found = []
    for package in module.looked_in:
        for path in root.joinpath(*package.split(".")).glob("*.py"):
            found.append(Import(f"{package}.{path.stem}", True, None))
    return found


def _names(folder: Path) -> frozenset[str]:
    """What lies in a folder, hidden things aside."""
    return frozenset(p.name for p in folder.iterdir() if not p.name.startswith("."))


def _data(module: Module, path: Path, root: Path, there: Callable[[Path], frozenset[str]]) -> set[Path]:
    """The files and data folders that a module names, from its own folder or from one above it.

    Of a folder, those files count that the module names too; if it names none, all of them. A folder
    that holds code, and whatever is hidden (.git), is nobody's data.
    """
    found = set()
    bases = [p for p in path.parents if p == root or root in p.parents]
    for base in bases:
        # Most strings are no paths: don't ask for each.
        inside = there(base)
        for file in (base / name for name in module.paths if name.partition("/")[0] in inside):
            if file.is_file():
                found.add(file)
            elif file.is_dir() and not any(file.rglob("*.py")):
                files = {p for p in file.rglob("*") if p.is_file()}
                found |= {p for p in files if p.name in module.paths} or files
    return {p for p in found if p.suffix != ".py" and _spoken(p, root)}


def _spoken(path: Path, root: Path) -> bool:
    """Whether a file is no catalog, or the one that `book.say` reads here: nobody needs all languages."""
    parts = path.relative_to(root).parts
    return parts[:2] != CATALOGS or parts[2:] == (LANGUAGE, "LC_MESSAGES", f"{DOMAIN}.mo")
