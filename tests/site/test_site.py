"""Every page of the built site, opened in a browser over http and from disk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Page

from tests.site.built import AXE, pages
from tests.site.conftest import watch
from tests.site.explorer_page import settle

EVERY_PAGE = pytest.mark.parametrize("name", pages())
CHAPTER = next(name for name in pages() if name.startswith("chapters/"))
WHITE, A4 = "rgb(255, 255, 255)", {"width": 794, "height": 1123}  # the paper in CSS pixels
VALUES = "all => all.map(one => one.value ?? one.innerText)"
HEAVIEST = 400e3  # bytes with gzip, headers included


def opened(page, address: str):
    """`page` at `address`, once its scripts have run."""
    page.goto(address, wait_until="load")
    page.wait_for_function("document.querySelectorAll('.rl-live').length === 0 || !!window.InferenceRoofline")
    return page


@dataclass(frozen=True)
class Opened:
    """A page over http, opened once for all that is asked of it, and what was seen as it came."""

    name: str
    page: Page
    problems: list[str]  # goes on filling
    transferred: list[int]  # bytes of each response, with gzip


@pytest.fixture(scope="module", params=pages())
def there(request, browser, server) -> Iterator[Opened]:
    """Each page of the site, loaded once; in light, as a reader without motion sees it."""
    context = browser.new_context(color_scheme="light", reduced_motion="reduce")
    problems, transferred, page = watch(context, server), [], context.new_page()
    network = context.new_cdp_session(page)
    network.send("Network.enable")
    network.on("Network.loadingFinished", lambda event: transferred.append(event["encodedDataLength"]))
    opened(page, f"{server}/{request.param}")
    page.wait_for_load_state("networkidle")
    yield Opened(request.param, page, problems, transferred)
    context.close()
    assert not problems, "\n".join(dict.fromkeys(problems))


@pytest.fixture(scope="module")
def from_disk(browser, site) -> Iterator[tuple[Page, list[str]]]:
    """One tab for all pages from disk, so that their scripts are compiled once; and what goes wrong in it."""
    context = browser.new_context()
    problems = watch(context, site.as_uri())
    yield context.new_page(), problems
    context.close()
    assert not problems, "\n".join(dict.fromkeys(problems))


def test_a_title_names_the_book_once(there):
    assert there.page.title().count("The Inference Roofline") == 1


def test_over_http_nothing_fails_and_nothing_is_fetched_from_elsewhere(there):
    assert there.page.locator("main h1:visible").count() >= 1
    assert not there.problems, "\n".join(there.problems)


def test_a_page_weighs_less_than_400_kb(there):
    weight = sum(there.transferred)
    assert 0 < weight < HEAVIEST, f"{there.name}: {weight:,.0f} bytes with gzip"


def test_no_table_of_evidence_that_is_open_is_cut(there):
    """At a laptop's width; what is folded away may be wider."""
    assert there.page.viewport_size["width"] == 1280
    cut = there.page.eval_on_selector_all(
        ".rl-evidence .rl-table",
        """every => every.filter(t => !t.closest("details") && t.scrollWidth > t.clientWidth)
            .map(t => `${t.scrollWidth} px in ${t.clientWidth}: ${t.innerText.slice(0, 80)}`)""",
    )
    assert cut == []


def test_no_word_of_a_figure_is_cut(there):
    """An SVG hides what reaches beyond its box; at a laptop's width, two pixels are let pass."""
    cut = there.page.eval_on_selector_all(
        "figure svg text",
        """every => every.filter(t => {
            const box = t.ownerSVGElement.getBoundingClientRect(), own = t.getBoundingClientRect();
            return own.width && (own.left < box.left - 2 || own.right > box.right + 2
                || own.top < box.top - 2 || own.bottom > box.bottom + 2);
        }).map(t => t.textContent)""",
    )
    assert cut == []


def test_a_figure_that_a_sentence_names_is_where_its_link_leads(there):
    nowhere = there.page.eval_on_selector_all(
        "a[href^='#figure-']",
        "links => links.map(a => a.hash.slice(1)).filter(id => !document.getElementById(id))",
    )
    assert nowhere == []


def test_on_a_phone_no_math_is_cut_without_a_way_to_scroll(there):
    """Also in solutions, which open; whole inline math scrolls by not a pixel."""
    page = there.page
    desk = page.viewport_size
    page.set_viewport_size({"width": 390, "height": 844})
    page.evaluate("() => document.querySelectorAll('.toggle-button').forEach(b => b.click())")
    settle(page)
    wrong = page.evaluate(
        """() => [...document.querySelectorAll("span.math")].flatMap(box => {
            const math = box.querySelector("math");
            if (!math || !box.offsetParent) return [];
            const right = (el) => el.getBoundingClientRect().right;
            const cut = right(math) > right(box) + 1;
            const may = getComputedStyle(box).overflowX === "auto";
            const scrolls = box.scrollWidth > box.clientWidth + 1;
            return may && cut === scrolls ? [] : [box.textContent.slice(0, 60)];
        })"""
    )
    page.set_viewport_size(desk)
    assert wrong == []


