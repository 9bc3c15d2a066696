"""Which modules no student's copy may carry: found by looking, so that a new lab can't be forgotten.

Three kinds: what makes and grades labs; the key of every lab; and the kernels that do what this lab
asks for, with every kernel that imports one of them. A lab names those in its `questions.py`:

    SOLVED_BY = ("linear", "matmul")
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from pathlib import Path

from book.portable import reading
from book.portable.bundle import ROOT

ENGINE = ("labs.assignments", "labs.grading", "labs.release", "labs.releasing")
KEY = "key"  # labs/<a lab>/key.py


def modules(folder: Path, root: Path = ROOT) -> tuple[str, ...]:
    """What must not travel with the lab in this folder; ValueError if it doesn't say what solves it."""
    return (*ENGINE, *keys(root), *solutions(solved_by(folder / "questions.py"), root))


def solved_by(questions: Path) -> tuple[str, ...]:
    """The lab's own statement, `SOLVED_BY`, read and not run. Raises ValueError if there is none."""
    for node in ast.parse(questions.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["SOLVED_BY"]:
            return tuple(ast.literal_eval(node.value))
    raise ValueError(
        f"{questions}: it has no SOLVED_BY; name the files of kernels/ that do what the lab asks for, as in "
        "SOLVED_BY = ('linear',), or () if none does."
    )


def keys(root: Path = ROOT) -> tuple[str, ...]:
    """The key of every lab, and not of this one alone: "labs.lab2_linear.key"."""
    found = {path.parent for path in root.glob(f"labs/*/{KEY}.py")}
    found |= {path.parent for path in root.glob(f"labs/*/{KEY}/") if path.is_dir()}
    return tuple(sorted(f"labs.{folder.name}.{KEY}" for folder in found))


def solutions(solving: Iterable[str], root: Path = ROOT) -> tuple[str, ...]:
    """These kernels, and all modules of kernels/ that import one of them, through others as well.

    Raises ValueError for a kernel that isn't there: a name that was changed would hold back nothing.
    """
    found = {f"kernels.{name}" for name in solving}
    paths = [path for path in root.glob("kernels/**/*.py") if "__pycache__" not in path.parts]
    imports = {
        _module(path, root): {one.name for one in reading.read(path, root).imports if not one.later}
        for path in paths
    }
    if absent := sorted(found - imports.keys()):
        name = absent[0].removeprefix("kernels.")
        raise ValueError(f"SOLVED_BY = {name!r}: kernels/ has no such file; name the one that it is now.")
    while more := {name for name, its in imports.items() if any(map(_under(found), its))} - found:
        found |= more
    return tuple(sorted(found))


def _under(modules: set[str]) -> Callable[[str], bool]:
    """Is a name one of these modules, or something in one of them ("kernels.linear.linear_kernel")?"""
    return lambda name: any(f"{name}.".startswith(f"{module}.") for module in modules)


def _module(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
