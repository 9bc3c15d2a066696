"""Two phases: operations of a token, and a profile that can't be."""

from __future__ import annotations

from book import cost, serving
from book.claims.claim import right, wrong
from book.claims.terms import card, model
from book.say import say
from book.serving import weight_bytes_read

# A profile that is passed around: Llama-3.1-8B on an H100. Its rows, as printed.
PREFILL_SECONDS, PREFILL_SHARE = 12.4e-3, 0.824
STEP_SECONDS, STEP_SHARE, BANDWIDTH_SHARE = 16.1e-3, 0.02, 0.886

CLAIMS = (
    wrong(
        "profile-hbm",
        say("A profile of Llama-3.1-8B on an H100: a decode step of 16.1 ms with HBM 88.6 % busy"),
        "88.6 %",
        lambda: weight_bytes_read(model("llama3.1-8b")) / STEP_SECONDS / card("h100_sxm").bandwidth,
        say("A step reads 15.01 GB. In 16.1 ms that is 0.93 TB/s, of a card's 3.35."),
        seen="column",
    ),
    wrong(
        "profile-prompt",
        say("The same profile: a prompt of a dozen tokens keeps the tensor cores 82.4 % busy for 12.4 ms"),
        "a dozen",
        lambda: (
            PREFILL_SECONDS
            * PREFILL_SHARE
            * card("h100_sxm").peak("bf16")
            / cost.weight_flops(model("llama3.1-8b").parameter_parts["blocks"])
        ),
        say("That much arithmetic belongs to a prompt of over seven hundred tokens."),
        number=12,
        unit="tokens",
        seen="column",
    ),
    wrong(
        "profile-mean",
        say("The same profile: tensor cores 3.4 % busy on average, with one prefill and 128 steps at 2 %"),
        "3.4 %",
        lambda: (
            (PREFILL_SHARE * PREFILL_SECONDS + 128 * STEP_SHARE * STEP_SECONDS)
            / (PREFILL_SECONDS + 128 * STEP_SECONDS)
        ),
        say("Weighted by time its own rows average 2.5 %, if 128 steps were taken, which it doesn't say."),
        seen="column",
    ),
    right(
        "flops-70b",
        say("A 70B model takes about 140 billion operations a token"),
        "140 GFLOP",
        lambda: cost.weight_flops(serving.active_parameters(model("llama3.1-70b"))),
        say("Two for each parameter that a token is multiplied with; with 69.50 billion of them it is 139."),
        seen="course",
        link="https://tokenomy.agenticloops.ai/learn/decode-bottleneck",
    ),
    right(
        "third-of-a-percent",
        say("Decoding for one user an H100 does about 0.3 % of what it can"),
        "0.3 %",
        lambda: serving.utilisation(1, card("h100_sxm").peak("bf16"), card("h100_sxm").bandwidth),
        say("One row where 295 would be needed. The printed number has one digit."),
        seen="blog",
        link="https://jared-hpc.com/posts/roofline-model-llm-inference/",
    ),
)
