"""What a step reads, and how long that takes."""

from __future__ import annotations

from book import catalog, serving
from book.claims.claim import right, wrong
from book.claims.terms import card, model, weight_bytes, weight_seconds
from book.say import say


def streamed(name: str, accelerator: str, weights: str) -> float:
    """Bytes/s: what a step reads, times the tokens/s that were published for this dtype of weights."""
    rates = [
        point["tokens_per_second"]
        for series in catalog.published("single_stream")
        if (series.model, series.accelerator) == (name, accelerator)
        for point in series.points
        if point.get("weights") == weights
    ]
    return serving.weight_bytes_read(model(name), weight_itemsize=catalog.itemsize(weights)) * rates[0]


CLAIMS = (
    right(
        "parameters-70b",
        say("Llama-3.1-70B has 70 billion parameters"),
        "70 B",
        lambda: model("llama3.1-70b").parameters,
        say("70,553,706,496 when counted; the name rounds down by 0.8 %."),
        number=7e10,
        unit="",
        tolerance=0.01,
    ),
    right(
        "bytes-70b",
        say("So 140 GB in bf16"),
        "140 GB",
        lambda: weight_bytes("llama3.1-70b"),
        say("141.1 GB. It fits an H200 because that card holds 150 GB, not the 141 of its label."),
        tolerance=0.01,
    ),
    right(
        "floor-70b",
        say("Llama-3.1-70B in bf16 takes at least 41.49 ms a token on one H100's bandwidth"),
        "41.49 ms",
        lambda: weight_seconds("llama3.1-70b", "h100_sxm"),
        say("A step reads 139.0 GB, over 3.35 TB/s. It does not fit that card: the bandwidth is meant."),
    ),
    right(
        "rate-70b",
        say("So 24.10 tokens a second at batch 1"),
        "24.10 tokens/s",
        lambda: 1 / weight_seconds("llama3.1-70b", "h100_sxm"),
        say("One over the time of a step."),
    ),
    right(
        "users-32",
        say("And 771.2 tokens a second for 32 users"),
        "771.2 tokens/s",
        lambda: 32 / weight_seconds("llama3.1-70b", "h100_sxm"),
        say(
            "The weights are read once for all of them: 32 users for the price of one, until their "
            "caches weigh in."
        ),
    ),
    right(
        "tp8-70b",
        say("On eight H100s: 5.187 ms, 192.8 tokens a second"),
        "192.8 tokens/s",
        lambda: 1 / weight_seconds("llama3.1-70b", "h100_sxm", gpus=8),
        say("Before any all-reduce, which it leaves out."),
    ),
    wrong(
        "rate-8b",
        say("Llama-3.1-8B in bf16 can do 209 tokens a second on an H100"),
        "209 tokens/s",
        lambda: 1 / weight_seconds("llama3.1-8b", "h100_sxm"),
        say("The input table is looked up, not read: 15.01 GB a step, not 16.06."),
        slip=lambda: 1 / weight_seconds("llama3.1-8b", "h100_sxm", count="all"),
    ),
    wrong(
        "head-forgotten",
        say("A step of Llama-3.1-8B reads the transformer blocks alone, 13.96 GB"),
        "13.96 GB",
        lambda: serving.weight_bytes_read(model("llama3.1-8b")),
        say("The head is a matrix like any other, and read whole for every step."),
        slip=lambda: (
            serving.weight_bytes_read(model("llama3.1-8b")) - 2 * model("llama3.1-8b").parameter_parts["head"]
        ),
    ),
    right(
        "users-64",
        say("64 users get 1,542 tokens a second of Llama-3.1-70B in bf16 on one H100's bandwidth"),
        "1,542 tokens/s",
        lambda: 64 / weight_seconds("llama3.1-70b", "h100_sxm"),
        say("Twice the users, the same read."),
    ),
    right(
        "tp8-bytes",
        say("Llama-3.1-70B in bf16 shared by eight cards is 17.64 GB on each"),
        "17.64 GB",
        lambda: weight_bytes("llama3.1-70b") / 8,
        say("An eighth of 141.1 GB."),
    ),
    right(
        "tp8-read",
        say("A step reads 17.38 GB of each"),
        "17.38 GB",
        lambda: serving.weight_bytes_read(model("llama3.1-70b")) / 8,
        say("An eighth of 139.0 GB: the input table is held and not read."),
    ),
    right(
        "tp8-seconds",
        say("Eight H100s read Llama-3.1-70B's bf16 weights in 5.187 ms"),
        "5.187 ms",
        lambda: weight_seconds("llama3.1-70b", "h100_sxm", gpus=8),
        say("An eighth of 41.49 ms."),
    ),
    right(
        "no-fit-h100",
        say("Llama-3.1-70B in bf16 takes more than one H100"),
        "more than 100 %",
        lambda: weight_bytes("llama3.1-70b") / card("h100_sxm").usable,
        say("Of the 85 GB that an 80 GB card has."),
    ),
    wrong(
        "fit-h200",
        say("Llama-3.1-70B in bf16 takes more than one H200: 141.1 GB on a card of 141"),
        "more than 100 %",
        lambda: weight_bytes("llama3.1-70b") / card("h200_sxm").usable,
        say("The label is near GiB: a program sees 150 GB. The weights fit, with little room for caches."),
        slip=lambda: weight_bytes("llama3.1-70b") / card("h200_sxm").capacity,
    ),
    right(
        "bytes-8b",
        say("Llama-3.1-8B takes 16.06 GB in bf16"),
        "16.06 GB",
        lambda: weight_bytes("llama3.1-8b"),
        say("8,030,261,248 parameters of two bytes."),
    ),
    wrong(
        "seconds-8b",
        say("So a step of Llama-3.1-8B takes 4.794 ms on an H100"),
        "4.794 ms",
        lambda: weight_seconds("llama3.1-8b", "h100_sxm"),
        say("A step looks one row of the input table up and reads the rest: 7 % less."),
        slip=lambda: weight_seconds("llama3.1-8b", "h100_sxm", count="all"),
    ),
    right(
        "read-8b",
        say("Without the input table Llama-3.1-8B reads 15.01 GB a step"),
        "15.01 GB",
        lambda: serving.weight_bytes_read(model("llama3.1-8b")),
        say("The table is 1.05 GB. The head is as large, and is read."),
    ),
    right(
        "gpt-fast-bytes",
        say("gpt-fast moves 1,397 GB/s (Llama-2-7B in bf16 on an A100, 104.9 tokens a second)"),
        "1,397 GB/s",
        lambda: streamed("llama2-7b", "a100_80gb_sxm", "bf16"),
        say("Our count of a step's weights times their tokens a second is within one percent of theirs."),
        tolerance=0.01,
    ),
    right(
        "gpt-fast-share",
        say("That is 68.5 % of the card's 2,039 GB/s"),
        "68.5 %",
        lambda: streamed("llama2-7b", "a100_80gb_sxm", "bf16") / card("a100_80gb_sxm").bandwidth,
        say("At 0.44 % of its arithmetic."),
        tolerance=0.01,
    ),
)
