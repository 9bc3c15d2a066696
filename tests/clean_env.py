"""An interpreter that has what a hosted notebook has, and nothing of ours.

    python = clean_env.build(tmp_path / "env")
    ran = clean_env.run(notebook, python, tmp_path / "home")
    assert clean_env.exact_outputs(ran) == clean_env.exact_outputs(notebook)

No network and no pip: the distributions of the environment that runs the tests are linked into a
fresh virtual environment, but only those that COLAB and its requirements name.
"""

from __future__ import annotations

import copy
import csv
import json
import os
import sys
import venv
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat import NotebookNode
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.notebooks import executed

COLAB = ("torch", "triton", "numpy", "matplotlib", "ipywidgets", "ipykernel")
KERNEL = "clean"


def build(folder: Path, distributions: Iterable[str] = COLAB) -> Path:
    """Make the environment in `folder`, which must not exist; returns its Python."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    python = folder / "bin" / "python"
    (site,) = folder.glob("lib/python3*/site-packages")
    for name, target in _links(distributions).items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).symlink_to(target)
    spec = {"argv": [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]}
    spec |= {"display_name": "Clean", "language": "python"}
    kernel = folder / "kernels" / KERNEL
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    return python


def environment(home: Path, compiled: Path | None = None) -> dict[str, str]:
    """The variables of a process there: `home` is empty, and no path of ours is told.

    compiled: but for this cache of Triton's, which knows kernels by their source and by all of Triton.
    """
    ours = ("PYTHON", "JUPYTER", "IPYTHON", "TRITON", "XDG_", "INFERENCE_ROOFLINE", "MPL")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    if compiled is not None:
        kept["TRITON_CACHE_DIR"] = str(compiled)
    return {**kept, "HOME": str(home), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}


def run(
    notebook: NotebookNode, python: Path, home: Path, *, timeout: int = 180, compiled: Path | None = None
) -> NotebookNode:
    """A copy of `notebook` with the outputs of a run with that Python, in the empty folder `home`.

    timeout: seconds for each cell. compiled: see `environment`. Raises nbclient's CellExecutionError if a
    cell fails.
    """
    home.mkdir(parents=True, exist_ok=True)
    specs = KernelSpecManager(kernel_dirs=[str(python.parents[1] / "kernels")])
    manager = AsyncKernelManager(kernel_name=KERNEL, kernel_spec_manager=specs)
    ran = copy.deepcopy(notebook)
    for cell in ran.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(ran, km=manager, timeout=timeout, resources={"metadata": {"path": str(home)}})
    client.execute(env=environment(home, compiled))
    return ran


def exact_outputs(notebook: NotebookNode) -> dict[str, dict[str, list]]:
    """What the cells that are compared to the letter put out: id of the cell -> outputs by kind."""
    return {
        cell.id: executed.by_kind(cell.outputs)
        for cell in notebook.cells
        if executed.CHECKED in cell.metadata.get("tags", [])
    }


def closure(distributions: Iterable[str]) -> dict[str, metadata.Distribution]:
    """These installed distributions and all that they require here, by canonical name."""
    found: dict[str, metadata.Distribution] = {}
    waiting = list(distributions)
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in found:
            continue
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # required, but for an extra or a platform that we don't have
        for text in found[name].requires or ():
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                waiting.append(needed.name)
    return found


def _links(distributions: Iterable[str]) -> dict[str, Path]:
    """name in site-packages -> what to link it to: whole folders, or files where others share one."""
    wanted = closure(distributions)
    theirs = set()  # every file and folder of the distributions that stay out
    for distribution in metadata.distributions():
        if canonicalize_name(distribution.metadata["Name"]) not in wanted:
            theirs.update(name for file in _files(distribution) for name in _from_the_top(file))
    links: dict[str, Path] = {}
    for distribution in wanted.values():
        for file in _files(distribution):
            whole = next((name for name in _from_the_top(file) if name not in theirs), file)
            links.setdefault(whole, Path(distribution.locate_file(whole)))
    return {name: path for name, path in links.items() if path.exists() and not name.endswith(".pth")}


def _files(distribution: metadata.Distribution) -> list[str]:
    """What it put into site-packages, from its RECORD: quicker than `files`, which makes a Path of each."""
    rows = csv.reader((distribution.read_text("RECORD") or "").splitlines())
    return [row[0] for row in rows if row and not row[0].startswith(("..", "/", "__pycache__"))]


def _from_the_top(file: str) -> list[str]:
    """For "a/b/c": a, a/b, a/b/c."""
    parts = file.split("/")
    return ["/".join(parts[: n + 1]) for n in range(len(parts))]


if __name__ == "__main__":  # python -m tests.clean_env FOLDER
    print(build(Path(sys.argv[1])))
