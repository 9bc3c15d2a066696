"""An explorer where the system's few colours stand for the page's: what a colour told is still told."""

import io

import numpy
import pytest
from PIL import Image

from book.widgets.explorer import explore
from tests import formulas
from tests.site.explorer_page import opener, write

ROOT = "#explore-step-terms"


@pytest.fixture
def page(new_context, tmp_path):
    file = write(tmp_path / "page.html", explore(formulas.step_terms, []))
    return opener(lambda address, **more: new_context(address, forced_colors="active", **more), file)()


def ground(page, where):
    """The background of each of these elements."""
    return page.eval_on_selector_all(
        f"{ROOT} {where}", "all => all.map(e => getComputedStyle(e).backgroundColor)"
    )


def test_each_term_has_a_swatch_of_its_own_colour(page):
    swatches = ground(page, ".rl-kinds .rl-block")
    assert len(set(swatches)) == len(swatches) > 3


def test_the_chosen_picture_has_another_ground_than_the_others(page):
    [chosen] = ground(page, ".rl-segments input:checked + label")
    assert chosen not in ground(page, ".rl-segments") + ground(
        page, ".rl-segments input:not(:checked) + label"
    )


def test_a_slider_has_a_track_from_end_to_end(page):
    slider = page.locator(f"{ROOT}-users")
    slider.press("Home")
    pixels = numpy.asarray(Image.open(io.BytesIO(slider.screenshot())).convert("L")).astype(int)
    beyond = pixels[:, 40:-6]  # right of the thumb
    assert (numpy.ptp(beyond, axis=0) > 60).all(), "each column of pixels crosses the track's border"
