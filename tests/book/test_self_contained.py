"""Chapters as a reader downloads them, run where nothing of ours is installed.

The newest, since each takes twenty seconds; all with EVERY_CHAPTER=1 in the environment (`make
test-notebooks-clean`).
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import nbformat
import pytest

from book.portable import bundle
from book.site.contents import chapters
from kernels.evidence import child_process
from tests import clean_env

CHAPTERS = [bundle.ROOT / f"{chapter.path}.ipynb" for chapter in chapters()]
if not os.environ.get("EVERY_CHAPTER"):
    CHAPTERS = CHAPTERS[-1:]
ABSENT = ("yaml", "anywidget", "sphinx", "pytest", "nbformat", "book", "kernels", "labs")


@pytest.fixture(scope="session")
def python(tmp_path_factory) -> Path:
    """The clean environment's interpreter."""
    return clean_env.build(tmp_path_factory.mktemp("clean") / "env")


def test_the_environment_is_as_bare_as_it_should_be(python, tmp_path):
    look = (
        f"from importlib.util import find_spec as f\nprint(*(m for m in {ABSENT} if f(m)), bool(f('torch')))"
    )
    found = subprocess.run(
        [python, "-c", look],
        cwd=tmp_path,
        env=clean_env.environment(tmp_path),
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert found.stdout.strip() == "True", found.stderr


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_downloaded_chapter_runs_there_and_prints_the_same(python, tmp_path, chapter):
    notebook = bundle.self_contained(nbformat.read(chapter, 4))
    # The first compiles there what it launches; the others find what this machine has compiled already.
    cache = child_process.cache_dir()
    compiled = cache / "triton" if cache and chapter != CHAPTERS[0] else None
    ran = clean_env.run(notebook, python, tmp_path / "home", compiled=compiled)
    exact = clean_env.exact_outputs(notebook)
    assert exact and clean_env.exact_outputs(ran) == exact
    outputs = [(cell, output) for cell in ran.cells for output in cell.get("outputs", ())]
    noise = [o.text for _, o in outputs if o.output_type == "stream" and o.name == "stderr"]
    assert not noise, "a reader sees this"
    alive = [o for _, o in outputs if "rl-live" in o.get("data", {}).get("text/html", "")]
    assert alive and all("<script>" in o.data["text/html"] for o in alive), "sliders bring their script along"
    sources = [o for _, o in outputs if "rl-source" in o.get("data", {}).get("text/html", "")]
    assert sources, "the kernel's source is shown"
