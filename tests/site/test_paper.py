"""What a printer gets: sliders as values, no fields, and no solutions unless the address asks for them."""

PAGE = "chapters/02-linear-layers.html"


def printed(page, address):
    page.goto(address)
    page.emulate_media(media="print")
    return page


def test_solutions_are_printed_on_request_only(disk_page, site):
    address = (site / PAGE).as_uri()
    solution = ".admonition.solution p"
    assert not printed(disk_page, address).locator(solution).first.is_visible()
    assert printed(disk_page, address + "?solutions").locator(solution).last.is_visible()


def test_of_a_slider_its_value_is_printed_and_of_a_check_its_question(disk_page, site):
    page = printed(disk_page, (site / PAGE).as_uri())
    assert not page.locator(".rl-live input[type=range]").first.is_visible()
    assert page.locator(".rl-live input.rl-value").first.is_visible()
    assert not page.locator(".rl-check-form").first.is_visible()
    assert page.locator(".rl-check-question").first.is_visible()
