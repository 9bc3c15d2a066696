"""Where an experiment stands, as text: for a process that is to find it."""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable
from typing import Any, Protocol


class Runs(Protocol):
    """An experiment, or one on several ranks: it has a name, and a function that runs it."""

    name: str
    run: Callable[..., Any]


def address(experiment: Runs) -> str:
    """Where another process finds this experiment: "kernels.linear:experiment".

    Raises ValueError for one that no module holds under a name.
    """
    module = importlib.import_module(experiment.run.__module__)
    for name, value in vars(module).items():
        if value is experiment:
            return f"{module.__name__}:{name}"
    raise ValueError(
        f"experiment {experiment.name!r}: no name in {module.__name__} holds it, so a child process "
        "cannot import it; define it at the top level of the module of its `run` function."
    )


def find(address: str) -> Any:
    """What stands at this address: an experiment, or any other thing that a module holds."""
    module, _, name = address.partition(":")
    return operator.attrgetter(name)(importlib.import_module(module))
