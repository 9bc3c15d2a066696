"""What one operation costs: FLOPs done and bytes moved, in plain arithmetic.

Every function here takes ints (a number comes back), NumPy arrays (a curve) or SymPy symbols
(the formula that is printed in the text). That is why the bodies hold nothing but + - * / and
why there is no second place in this book where a cost is written.

Bytes are *compulsory* traffic: every input read once, every output written once. That is the
least any implementation can move, and what an infinitely large cache would leave.
"""

from book.cost.base import FP32_BYTES, Cost, Number
from book.cost.matrix import linear, linear_tiles
from book.cost.streams import copy, fma_chain, triad

__all__ = ["FP32_BYTES", "Cost", "Number", "copy", "fma_chain", "linear", "linear_tiles", "triad"]
