"""How fast is fast: what people read, and what benchmarks of services promise."""

from __future__ import annotations

from dataclasses import dataclass

# Adults reading English non-fiction silently: the mean of 190 studies. Brysbaert, "How many words do we
# read per minute?", Journal of Memory and Language 109, 2019.
WORDS_A_MINUTE = 238
TOKENS_A_WORD = 4 / 3  # English, as a rule of thumb: a token is three quarters of a word
READING = 60 / (WORDS_A_MINUTE * TOKENS_A_WORD)  # seconds a token


@dataclass(frozen=True)
class Limits:
    """Seconds to the first token, and between two tokens, that a service promises."""

    first: float
    between: float


# MLPerf Inference's for Llama-2-70B, at the 99th percentile of requests:
# mlcommons.org/2024/03/mlperf-llama2-70b (v4.0, set at about 240 words a minute) and
# mlcommons.org/2025/04/llm-inference-v5.
SERVER = Limits(2.0, 0.200)
INTERACTIVE = Limits(0.450, 0.040)
