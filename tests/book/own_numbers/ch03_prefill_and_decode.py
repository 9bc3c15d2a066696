"""Two phases on one machine, and a profile that can't be."""

from __future__ import annotations

from book import catalog, serving
from book.claims.claim import right, wrong
from book.claims.terms import attainable, card, model, weight_bytes
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
        say("The ridge doubles, but each weight takes half the bytes. F s / 2 beta stays where it was."),
        slip=lambda: card("h100_sxm").ridge("fp8"),
    ),
    right(
        "int8-weights-critical-batch",
        say("int8 weights with bf16 arithmetic halve that batch: 148"),
        "148 rows",
        lambda: critical_rows("h100_sxm", "bf16", "int8"),
        say("Half the bytes and the same arithmetic."),
    ),
    wrong(
        "profile-hbm",
        say("A profile of Llama-3.1-8B on an H100: a decode step of 16.1 ms with HBM 88.6 % busy"),
        "88.6 %",
        lambda: weight_bytes("llama3.1-8b") / 0.0161 / card("h100_sxm").bandwidth,
        say("16.06 GB in 16.1 ms is 1.0 TB/s, three tenths of what the card has."),
    ),
    wrong(
        "profile-bytes",
        say("The same profile: 88.6 % of HBM for 16.1 ms moves the weights, 16.06 GB"),
        "16.06 GB",
        lambda: 0.886 * card("h100_sxm").bandwidth * 0.0161,
        say("It would move them three times."),
        slip=lambda: weight_bytes("llama3.1-8b"),
    ),
    wrong(
        "profile-prompt",
        say("The same profile: a prompt of a dozen tokens keeps the tensor cores 82.4 % busy for 12.4 ms"),
        "a dozen",
        lambda: 0.824 * card("h100_sxm").peak("bf16") * 0.0124 / (2 * model("llama3.1-8b").parameters),
        say("That much arithmetic is a prompt of 629 tokens at two FLOPs a parameter."),
        number=12,
        unit="tokens",
    ),
    wrong(
        "profile-mean",
        say("The same profile: tensor cores 3.4 % busy on average, with one prefill and 128 steps at 2 %"),
        "3.4 %",
        lambda: (0.824 * 0.0124 + 128 * 0.02 * 0.0161) / (0.0124 + 128 * 0.0161),
        say(
            "Weighted by time its own rows average 2.5 %. The profile does not say how many steps "
            "there were; 128 is assumed, and 3.4 % would take about 43."
        ),
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
    wrong(
        "profile-rate",
        say("The same profile: reading 16.06 GB in 16.1 ms takes 88.6 % of HBM, 2.97 TB/s"),
        "2.97 TB/s",
        lambda: weight_bytes("llama3.1-8b") / 0.0161,
        say("Bytes over time is 1.0 TB/s."),
        slip=lambda: 0.886 * card("h100_sxm").bandwidth,
    ),
)
