"""A lab of two questions, in a repository of its own: the real modules, and a small master.

root, master = tiny_lab.make(tmp_path)
"""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from book.portable import bundle

LAB = "lab9-tiny"
FOLDER = "labs/lab9_tiny"
QUESTIONS = """
import numpy as np
from labs.kit.ask_and_answer import Case, Kernel, Values
from labs.kit.lab import Lab
from labs.kit.question import Question, Verdict

def numbers(variant):
    return {"factor": 2 + variant % 7}

def case(draw, m, k):
    return Case({"m": m, "k": k}, {"x": draw.rng.standard_normal((m, k)).astype(np.float16)})

def ask_kernel(draw):
    return {"k": Kernel("double", (case(draw, 3, 5),))}

def judge_kernel(answers, asks, draw):
    for run in answers["k"].runs:
        if run.error:
            return Verdict(False, f"{run.case}: {run.error}")
        if run.bytes("x", "reads", "issued") != 2 * run.case.sizes["m"] * run.case.sizes["k"]:
            return Verdict(False, f"{run.case}: x is not read exactly once.")
        if not np.allclose(run.output, 2 * run.case.inputs["x"].astype(float)):
            return Verdict(False, f"{run.case}: the numbers differ.")
    return Verdict(bool(answers["k"].runs), answers["k"].error)

def judge_value(answers, asks, draw):
    told = answers["v"].values.get("size")
    return Verdict(told == 4 * draw.numbers["factor"], f"size is {told}.")

def solve():
    from kernels import linear  # only when somebody calls it
    return linear

SOLVED_BY = ()
LAB = Lab("lab9-tiny", (
    Question("tiny-kernel-test", "Doubles", ("tiny-kernel",), ask_kernel, judge_kernel),
    Question("tiny-value-test", "Size", ("tiny-value",), lambda draw: {"v": Values(("size",))}, judge_value),
), numbers)
"""
KEY = """
from dataclasses import replace
from kernels import linear
from labs.kit.ask_and_answer import Kernel
from labs.lab9_tiny import questions

SECRET_SIZE = 37
kernel, value = questions.LAB.questions
LAB = replace(questions.LAB, questions=(
    replace(kernel, asks=lambda d: {"k": Kernel("double", (questions.case(d, SECRET_SIZE, 70),))}), value
))
"""
SETUP = """from labs.lab9_tiny.questions import LAB
notebook = LAB.start(globals(), variant=0)
check, mine = notebook.check, notebook.mine
notebook.here"""
IMPORTS = "import numpy as np\nimport torch\nimport triton\nimport triton.language as tl"
KERNEL = """# [tiny-kernel] your kernel and its launcher
@triton.jit
def double_kernel(x_ptr, y_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ### BEGIN SOLUTION
    inside_of_the_tensor = offsets < size
    pointers = x_ptr + offsets
    x = tl.load(pointers, mask=inside_of_the_tensor)
    ### END SOLUTION
    y = x * 2
    ### BEGIN SOLUTION
    tl.store(y_ptr + offsets, y, mask=inside_of_the_tensor)
    ### END SOLUTION


def double(x):
    y = torch.empty_like(x)
    ### BEGIN SOLUTION
    double_kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), BLOCK=16)
    ### END SOLUTION
    return y"""
LONG_SOLUTION = [line.strip() for line in KERNEL.split("\n")[5:8]]
VALUE = """# [tiny-value] how many bytes?
### BEGIN SOLUTION
size = 4 * 2
### END SOLUTION"""
TEST = """check("{name}")
### BEGIN HIDDEN TESTS
from labs.lab9_tiny.key import LAB as key
notebook.check("{name}", key)
### END HIDDEN TESTS"""


def graded(grade_id: str, source: str, *, solution: bool = False, points: int = 0) -> nbformat.NotebookNode:
    """A cell that nbgrader knows: a solution, a test with points, or else a locked one."""
    told = {"grade": bool(points), "grade_id": grade_id, "locked": not solution, "schema_version": 3}
    told |= {"solution": solution, "task": False, "cell_type": "code"} | (
        {"points": points} if points else {}
    )
    return new_code_cell(source, id=grade_id, metadata={"nbgrader": told})


def master() -> nbformat.NotebookNode:
    """The notebook as an author wrote it."""
    cells = [
        new_markdown_cell("# A tiny lab\n\n15 to 20 minutes.", id="title"),
        graded("tiny-setup", SETUP),
        new_code_cell(IMPORTS, id="imports"),
        graded("tiny-kernel", KERNEL, solution=True),
        graded("tiny-kernel-test", TEST.format(name="tiny-kernel-test"), points=3),
        graded("tiny-value", VALUE, solution=True),
        graded("tiny-value-test", TEST.format(name="tiny-value-test"), points=1),
    ]
    cells[2].outputs = [nbformat.v4.new_output("stream", text="something from the author's machine")]
    return new_notebook(cells=cells)


def repository(folder: Path) -> Path:
    """A repository with copies of the real packages."""
    root = folder / "root"
    for package in ("book", "kernels", "labs"):
        for path in sorted(bundle.ROOT.joinpath(package).rglob("*")):
            name = path.relative_to(bundle.ROOT)
            if path.is_file() and not {"node_modules", "__pycache__"} & set(name.parts):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, root / name)
    shutil.copyfile(bundle.ROOT / "pyproject.toml", root / "pyproject.toml")
    return root


def make(folder: Path) -> tuple[Path, nbformat.NotebookNode]:
    """Such a repository with this lab; and its master."""
    root = repository(folder)
    place = root / FOLDER
    place.mkdir()
    for name, text in (("__init__", ""), ("questions", QUESTIONS), ("key", KEY)):
        (place / f"{name}.py").write_text(text, encoding="utf-8")
    nbformat.write(master(), place / f"{LAB}.ipynb")
    return root, master()
