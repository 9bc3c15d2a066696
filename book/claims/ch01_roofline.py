"""Peaks, ridges and links: what cards are said to do."""

from __future__ import annotations

from book.claims.claim import right, wrong
from book.claims.terms import attainable, card
from book.say import say


def sparse(accelerator: str, dtype: str) -> float:
    """FLOP/s with 2:4 sparsity, as headlines print it."""
    return card(accelerator).sparse_peaks[dtype]


CLAIMS = (
    wrong(
        "sparse-h100",
        say("An H100 SXM does 1,979 TFLOP/s in bf16"),
        "1,979 TFLOP/s",
        lambda: card("h100_sxm").peak("bf16"),
        say("That is with 2:4 sparsity, which language models don't have. Dense it is half."),
        slip=lambda: sparse("h100_sxm", "bf16"),
        seen="issue",
        link="https://github.com/deepseek-ai/FlashMLA/issues/75",
    ),
    wrong(
        "sparse-h100-fp8",
        say("An H100 SXM does 3,958 TFLOP/s in FP8"),
        "3,958 TFLOP/s",
        lambda: card("h100_sxm").peak("fp8"),
        say("Sparse again: dense is half of that."),
        slip=lambda: sparse("h100_sxm", "fp8"),
        seen="blog",
        link="https://ishan.rs/posts/flops-intensity-rooftline",
    ),
    wrong(
        "sparse-h100-pcie",
        say("An H100 PCIe does 1,513 TFLOP/s in bf16"),
        "1,513 TFLOP/s",
        lambda: card("h100_pcie").peak("bf16"),
        say("The sparse line of the datasheet. It is also the dense rate in FP8, so it looks familiar."),
        slip=lambda: sparse("h100_pcie", "bf16"),
        seen="issue",
        link="https://github.com/qoofyk/LLM_Sizing_Guide/issues/3",
    ),
    wrong(
        "sparse-l40s",
        say("An L40S does 1,466 TFLOP/s in FP8"),
        "1,466 TFLOP/s",
        lambda: card("l40s").peak("fp8"),
        say("With sparsity. The datasheet has both numbers in one cell."),
        slip=lambda: sparse("l40s", "fp8"),
        seen="vendor",
    ),
    wrong(
        "sparse-seconds",
        say("10¹² FLOPs take an H100 505 µs in bf16"),
        "505 µs",
        lambda: 1e12 / card("h100_sxm").peak("bf16"),
        say("Divided by the sparse peak. At the dense one it is about a millisecond."),
        slip=lambda: 1e12 / sparse("h100_sxm", "bf16"),
        seen="course",
        link="https://github.com/jax-ml/scaling-book/pull/24",
    ),
    wrong(
        "mfu-sparse",
        say("480 TFLOP/s are 24.3 % of an H100's bf16 peak"),
        "24.3 %",
        lambda: 480e12 / card("h100_sxm").peak("bf16"),
        say("A training run held against the sparse peak looks half as good as it is."),
        slip=lambda: 480e12 / sparse("h100_sxm", "bf16"),
        seen="issue",
        link="https://github.com/foundation-model-stack/fms-fsdp/issues/89",
    ),
    wrong(
        "mfu-over-one",
        say("A training run on an H100 uses 104 % of the peak"),
        "104 %",
        lambda: 1.04 * card("a100_80gb_sxm").peak("bf16") / card("h100_sxm").peak("bf16"),
        say("The script divided by the peak of an A100. Above 100 % operations, time or peak are wrong."),
        slip=lambda: 1.04,
        seen="issue",
        link="https://github.com/karpathy/nanoGPT/pull/464",
    ),
    wrong(
        "above-the-peak",
        say("A prefill benchmark on an MI300X reaches 1,632 TFLOP/s in bf16"),
        "1,632 TFLOP/s",
        lambda: card("mi300x").peak("bf16"),
        say("More than the card's dense peak, so the operations were miscounted, or they were others."),
        seen="blog",
        link="https://lzwjava.github.io/llm-prefill-benchmark-explanation-en",
    ),
    wrong(
        "ridge-b200-fp8",
        say("A B200 needs about 280 FLOP/byte in FP8"),
        "280 FLOP/byte",
        lambda: card("b200").ridge("fp8"),
        say("That is its ridge in bf16. Twice the peak over the same bandwidth is twice the ridge."),
        slip=lambda: card("b200").ridge("bf16"),
        seen="blog",
        link="https://itkservices3.com/background/token_memory.html",
    ),
    wrong(
        "nvlink-h100",
        say("Over NVLink an H100 sends 900 GB/s"),
        "900 GB/s",
        lambda: card("h100_sxm").link(),
        say("Both directions added up. What one card can send is half of it, and so is what it can receive."),
        slip=lambda: 2 * card("h100_sxm").link(),
        seen="blog",
        link="https://www.kunwar.page/chapter/appendix-d-hardware-reference",
    ),
    right(
        "ridge-h100",
        say("An H100 SXM needs 295 FLOP/byte in bf16"),
        "295 FLOP/byte",
        lambda: card("h100_sxm").ridge("bf16"),
        say("Dense peak over bandwidth, both as the datasheet has them."),
        seen="blog",
        link="https://jared-hpc.com/posts/roofline-model-llm-inference/",
    ),
    right(
        "ridge-a100",
        say("An A100 needs about 153 FLOP/byte"),
        "153 FLOP/byte",
        lambda: card("a100_80gb_sxm").ridge("bf16"),
        say("Of the 80 GB card. The one with 40 GB has less bandwidth, and a ridge of 201."),
        seen="blog",
        link="https://jared-hpc.com/posts/roofline-model-llm-inference/",
    ),
    right(
        "ridge-a100-rounded",
        say("An A100 needs 156 FLOP/byte: 312 TFLOP/s over 2 TB/s"),
        "156 FLOP/byte",
        lambda: card("a100_80gb_sxm").ridge("bf16"),
        say(
            "The bandwidth is rounded by two per cent, and so is the ridge. That is within what the row says."
        ),
        tolerance=0.02,
        seen="blog",
        link="https://fast.hugflare.com/blog/atharv6f/prefill-computational-deep-dive",
    ),
    right(
        "attainable-1",
        say("At one FLOP a byte an H100 reaches 3.35 TFLOP/s, a third of a per cent of its peak"),
        "3.35 TFLOP/s",
        lambda: attainable("h100_sxm", 1),
        say("As many as it has bytes a second."),
        seen="blog",
        link="https://jared-hpc.com/posts/roofline-model-llm-inference/",
    ),
    right(
        "dense-h100-pcie",
        say("An H100 PCIe does 756 TFLOP/s in bf16, dense"),
        "756 TFLOP/s",
        lambda: card("h100_pcie").peak("bf16"),
        say("The same page that another row of this table quotes for its NVLink has the dense rates right."),
        seen="blog",
        link="https://www.kunwar.page/chapter/appendix-d-hardware-reference",
    ),
    right(
        "dense-b200-fp8",
        say("A B200 does 4,500 TFLOP/s in FP8 where an H100 does 1,979, dense"),
        "4,500 TFLOP/s",
        lambda: card("b200").peak("fp8"),
        say("1,979 is wrong for an H100 in bf16 and right in FP8, which is how the mistake survives."),
        seen="blog",
        link="https://pingdo.net/ai-infrastructure/gpu-performance-benchmarks/",
    ),
)
