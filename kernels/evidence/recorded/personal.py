"""What tells one card from all others of its kind, or names a person or a machine: kept out of a record."""

from __future__ import annotations

import getpass
import re
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

OF_A_CARD = ("uuid", "pci", "serial")  # as a field begins, "pci.bus_id" too
HIDDEN = "…"
_UUID = r"\b(GPU|MIG)-[0-9a-fA-F]{8}[0-9a-fA-F-]*"
_ON_THE_BUS = r"\b[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]\b"
_CARDS = re.compile(f"{_UUID}|{_ON_THE_BUS}")
_HOMES = re.compile(r"(/home|/Users|[A-Za-z]:\\Users)[/\\][^/\\\s:'\"]+")
TOLD = ("notes", "reason", "verdict", "command", "alarms")  # fields whose text an error may have written
GENERIC = ("root", "user", "ubuntu", "runner", "jovyan", "admin", "localhost", "python", "torch", "triton")


def without_card(value: Any) -> Any:
    """`value`, all that is in it too, without the numbers of one card and its place on the bus."""
    if isinstance(value, Mapping):
        kept = {name: one for name, one in value.items() if name.lower().split(".")[0] not in OF_A_CARD}
        return {name: without_card(one) for name, one in kept.items()}
    return _CARDS.sub(HIDDEN, value) if isinstance(value, str) else _each(value, without_card)


def without_person(value: Any, told: bool = False) -> Any:
    """`value` whose sentences, in the fields `TOLD`, hold no home folder, user or name of this machine."""
    if isinstance(value, Mapping):
        return {name: without_person(one, told or name in TOLD) for name, one in value.items()}
    if isinstance(value, str):
        return _hidden(value) if told else value
    return _each(value, lambda one: without_person(one, told))


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    return type(value)(map(change, value)) if isinstance(value, list | tuple) else value


def _hidden(text: str) -> str:
    home = str(Path.home())
    if len(home) > 1:
        text = re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text)
    text = _HOMES.sub("~", text)
    for name in _names():
        text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", HIDDEN, text)
    return text


def _names() -> list[str]:
    """The names of this user and of this machine, unless half the world has them."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):
        user = ""
    machine = socket.gethostname()
    found = dict.fromkeys([user, machine, machine.partition(".")[0]])
    return [name for name in found if len(name) > 2 and name.lower() not in GENERIC]
