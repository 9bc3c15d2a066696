"""Attention over a prompt, and the first token."""

from __future__ import annotations

from book import cost, serving
from book.claims.claim import right, wrong
from book.claims.terms import card, model
from book.say import say
from book.serving import deploy


def charged(name: str) -> serving.Deployment:
    """The model on an H100, every parameter charged: the short formula 2 P L."""
    return deploy(name, "h100_sxm", count="all")


def prefill(name: str, length: int) -> serving.Step:
    """Its prompt of this many tokens."""
    return serving.prefill(charged(name), length)


def fusion_saves_prefill(length: int, heads: int, kv_heads: int) -> float:
    """Bytes of unfused over bytes of fused attention, for a prompt."""
    shape = (1, length, heads, kv_heads, 128)
    return cost.unfused_attention(*shape).bytes / cost.flash_attention(*shape).bytes


def fusion_saves_decode(context: int, heads: int, kv_heads: int) -> float:
    """The same for one new token: its row of scores and of probabilities is written and read."""
    fused = cost.decode_attention(1, heads, kv_heads, 128, context).bytes
    rows = 4 * heads * context * 2  # two rows of `context` numbers a head, each moved twice
    return (fused + rows) / fused


CLAIMS = (
    wrong(
        "ttft-8k",
        say("Llama-3.1-8B needs at least 151 ms for a prompt of 8,192 tokens on an H100"),
        "150.8 ms",
        lambda: serving.ttft(deploy("llama3.1-8b", "h100_sxm"), 8192),
        say(
            "That is 2 P L and attention. The input table multiplies nothing, and the head one token: 133 ms."
        ),
        slip=lambda: serving.ttft(charged("llama3.1-8b"), 8192),
    ),
    wrong(
        "ttft-linear",
        say("And sixteen times as much, 2.1 s, for 131,072 tokens"),
        "2.1 s",
        lambda: serving.ttft(charged("llama3.1-8b"), 131_072),
        say("2 P L alone. Attention grows with the square and takes two thirds of the time here."),
        number=2.13,
        slip=lambda: prefill("llama3.1-8b", 131_072).linear.flops / card("h100_sxm").peak("bf16"),
    ),
    right(
        "attention-two-thirds",
        say("Two thirds of that is attention"),
        "two thirds",
        lambda: prefill("llama3.1-8b", 131_072).attention.flops / prefill("llama3.1-8b", 131_072).cost.flops,
        say("And all of the growth: at 8,192 tokens it is 12 %."),
        number=0.6667,
        unit="%",
        tolerance=0.03,
    ),
    right(
        "attention-half",
        say("For Llama-3.1-8B attention equals the linear layers, all parameters charged, at 61,266 tokens"),
        "61,266 tokens",
        lambda: serving.attention_equals_linear(charged("llama3.1-8b")),
        say("P / (D H d), on any card."),
    ),
    wrong(
        "fused-1024",
        say("Fused attention has intensity 1,024 at 4,096 tokens"),
        "1,024 FLOP/byte",
        lambda: cost.flash_attention(1, 4096, 32, 8, 128).intensity,
        say("With as many KV heads as query heads. Sharing them, 32 to 8, gives 1,638."),
        slip=lambda: cost.flash_attention(1, 4096, 32, 32, 128).intensity,
    ),
    right(
        "unfused-31",
        say("Unfused it has 31"),
        "31 FLOP/byte",
        lambda: cost.unfused_attention(1, 4096, 32, 8, 128).intensity,
        say("Scores and probabilities go through memory, an L x L matrix a head."),
        tolerance=0.02,
    ),
    wrong(
        "flash-decode",
        say("FlashAttention's trick cuts decode's traffic as it cuts prefill's, 52 times at 4,096 tokens"),
        "52 times",
        lambda: fusion_saves_decode(4096, 32, 8),
        say("One query has one row of scores, not a square. The cache must be read whole, fused or not."),
        slip=lambda: fusion_saves_prefill(4096, 32, 8),
    ),
    right(
        "linear-8k",
        say("A prompt of 8,192 tokens is 131.6 TFLOP of linear layers (Llama-3.1-8B)"),
        "131.6 TFLOP",
        lambda: prefill("llama3.1-8b", 8192).linear.flops,
        "2 P L.",
    ),
    wrong(
        "attention-8k",
        say("A prompt of 8,192 tokens is 35 TFLOP of attention (Llama-3.1-8B)"),
        "35.2 TFLOP",
        lambda: serving.prefill_attention_flops(model("llama3.1-8b"), 8192),
        say("The mask leaves half of the square: 2 D H d L squared, not 4."),
        slip=lambda: 2 * serving.prefill_attention_flops(model("llama3.1-8b"), 8192),
    ),
    right(
        "attention-half-70b",
        say("For Llama-3.1-70B attention equals the linear layers at 107,656 tokens"),
        "107,656 tokens",
        lambda: serving.attention_equals_linear(charged("llama3.1-70b")),
        say("P over D H d."),
    ),
)
