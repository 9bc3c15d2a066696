"""What people say of whole servers, and of those who read along."""

from __future__ import annotations

from book.claims.claim import wrong
from book.say import say

WORDS_A_MINUTE = 238  # adults reading English non-fiction silently (Brysbaert 2019, a review of 190 studies)
TOKENS_A_WORD = 4 / 3  # English, as a rule of thumb: three quarters of a word a token

CLAIMS = (
    wrong(
        "reading-words",
        say("Most people read 5 to 8 words a second, some 7 to 10 tokens"),
        "7 tokens/s",
        lambda: WORDS_A_MINUTE / 60 * TOKENS_A_WORD,
        say("Measured in many studies it is about four words, so a little over five tokens."),
        seen="blog",
        link="https://spanvero.com/learn/usable-tokens-per-second/",
    ),
)
