"""Batches that memory ends."""

from __future__ import annotations

from book import serving
from book.claims.claim import right, wrong
from book.claims.terms import card, sequences, weight_seconds
from book.say import say
from book.serving import deploy


def blended_limit(name: str, accelerator: str, context: int) -> float:
    """Blended intensity of a decode step in an endless batch, FLOP/byte."""
    step = serving.decode_step(deploy(name, accelerator), 1, context)
    return step.cost.flops / step.attention.bytes


CLAIMS = (
    right(
        "crossover-70b",
        say("At batch 32 Llama-3.1-70B reads as much cache as weights from 13,257 tokens on"),
        "13,257 tokens",
        lambda: serving.crossover_context(deploy("llama3.1-70b", "h100_sxm"), 32),
        say("W / (B kappa), with the parameters that a step reads in W: no input table."),
    ),
    right(
        "crossover-8b",
        say("At batch 32 Llama-3.1-8B does from 3,579 tokens on"),
        "3,579 tokens",
        lambda: serving.crossover_context(deploy("llama3.1-8b", "h100_sxm"), 32),
        say("Small models meet their cache sooner."),
    ),
    wrong(
        "batch-never-ends",
        say(
            "A bigger batch always means more throughput: Llama-3.1-70B at 32,768 tokens passes 771 "
            "tokens a second on an H100's bandwidth"
        ),
        "771 tokens/s",
        lambda: serving.throughput_ceiling(deploy("llama3.1-70b", "h100_sxm"), 32_768),
        say("No batch passes beta / (S kappa) = 312: each new sequence brings its own cache to read."),
        above=True,
        slip=lambda: 32 / weight_seconds("llama3.1-70b", "h100_sxm", count="read"),
    ),
    wrong(
        "batch-computes",
        say("A big enough batch makes decode compute-bound (Llama-3.1-8B, 32,768 tokens, H100)"),
        "more than 295",
        lambda: blended_limit("llama3.1-8b", "h100_sxm", 32_768),
        say("In an endless batch the intensity nears this and stops. It is true of short contexts only."),
        unit="FLOP/byte",
        slip=lambda: card("h100_sxm").ridge("bf16"),
    ),
    wrong(
        "concurrency",
        say("256 requests at once are a batch of 256 (Llama-3.1-8B, 8,192 tokens each, one H100)"),
        "256",
        lambda: sequences("llama3.1-8b", "h100_sxm", 8192),
        say("Memory ends first; the others wait in the queue."),
        unit="sequences",
    ),
    right(
        "crossover-70b-1",
        say("At batch 1 Llama-3.1-70B reads as much cache as weights from 424,213 tokens on"),
        "424,213 tokens",
        lambda: serving.crossover_context(deploy("llama3.1-70b", "h100_sxm"), 1),
        say("Longer than the model takes: with one user, weights always win."),
    ),
    right(
        "crossover-8b-1",
        say("At batch 1 Llama-3.1-8B reads as much cache as weights from 114,516 tokens on"),
        "114,516 tokens",
        lambda: serving.crossover_context(deploy("llama3.1-8b", "h100_sxm"), 1),
        say("On any card: the bandwidth divides out."),
    ),
    right(
        "ceiling-70b-8k",
        say("At 8,192 tokens no batch of Llama-3.1-70B passes 1,248 tokens a second"),
        "1,248 tokens/s",
        lambda: serving.throughput_ceiling(deploy("llama3.1-70b", "h100_sxm"), 8192),
        say("A quarter of the context, four times the ceiling."),
    ),
    right(
        "ceiling-8b-32k",
        say("At 32,768 tokens no batch of Llama-3.1-8B passes 780 tokens a second"),
        "780 tokens/s",
        lambda: serving.throughput_ceiling(deploy("llama3.1-8b", "h100_sxm"), 32_768),
        say("A model nine times smaller, only 2.5 times the ceiling: it is about caches."),
    ),
)
