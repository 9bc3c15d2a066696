"""Pages come without a jump: what arrives late, a font or a script, finds its room kept."""

import pytest

from tests.site.built import pages

PHONE = {"viewport": {"width": 390, "height": 844}}
LINE = {"offline": False, "latency": 150, "downloadThroughput": 1.6e6 / 8, "uploadThroughput": 1.6e6 / 8}
MOST = 0.05  # of layout shift; a page is called good under 0.1
SAMPLE = ["index.html", next(p for p in pages() if p.startswith("chapters/")), pages()[-6]]
WATCH = """() => {
    window.shifted = [];
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted.push([
            entry.value, ...entry.sources.map(({ node }) => node?.className || node?.nodeName)]);
    }).observe({ type: "layout-shift", buffered: true });
}"""


def shifts(context, address):
    page = context.new_page()
    page.add_init_script(f"({WATCH})()")
    network = context.new_cdp_session(page)
    network.send("Network.enable")
    network.send("Network.emulateNetworkConditions", LINE)
    page.goto(address)
    page.wait_for_load_state("networkidle")
    return page.evaluate("window.shifted")


@pytest.mark.parametrize("name", [*SAMPLE, "book/pages/accelerators.html", "book/pages/claims.html"])
def test_nothing_jumps_on_a_phone_with_a_slow_line(new_context, server, name):
    found = shifts(new_context(server, **PHONE), f"{server}/{name}")
    assert sum(value for value, *_ in found) < MOST, found


def test_a_reader_s_own_sentence_does_not_jump_either(new_context, server):
    own = "#serve=deepseek-v3~fp8~1k~128k~128xb200"
    found = shifts(new_context(server, **PHONE), f"{server}/index.html{own}")
    assert sum(value for value, *_ in found) < MOST, found


def test_a_jump_is_seen(new_context, server):
    context = new_context(server, **PHONE)
    grow = "() => setTimeout(() => { document.querySelector('article h1').style.paddingTop = '300px'; }, 50)"
    late = f"addEventListener('load', {grow})"
    context.add_init_script(late)
    assert sum(value for value, *_ in shifts(context, f"{server}/index.html")) > MOST
