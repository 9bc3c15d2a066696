"""Intensities of products: how many operations a byte is said to buy."""

from __future__ import annotations

from book import cost
from book.claims.claim import right, wrong
from book.say import say

CLAIMS = (
    wrong(
        "gemv-half",
        say("A matrix-vector product in bf16 has half an operation a byte"),
        "0.5 FLOP/byte",
        lambda: cost.weight_intensity(1),
        say("Two operations for each weight, and a weight is two bytes. Counted here were two bytes twice."),
        slip=lambda: cost.weight_intensity(1) / 2,
        seen="blog",
        link="https://calwoo.github.io/notes/concepts/deep-learning-engineering/memory-bound-inference/",
    ),
    wrong(
        "decode-intensity-two",
        say("Decode at batch 1 has an intensity of 2: a multiply and an add for each byte of bf16 weights"),
        "2 FLOP/byte",
        lambda: cost.weight_intensity(1),
        say("For each weight. At two bytes a weight that is one a byte; in FP8 it would be two."),
        slip=lambda: cost.weight_intensity(1, 1),
        seen="course",
        link="https://regantih.github.io/reports-lab/tokens-to-embodied-minds/chapters/13-h100-b200.html",
    ),
    right(
        "decode-intensity-fp8",
        say("Decode at batch 1 has about two operations a byte in FP8"),
        "2 FLOP/byte",
        lambda: cost.weight_intensity(1, 1),
        say("A byte a weight, two operations for each."),
        seen="blog",
        link="https://itkservices3.com/background/token_memory.html",
    ),
    right(
        "square-4096",
        say("A product of two 4,096 x 4,096 matrices has 1,365 FLOP/byte in 16 bits"),
        "1,365 FLOP/byte",
        lambda: cost.linear(4096, 4096, 4096).intensity,
        say("All three matrices counted, each once: a third of the side."),
        seen="course",
        link="https://diomgis.com/learn/reading-an-accelerator-datasheet",
    ),
)
