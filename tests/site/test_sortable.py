"""The accelerator table sorts by keyboard, from disk, and says how it is sorted."""

import pytest
from playwright.sync_api import Page

from book import catalog

PAGE = "book/pages/accelerators.html"


def _names(page: Page) -> list[str]:
    return page.locator(".rl-sortable table").first.locator("tbody th").all_inner_texts()


def _column(page: Page, n: int) -> list[str]:
    return page.locator(".rl-sortable table").first.locator(f"tbody td:nth-child({n})").all_inner_texts()


@pytest.fixture
def table(disk_page, site):
    disk_page.goto((site / PAGE).as_uri())
    return disk_page


def test_ridges_sort_from_the_largest_and_back(table):
    by_ridge = sorted(catalog.accelerators(), key=lambda a: a.ridge(a.default_dtype))
    heading = table.get_by_role("button", name="ridge FLOP/byte")
    heading.focus()
    table.keyboard.press("Enter")
    assert _names(table)[0] == by_ridge[-1].short_name
    assert table.locator("th[aria-sort=descending]").first.inner_text().startswith("ridge")
    table.keyboard.press("Space")
    assert _names(table)[0] == by_ridge[0].short_name
    assert table.locator("[aria-sort]").count() == 1


def test_empty_cells_stay_last_both_ways(table):
    have = sum("fp4" in a.peaks for a in catalog.accelerators())
    heading = table.get_by_role("button", name="fp4 TFLOP/s")
    column = heading.evaluate("button => button.closest('th').cellIndex + 1")
    for _ in range(2):
        heading.click()
        cells = _column(table, column)
        assert "–" not in cells[:have] and set(cells[have:]) == {"–"}


def test_a_phone_shows_a_card_a_row_with_bandwidth_peak_and_ridge_first(new_context, site):
    page = new_context(site.as_uri(), viewport={"width": 390, "height": 800}).new_page()
    page.goto((site / PAGE).as_uri())
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    cards = page.locator(".rl-sortable").first.locator("tbody tr")
    assert cards.count() == len(catalog.accelerators())
    cells = cards.first.locator("td")
    order = cells.evaluate_all("all => all.map(c => [c.offsetTop, c.offsetLeft, c.dataset.name])")
    assert [name for _, _, name in sorted(order)[:3]] == ["bandwidth", "bf16", "ridge"]
