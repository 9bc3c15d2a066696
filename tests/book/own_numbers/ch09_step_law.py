"""The step law, and TTFT against TPOT."""

from __future__ import annotations

from book import catalog, serving
from book.claims.claim import right, wrong
from book.say import say
from book.serving import deploy, step_law


def steps(accelerator: str, engine: str) -> dict[int, float]:
    """Published seconds of a step by number of cards: Llama-3.1-70B in FP8, tensor-parallel."""
    points = catalog.series("decode_step", accelerator=accelerator, engine=engine).points
    return {point["gpus"]: point["seconds"] for point in points}


def floors(accelerator: str, engine: str) -> dict[int, float]:
    """The floors of those steps, seconds. A request is half way through its output."""
    series = catalog.series("decode_step", accelerator=accelerator, engine=engine)
    context = series.fixed["input_tokens"] + series.fixed["output_tokens"] / 2
    deployed = {
        n: deploy(series.model, accelerator, weight_itemsize=1, gpus=n) for n in steps(accelerator, engine)
    }
    return {n: serving.tpot(d, series.fixed["concurrency"], context) for n, d in deployed.items()}


def law(accelerator: str, engine: str) -> step_law.Fit:
    """The law's line through them."""
    return step_law.fit(list(floors(accelerator, engine).values()), list(steps(accelerator, engine).values()))


def total_over_outputs(name: str, accelerator: str, context: int, outputs: int) -> float:
    """TTFT and all steps together, divided by the tokens that came out: a mistake."""
    d = deploy(name, accelerator)
    return (serving.ttft(d, context) + (outputs - 1) * serving.tpot(d, 1, context)) / outputs


CLAIMS = (
    right(
        "reading-speed",
        say("50 ms between tokens is 20 tokens a second, a fast reader"),
        "20 tokens/s",
        lambda: 1 / 0.05,
        say("And 100 ms is 10, a slow one."),
    ),
    right(
        "law-slope",
        say("vLLM on H100s spends 1.04 s for each second of floor (Llama-3.1-70B, FP8, TP 2, 4, 8)"),
        "1.04",
        lambda: law("h100_sxm", "vLLM").slope,
        say("A line through three published rows: 96 % of the bandwidth, once overhead is paid."),
    ),
    right(
        "law-overhead",
        say("And 6.3 ms a step on top"),
        "6.3 ms",
        lambda: law("h100_sxm", "vLLM").overhead,
        say("Which no number of cards makes smaller."),
    ),
    right(
        "law-trt",
        say("TensorRT-LLM on H200s: 4.1 ms a step on top"),
        "4.1 ms",
        lambda: law("h200_sxm", "TensorRT-LLM").overhead,
        say("With a slope of 1.07, over TP 1, 2, 4 and 8."),
        tolerance=0.01,
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
    right(
        "slow-reader",
        say("100 ms between tokens is 10 tokens a second"),
        "10 tokens/s",
        lambda: 1 / 0.1,
        say("A slow reader."),
    ),
    right(
        "broken-stream",
        say("A stream feels broken above 150 ms a token, 6.7 tokens a second"),
        "6.7 tokens/s",
        lambda: 1 / 0.15,
        say("The division is right. The feeling is a rule of thumb."),
    ),
    right(
        "step-floor-2",
        say("Two H100s read an FP8 step of Llama-3.1-70B in 10.67 ms (4 sequences of 1,536 tokens)"),
        "10.67 ms",
        lambda: floors("h100_sxm", "vLLM")[2],
        say("69.5 GB of weights and 2.0 GB of bf16 cache over 6.7 TB/s."),
    ),
    right(
        "step-floor-4",
        say("Four H100s read that step in 5.34 ms"),
        "5.34 ms",
        lambda: floors("h100_sxm", "vLLM")[4],
        say("Half the bytes on each card."),
    ),
    right(
        "step-floor-8",
        say("Eight H100s read that step in 2.67 ms"),
        "2.67 ms",
        lambda: floors("h100_sxm", "vLLM")[8],
        say("Half again."),
    ),
    right(
        "law-2",
        say("vLLM's measured step on two H100s, 17.41 ms, lies on a line over the floor"),
        "17.41 ms",
        lambda: law("h100_sxm", "vLLM").law(floors("h100_sxm", "vLLM")[2]),
        say("Exact is what the line through all three rows gives."),
    ),
    right(
        "law-4",
        say("So does its step on four H100s, 11.78 ms"),
        "11.78 ms",
        lambda: law("h100_sxm", "vLLM").law(floors("h100_sxm", "vLLM")[4]),
        say("Within one percent of it."),
        tolerance=0.01,
    ),
    right(
        "law-8",
        say("And its step on eight H100s, 9.11 ms"),
        "9.11 ms",
        lambda: law("h100_sxm", "vLLM").law(floors("h100_sxm", "vLLM")[8]),
        say("Within one percent, too."),
        tolerance=0.01,
    ),
    wrong(
        "twice-the-cards",
        say("Four times the cards answer four times as fast (vLLM, two to eight H100s)"),
        "4 times",
        lambda: steps("h100_sxm", "vLLM")[2] / steps("h100_sxm", "vLLM")[8],
        say("True of the floor. The overhead doesn't shrink."),
        slip=lambda: floors("h100_sxm", "vLLM")[2] / floors("h100_sxm", "vLLM")[8],
    ),
    wrong(
        "law-efficiency",
        say("vLLM's kernels reach 29 % of eight H100s' bandwidth"),
        "29 %",
        lambda: law("h100_sxm", "vLLM").efficiency,
        say("That is the floor over the whole step. Without the overhead of 6.3 ms they reach 96 %."),
        number=0.293,
        slip=lambda: floors("h100_sxm", "vLLM")[8] / steps("h100_sxm", "vLLM")[8],
    ),
    right(
        "law-slope-h200",
        say("On H200s vLLM spends 1.04 s for each second of floor"),
        "1.04",
        lambda: law("h200_sxm", "vLLM").slope,
        say("The slope of the H100s."),
    ),
    right(
        "law-overhead-h200",
        say("On H200s vLLM spends 6.0 ms a step on top"),
        "6.0 ms",
        lambda: law("h200_sxm", "vLLM").overhead,
        say("Nearly that of the H100s: overhead is a property of the engine."),
        tolerance=0.01,
    ),
    right(
        "law-slope-trt",
        say("TensorRT-LLM on H200s spends 1.07 s for each second of floor"),
        "1.07",
        lambda: law("h200_sxm", "TensorRT-LLM").slope,
        say("A little less of the bandwidth than vLLM, and less overhead."),
    ),
)
