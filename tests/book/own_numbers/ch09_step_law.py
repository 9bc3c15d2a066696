"""Numbers of chapter 09: a measured step, its floor, its terms, and what its rows can't tell."""

from __future__ import annotations

from book import serving
from book.claims.claim import Claim, right, wrong
from book.say import say
from book.serving import bottom_up, deploy, served, step_law
from book.serving.fitting import Fitted

H100, H200, TRT = served.GROUPS


def row(of: served.Group, gpus: int, users: int = 4, prompt: int = 1024) -> served.Row:
    """The measured row of so many cards and users, 1,024 tokens out."""
    wanted = (gpus, users, prompt, 1024)
    columns = ("gpus", "concurrency", "input_tokens", "output_tokens")
    return next(r for r in served.rows(of) if tuple(r[c] for c in columns) == wanted)


def line(of: served.Group) -> step_law.Fit:
    """Two numbers through the rows of four users, 1,024 in and out: a lightly loaded engine."""
    ours = [row(of, n) for n in (1, 2, 4, 8) if any(r["gpus"] == n for r in served.rows(of))]
    return step_law.fit([served.floor_of(r) for r in ours], [r["tpot_s"] for r in ours])


def split(name: str, of: served.Group = H100) -> Fitted:
    """One of three laws of the same rows."""
    return bottom_up.splits(of)[name]


def product_share(of: served.Row) -> float:
    """The share of the bandwidth that the products with weights reach, by their tables."""
    found = bottom_up.kernels(of)
    return found["weights"] / (found["weights"] + found["products"])


def total_over_outputs(name: str, accelerator: str, context: int, outputs: int) -> float:
    """TTFT and all steps together, divided by the tokens that came out: a mistake."""
    d = deploy(name, accelerator)
    return (serving.ttft(d, context) + (outputs - 1) * serving.tpot(d, 1, context)) / outputs


def floor_claim(gpus: int, printed: str) -> Claim:
    """The floor of a measured step, all users at nominal lengths and a 16-bit cache."""
    return right(
        f"step-floor-{gpus}",
        say("{gpus} H100s read an FP8 step of Llama-3.1-70B in {printed}", gpus=gpus, printed=printed),
        printed,
        lambda: served.floor_of(row(H100, gpus)),
        say("69.5 GB of weights and 2.0 GB of bf16 cache, 4 sequences of 1,536 tokens."),
    )


CLAIMS = (
    floor_claim(2, "10.67 ms"),
    floor_claim(4, "5.34 ms"),
    floor_claim(8, "2.67 ms"),
    right(
        "law-slope",
        say("A line through three rows of a lightly loaded vLLM on H100s has a slope of 1.04"),
        "1.04",
        lambda: line(H100).slope,
        say("With 95 % intervals from 0.86 to 1.22: it says little of the kernels."),
    ),
    right(
        "law-slope-high",
        say("That slope may as well be 1.22"),
        "1.22",
        lambda: line(H100).intervals["slope"][1],
        say("Student's t with one degree of freedom: three points, two numbers."),
    ),
    wrong(
        "law-efficiency",
        say("So its kernels run at 96 % of the bandwidth"),
        "96 %",
        lambda: product_share(row(H100, 8)),
        say(
            "A line can't tell; by tables of vLLM 0.24 products with weights reach half of it on eight cards."
        ),
        slip=lambda: line(H100).efficiency,
    ),
    right(
        "observed-share",
        say("A step of vLLM on eight H100s uses 29 % of their bandwidth"),
        "29 %",
        lambda: served.floor_of(row(H100, 8)) / row(H100, 8)["tpot_s"],
        say("The floor over the measured step. It is what was observed; why is another question."),
        tolerance=0.02,
    ),
    wrong(
        "law-overhead",
        say("vLLM's overhead is 6.3 ms a step"),
        "6.3 ms",
        lambda: split("floor").factors["overhead"],
        say("5.0 ms, 3.6 or 0.6 by what is called a kernel; the rows don't say."),
        slip=lambda: line(H100).overhead,
    ),
    right(
        "split-scaled",
        say("The same rows leave 3.6 ms, if the table of products is taken times a factor"),
        "3.6 ms",
        lambda: split("scaled").factors["overhead"],
        say("With the same error held out."),
    ),
    right(
        "split-tables",
        say("And 0.6 ms, if the table is taken as it is and cards cost something"),
        "0.6 ms",
        lambda: split("tables").factors["overhead"],
        say("With the same error held out, again."),
        tolerance=0.03,
    ),
    right(
        "others-prompts",
        say("Of 34.5 ms a token 13.5 are other people's prompts (8 H100s, 64 users, 8,192 in)"),
        "13.5 ms",
        lambda: float(served.terms_of(row(H100, 8, 64, 8192)).prompts),
        say("0.95 (B - 1)/O of a prompt for each token."),
    ),
    wrong(
        "tpot-mean",
        say(
            "TPOT is total time over output tokens: 6.1 ms (floors of Llama-3.1-8B, 8,192 tokens in, 100 "
            "out, H100)"
        ),
        "6.1 ms",
        lambda: serving.tpot(deploy("llama3.1-8b", "h100_sxm"), 1, 8192),
        say("The prefill is in it. It belongs to the first token."),
        slip=lambda: total_over_outputs("llama3.1-8b", "h100_sxm", 8192, 100),
    ),
    wrong(
        "twice-the-cards",
        say("Four times the cards answer four times as fast (vLLM, two to eight H100s)"),
        "4 times",
        lambda: row(H100, 2)["tpot_s"] / row(H100, 8)["tpot_s"],
        say("True of the floor. What isn't divided by the cards doesn't shrink."),
        slip=lambda: served.floor_of(row(H100, 2)) / served.floor_of(row(H100, 8)),
    ),
)
