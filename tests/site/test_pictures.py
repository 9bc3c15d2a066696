"""Explanatory pictures in a browser: at both widths no words meet, none leaves the picture, all can be read.

In DejaVu Sans, which is wide: what fits there fits in the fonts of other systems.
"""

from __future__ import annotations

import base64
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from playwright.sync_api import Browser, Page

from book.drawing.palette import css
from book.drawing.pictures import PICTURES, picture
from tests.book.test_pictures import GIVEN, OTHERS, of_every_card_and_model

WIDTHS = (704, 358)  # a page's column, and a phone's
CONTRAST = 4.5

BOXES = """() => {
  const svg = document.querySelector("svg.rl-pic"), whole = svg.getBoundingClientRect();
  const found = [];
  svg.querySelectorAll("text").forEach((text, i) => {
    if (getComputedStyle(text).display === "none") return;
    const spans = text.querySelectorAll("tspan");
    for (const one of spans.length ? spans : [text]) {
      const box = one.getBoundingClientRect();
      found.push({ text: i, words: one.textContent,
        left: box.left - whole.left, right: box.right - whole.left,
        top: box.top - whole.top, bottom: box.bottom - whole.top });
    }
  });
  return { width: whole.width, height: whole.height, boxes: found,
    size: parseFloat(getComputedStyle(svg).fontSize) * whole.width / 704 };
}"""

# The colour of each line of words, and of what is painted under its middle.
COLOURS = """() => {
  const svg = document.querySelector("svg.rl-pic");
  const rgb = (c) => c.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const page = rgb(getComputedStyle(svg).backgroundColor);
  const found = [];
  for (const text of svg.querySelectorAll("text")) {
    if (getComputedStyle(text).display === "none") continue;
    const spans = text.querySelectorAll("tspan");
    for (const one of spans.length ? spans : [text]) {
      const box = one.getBoundingClientRect();
      const x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
      window.scrollTo(0, 0);
      const under = document.elementsFromPoint(x, y).filter((e) =>
        ["rect", "path", "circle"].includes(e.tagName) && getComputedStyle(e).fill !== "none");
      let ground = page;
      for (const shape of under.reverse()) {
        const style = getComputedStyle(shape), share = parseFloat(style.opacity);
        ground = ground.map((v, i) => v * (1 - share) + rgb(style.fill)[i] * share);
      }
      found.push([one.textContent, rgb(getComputedStyle(one).fill), ground]);
    }
  }
  return found;
}"""


@cache
def font() -> str:
    """DejaVu Sans as matplotlib brings it, so that every machine measures the same letters."""
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"

    def face(file: str, weight: int) -> str:
        data = base64.b64encode((folder / file).read_bytes()).decode()
        source = f"url(data:font/ttf;base64,{data})"
        return f'@font-face{{font-family:"Wide";font-weight:{weight};src:{source}}}'

    return face("DejaVuSans.ttf", 400) + face("DejaVuSans-Bold.ttf", 700)


@pytest.fixture(scope="module")
def opened(browser: Browser):
    """A function that shows one picture in a page of that width and theme."""
    pages: dict[tuple[int, str], Page] = {}

    def show(width: int, what: str, theme: str = "light") -> Page:
        if (width, theme) not in pages:
            page = browser.new_page(viewport={"width": width, "height": 1400}, color_scheme=theme)
            page.set_content(
                f'<style>{font()}body{{margin:0}}svg text{{font-family:"Wide"!important}}</style><main>'
            )
            pages[width, theme] = page
        page = pages[width, theme]
        page.evaluate("(html) => { document.querySelector('main').innerHTML = html; }", what)
        page.evaluate("() => document.fonts.ready")
        return page

    yield show
    for page in pages.values():
        page.close()


ALL = [pytest.param(name, GIVEN.get(name, {}), id=name) for name in PICTURES]
ALL += [
    pytest.param(o.name, {**GIVEN.get(o.name, {}), **o.what}, id=f"{o.name}-other-{i}")
    for i, o in enumerate(OTHERS)
]


def meet(a: dict[str, Any], b: dict[str, Any]) -> bool:
    across = min(a["right"], b["right"]) - max(a["left"], b["left"])
    down = min(a["bottom"], b["bottom"]) - max(a["top"], b["top"])
    return across > 0.5 and down > 1.5


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("name", "what"), ALL)
def test_no_words_meet_and_none_leaves_the_picture(opened, width, name, what):
    drawn = opened(width, picture(name, **what).svg).evaluate(BOXES)
    boxes = drawn["boxes"]
    assert drawn["width"] == width
    assert drawn["size"] > 11, "smaller than can be read"
    assert boxes
    outside = [
        b["words"]
        for b in boxes
        if min(b["left"], b["top"]) < -1 or b["right"] > width + 1 or b["bottom"] > drawn["height"] + 1
    ]
    met = [(a["words"], b["words"]) for i, a in enumerate(boxes) for b in boxes[i + 1 :] if meet(a, b)]
    assert (outside, met) == ([], [])


def test_words_keep_apart_for_any_card_and_model(opened):
    """What has long bars for one card has short ones for another. On a phone, where words are large."""
    met = []
    for one in of_every_card_and_model():
        boxes = opened(358, one.svg).evaluate(BOXES)["boxes"]
        met += [
            (one.title, a["words"], b["words"])
            for i, a in enumerate(boxes)
            for b in boxes[i + 1 :]
            if meet(a, b)
        ]
    assert met == []


def luminance(rgb: list[float]) -> float:
    r, g, b = ((v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4) for v in (c / 255 for c in rgb))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a: list[float], b: list[float]) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("name", "what"), ALL[: len(PICTURES)])
def test_words_stand_out_from_what_is_under_them(opened, name, what, theme):
    found = opened(704, picture(name, **what).svg, theme).evaluate(COLOURS)
    faint = [
        (words, round(contrast(own, under), 1))
        for words, own, under in found
        if contrast(own, under) < CONTRAST
    ]
    assert faint == []


def test_inline_a_picture_follows_the_pages_theme(opened):
    """A reader's dark page on a light system: the palette's variables decide, not the media query."""
    page = opened(704, f"<style>{css()}</style>{picture('machine').svg}")
    before = page.evaluate("getComputedStyle(document.querySelector('svg.rl-pic')).backgroundColor")
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    after = page.evaluate("getComputedStyle(document.querySelector('svg.rl-pic')).backgroundColor")
    page.evaluate("delete document.documentElement.dataset.theme")
    assert before != after
