"""A whole model on a whole machine: prefill, decode step, cache, latency, throughput.

    >>> from book import serving
    >>> d = serving.deploy("llama3.1-70b", "h200_sxm", weight_itemsize=1, gpus=2)
    >>> serving.decode_step(d, batch=32, context=8192).time      # seconds, the floor
    >>> serving.sequences(d, context=8192)                       # how many fit
    >>> serving.fit(d, batch=64, context=32_768).sentence        # does it fit, and what would

Built from `book.cost`, `book.roofline` and the catalog. Everything takes numbers or arrays and is
in SI base units. Times are floors unless a `StepLaw` is given. Sizes of stored numbers are bytes
each, fractions allowed, with their scales: `weight_itemsize`, `kv_itemsize`. By a format's name:
`catalog.effective_itemsize("int4_g128")`.
"""

from book.serving import short
from book.serving.activations import linear_numbers
from book.serving.cache import (
    cache_bytes,
    kv_bytes,
    kv_bytes_per_token,
    kv_capacity,
    kv_share,
    sequences,
)
from book.serving.deployment import Deployment, deploy, itemsizes, possible, splits
from book.serving.fit import Fit, fit
from book.serving.latency import throughput, tpot, ttft
from book.serving.limits import (
    attention_equals_linear,
    critical_rows,
    crossover_context,
    throughput_ceiling,
    utilisation,
)
from book.serving.phases import (
    Step,
    decode_step,
    prefill,
    prefill_attention_flops,
)
from book.serving.weights import (
    active_parameters,
    experts_touched,
    experts_touched_between,
    parameters_read,
    parts_read,
    weight_bytes,
    weight_bytes_read,
)

__all__ = [
    "Deployment",
    "Fit",
    "Step",
    "active_parameters",
    "attention_equals_linear",
    "cache_bytes",
    "critical_rows",
    "crossover_context",
    "decode_step",
    "deploy",
    "experts_touched",
    "experts_touched_between",
    "fit",
    "itemsizes",
    "kv_bytes",
    "kv_bytes_per_token",
    "kv_capacity",
    "kv_share",
    "linear_numbers",
    "parameters_read",
    "parts_read",
    "possible",
    "prefill",
    "prefill_attention_flops",
    "sequences",
    "short",
    "splits",
    "throughput",
    "throughput_ceiling",
    "tpot",
    "ttft",
    "utilisation",
    "weight_bytes",
    "weight_bytes_read",
]
