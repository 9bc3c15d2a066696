"""What people say of whole servers, and of those who read along."""

from __future__ import annotations

from book.catalog.service_limits import READING
from book.claims.claim import wrong
from book.say import say

CLAIMS = (
    wrong(
        "reading-words",
        say("Most people read 5 to 8 words a second, some 7 to 10 tokens"),
        "7 tokens/s",
        lambda: 1 / READING,
        say("Measured in many studies it is about four words, so a little over five tokens."),
        seen="blog",
        link="https://spanvero.com/learn/usable-tokens-per-second/",
    ),
)
