"""Roofs and ridges."""

from __future__ import annotations

from book.claims.claim import right, wrong
from book.claims.terms import attainable, card
from book.say import say

CLAIMS = (
    wrong(
        "ridge-rises",
        say("The ridge keeps rising: each generation needs more FLOPs per byte (H100 to B200, bf16)"),
        "more than 1",
        lambda: card("b200").ridge("bf16") / card("h100_sxm").ridge("bf16"),
        say("It fell, from 295 to 281 FLOP/byte: bandwidth grew 2.39 times, compute 2.27 times."),
    ),
    right(
        "ridge-h100",
        say("An H100 SXM needs 295 FLOP/byte in bf16"),
        "295 FLOP/byte",
        lambda: card("h100_sxm").ridge("bf16"),
        say("989.4 TFLOP/s over 3.35 TB/s, both dense and for the SXM card."),
    ),
    right(
        "ridge-a100",
        say("An A100 (80 GB SXM) needs 153 FLOP/byte in bf16"),
        "153 FLOP/byte",
        lambda: card("a100_80gb_sxm").ridge("bf16"),
        say("Only the 80 GB card. The 40 GB one has less bandwidth and a ridge of 201."),
    ),
    wrong(
        "sparse-h100",
        say("An H100 SXM does 1,979 TFLOP/s in bf16"),
        "1,979 TFLOP/s",
        lambda: card("h100_sxm").peak("bf16"),
        say("That is with 2:4 sparsity. A dense model gets half of it at most."),
        slip=lambda: card("h100_sxm").sparse_peaks["bf16"],
    ),
    wrong(
        "sparse-l40s",
        say("An L40S does 1,466 TFLOP/s in FP8"),
        "1,466 TFLOP/s",
        lambda: card("l40s").peak("fp8"),
        say("Sparse again: half of it is dense."),
        slip=lambda: card("l40s").sparse_peaks["fp8"],
    ),
    wrong(
        "h100-is-h100",
        say("An H100 PCIe moves 3.35 TB/s"),
        "3.35 TB/s",
        lambda: card("h100_pcie").bandwidth,
        say("That is the SXM card. SXM, PCIe and NVL are three cards with one name."),
        slip=lambda: card("h100_sxm").bandwidth,
    ),
    right(
        "attainable-256",
        say("At 256 FLOP/byte an H100 SXM can still not reach its bf16 peak: 857.6 TFLOP/s"),
        "857.6 TFLOP/s",
        lambda: attainable("h100_sxm", 256),
        say("256 times 3.35 TB/s."),
    ),
    wrong(
        "ridge-a100-40",
        say("The A100 has one ridge: 153 FLOP/byte, also with 40 GB"),
        "153 FLOP/byte",
        lambda: card("a100_40gb_sxm").ridge("bf16"),
        say("The same compute on slower memory."),
        slip=lambda: card("a100_80gb_sxm").ridge("bf16"),
    ),
    right(
        "ridge-h200",
        say("An H200 SXM needs 206 FLOP/byte in bf16"),
        "206.1 FLOP/byte",
        lambda: card("h200_sxm").ridge("bf16"),
        say("An H100 with faster memory, so its ridge is lower."),
    ),
    right(
        "ridge-b200",
        say("A B200 needs 281 FLOP/byte in bf16"),
        "281.3 FLOP/byte",
        lambda: card("b200").ridge("bf16"),
        say("2,250 TFLOP/s dense over 8 TB/s."),
    ),
    right(
        "ridge-mi300x",
        say("An MI300X needs 247 FLOP/byte in bf16"),
        "246.7 FLOP/byte",
        lambda: card("mi300x").ridge("bf16"),
        say("More compute than an H100, and more bandwidth still."),
    ),
    right(
        "ridge-t4",
        say("A T4 needs 203 FLOP/byte in fp16"),
        "203.1 FLOP/byte",
        lambda: card("t4").ridge("fp16"),
        say("A fifteenth of an H100 in compute, a tenth in bandwidth."),
    ),
    right(
        "ridge-l4",
        say("An L4 needs 403 FLOP/byte in bf16"),
        "403.3 FLOP/byte",
        lambda: card("l4").ridge("bf16"),
        say("Slow memory makes a small card hungrier than a large one."),
    ),
    right(
        "ridge-h100-fp8",
        say("In FP8 an H100 SXM needs 591 FLOP/byte"),
        "590.7 FLOP/byte",
        lambda: card("h100_sxm").ridge("fp8"),
        say("Twice the peak over the same bandwidth."),
    ),
    right(
        "peak-h100-fp32",
        say("Without tensor cores an H100 SXM does 66.9 TFLOP/s in fp32"),
        "66.9 TFLOP/s",
        lambda: card("h100_sxm").peak("fp32"),
        say("A roof of its own, for code that calls no matrix instruction."),
    ),
    wrong(
        "ridge-h100-fp32",
        say("Code that uses no tensor cores needs 295 FLOP/byte on an H100 SXM"),
        "295 FLOP/byte",
        lambda: card("h100_sxm").ridge("fp32"),
        say(
            "That is the ridge of the tensor cores. The roof of the fp32 units is lower, so they reach "
            "it sooner."
        ),
        slip=lambda: card("h100_sxm").ridge("bf16"),
    ),
    right(
        "compute-h100",
        say("From A100 to H100 bf16 compute grew 3.17 times"),
        "3.17 times",
        lambda: card("h100_sxm").peak("bf16") / card("a100_80gb_sxm").peak("bf16"),
        say("Dense against dense, SXM against SXM."),
    ),
    right(
        "bandwidth-h100",
        say("From A100 to H100 bandwidth grew 1.64 times"),
        "1.64 times",
        lambda: card("h100_sxm").bandwidth / card("a100_80gb_sxm").bandwidth,
        say("So the ridge rose."),
    ),
    right(
        "compute-b200",
        say("From A100 to B200 bf16 compute grew 7.21 times"),
        "7.21 times",
        lambda: card("b200").peak("bf16") / card("a100_80gb_sxm").peak("bf16"),
        say("2,250 over 312 TFLOP/s."),
    ),
    right(
        "bandwidth-b200",
        say("From A100 to B200 bandwidth grew 3.92 times"),
        "3.92 times",
        lambda: card("b200").bandwidth / card("a100_80gb_sxm").bandwidth,
        say("8 over 2.039 TB/s."),
    ),
    right(
        "compute-h100-b200",
        say("From H100 to B200 bf16 compute grew 2.27 times"),
        "2.27 times",
        lambda: card("b200").peak("bf16") / card("h100_sxm").peak("bf16"),
        say("2,250 over 989.4 TFLOP/s."),
    ),
    right(
        "bandwidth-h100-b200",
        say("From H100 to B200 bandwidth grew 2.39 times"),
        "2.39 times",
        lambda: card("b200").bandwidth / card("h100_sxm").bandwidth,
        say("More than compute: the ridge fell."),
    ),
    right(
        "attainable-2",
        say("At 2 FLOP/byte an H100 SXM reaches 6.7 TFLOP/s at most"),
        "6.7 TFLOP/s",
        lambda: attainable("h100_sxm", 2),
        say("Twice 3.35 TB/s."),
    ),
    right(
        "attainable-4",
        say("At 4 FLOP/byte an H100 SXM reaches 13.4 TFLOP/s at most"),
        "13.4 TFLOP/s",
        lambda: attainable("h100_sxm", 4),
        say("Each doubling of the intensity doubles it, up to the ridge."),
    ),
    wrong(
        "attainable-512",
        say("At 512 FLOP/byte an H100 SXM reaches twice what it does at 256: 1,715 TFLOP/s"),
        "1,715 TFLOP/s",
        lambda: attainable("h100_sxm", 512),
        say("The ridge lies between them. From there on the roof is flat."),
        slip=lambda: 512 * card("h100_sxm").bandwidth,
    ),
)
