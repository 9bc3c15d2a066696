"""Numbers in circulation, as used: what is typed filters, a phone shows the verdict first."""

import pytest

from book import claims

PAGE = "book/pages/claims.html"


@pytest.fixture
def table(disk_page, site):
    disk_page.goto((site / PAGE).as_uri())
    return disk_page.locator(".rl-filtered")


def shown(table):
    return table.locator("tbody tr:visible")


def test_what_is_typed_keeps_the_rows_that_hold_it(table):
    every = len(claims.claims())
    assert shown(table).count() == every
    table.page.get_by_role("searchbox", name="Show rows with").fill("sparse h100")
    kept = shown(table).count()
    assert 0 < kept < every
    assert all("sparse" in text.lower() for text in shown(table).all_inner_texts())
    assert table.page.locator(".rl-filter output").inner_text() == f"{kept} / {every}"


def test_a_verdict_has_its_button_and_a_number_is_found_without_its_commas(table):
    for verdict in ("wrong", "right"):
        button = table.page.get_by_role("button", name=verdict, exact=True)
        button.click()
        assert button.get_attribute("aria-pressed") == "true"
        assert shown(table).count() == sum(c.judged() == verdict for c in claims.claims())
    table.page.get_by_role("button", name="all", exact=True).click()
    table.page.get_by_role("searchbox").fill("1979")
    assert shown(table).count() > 0


def test_a_link_to_a_row_shows_it_whatever_was_typed(table):
    hidden = next(c.id for c in claims.claims() if "405B" in c.statement)
    table.page.get_by_role("searchbox").fill("sparse")
    assert table.page.locator(f"#claim-{hidden}").is_hidden()
    table.page.evaluate(f"location.hash = 'claim-{hidden}'")
    table.page.locator(f"#claim-{hidden}").wait_for(state="visible")


def test_a_phone_shows_each_verdict_within_its_width(new_context, site):
    page = new_context(site.as_uri(), viewport={"width": 390, "height": 800}).new_page()
    page.goto((site / PAGE).as_uri())
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    for verdict in page.locator(".rl-filtered tbody th").all():
        box = verdict.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    outside = page.evaluate(
        "[...document.querySelectorAll('.rl-filtered tbody *')]"
        ".filter(e => e.getBoundingClientRect().right > innerWidth).length"
    )
    assert outside == 0
