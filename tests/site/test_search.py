"""A reader who searches with the field's own words arrives at the chapter that explains them."""

import json

import pytest

GOES_TO = {
    "KV cache": "05-kv-cache",
    "ridge": "01-roofline",
    "GQA": "06-attention",
    "grouped-query attention": "06-attention",
    "time to first token": "09-step-law",
    "TPOT": "09-step-law",
    "MoE": "glossary",  # no chapter explains it
}
FOUND = "#search-results li"
HREFS = "all => all.map(one => one.querySelector('a').getAttribute('href'))"


@pytest.fixture(scope="module", params=["http", "disk"])
def tab(request, browser, site):
    """A tab for all searches, and where the site is: over http and from disk."""
    at = request.getfixturevalue("server") if request.param == "http" else site.as_uri()
    context = browser.new_context()
    yield context.new_page(), at, request.param
    context.close()


@pytest.fixture(scope="module")
def terms(site):
    """{word: pages} of the index, pages by name."""
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    numbers = {word: at if isinstance(at, list) else [at] for word, at in index["terms"].items()}
    return {word: {index["docnames"][n] for n in at} for word, at in numbers.items()}


@pytest.mark.parametrize("query", GOES_TO)
def test_a_word_of_the_field_finds_its_chapter_first_and_each_page_once(tab, query):
    page, at, how = tab
    page.goto(f"{at}/search.html?q={query}")
    page.wait_for_function("Search.title.innerText === 'Search Results'")
    pages = [href.partition("#")[0] for href in page.eval_on_selector_all(FOUND, HREFS)]
    assert GOES_TO[query] in pages[0]
    assert len(pages) == len(set(pages))
    if how == "http":
        page.wait_for_selector(f"{FOUND} p.context")
        words = page.locator(f"{FOUND} p.context").all_inner_texts()
        assert all(said for said in words)
        assert not [said for said in words for bare in ("\\(", "On this page", "Answer:") if bare in said]


def test_the_index_holds_neither_answers_nor_code(terms):
    assert "roofline" in terms or "rooflin" in terms
    for word in ("javascript", "noscript", "import"):
        chapters = {page for page in terms.get(word, ()) if page.startswith("chapters/")}
        assert not chapters, f"{word} of {chapters}"
