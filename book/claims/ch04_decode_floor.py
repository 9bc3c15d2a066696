"""The decode floor: bytes of models, and tokens a second that follow."""

from __future__ import annotations

from book import catalog, serving
from book.claims.claim import right, wrong
from book.claims.terms import card, model, weight_bytes
from book.say import say
from book.serving import deploy


def rate(name: str, accelerator: str, **deployed: float) -> float:
    """Tokens a second at most, one user, caches left out."""
    return 1 / serving.decode_step(deploy(name, accelerator, **deployed), 1, 1).weight_time


def bytes_read(name: str, blocks: str, head: str, experts: str = "bf16") -> float:
    """Bytes of a step whose blocks, head and experts (top_k of them) are stored in these formats."""
    one = model(name)
    parts, chosen = one.parameter_parts, 0.0
    if one.experts:
        chosen = parts["experts"] * one.experts.top_k / one.experts.n_experts
    size = catalog.effective_itemsize
    return parts["blocks"] * size(blocks) + parts["head"] * size(head) + chosen * size(experts)


CLAIMS = (
    right(
        "bytes-70b",
        say("Llama 3 70B takes 140 GB in 16 bits"),
        "140 GB",
        lambda: weight_bytes("llama3.1-70b"),
        say("141.1, since it has half a billion parameters more than its name says."),
        seen="course",
        link="https://harvard-edge.github.io/cs249r_book_dev/mlsysim/blog/how-much-memory-llama3.html",
    ),
    right(
        "bytes-70b-fp8",
        say("In FP8 Llama 70B drops to around 70 GB"),
        "70 GB",
        lambda: weight_bytes("llama3.1-70b") / 2,
        say("If all of it is stored in FP8. Checkpoints keep the head and the table in bf16."),
        seen="vendor",
        link="https://www.gmicloud.ai/en/blog/llama-70b-h100-throughput",
    ),
    right(
        "rate-b200",
        say("A B200 runs a 70B model in FP8 at no more than about 115 tokens a second for one user"),
        "115 tokens/s",
        lambda: rate("llama3.1-70b", "b200", weight_itemsize=1, dtype="fp8"),
        say("8 TB/s over what a step reads. The printed 70 GB have the input table in them; it rounds out."),
        seen="blog",
        link="https://itkservices3.com/background/token_memory.html",
    ),
    right(
        "bytes-nvfp4",
        say("A step of Llama-3.3-70B in NVFP4 with its head in bf16 reads 40.61 GB"),
        "40.61 GB",
        lambda: bytes_read("llama3.1-70b", "nvfp4", "bf16"),
        say("Scales, head and all, to the last digit printed: a model of how to count."),
        seen="issue",
        link="https://github.com/NVIDIA/dgx-spark-playbooks/pull/91",
    ),
    right(
        "rate-nvfp4",
        say("So a DGX Spark can write at most 6.72 tokens a second of it"),
        "6.72 tokens/s",
        lambda: card("gb10").bandwidth / bytes_read("llama3.1-70b", "nvfp4", "bf16"),
        say("273 GB/s over that. Four were measured there, so a report of a slow fallback was no fault."),
        seen="issue",
        link="https://github.com/NVIDIA/dgx-spark-playbooks/pull/91",
    ),
    wrong(
        "rate-qwen3-moe",
        say("A DGX Spark writes at most 45.5 tokens a second of Qwen3-Coder-30B-A3B in bf16"),
        "45.5 tokens/s",
        lambda: card("gb10").bandwidth / bytes_read("qwen3-30b-a3b", "bf16", "bf16"),
        say("Three billion active parameters was the label. With the head they are 3.04, and it is 44.9."),
        slip=lambda: card("gb10").bandwidth / (3e9 * 2),
        seen="blog",
        link="https://kubis.ai/blog/dgx_series/appendix_b_bandwidth_formula",
    ),
    wrong(
        "rate-nvfp4-no-scales",
        say("And 182 tokens a second in NVFP4, at half a byte a parameter"),
        "182 tokens/s",
        lambda: card("gb10").bandwidth / bytes_read("qwen3-30b-a3b", "nvfp4", "bf16", "nvfp4"),
        say("NVFP4 is 4.5 bits with its scales, and the head stays in bf16."),
        slip=lambda: card("gb10").bandwidth / (3e9 * 0.5),
        seen="blog",
        link="https://kubis.ai/blog/dgx_series/appendix_b_bandwidth_formula",
    ),
    wrong(
        "rate-gpt-oss",
        say("59.5 tokens a second of gpt-oss-120b are the hardware limit of a DGX Spark"),
        "59.5 tokens/s",
        lambda: card("gb10").bandwidth / bytes_read("gpt-oss-120b", "bf16", "bf16", "mxfp4"),
        say(
            "The limit is lower for the checkpoint as published, experts in MXFP4 and the rest in bf16. Then "
            "something was read in fewer bits, and the limit is another."
        ),
        seen="issue",
        link="https://github.com/spark-arena/recipe-registry/issues/17",
    ),
    right(
        "rate-4090",
        say("A file of 4.68 GB bounds an RTX 4090 to about 215 tokens a second"),
        "215 tokens/s",
        lambda: card("rtx4090").bandwidth / 4.68e9,
        say("If all of the file is read for each token. 171.5 were measured with llama.cpp."),
        seen="issue",
        link="https://github.com/paiml/aprender/issues/2846",
    ),
    right(
        "gpt-fast-share",
        say("gpt-fast's 1,397 GB/s are 68.5 % of an A100's 2,039 (Llama-2-7B, 104.9 tokens a second)"),
        "68.5 %",
        lambda: 1397e9 / card("a100_80gb_sxm").bandwidth,
        say("Of the datasheet's bandwidth; the cards were limited to 330 W."),
        seen="documentation",
        link="https://github.com/pytorch-labs/gpt-fast",
    ),
)
