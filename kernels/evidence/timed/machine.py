"""The machine that is here: its GPU if it has one, what Triton needs beside it, versions."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sysconfig
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from book import catalog
from book.say import say
from kernels.contract import devices
from kernels.contract.targets import TARGETS
from kernels.contract.versions import installed

# Last-level caches that no driver calls L2: the Infinity Cache of AMD's CDNA 3 and 4 (ROCm, hardware
# specifications), which lies between the L2 and memory and must be flushed, too.
INFINITY_CACHE = {"gfx942": 256 * 2**20, "gfx950": 256 * 2**20}


@dataclass(frozen=True)
class Device:
    """A device to measure on. kind: "gpu" or "cpu"; torch_device: what torch calls it.

    accelerator: the catalog's id, or None. target: the name in kernels.contract.targets, or None.
    memory_bytes, free_bytes, l2_bytes: bytes; l2_bytes may be unknown. uuid: by which the driver knows
    this very card, whatever number CUDA_VISIBLE_DEVICES gives it; "" if it isn't known. pci: its place
    on the bus, "0000:1b:00.0". architecture: what the driver calls its kind, "sm_90" or
    "gfx942:sramecc+:xnack-". imaginary: a rehearsal's, so that nothing timed on it is a measurement.
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
    uuid: str = ""
    pci: str = ""
    architecture: str = ""
    imaginary: bool = False

    @property
    def known_as(self) -> str:
        """What the driver's tools find this very card by; they number cards in an order of their own."""
        return self.uuid or self.pci or "0"

    @property
    def slice_of(self) -> str:
        """The whole card that this is a part of (a MIG instance, a partition of an MI300), or ""."""
        whole, part, _ = self.name.partition(" MIG ")
        if part or self.uuid.startswith("MIG-"):
            return whole
        card = catalog.card_called(self.name)
        few = card and card.sm_count and 0 < 2 * self.sm_count <= card.sm_count
        return self.name if few else ""

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
    uuid = _uuid(getattr(properties, "uuid", ""), bool(torch.version.hip))
    card = catalog.card_called(properties.name)
    kind = f"sm_{properties.major}{properties.minor}"
    if torch.version.hip:
        kind = getattr(properties, "gcnArchName", kind)
    caches = getattr(properties, "L2_cache_size", 0), card and card.l2_bytes
    l2 = max(*(size or 0 for size in caches), INFINITY_CACHE.get(kind.partition(":")[0], 0)) or None
    found = Device(
        "gpu",
        properties.name,
        "cuda",
        card.id if card else None,
        _target(),
        total,
        free,
        l2,
        properties.multi_processor_count,
        uuid,
        _pci(properties),
        kind,
    )
    # a slice has its own share of everything: the row of the whole card would be wrong for it
    return replace(found, accelerator=None) if found.slice_of else found


def no_gpu() -> str:
    """Why torch has no GPU here, in words that follow "Nothing to measure:", torch's own if it has any."""
    import torch

    if not (torch.version.cuda or torch.version.hip):
        return say("no GPU here, and this PyTorch ({version}) is a build for CPUs", version=torch.__version__)
    try:
        torch.cuda.init()
    except Exception as error:  # noqa: BLE001 - it says what is missing: a driver, a newer one, a card
        return say("no GPU here; PyTorch says: {reason}", reason=str(error).strip().partition(". ")[0])
    return say("no GPU here")


def _uuid(raw: Any, rocm: bool) -> str:
    """As the driver's own tools write it: torch leaves the "GPU-" out."""
    text = str(raw or "").removeprefix("GPU-")
    if not text or text.startswith("MIG-"):
        # which slice of a card a process may see is said nowhere else
        return text
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if not rocm and visible.startswith("MIG-"):
        return visible.partition(",")[0]
    return text if rocm else f"GPU-{text}"


def _pci(properties: Any) -> str:
    """The card's place on the bus, where this torch says it (2.8 and later)."""
    parts = [getattr(properties, f"pci_{part}_id", None) for part in ("domain", "bus", "device")]
    return "" if None in parts else "{:04x}:{:02x}:{:02x}.0".format(*parts)


def _target() -> str | None:
    try:
        return devices.this_chip().name if devices.MODE == "compiled" else None
    except ValueError:  # a card that is too old
        return None


def why_not_timed(device: Device | None) -> str:
    """Why nothing can be timed here, in words that follow "not measured yet:"; "" if it can."""
    if device is None:
        return say("no GPU here")
    if device.slice_of:
        return say(
            "{device} is a slice of a {whole} (MIG, or a partition), and no ceiling of the whole card "
            "holds for it; take a card of which nobody else has a part",
            device=device.name,
            whole=device.slice_of,
        )
    if device.target is not None:
        return ""
    if devices.MODE == "compiled" and device.architecture.startswith("gfx"):
        return say(
            "{device} is {architecture}, for which there are no plans; these kernels know gfx942 and gfx950",
            device=device.name,
            architecture=device.architecture,
        )
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
    found |= {package: installed(package) for package in ("torch", "triton", "numpy")}
    import torch

    # torch's own: its wheel's version tells which CUDA it was built for
    found |= {"torch": torch.__version__, "cuda": torch.version.cuda, "hip": torch.version.hip}
    cudnn = torch.backends.cudnn.version()  # whose attention is a baseline; of ROCm it is MIOpen's
    return {**found, "cudnn": str(cudnn) if cudnn else None}


def no_compiler() -> str:
    """What Triton lacks to build its driver here, a sentence; "" if it lacks nothing.

    At the first launch Triton compiles a C file against Python's headers, on every machine.
    """
    asked = os.environ.get("CC")
    if not (shutil.which(asked) if asked else shutil.which("gcc") or shutil.which("clang")):
        named = f"CC = {asked!r}: there is no such program; " if asked else "There is no C compiler here: "
        return (
            f"{named}Triton builds its driver with one at the first launch; install gcc (`apt-get install "
            "gcc`) or set CC to a compiler."
        )
    scheme = sysconfig.get_default_scheme().replace("posix_local", "posix_prefix")  # as Triton asks
    folder = sysconfig.get_paths(scheme=scheme)["include"]
    if not (Path(folder) / "Python.h").exists():
        major = ".".join(platform.python_version_tuple()[:2])
        return (
            f"{folder} holds no Python.h: Triton builds its driver with Python's headers at the first "
            f"launch; install them (`apt-get install python{major}-dev`), or use a Python that has them, as "
            "uv's and conda's have."
        )
    return ""


def commit(folder: str | os.PathLike[str]) -> str:
    """The commit of the checkout in `folder`, "+" appended if files differ from it; or "unknown"."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            # In a container the checkout often is another user's, which git refuses to look at.
            ["git", "-C", str(folder), "-c", f"safe.directory={os.path.abspath(folder)}", *arguments],
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
