"""The widgets in a real JupyterLab: Python hears the reader, and the reader sees what Python says."""

from __future__ import annotations

from collections.abc import Iterator

import nbformat
import pytest
from playwright.sync_api import Locator, Page, expect

from book.drawing.palette import PALETTE
from tests.site import lab
from tests.site.built import ROOT
from tests.site.conftest import watch

CELLS = """
import ipywidgets
from book.drawing import figures
from book.formulas import ch02_linear_layers as formulas
from book.widgets.self_check import numeric
from book.widgets.explorer import explore
from book.roofline import Roof
explorer = explore(formulas.linear, ["h100_sxm", "b200"], m=64)
explorer
---
slider = ipywidgets.IntSlider(min=1, max=4096, description="linked")
link = ipywidgets.link((explorer, "m"), (slider, "value"))
heard = []
explorer.observe(lambda change: heard.append(change["new"]), "m")
slider
---
check = numeric("ex-lab", question="How much is 2 + 2?", answer=4, unit="FLOP",
                mistakes={22: "You wrote them side by side.", 8: "Once, not twice."})
check
---
explore(formulas.linear, ["l4"], id="second", view="formula")
---
from book.drawing.tables import table
table([["counted", "every byte"]], ["rung", "how it stands"])
---
from book.notebook.source import source
source(Roof)
---
figures.roofline([Roof("H100", 989.4e12, 3.35e12)], alt="One roof.")
---
"""  # the last cell is empty, for `lab.run`


def tone(role: str, dark: bool) -> str:
    """A colour of the palette, as a browser computes it."""
    red, green, blue = bytes.fromhex(PALETTE[role][dark][1:])
    return f"rgb({red}, {green}, {blue})"


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory) -> Iterator[Page]:
    """The notebook, run from top to bottom. Whatever goes wrong in the browser fails the module."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "notebooks").mkdir()
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in CELLS.split("---\n")]
    )
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, folder / "notebooks" / "live.ipynb")
    with lab.running(folder / "notebooks", folder / "own", pythonpath=ROOT) as (address, token):
        context = browser.new_context(viewport={"width": 1100, "height": 3200})
        problems = watch(context, address)
        page = context.new_page()
        lab.open_notebook(page, address, token, "live.ipynb")
        assert lab.run_all(page) == []
        rows(page).wait_for()
        yield page
        context.close()
    assert not problems, "\n".join(problems)


def rows(page: Page) -> Locator:
    """The first explorer's slider of rows."""
    return page.locator(".rl-explorer").first.locator("input[type=range][id$='-m']")


def test_python_hears_a_slider_that_is_moved_by_keyboard(page):
    expect(rows(page)).to_have_attribute("aria-valuetext", "64")
    rows(page).click()  # in a notebook a click also selects the cell
    expect(rows(page)).not_to_have_attribute("aria-valuetext", "64")
    clicked = rows(page).get_attribute("aria-valuetext")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    expect(rows(page)).not_to_have_attribute("aria-valuetext", clicked)
    m = rows(page).get_attribute("aria-valuetext")
    expect(page.locator(".widget-slider .widget-readout")).to_have_text(m)  # linked, through the kernel
    said = lab.run(page, "print(explorer.m, explorer.values['m'], slider.value, heard)")
    m = m.replace(",", "")
    assert said.startswith(f"{m} {m} {m} [") and said.endswith(f"{m}]"), said


def test_the_reader_sees_what_python_sets(page):
    time = page.locator(".rl-explorer").first.locator(".rl-read output").last
    assert lab.run(page, "explorer.m = 512") == ""
    expect(rows(page)).to_have_attribute("aria-valuetext", "512")
    expect(page.locator(".widget-slider .widget-readout")).to_have_text("512")
    expect(time).to_have_text("compute ")
    assert lab.run(page, "slider.value = 4") == ""
    expect(rows(page)).to_have_attribute("aria-valuetext", "4")
    expect(time).to_have_text("memory ")


def test_a_preset_sets_all_sizes_in_python(page):
    page.locator(".rl-explorer").first.get_by_label("model").select_option("Llama-3.1-8B / gate")
    outputs = page.locator(".rl-explorer").first.locator("input[type=range][id$='-n']")
    expect(outputs).to_have_attribute("aria-valuetext", "14,336")
    page.wait_for_timeout(300)
    assert lab.run(page, "print(explorer.k, explorer.n, explorer.preset)") == "4096 14336 Llama-3.1-8B / gate"


def test_a_check_answers_and_python_knows(page):
    check = page.get_by_role("group", name="How much is 2 + 2?")
    check.get_by_label("Your answer").fill("22")
    check.get_by_label("Your answer").press("Enter")
    expect(check.get_by_role("status")).to_contain_text("You wrote them side by side.")
    assert lab.run(page, "print(check.entry, check.solved)") == "22 False"
    check.get_by_label("Your answer").fill("4")
    check.get_by_role("button", name="Check").press("Enter")
    expect(check.get_by_role("status")).to_contain_text("Right.")
    assert lab.run(page, "print(check.entry, check.solved)") == "4 True"


def test_two_explorers_of_one_formula_keep_apart(page):
    ids = page.evaluate(
        "[...document.querySelectorAll('.rl-explorer [id], .rl-check [id]')].map((e) => e.id)"
    )
    assert len(ids) > 20 and len(ids) == len(set(ids))
    first, second = page.locator(".rl-explorer").all()
    second.get_by_text("roofline", exact=True).click()
    expect(second.get_by_role("radio", name="roofline")).to_be_checked()
    expect(first.get_by_role("radio", name="roofline")).to_be_checked()


@pytest.mark.parametrize("dark", [False, True])
def test_colours_follow_the_theme(page, dark):
    lab.choose_theme(page, dark)
    for part, css, role in (
        (".rl-explorer", "background-color", "card"),
        (".rl-explorer select", "color", "text"),
        (".rl-check", "color", "text"),
        (".rl-check input", "background-color", "background"),
        (".rl-figure svg text", "fill", "dim"),
    ):
        expect(page.locator(part).first).to_have_css(css, tone(role, dark))


def test_tables_and_sources_keep_their_own_look(page):
    expect(page.locator(".rl-table td", has_text="every byte")).to_have_css("text-align", "left")
    expect(page.locator(".rl-source pre")).not_to_have_css("padding-left", "0px")
