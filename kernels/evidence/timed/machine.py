"""The machine that is here: its GPU if it has one, its driver, versions and clocks."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from book import catalog
from book.say import say
from kernels.contract import devices
from kernels.contract.targets import TARGETS


@dataclass(frozen=True)
class Device:
    """A device to measure on. kind: "gpu" or "cpu"; torch_device: what torch calls it.

    accelerator: the catalog's id, or None. target: the name in kernels.contract.targets, or None.
    memory_bytes, free_bytes, l2_bytes: bytes; l2_bytes may be unknown.
    """

    kind: str
    name: str
    torch_device: str
    accelerator: str | None = None
    target: str | None = None
    memory_bytes: int = 0
    free_bytes: int = 0
    l2_bytes: int | None = None
    sm_count: int = 0

    def card(self) -> catalog.Accelerator | None:
        """The catalog's row of this card, or None if it is not in the catalog."""
        return catalog.accelerator(self.accelerator) if self.accelerator else None

    @property
    def dtypes(self) -> tuple[str, ...]:
        """What it has arithmetic for: by its row of the catalog, else by its target's. () if unknown."""
        card = self.card()
        if card is None and self.target in TARGETS:
            card = catalog.accelerator(TARGETS[self.target].accelerator)
        return tuple(card.peaks) if card else ()

    def has(self, dtype: str) -> bool:
        """Whether it has arithmetic for `dtype`; of a card that nobody knows, yes. UnknownName."""
        rate = catalog.dtype(dtype).rate
        return bool(rate) and (not self.dtypes or rate in self.dtypes)


def gpu_here() -> Device | None:
    """The first GPU that torch can use, or None."""
    import torch

    if not torch.cuda.is_available():
        return None
    properties = torch.cuda.get_device_properties(0)
    free, total = torch.cuda.mem_get_info(0)
    card = catalog.card_called(properties.name)
    known = card.l2_bytes if card else None
    l2 = max(getattr(properties, "L2_cache_size", 0) or 0, known or 0) or None
    return Device(
        "gpu",
        properties.name,
        "cuda",
        card.id if card else None,
        _target(),
        total,
        free,
        l2,
        properties.multi_processor_count,
    )


def _target() -> str | None:
    try:
        return devices.this_chip().name if devices.MODE == "compiled" else None
    except ValueError:  # a card that is too old
        return None


def why_not_timed(device: Device | None) -> str:
    """Why nothing can be timed here, in words that follow "not measured yet:"; "" if it can."""
    if device is None:
        return say("no GPU here")
    if device.target is not None:
        return ""
    if devices.MODE == "compiled":
        return say("{device} is older than Triton supports (compute capability 7.5)", device=device.name)
    return say("Triton does not compile kernels in this process (it is {mode})", mode=devices.MODE)


def cpu_here() -> Device:
    """The CPU that is here, as a device."""
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        name = names[0] if names else name
    except OSError:
        pass
    return Device("cpu", name, "cpu", sm_count=os.cpu_count() or 1)


def facts(device: Device) -> dict[str, Any]:
    """The device as a record keeps it."""
    return asdict(device)


def software() -> dict[str, str | None]:
    """Versions that a result may depend on. None where a package is absent."""
    found: dict[str, str | None] = {"python": platform.python_version(), "system": platform.platform()}
    for package in ("torch", "triton", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    import torch

    return {**found, "cuda": torch.version.cuda, "hip": torch.version.hip}


SMI_FIELDS = (
    "driver_version",
    "clocks.sm",
    "clocks.mem",
    "clocks.max.sm",
    "clocks.max.mem",
    "power.limit",
    "temperature.gpu",
)


def clocks() -> dict[str, str]:
    """Driver, clocks (MHz) and power limit (W) as nvidia-smi prints them; {} where it is absent."""
    query = f"--query-gpu={','.join(SMI_FIELDS)}"
    command = ["nvidia-smi", "-i", "0", query, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=20, check=True, encoding="utf-8"
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    lines = done.stdout.strip().splitlines()
    values = [value.strip() for value in lines[0].split(",")] if lines else []
    return dict(zip(SMI_FIELDS, values, strict=False))


def commit(folder: str | os.PathLike[str]) -> str:
    """The commit of the checkout in `folder`, "+" appended if files differ from it; or "unknown"."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
            encoding="utf-8",
        )
        return done.stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.SubprocessError):
        return "unknown"
