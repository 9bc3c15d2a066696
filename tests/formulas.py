"""All chapters' formulas as attributes of one module: `formulas.linear`, `formulas.ALL`."""

from book.formulas import all_formulas
from book.formulas.formula import Formula

ALL: tuple[Formula, ...] = tuple(all_formulas().values())
OF_A_LAYER = tuple(f for f in ALL if f.preset_kind == "layer")
OF_A_MODEL = tuple(f for f in ALL if f.preset_kind != "layer")


def __getattr__(name: str) -> Formula:
    try:
        return all_formulas()[name]
    except KeyError:
        raise AttributeError(name) from None
