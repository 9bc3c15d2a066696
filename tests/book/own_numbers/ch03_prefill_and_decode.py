"""Two phases on one machine, and a profile that can't be."""

from __future__ import annotations

from book import catalog, serving
from book.claims.claim import right, wrong
from book.claims.terms import attainable, card
from book.say import say


def critical_rows(accelerator: str, dtype: str, weight_dtype: str) -> float:
    """M*_inf for weights stored in one dtype and multiplied in another."""
    one = card(accelerator)
    return serving.critical_rows(one.peak(dtype), one.bandwidth, catalog.itemsize(weight_dtype))


def utilisation(accelerator: str, rows: int) -> float:
    """Share of the bf16 peak that so many rows can use."""
    one = card(accelerator)
    return serving.utilisation(rows, one.peak("bf16"), one.bandwidth)


CLAIMS = (
    right(
        "decode-idles",
        say("Decode at batch 1 leaves an H100's tensor cores 99.7 % idle: 0.34 % used"),
        "0.34 %",
        lambda: utilisation("h100_sxm", 1),
        say("One row is one FLOP a byte, on a card that wants 295."),
        tolerance=0.01,
    ),
    right(
        "decode-32",
        say("At batch 32 the linear layers can use 10.8 % of an H100"),
        "10.8 %",
        lambda: utilisation("h100_sxm", 32),
        say("107.2 of 989.4 TFLOP/s."),
    ),
    wrong(
        "fp8-doubles-critical-batch",
        say("FP8 doubles the batch that decode needs to become compute-bound: 591 on an H100"),
        "591 rows",
        lambda: critical_rows("h100_sxm", "fp8", "fp8"),
        say("The ridge doubles, but each weight takes half the bytes. F w / 2 beta stays where it was."),
        slip=lambda: card("h100_sxm").ridge("fp8"),
    ),
    right(
        "int8-weights-critical-batch",
        say("int8 weights with bf16 arithmetic halve that batch: 148"),
        "148 rows",
        lambda: critical_rows("h100_sxm", "bf16", "int8"),
        say("Half the bytes and the same arithmetic."),
    ),
    right(
        "prefill-past-ridge",
        say("A prompt of 2,048 tokens is 6.93 times past an H100's ridge"),
        "6.93 times",
        lambda: 2048 / critical_rows("h100_sxm", "bf16", "bf16"),
        say("2,048 rows over 295.3."),
    ),
    right(
        "decode-rate-1",
        say("A decode step of one user reaches 3.35 TFLOP/s on an H100"),
        "3.35 TFLOP/s",
        lambda: attainable("h100_sxm", 1),
        say("One FLOP for each byte of 3.35 TB/s, of 989.4 TFLOP/s."),
    ),
    right(
        "decode-idle",
        say("A decode step of one user leaves 99.661 % of an H100 idle"),
        "99.661 %",
        lambda: 1 - utilisation("h100_sxm", 1),
        say("One part in 295 is used."),
        tolerance=1e-05,
    ),
    right(
        "decode-rate-32",
        say("A decode step of 32 users reaches 107 TFLOP/s on an H100"),
        "107.2 TFLOP/s",
        lambda: attainable("h100_sxm", 32),
        say("32 times as much, in the same time."),
    ),
)
