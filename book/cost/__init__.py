"""What one operation costs: FLOPs done and bytes moved, in plain arithmetic.

Every function here takes ints (a number comes back), NumPy arrays (a curve) or SymPy symbols
(the formula that is printed in the text). That is why the bodies hold nothing but + - * / and
why there is no second place in this book where a cost is written.

Bytes are *compulsory* traffic: every input read once, every output written once. That is the
least any implementation can move, and what an infinitely large cache would leave. The `_issued`
variants say what a tiled kernel issues for the same problem, in ints only.

Sizes of numbers are bytes, fractions allowed, and always called so: `itemsize` of activations,
`weight_itemsize` of weights, `kv_itemsize` of the cache; each is the activations' if left out.
"""

from book.cost.attention import (
    decode_attention,
    flash_attention,
    kv_append,
    kv_intensity,
    mla_decode,
    unfused_attention,
)
from book.cost.attention_issued import (
    decode_attention_issued,
    flash_attention_issued,
    kv_append_issued,
    unfused_attention_issued,
)
from book.cost.base import FP32_BYTES, Cost, Number
from book.cost.collectives import (
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    point_to_point,
    reduce_scatter,
)
from book.cost.layer import decode_layer
from book.cost.matrix import gemv_issued, linear, linear_issued, weight_flops, weight_intensity, weights
from book.cost.mlp import mlp, mlp_issued
from book.cost.parallel import linear_column_parallel, linear_row_parallel
from book.cost.streams import copy, fma_chain, triad

__all__ = [
    "FP32_BYTES",
    "Cost",
    "Number",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "broadcast",
    "copy",
    "decode_attention",
    "decode_attention_issued",
    "decode_layer",
    "flash_attention",
    "flash_attention_issued",
    "fma_chain",
    "gemv_issued",
    "kv_append",
    "kv_append_issued",
    "kv_intensity",
    "linear",
    "linear_column_parallel",
    "linear_issued",
    "linear_row_parallel",
    "mla_decode",
    "mlp",
    "mlp_issued",
    "point_to_point",
    "reduce_scatter",
    "triad",
    "unfused_attention",
    "unfused_attention_issued",
    "weight_flops",
    "weight_intensity",
    "weights",
]
