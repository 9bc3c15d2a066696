"""Rows of what was compiled for the tests, asked for by experiment, kernel and chip."""

from __future__ import annotations

import re
from collections.abc import Callable

from kernels.contract.targets import target
from kernels.evidence.compiled import Compiled
from kernels.evidence.compiled.loops import Loop
from kernels.tiling import products
from tests.kernels import compilations
from tests.kernels.compilations import CHANGED, KNOWN, case


def rows(key: str, kernel: str = "", chips: str = "") -> list[Compiled]:
    """Rows of an experiment as planned, in its best dtype: of this kernel, on chips whose name fits."""
    found = [
        row
        for (name, chip, _, kind, plan), made in compilations.every().items()
        if (name, plan) == (key, ()) and kind == KNOWN[key].best_dtype(target(chip))
        for row in made
        if (not kernel or row.kernel == kernel) and re.match(chips, chip)
    ]
    assert found, f"nothing of {key} was compiled"
    return found


def hot(key: str, kernel: str, chips: str = "") -> list[tuple[Compiled, Loop]]:
    """(row, its hot loop) of those that have one: a context of one block goes round no loop."""
    found = [(row, row.hot) for row in rows(key, kernel, chips) if row.hot]
    assert found, f"{kernel} without a loop"
    return found


def main(key: str, chip: str, sizes: dict[str, int], dtype: str | None = None) -> Compiled:
    """The main kernel of one case, as planned."""
    return compilations.every()[case(key, chip, sizes, dtype)][0]


def changed(key: str, chip: str) -> Compiled:
    """The main kernel with what CHANGED puts in place of its plan."""
    ((sizes, plan),) = [(sizes, plan) for name, on, sizes, plan in CHANGED if (name, on) == (key, chip)]
    return compilations.every()[case(key, chip, sizes, plan=plan)][0]


def cut(aligned: bool, chips: str = "") -> list[tuple[products.Plan, Compiled]]:
    """(tile, `linear` compiled in it) of every tile of products."""
    return [
        (tile, compilations.every()[case(key, chip, sizes, plan=plan)][0])
        for chip, even, tile in compilations.tiles()
        for key, chip, sizes, plan in [compilations.tile_case(chip, even, tile)]
        if even == aligned and re.match(chips, chip)
    ]


def nothing_spills(key: str) -> Callable[[], None]:
    """A check: whatever was compiled of it as planned stays in registers."""

    def stays_in_registers() -> None:
        assert not [row.faults for row in rows(key) if row.spills]

    stays_in_registers.__name__ = f"nothing_of_{key}_spills"
    return stays_in_registers
