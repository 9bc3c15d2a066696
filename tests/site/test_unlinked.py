"""Where anywidget is not installed, what a cell shows moves all the same: in JupyterLab, and in frames."""

from __future__ import annotations

import html
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import FrameLocator, Page, expect

from tests.site import lab
from tests.site.built import ROOT
from tests.site.conftest import watch

# As if anywidget were not installed.
MADE = """
import sys; sys.modules["anywidget"] = None
from book.formulas import ch02_linear_layers as formulas
from book.widgets.self_check import numeric
from book.widgets.explorer import explore
explorer = explore(formulas.linear, ["h100_sxm", "b200"], m=64)
check = numeric("ex-lab", question="How much is 2 + 2?", answer=4, unit="FLOP",
                mistakes={22: "You wrote them side by side.", 8: "Once, not twice."})
"""
CELLS = [MADE, "explorer", "check", "explorer", ""]  # the last one is for `lab.run`


def works(part: Page | FrameLocator, index: int = 0) -> None:
    """A slider moves its number and the time that follows from it."""
    explorer = part.locator(".rl-explorer").nth(index)
    slider = explorer.locator("input[type=range][id$='-m']")
    before = slider.get_attribute("aria-valuetext"), explorer.locator(".rl-read").inner_text()
    slider.focus()
    slider.press("End")
    expect(slider).not_to_have_attribute("aria-valuetext", before[0])
    expect(explorer.locator(".rl-read")).not_to_have_text(before[1])


def answers(part: Page | FrameLocator) -> None:
    """A self-check knows the mistake."""
    check = part.get_by_role("group", name="How much is 2 + 2?")
    check.get_by_label("Your answer").fill("22")
    check.get_by_label("Your answer").press("Enter")
    expect(check.get_by_role("status")).to_contain_text("You wrote them side by side.")


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory) -> Iterator[Page]:
    """The notebook in JupyterLab, run from top to bottom."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "notebooks").mkdir()
    cells = [nbformat.v4.new_code_cell(cell.strip()) for cell in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, folder / "notebooks" / "unlinked.ipynb")
    with lab.running(folder / "notebooks", folder / "own", pythonpath=ROOT) as (address, token):
        context = browser.new_context(viewport={"width": 1100, "height": 3200})
        problems = watch(context, address)
        page = context.new_page()
        lab.open_notebook(page, address, token, "unlinked.ipynb")
        assert lab.run_all(page) == []
        yield page
        context.close()
        assert not problems, "\n".join(problems)


def test_in_jupyterlab_each_output_is_alive(page):
    expect(page.locator(".rl-explorer")).to_have_count(2)
    works(page, 0)
    works(page, 1)
    answers(page)
    ids = page.evaluate("[...document.querySelectorAll('.rl-live, .rl-live [id]')].map((e) => e.id)")
    assert len(ids) > 20 and len(ids) == len(set(ids))


def test_in_jupyterlab_python_says_what_is_missing(page):
    assert "pip install anywidget" in lab.run(page, "print(explorer.why)")
    assert lab.run(page, "explorer.m = 8; print(explorer.values['m'])") == "8"


def test_in_a_frame_of_its_own_each_output_is_alive(browser, tmp_path):
    """Some hosted notebooks show every output in a frame."""
    tell = (
        "import json; print(json.dumps([w._repr_mimebundle_()[0]['text/html'] for w in (explorer, check)]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", MADE + tell], cwd=ROOT, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    outputs = json.loads(done.stdout)
    frames = "".join(f'<iframe srcdoc="{html.escape(o)}" width=900 height=900></iframe>' for o in outputs)
    file = tmp_path / "frames.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><title>Frames</title>{frames}", encoding="utf-8")
    context = browser.new_context()
    problems = watch(context, file.as_uri())
    page = context.new_page()
    page.goto(Path(file).as_uri())
    works(page.frame_locator("iframe").nth(0))
    answers(page.frame_locator("iframe").nth(1))
    context.close()
    assert not problems, "\n".join(problems)