def test_every_formula_is_shown_in_the_font_that_came_for_it(there):
    hidden = there.page.evaluate(
        """() => [...document.querySelectorAll("math")].filter(one => {
            if (!one.getClientRects().length) return false; // in what is folded
            const { width, height } = one.getBoundingClientRect();
            return width < 2 || height < 4;
        }).map(one => one.outerHTML.slice(0, 200))"""
    )
    assert hidden == []
    if there.page.locator("math").count():
        assert there.page.evaluate(
            "document.fonts.ready.then(() => document.fonts.check('16px \"STIX Two Math\"'))"
        )


# Sliders that can not be moved with picture, number and slider in one view.
APART = """() => {
    const box = (el) => el.getBoundingClientRect();
    const wrong = [];
    for (const explorer of document.querySelectorAll(".rl-alive[data-kind=explorer]"))
        for (const slider of explorer.querySelectorAll("input[type=range]")) {
            if (!slider.checkVisibility()) continue;
            slider.scrollIntoView({ block: "end" });
            const within = (name) => box(explorer.querySelector(name));
            const [picture, number] = [within(".rl-picture"), within(".rl-number")];
            const [own, above] = [box(slider), box(document.querySelector(".bd-header-article")).bottom];
            const covered = own.top < number.bottom && own.left < number.right && picture.top < own.bottom;
            const outside = Math.min(picture.top, number.top) < above - 1
                || Math.max(own.bottom, number.bottom) > innerHeight + 1;
            if (covered || outside) wrong.push([slider.id, picture.top, number.bottom, own.top, own.bottom]);
        }
    scrollTo(0, 0);
    return wrong;
}"""


def test_picture_number_and_slider_are_in_one_view_on_a_phone_and_side_by_side_on_a_desk(there):
    page = there.page
    desk = page.viewport_size
    page.set_viewport_size({"width": 390, "height": 650})
    settle(page)
    on_a_phone = page.evaluate(APART)
    page.set_viewport_size({"width": 1440, "height": 800})
    settle(page)
    beside = page.eval_on_selector_all(
        ".rl-alive[data-kind=explorer] .rl-body",
        """every => every.map(body => ["slider", "stage"].map(name =>
            body.querySelector(`.rl-${name}`).getBoundingClientRect())).map(([s, p]) => s.left - p.right)""",
    )
    page.set_viewport_size(desk)
    assert on_a_phone == []
    assert all(gap >= 0 for gap in beside)
    assert beside or not page.locator(".rl-alive[data-kind=explorer]").count()


