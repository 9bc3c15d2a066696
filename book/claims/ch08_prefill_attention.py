"""Prompts: first tokens faster than the card can multiply."""

from __future__ import annotations

from book import cost, serving
from book.claims.claim import right, wrong
from book.claims.terms import model
from book.say import say
from book.serving import deploy


def first_token(length: int) -> float:
    """Seconds at least to a first token of Llama-3.1-70B on one H100, in FP8 at its dense peak."""
    return serving.ttft(deploy("llama3.1-70b", "h100_sxm", weight_itemsize=1, dtype="fp8"), length)


CLAIMS = (
    wrong(
        "ttft-100k",
        say("Llama 3.1 70B on an H100 gives the first token of a 100K prompt after about 5 seconds"),
        "5 s",
        lambda: first_token(100_000),
        say("Not even in FP8 at the peak: the table grows in proportion, and attention doesn't."),
        seen="blog",
        link="https://www.bytebell.ai/blog/prefill-vs-decode-long-context-latency",
    ),
    wrong(
        "ttft-10k",
        say("And that of a 10K prompt after about half a second"),
        "0.5 s",
        lambda: first_token(10_000),
        say("Below the floor of one card in FP8, and of two in bf16, which is the same."),
        seen="blog",
        link="https://www.bytebell.ai/blog/prefill-vs-decode-long-context-latency",
    ),
    right(
        "score-matrix",
        say("Unfused, one layer's scores of a million tokens are 128 TB in Llama-70B"),
        "128 TB",
        lambda: cost.unfused_attention(1, 10**6, 64, 8, model("llama3.1-70b").head_dim).reads["scores"],
        say("64 heads, a million squared, two bytes: which is why attention is fused."),
        seen="forum",
        link="https://r.arson.gg/r/LocalLLaMA/comments/1rc8qtc/the_actual_memory_math_for_llama70b_with_1m",
    ),
)
