"""All sliders to both ends, on a desk and on a phone: no text leaves its cell, none lies on another."""

import re
from functools import cache

import pytest

from book.widgets.explorer import explore
from tests import formulas
from tests.site.explorer_page import CARDS, OVERLAPS, opener, write

# Cells whose text sticks out of them or on another's, and choices that are cut.
CUT = """(root) => {
    const found = [];
    const box = (el) => el.getBoundingClientRect();
    const texts = (el) => [...el.querySelectorAll("*")].filter((e) => e.textContent && !e.children.length);
    for (const cell of document.querySelectorAll(`${root} :is(.rl-read > div, .rl-slider, .rl-fit)`)) {
        const c = box(cell);
        for (const e of texts(cell)) {
            const b = box(e);
            if (b.width && (b.left < c.left - 1 || b.right > c.right + 1 || b.bottom > c.bottom + 1))
                found.push(`"${e.textContent}" leaves its cell`);
        }
    }
    const cells = [...document.querySelectorAll(`${root} .rl-read > div`)].map((e) => [e, box(e)]);
    for (const [i, [a, p]] of cells.entries())
        for (const [b, q] of cells.slice(i + 1))
            if (p.left + 2 < q.right && q.left + 2 < p.right && p.top + 2 < q.bottom && q.top + 2 < p.bottom)
                found.push(`"${a.textContent}" lies on "${b.textContent}"`);
    const ruler = document.createElement("canvas").getContext("2d");
    for (const select of document.querySelectorAll(`${root} select`)) {
        if (!select.offsetParent) continue;
        const style = getComputedStyle(select);
        ruler.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
        const text = select.selectedOptions[0]?.textContent ?? "";
        const room = select.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - 16;
        if (ruler.measureText(text).width > room + 1) found.push(`"${text}" is cut in its select`);
    }
    for (const here of document.querySelectorAll(`${root} svg.rl-plot .rl-here`)) {
        const a = box(here), svg = here.closest("svg");
        const frame = box(svg);
        if (!a.width || getComputedStyle(here).visibility === "hidden") continue;
        const out = a.left < frame.left - 1 || a.right > frame.right + 1;
        if (out) found.push(`"${here.textContent}" leaves the picture`);
        for (const other of svg.querySelectorAll(".rl-labels text")) {
            const b = box(other);
            const beside = a.left >= b.right - 1 || b.left >= a.right - 1;
            if (!beside && a.top + 4 < b.bottom - 3 && b.top + 3 < a.bottom - 4)
                found.push(`"${here.textContent}" lies on "${other.textContent}"`);
        }
    }
    return found;
}"""

# Moves one slider after the other to its ends, the others at their start, and asks at each position.
SWEEP = """async ([root, cut, overlaps]) => {
    const next = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const found = [];
    const [asked, collide] = [eval(cut), eval(overlaps)];
    const check = (where) => {
        for (const one of [...asked(root), ...collide(root)]) found.push(`${where}: ${one}`);
    };
    const set = (s, v) => {
        s.value = v;
        s.dispatchEvent(new Event("input", { bubbles: true }));
    };
    const put = async (s, v) => {
        set(s, v);
        await next();
    };
    const views = [...document.querySelectorAll(`${root} .rl-segments label`)];
    for (const view of views.length ? views : [null]) {
        view?.click();
        await next();
        check(`${view?.textContent}, at the start`);
        const sliders = [...document.querySelectorAll(`${root} input[type=range]`)];
        const starts = sliders.map((s) => s.value);
        for (const [i, s] of sliders.entries()) {
            for (const end of [0, s.max]) {
                await put(s, end);
                check(`${view?.textContent}, ${s.id} at ${s.getAttribute("aria-valuetext")}`);
            }
            await put(s, starts[i]);
        }
        for (const end of ["0", "max"]) {
            for (const s of sliders) set(s, end === "0" ? 0 : s.max);
            await next();
            check(`${view?.textContent}, all at ${end}`);
        }
        for (const [i, s] of sliders.entries()) await put(s, starts[i]);
    }
    return [...new Set(found)];
}"""


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    shown = [explore(f, CARDS if f.parameters else [], id=f.name.replace("_", "-")) for f in formulas.ALL]
    return write(tmp_path_factory.mktemp("room") / "page.html", *shown)


@pytest.fixture(scope="module")
def at(lasting_context, page_file):
    """A function of a width: the page, opened once for all formulas, of which each moves its own explorer."""
    return cache(lambda width: opener(lasting_context, page_file)(width=width))


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("formula", formulas.ALL, ids=lambda f: f.name)
def test_no_text_leaves_its_cell_and_none_lies_on_another(at, formula, width):
    root = f"#{formula.name.replace('_', '-')}"
    assert at(width).evaluate(SWEEP, [root, f"({CUT})", f"({OVERLAPS})"]) == []


@pytest.mark.parametrize("width", [390, 820, 1280])
def test_every_formula_is_read_to_its_end(new_context, page_file, width):
    """It goes on in the next line; its letters have real subscripts, and no number lacks its unit."""
    page = opener(new_context, page_file)(width=width)
    cut = "all => all.filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)"
    assert page.eval_on_selector_all(".rl-formula", cut) == []
    shown = page.locator("main").inner_text()
    spoken = page.eval_on_selector_all("[aria-label]", "all => all.map(e => e.ariaLabel).join(' ')")
    assert not re.findall(r"\w_\w", shown + spoken) and not re.search(r"\d{6}", shown)


def test_no_tick_is_cut(at):
    """Of all pictures as they open: an axis' numbers lie within their picture."""
    cut = at(1280).eval_on_selector_all(
        "svg.rl-plot [data-mark*=tick] text",
        """all => all.filter(e => {
            const [own, frame] = [e, e.ownerSVGElement].map(one => one.getBoundingClientRect());
            return own.width && (own.left < frame.left - 1 || own.right > frame.right + 1);
        }).map(e => e.textContent)""",
    )
    assert cut == []
