"""Where an experiment stands, as text: for a process that is to find it, and for records."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Protocol

from kernels.contract.experiment import Experiment


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
    return getattr(importlib.import_module(module), name)


def key(experiment: Experiment) -> str:
    """What records call an experiment: its name, or "stream.triad" for `stream.triad_experiment`.

    A kernel file's main experiment is called `experiment` there; others have a word before that.
    """
    try:
        attribute = address(experiment).partition(":")[2]
    except ValueError:  # one that was made on the spot
        return experiment.name
    word = attribute.removesuffix("experiment").removesuffix("_")
    return f"{experiment.name}.{word}" if word else experiment.name
