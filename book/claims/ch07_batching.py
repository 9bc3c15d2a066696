"""How many requests fit, and what they are worth."""

from __future__ import annotations

from book import catalog, serving
from book.claims.claim import wrong
from book.claims.terms import model, weight_bytes
from book.say import say

LABEL = 80e9  # bytes of an H100, as the row has it


def requests(context: int) -> float:
    """Whole sequences of Llama-3.1-70B in what an 80 GB card has left beside weights of 4 bits, no scales."""
    left = LABEL - weight_bytes("llama3.1-70b") / 2 * catalog.itemsize("int4")
    return left // serving.kv_bytes(model("llama3.1-70b"), context)


CLAIMS = (
    wrong(
        "requests-4k",
        say("An H100 with Llama-3 70B in INT4 serves about 280 requests of 4,096 tokens at once"),
        "280",
        lambda: requests(4096),
        say(
            "The cache of a request was taken for an eighth of what it is. This goes by the page's 80e9 "
            "bytes; with what the card reports 37 fit."
        ),
        slip=lambda: 45e9 / 160e6,
        seen="course",
        link="https://harvard-edge.github.io/cs249r_book_dev/mlsysim/blog/how-much-memory-llama3.html",
    ),
    wrong(
        "requests-32k",
        say("And 35 requests of 32K tokens"),
        "35",
        lambda: requests(32_768),
        say("The same eighth."),
        slip=lambda: 45e9 / 1.28e9,
        seen="course",
        link="https://harvard-edge.github.io/cs249r_book_dev/mlsysim/blog/how-much-memory-llama3.html",
    ),
)
