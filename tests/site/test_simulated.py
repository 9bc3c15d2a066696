"""Chapter 10's formula on a page, beside the runs of its simulator; and a formula that is a band."""

import json
import re

import numpy as np
import pytest

from book.formulas.views import Trace
from book.simulators import scheduler, trace
from book.widgets.explorer import explore
from tests import formulas
from tests.site.built import AXE
from tests.site.explorer_page import OVERLAPS, calculated, opener, readouts, slide, write
from tests.site.simulated import B, experts_touched, static_batching

STATIC, EXPERTS = "#explore-static-batching", "#explore-experts-touched"
[VIEW] = [v for v in static_batching.views if isinstance(v, Trace)]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("simulated") / "page.html"
    return write(path, explore(static_batching, ()), explore(experts_touched, ()))


@pytest.fixture
def open_page(new_context, page_file):
    """Opens the page from disk; an error in it, or a request that leaves it, fails the test."""
    return opener(new_context, page_file)


@pytest.fixture
def page(open_page):
    return open_page()


def lanes(page):
    return page.locator(f"{STATIC} .rl-trace .rl-lane").count()


# -------------------------------------------------------------------------------- what travels


def test_the_runs_are_small_and_the_same_bytes_at_every_build():
    made = [json.dumps(trace.runs(VIEW.simulate, VIEW.grid), separators=(",", ":")) for _ in range(2)]
    assert made[0] == made[1]
    assert len(made[0].encode()) < 30_000


def test_every_run_that_travels_agrees_with_the_formula_within_its_error():
    for batch in VIEW.grid["batch"]:
        measured = VIEW.simulate(batch=batch).measured
        wanted = static_batching(batch=batch)
        assert abs(measured["efficiency"] - wanted) <= 4 * measured["efficiency_error"] + 1e-12, batch


def test_these_formulas_are_the_tests_own():
    assert not {static_batching.name, experts_touched.name} & {f.name for f in formulas.ALL}


# ------------------------------------------------------------------------------- live on the page


def test_the_picture_shows_both_schedulers_and_follows_the_slider(page):
    assert lanes(page) == 2 * B.default
    assert readouts(page, STATIC)[0].endswith("36.8 %")
    slide(page, STATIC, "batch", 32)
    assert lanes(page) == 64
    assert readouts(page, STATIC)[0].endswith("24.6 %")


def test_the_run_is_compared_with_the_formula_in_a_sentence(page):
    said = page.locator(f"{STATIC} .rl-saying").inner_text()
    run, formula = (float(x) for x in re.search(r"batches: .*?([\d.]+) %.*?([\d.]+) %", said).groups())
    assert formula == pytest.approx(100 * scheduler.static_efficiency(8), abs=0.05)
    assert run == pytest.approx(100 * VIEW.simulate(batch=8).measured["efficiency"], abs=0.05)


def test_between_two_runs_the_nearest_is_shown_and_said(page):
    slide(page, STATIC, "batch", 10)
    assert lanes(page) in (16, 24)
    assert "nearest" in page.locator(f"{STATIC} .rl-saying").inner_text()


@pytest.mark.parametrize("formula", [static_batching, experts_touched], ids=lambda f: f.name)
def test_the_browser_calculates_what_python_does(page, formula):
    axis = formula.parameters[0]
    xs = np.unique(np.geomspace(axis.low, axis.high, 200))
    names = [p.symbol for p in formula.parameters]
    rows = [[x, *(p.default for p in formula.parameters[1:])] for x in xs]
    got = calculated(page, explore(formula, ()).payload, names, rows)
    assert set(got) == set(formula.outputs)
    for output, values in got.items():
        wanted = formula.evaluate(output, **{axis.symbol: xs})
        np.testing.assert_allclose(values, np.broadcast_to(wanted, len(xs)), rtol=1e-12)


def test_a_band_is_drawn_round_what_is_expected(page):
    assert page.locator(f"{EXPERTS} svg .rl-band").count() == 1


@pytest.mark.parametrize("width", [360, 820])
def test_labels_never_collide(open_page, width):
    page = open_page(width=width)
    for batch in (2, 8, 32):
        slide(page, STATIC, "batch", batch)
        assert page.evaluate(OVERLAPS, "") == [], batch
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_axe_finds_nothing(page):
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(
        "axe.run().then((r) => r.violations.map((v) => [v.id, v.nodes.map((n) => n.html)]))"
    )
    assert found == []
