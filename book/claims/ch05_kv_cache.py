"""The KV cache: what a token leaves behind, in tables and calculators."""

from __future__ import annotations

from book import cost, serving
from book.claims.claim import right, wrong
from book.claims.terms import model
from book.say import say
from book.serving import deploy


def cache(name: str, tokens: float = 1, kv_heads: int | None = None) -> float:
    """Bytes that so many tokens keep in bf16. kv_heads: other than the model's, for a slip."""
    one = model(name)
    if kv_heads is None:
        return tokens * serving.kv_bytes_per_token(one)
    return tokens * one.layers * cost.kv_append(1, kv_heads, one.head_dim).bytes / 2


def gib_as_gb(size: float) -> float:
    """What somebody prints who divides by 2**30 and writes GB."""
    return size / 2**30 * 1e9


# DeepSeek 67B, which DeepSeek-V2 is compared with: 95 layers, 8 KV heads of 128, by its config.
DEEPSEEK_67B = 95 * cost.kv_append(1, 8, 128).bytes / 2

CLAIMS = (
    wrong(
        "kappa-405b",
        say("Llama-3.1-405B keeps 123.05 GB for 128,000 tokens in 16 bits"),
        "123.05 GB",
        lambda: cache("llama3.1-405b", 128_000),
        say(
            "Counted with 16 KV heads, and GiB called GB. There are 8 heads; of the repository in FP8 it was "
            "said on 16 August 2024 that it had been fixed with the right number of them "
            "(github.com/vllm-project/vllm/issues/6689)."
        ),
        slip=lambda: gib_as_gb(cache("llama3.1-405b", 128_000, kv_heads=16)),
        seen="blog",
        link="https://github.com/huggingface/blog/issues/2345",
    ),
    wrong(
        "gib-is-gb-8b",
        say("Llama-3.1-8B keeps 15.62 GB for 128,000 tokens in 16 bits"),
        "15.62 GB",
        lambda: cache("llama3.1-8b", 128_000),
        say("The heads are right in this row of the same table; the unit is GiB."),
        slip=lambda: gib_as_gb(cache("llama3.1-8b", 128_000)),
        seen="blog",
        link="https://github.com/huggingface/blog/issues/2345",
    ),
    wrong(
        "kappa-query-heads",
        say("Llama 3 70B keeps about 10 GB for 8,192 tokens at FP16"),
        "10 GB",
        lambda: cache("llama3.1-70b", 8192),
        say(
            "Counted with its 64 query heads, and then with keys only: eight times too many, half of it lost."
        ),
        slip=lambda: gib_as_gb(cache("llama3.1-70b", 8192, kv_heads=64) / 2),
        seen="vendor",
        link="https://gigagpu.com/llama-3-70b-context-length-vram/",
    ),
    wrong(
        "kappa-65-kb",
        say("Llama 2 70B keeps about 65 KB a token with grouped-query attention"),
        "65 kB",
        lambda: cache("llama2-70b"),
        say("320 KiB. 64 KiB would be two fifths of its layers in one byte."),
        seen="course",
        link="https://insidellms.com/Chapter_4/memory-growth-chart_en.html",
    ),
    wrong(
        "kappa-67-gb",
        say("Without grouped-query attention Llama 2 70B would keep 67 GB for 128 tokens"),
        "67 GB",
        lambda: cache("llama2-70b", 128, kv_heads=64),
        say("A third of one. By the page's own 523 KB a token it would be 67 MB."),
        slip=lambda: 128 * 523e3 * 1000,
        seen="course",
        link="https://insidellms.com/Chapter_4/memory-growth-chart_en.html",
    ),
    wrong(
        "no-room-for-64k",
        say("An A100 with 80 GB holds about 64K tokens of Llama 2 70B in FP16"),
        "64,000 tokens",
        lambda: serving.kv_capacity(deploy("llama2-70b", "a100_80gb_sxm")),
        say("It doesn't hold the weights."),
        seen="calculator",
        link="https://insidellms.com/Chapter_4/kv-cache-calculator_en.html",
    ),
    wrong(
        "kappa-160-mb",
        say("A request of 4,096 tokens keeps 160 MB in Llama-3 70B"),
        "160 MB",
        lambda: cache("llama3.1-70b", 4096),
        say("An eighth: one KV head was counted in place of eight, in MiB."),
        slip=lambda: cache("llama3.1-70b", 4096, kv_heads=1) / 2**20 * 1e6,
        seen="course",
        link="https://harvard-edge.github.io/cs249r_book_dev/mlsysim/blog/how-much-memory-llama3.html",
    ),
    wrong(
        "kappa-340-gb",
        say("Llama 3.1 70B at 128K context requires 340 GB for its KV cache"),
        "340 GB",
        lambda: cache("llama3.1-70b", 131_072),
        say("The formula beside it multiplies by the model's width: all query heads, eight times too many."),
        seen="blog",
        link="https://pulseaugur.com/cluster/115074-kv-cache-memory-explained-estimating-and-reducing-vram-usage-in-llms",
    ),
    wrong(
        "kappa-7b-one-head",
        say("A 7B model keeps 512 MB for 32K tokens"),
        "512 MB",
        lambda: cache("llama2-7b", 32_768),
        say("512 bytes are those of one head in one layer; there are 32 of them."),
        slip=lambda: cache("llama2-7b", 32_768, kv_heads=1) / 2**20 * 1e6,
        seen="course",
        link="https://github.com/rohitg00/ai-engineering-from-scratch/pull/57",
    ),
    wrong(
        "kappa-mha-32-gb",
        say("With 64 KV heads Llama 3 70B would keep 32 GB for 32K tokens"),
        "32 GB",
        lambda: cache("llama3.1-70b", 32_768, kv_heads=64),
        say("Eight times what it keeps with 8 heads, and the same text has that right at over 10 GB."),
        seen="course",
        link="https://github.com/rohitg00/ai-engineering-from-scratch/pull/57",
    ),
    right(
        "kappa-13b",
        say("A 13B model keeps about 1 MB of cache a token"),
        "1 MB",
        lambda: cache("llama2-13b"),
        say("To the one digit that is printed. 800 KiB, and only where no KV heads are shared."),
        seen="issue",
        link="https://github.com/ray-project/llm-numbers/issues/25",
    ),
    wrong(
        "gib-is-gb-7b",
        say("Llama-2-7B keeps 2.05 GB for 4,196 tokens in fp16"),
        "2.05 GB",
        lambda: cache("llama2-7b", 4196),
        say("GiB, called GB."),
        slip=lambda: gib_as_gb(cache("llama2-7b", 4196)),
        seen="issue",
        link="https://github.com/jy-yuan/KIVI/issues/17",
    ),
    wrong(
        "kib-is-kb-70b",
        say("A million tokens of Llama-70B are 320 GB of cache"),
        "320 GB",
        lambda: cache("llama3.1-70b", 1e6),
        say("4 KB a layer, taken for 4,000 bytes. They are 4,096."),
        slip=lambda: 4e3 * model("llama3.1-70b").layers * 1e6,
        seen="forum",
        link="https://r.arson.gg/r/LocalLLaMA/comments/1rc8qtc/the_actual_memory_math_for_llama70b_with_1m",
    ),
    wrong(
        "mla-933",
        say("Latent attention makes DeepSeek-V2's cache 93.3 % smaller than DeepSeek 67B's"),
        "93.3 %",
        lambda: 1 - cache("deepseek-v2") / DEEPSEEK_67B,
        say("By its shape it is 82.2 % smaller. The rest is a cache that was stored in 6 bits on average."),
        slip=lambda: 1 - cache("deepseek-v2") * 6 / 16 / DEEPSEEK_67B,
        seen="paper",
        link="https://arxiv.org/abs/2405.04434",
    ),
    wrong(
        "gib-per-second",
        say("A cache of 32,768 tokens of Qwen3-8B was sent at 142.25 GB/s (in 31.65 ms)"),
        "142.25 GB/s",
        lambda: cache("qwen3-8b", 32_768) / 31.65e-3,
        say("GiB over seconds, compared on the same page with a line rate in decimal GB."),
        slip=lambda: gib_as_gb(cache("qwen3-8b", 32_768)) / 31.65e-3,
        seen="documentation",
        link="https://github.com/kvcache-ai/Mooncake/blob/main/docs/source/performance/vllm/vllm-v1-pd-performance.md",
    ),
    right(
        "kappa-70b",
        say("Llama 3.1 70B keeps 327,680 bytes a token in 16 bits"),
        "327,680 B",
        lambda: cache("llama3.1-70b"),
        say("Keys and values, 80 layers, 8 KV heads of 128 numbers, two bytes each."),
        seen="blog",
        link="https://frankdenneman.nl/2026/01/12/the-dynamic-world-of-llm-runtime-memory",
    ),
    right(
        "kappa-70b-128k",
        say("So 42.95 GB for 131,072 tokens"),
        "42.95 GB",
        lambda: cache("llama3.1-70b", 131_072),
        say("In decimal GB, and the page says so."),
        seen="blog",
        link="https://frankdenneman.nl/2026/01/12/the-dynamic-world-of-llm-runtime-memory",
    ),
    right(
        "kappa-70b-4k",
        say("A 70B model with 8 KV heads keeps 1,342,177,280 bytes for 4,096 tokens"),
        "1,342,177,280 B",
        lambda: cache("llama3.1-70b", 4096),
        say("Step by step, to the byte."),
        seen="draft",
        link="https://fcalabri.github.io/bmwg-ai-fabric-inference-bench/Acronyms/draft-calabria-bmwg-ai-fabric-inference-bench.html",
    ),
    right(
        "kappa-70b-32k",
        say("Llama 3.1 70B keeps about 10.7 GB for 32,768 tokens"),
        "10.7 GB",
        lambda: cache("llama3.1-70b", 32_768),
        say("10 GiB."),
        seen="vendor",
        link="https://www.spheron.network/blog/kv-cache-optimization-guide",
    ),
    right(
        "kappa-8b",
        say("Llama 3.1 8B keeps 131,072 bytes a token in bf16"),
        "131,072 B",
        lambda: cache("llama3.1-8b"),
        say("A test of a library holds it."),
        seen="documentation",
        link="https://docs.rs/crate/kv-cache-size/latest/source/README.md",
    ),
    right(
        "kappa-v3",
        say("DeepSeek-R1 keeps 70 KB a token"),
        "70 kB",
        lambda: cache("deepseek-v3"),
        say("61 layers of 576 numbers in 16 bits."),
        seen="blog",
        link="https://blog.www2.ro/deepseek-r1-kv-cache-reduction",
    ),
    right(
        "mla-57",
        say("Without its latent attention that would be 57 times as much"),
        "57 times",
        lambda: 61 * cost.kv_append(1, 128, 128).bytes / 2 / cache("deepseek-v3"),
        say("Against 128 heads with keys and values of their own; against the 8 of the Llamas it is 3.6."),
        seen="blog",
        link="https://blog.www2.ro/deepseek-r1-kv-cache-reduction",
    ),
)
