"""Counted rows as a series of marks, and in words for those who can't see them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from book.say import say
from kernels.evidence.counted.counted_rows import CountedRow


def marks(rung: str, label: str, rows: Sequence[CountedRow]) -> dict[str, Any]:
    """One series: where each row stands on the intensity axis, without and with its workspace.

    rung: "counted", or "mistaken" for a kernel with a mistake. A count has no time: "flops_per_s" and
    "seconds" are None. "intensity_of_all", FLOP/byte, stands in the points
    that have a workspace, too, of either kernel: like is compared with like.
    """
    points = [
        {
            **r.sizes,
            "intensity": r.intensity,
            **({"intensity_of_all": r.intensity_of_all} if r.workspace_bytes else {}),
            "flops_per_s": None,
            "seconds": None,
        }
        for r in rows
    ]
    return {"rung": rung, "label": label, "accelerator": None, "points": points}


def told_apart(series: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same series; where several are published, their labels keep what not all of them say.

    A label is a list with commas, "H100 SXM, bf16, heads = 8". What stands in each of them is of no use in a
    legend, and stands in the caption.
    """
    labels = [s["label"].split(", ") for s in series if s["rung"] == "published"]
    common = set.intersection(*map(set, labels)) if len(labels) > 1 else set()
    made = []
    for s in series:
        own = [part for part in s["label"].split(", ") if part not in common]
        made.append({**s, "label": ", ".join(own)} if s["rung"] == "published" and own else s)
    return made


def finding(card: str, kernel: str, rows: Sequence[CountedRow], wrong: Sequence[CountedRow] = ()) -> str:
    """What the marks of a roofline say, in sentences: where the kernel was counted, and the wrong one."""
    if not rows:
        return say(
            "The roofline of the {card}; the kernel {experiment} was not counted here.",
            card=card,
            experiment=kernel,
        )
    words = say(
        "The roofline of the {card}. The kernel {experiment} was counted at {range} FLOP per byte, on the "
        "formula's own values; a count has no time, so its marks stand on the axis.",
        card=card,
        experiment=kernel,
        range=_range([r.intensity for r in rows]),
    )
    beside = [r.intensity_of_all for r in rows if r.workspace_bytes]
    if beside:
        words += " " + say(
            "With the workspace that the formula leaves out it is {range}.", range=_range(beside)
        )
    if wrong:
        words += " " + say(
            "The kernel with a mistake stands at {range}: it moved up to {times:.3g} times the bytes of the "
            "formula.",
            range=_range([r.intensity for r in wrong]),
            times=max(r.counted_bytes / r.formula_bytes for r in wrong),
        )
        beside = [r.intensity_of_all for r in wrong if r.workspace_bytes]
        if beside:
            words += " " + say("With its workspace that one is at {range}.", range=_range(beside))
    return words


def _range(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    if math.isclose(low, high, rel_tol=1e-3):
        return f"{low:.3g}"
    return say("{low:.3g} to {high:.3g}", low=low, high=high)
