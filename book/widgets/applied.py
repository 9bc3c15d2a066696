"""A move that a text tells the reader to make, made in Python: what the explorer would then show.

    >>> applied(linear, m=1024, k=32768, accelerator="h100_sxm")["bound"]
    'compute'

So that "set B to 64 and the card is full" is an assertion beside the sentence.
"""

from __future__ import annotations

from typing import Any

from book.formulas.formula import Formula
from book.widgets.explorer import Explorer, explore
from book.widgets.position import position, roofs
from book.widgets.remarks import memory


def applied(shown: Explorer | Formula, /, **moves: Any) -> dict[str, Any]:
    """What `shown` says after these moves: every output by its name, in SI units.

    shown: an explorer, which is moved and left there, or a formula, explored on its usual cards.
    moves: as `Explorer.move` takes them, sliders (m=32) and choices (accelerator=, dtype=, preset=).
    On a roofline also "ridge", "attainable", "share" (of the peak) and "bound" ("memory" or "compute").
    "memory": "fits", "lacks" or "broken", "" for a formula that holds nothing in memory.
    Raises traitlets.TraitError for a move that the explorer does not allow.
    """
    explorer = explore(shown) if isinstance(shown, Formula) else shown
    explorer.move(**moves)
    formula, at = explorer.formula, position(explorer)
    said: dict[str, Any] = {name: formula.evaluate(name, **at) for name in formula.outputs}
    said["memory"] = memory(formula, at, explorer.preset).state
    roof = roofs(explorer).get(explorer.accelerator) if formula.view("roofline") else None
    if roof is not None:
        attainable = roof.attainable(said["intensity"])
        bound = "memory" if said["intensity"] < roof.ridge else "compute"
        said |= {
            "ridge": roof.ridge,
            "attainable": attainable,
            "share": attainable / roof.peak,
            "bound": bound,
        }
    return said
