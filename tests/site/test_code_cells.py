"""A chapter begins with what can be touched: its code is closed until it is wanted, its explorer near."""

import pytest

from tests.site.built import pages

CHAPTERS = [name for name in pages() if name.startswith("chapters/")]
SHOWN = "all => all.filter(one => one.getClientRects().length).length"
CODE = ".cell > .cell_input"
SOURCE = ".rl-source pre"


@pytest.fixture(scope="module")
def tab(lasting_context, server):
    return lasting_context(server, viewport={"width": 1440, "height": 900}).new_page()


@pytest.fixture
def page(tab, server):
    tab.goto(f"{server}/{CHAPTERS[0]}")
    yield tab
    tab.evaluate("localStorage.clear()")


def shown(page):
    return page.locator(CODE).evaluate_all(SHOWN)


def test_code_is_closed_and_what_it_shows_is_not(page):
    assert shown(page) == 0 and page.locator(".cell > .cell_output").evaluate_all(SHOWN) > 5


def test_the_switch_opens_all_of_it_and_is_remembered_in_other_chapters(page, server):
    page.locator("[data-code-switch]").check()
    assert shown(page) == page.locator(CODE).count() > 5
    page.goto(f"{server}/{CHAPTERS[1]}")
    assert page.locator("[data-code-switch]").is_checked() and shown(page) == page.locator(CODE).count() > 5
    page.locator("[data-code-switch]").uncheck()
    page.reload()
    assert shown(page) == 0


def test_one_cell_opens_by_keyboard_and_says_so(page):
    button = page.locator(".rl-code").nth(1)
    button.press("Enter")
    assert shown(page) == 1 and button.get_attribute("aria-expanded") == "true"
    button.press("Enter")
    assert shown(page) == 0 and button.get_attribute("aria-expanded") == "false"


def test_from_disk_and_with_a_full_storage_the_switch_works(new_context, site):
    context = new_context(site.as_uri())
    context.add_init_script(
        "const set = Storage.prototype.setItem;"
        "Storage.prototype.setItem = function (name, value) {"
        "  if (name === 'code') throw new DOMException('full', 'QuotaExceededError');"
        "  return set.call(this, name, value); }"
    )
    page = context.new_page()
    page.goto((site / CHAPTERS[0]).as_uri())
    assert shown(page) == 0
    page.locator("[data-code-switch]").check()
    assert shown(page) == page.locator(CODE).count()


def test_a_kernel_s_source_is_content_and_never_closed(page):
    """The prose discusses it, so it stands with the switch off and on, and on paper."""
    sources, listing = page.locator(SOURCE), page.locator(SOURCE).first
    for opened in (False, True):
        page.locator("[data-code-switch]").set_checked(opened)
        for media in ("screen", "print"):
            page.emulate_media(media=media)
            assert sources.evaluate_all(SHOWN) == sources.count() > 0, (opened, media)
            assert listing.evaluate("one => getComputedStyle(one, '::before').content") == "none"
        page.emulate_media(media="screen")


def test_without_scripts_all_code_can_be_read(browser, site):
    page = browser.new_context(java_script_enabled=False).new_page()  # unwatched: a script is asked for early
    page.goto((site / CHAPTERS[0]).as_uri())
    assert page.locator(".rl-code:visible").count() == 0
    for code in (CODE, SOURCE):
        assert page.locator(f"{code}:visible").count() == page.locator(code).count() > 0
    page.context.close()


@pytest.mark.parametrize(("width", "height", "screens"), [(1440, 900, 2), (390, 844, 2.5)])
def test_every_chapter_s_explorer_is_near_its_top(tab, server, width, height, screens):
    tab.set_viewport_size({"width": width, "height": height})
    tops = {}
    for name in CHAPTERS:
        tab.goto(f"{server}/{name}")
        top = tab.locator(".rl-explorer").first.evaluate("one => one.getBoundingClientRect().top + scrollY")
        tops[name] = top / height
    assert {name: top for name, top in tops.items() if top > screens} == {}