def test_no_page_scrolls_sideways(there):
    page, wide = there.page, {}
    desk = page.viewport_size
    for width in (320, 390, 768, 1024, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        wide[width] = page.evaluate("document.documentElement.scrollWidth") - width
    page.set_viewport_size(desk)
    assert {width: over for width, over in wide.items() if over > 0} == {}


def test_there_is_one_search_box(there):
    """The search page's own form is its content; the theme's is the one that every page has."""
    boxes = there.page.locator("input[type=search]:visible")
    assert boxes.count() <= 1
    buttons = there.page.locator(".search-button-field:visible, .search-button:visible")
    assert buttons.count() <= 1


# The two schemes differ in colours alone: in light axe is asked all, in dark what looks at colours, and of
# texts in the same colour and size on the same grounds the first four.
SCHEMES = {"light": {}, "dark": {"runOnly": ["color-contrast", "link-in-text-block"]}}
OF_EACH_LOOK = """() => {
    const grounds = new Map([[null, ""]]);
    const groundOf = (e) => {
        if (!grounds.has(e)) {
            const own = getComputedStyle(e), above = groundOf(e.parentElement);
            const drawn = e.localName === "svg" || own.backgroundImage !== "none" || own.opacity !== "1";
            const filled = own.backgroundColor.replace("rgba(0, 0, 0, 0)", "");
            grounds.set(e, above + filled + (drawn ? e.getAttribute("class") : ""));
        }
        return grounds.get(e);
    };
    const seen = {};
    return [...document.body.querySelectorAll("*")].filter((e) => {
        if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) return false;
        if (!e.checkVisibility()) return false;
        if (e.closest("svg")) return true;
        const { color, fontSize, fontWeight, position } = getComputedStyle(e);
        const look = [e.localName === "a", color, fontSize, fontWeight, position, groundOf(e)].join("|");
        seen[look] = (seen[look] ?? 0) + 1;
        return seen[look] <= 4;
    });
}"""


@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_no_violation(there, scheme):
    page = there.page
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.wait_for_function("scheme => document.documentElement.dataset.theme === scheme", arg=scheme)
    if not page.evaluate("() => 'axe' in window"):
        page.add_script_tag(content=AXE.read_text(encoding="utf-8"))
    violations = page.evaluate(
        """async ([asked, looks]) => {
            const where = looks ? {include: eval(looks)()} : document;
            return (await axe.run(where, {resultTypes: ["violations"], ...asked})).violations;
        }""",
        [SCHEMES[scheme], OF_EACH_LOOK if scheme == "dark" else ""],
    )
    told = [
        f"{v['id']} ({v['impact']}): {v['help']}\n    "
        + "\n    ".join(n["html"][:160] for n in v["nodes"][:4])
        for v in violations
    ]
    assert not violations, f"{there.name}, {scheme}:\n" + "\n".join(told)


def test_every_slider_changes_its_number_by_keyboard(there):
    page = there.page
    page.evaluate(
        "() => document.querySelectorAll('.rl-explorer details').forEach(fold => { fold.open = true; })"
    )
    sliders = page.locator(".rl-alive input[type=range]")
    assert sliders.count() >= page.locator('.rl-live[data-kind="explorer"]').count(), "one at least each"
    for index in range(sliders.count()):
        slider = sliders.nth(index)
        live = slider.locator("xpath=ancestor::*[contains(concat(' ', @class, ' '), ' rl-live ')]")

        def numbers(live=live) -> list[str]:
            """What the explorer shows once it no longer changes: a busy machine skips frames."""
            last = None
            while (shown := live.locator("output, .rl-value").evaluate_all(VALUES)) != last:
                settle(page)
                last = shown
            return shown

        slider.focus()
        page.keyboard.press("Home")
        before, position = numbers(), slider.input_value()
        page.keyboard.press("ArrowRight")
        moved = slider.input_value()
        page.keyboard.press("End")
        label = slider.evaluate("s => s.labels?.[0]?.innerText || s.getAttribute('aria-label')")
        assert moved != position, f"{there.name}: slider {label!r} does not move by keyboard"
        assert numbers() != before, f"{there.name}: no number follows slider {label!r}"


@EVERY_PAGE
def test_from_disk_nothing_fails_and_nothing_is_fetched_from_elsewhere(from_disk, site, name):
    page, problems = from_disk
    opened(page, (site / name).as_uri())
    assert page.locator("main h1:visible").count() >= 1
    found = list(dict.fromkeys(problems))
    problems.clear()  # the next page answers for itself
    assert not found, "\n".join(found)


def test_the_chapters_and_the_front_page_have_an_explorer(site):
    for name in [n for n in pages() if n == "index.html" or n.startswith("chapters/")]:
        assert 'data-kind="explorer"' in (site / name).read_text(encoding="utf-8"), name


def test_the_first_slider_is_soon_usable(page, server):
    """Within 2 s on an idle machine, which benchmarks/page.py measures; a busy one gets 10."""
    page.goto(f"{server}/index.html", wait_until="commit")
    page.locator(".rl-alive input[type=range]").first.wait_for(timeout=10_000)


def test_a_page_prints_without_its_navigation(page, server):
    opened(page, f"{server}/index.html")
    page.emulate_media(media="print")
    assert not page.locator(".bd-sidebar-primary").is_visible()


def test_a_page_in_dark_mode_prints_dark_on_white(page, server):
    page.emulate_media(color_scheme="dark")
    opened(page, f"{server}/{CHAPTER}")
    page.emulate_media(color_scheme="dark", media="print")
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == WHITE
    colours = page.eval_on_selector_all(
        "main :is(p, h1, h2, pre span, .rl-figure svg text)",
        "all => [...new Set(all.map(e => getComputedStyle(e)[e.closest('svg') ? 'fill' : 'color']))]",
    )
    light = [c for c in colours if sum(map(int, re.findall(r"\d+", c)[:3])) > 3 * 150]
    assert colours and light == []


def test_the_claims_lie_on_paper_whole(page, server):
    page.set_viewport_size(A4)
    opened(page, f"{server}/book/pages/claims.html")
    page.emulate_media(media="print")
    cut = page.eval_on_selector_all(
        ".rl-filtered", "all => all.map(t => t.scrollWidth - t.clientWidth).filter(more => more > 1)"
    )
    assert page.locator(".rl-filtered").count() and cut == []


def test_the_front_page_s_first_screen_has_a_slider(new_context, server):
    """As its critics measure it: 1366 by 768."""
    page = new_context(server, viewport={"width": 1366, "height": 768}).new_page()
    opened(page, f"{server}/index.html")
    foot = page.locator(".rl-alive input[type=range]").first.evaluate(
        "one => one.getBoundingClientRect().bottom"
    )
    assert foot < 768
    text = page.locator("article h1 + p").inner_text()
    assert all(word in text for word in ("LLM inference", "KV cache", "batching", "prefill", "decode"))
