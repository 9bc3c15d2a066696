"""Clock, power and heat of the card while it works: sampled beside a run, not before and after it.

A card that idles says nothing of what it did a moment ago. So the driver's own tool is asked again
and again while kernels run, for the very card that torch uses (by its uuid, or its place on the bus:
the tools number cards their own way), and a point gets what was seen within its own time.

    with Sampler(device) as seen:
        ...
        seen.between(began, ended)  # {"sm_mhz": {...}, "power_w": {...}, "reasons": [...], "samples": 7}
"""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kernels.evidence.timed.machine import Device

EVERY = 0.1  # seconds between two samples
KEPT = 20_000  # samples
# nvidia-smi's names: of newer drivers, and what the older ones call the same
REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
# Power of the moment, which older drivers lack; since Ampere the plain one is a mean over a second.
POWER = ("power.draw.instant", "power.draw")
FIELDS = tuple(
    ("timestamp", "clocks.sm", "temperature.gpu", reasons, *power)
    for power in (POWER, POWER[1:])
    for reasons in REASONS
)
STAMP = "%Y/%m/%d %H:%M:%S.%f"  # of nvidia-smi's clock, which is the machine's, in its own time zone
AGO = 10.0  # seconds: a sample that says it is older, or that it is to come, is of another clock
# Bits of nvidia-smi's mask (nvml.h, nvmlClocksEventReason*); an idle card and its settings slow nothing down.
BITS = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "heat (software)",
    0x40: "heat (hardware)",
    0x80: "power brake",
}
STATIC = (
    "driver_version",
    "clocks.sm",
    "clocks.mem",
    "clocks.max.sm",
    "clocks.max.mem",
    "power.limit",
    "temperature.gpu",
    "pci.bus_id",
    "mig.mode.current",
)


@dataclass(frozen=True)
class Sample:
    """What the card said at `at`, on the machine's monotonic clock. MHz, W, degrees Celsius."""

    at: float
    sm_mhz: float | None
    power_w: float | None
    celsius: float | None
    reasons: tuple[str, ...]


def clocks(device: Device | None = None, timeout: float = 20) -> dict[str, str]:
    """Driver, clocks (MHz), power limit (W) of nvidia-smi; {} without it or a card, or if it hangs."""
    if device and device.imaginary:
        return {}
    which = device.known_as if device else "0"
    command = ["nvidia-smi", "-i", which, f"--query-gpu={','.join(STATIC)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, check=True, encoding="utf-8"
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    lines = done.stdout.strip().splitlines()
    values = [value.strip() for value in lines[0].split(",")] if lines else []
    return dict(zip(STATIC, values, strict=False))


def others(device: Device, timeout: float = 5) -> bool:
    """Whether another program computes on this card now, by nvidia-smi; False where nobody can say.

    Asked before any process of ours has begun there. In a container it may see its own programs only.
    """
    if device.kind != "gpu" or device.imaginary:
        return False
    command = ["nvidia-smi", "-i", device.known_as, "--query-compute-apps=pid", "--format=csv,noheader"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, check=True, encoding="utf-8"
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return any(line.strip().isdigit() for line in done.stdout.splitlines())


class Sampler:
    """A thread that asks the driver's tool for `device` until the block ends; absent tools give nothing."""

    def __init__(
        self, device: Device, every: float = EVERY, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._device, self._every, self._now = device, every, now
        self._samples: deque[Sample] = deque(maxlen=KEPT)
        self._over = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Sampler:
        follow = (
            self._nvidia if shutil.which("nvidia-smi") else self._amd if shutil.which("amd-smi") else None
        )
        if follow and self._device.kind == "gpu" and not self._device.imaginary:
            self._thread = threading.Thread(target=follow, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._process and self._process.poll() is None:
            self._process.kill()
        if self._thread:
            self._thread.join(timeout=1)

    def between(self, began: float, ended: float) -> dict[str, Any] | None:
        """What was seen from `began` to `ended` (time.monotonic, which all processes share), or None."""
        seen = [s for s in list(self._samples) if began <= s.at <= ended]
        if not seen:
            return None
        reasons = dict.fromkeys(reason for s in seen for reason in s.reasons)
        return {
            "sm_mhz": _ends([s.sm_mhz for s in seen]),
            "power_w": _ends([s.power_w for s in seen]),
            "celsius": _ends([s.celsius for s in seen]),
            "reasons": list(reasons),
            "samples": len(seen),
        }

    def _nvidia(self) -> None:
        """One nvidia-smi that repeats itself; by a field's other name where a driver lacks the first."""
        for names in FIELDS:
            if self._over.is_set():
                return
            query = f"--query-gpu={','.join(names)}"
            repeat = ["-lms", str(int(1000 * self._every))]
            command = [
                "nvidia-smi",
                "-i",
                self._device.known_as,
                query,
                "--format=csv,noheader,nounits",
                *repeat,
            ]
            heard = len(self._samples)
            for line in self._lines(command):
                if sample := parse_nvidia(line, self._now(), names):
                    self._samples.append(sample)
            if len(self._samples) > heard:
                return

    def _amd(self) -> None:
        which = ["-g", self._device.pci or "0"]  # an uuid of torch's on ROCm is none of amd-smi's
        while not self._over.is_set():
            command = ["amd-smi", "metric", *which, "--clock", "--power", "--temperature", "--json"]
            if (sample := parse_amd("".join(self._lines(command)), self._now())) is None:
                return  # another version of it: better nothing than a guess
            self._samples.append(sample)
            self._over.wait(self._every)

    def _lines(self, command: list[str]) -> Iterator[str]:
        try:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8"
            )
        except OSError:
            return
        with self._process as process:
            yield from process.stdout or ()


def parse_nvidia(
    line: str, at: float, names: Sequence[str] = FIELDS[0], wall: float | None = None
) -> Sample | None:
    """One line of nvidia-smi's CSV, "2026/03/01 12:00:00.250, 1980, 55, 0x0000000000000004, 412.3, 398.0".

    names: what was asked. at, wall: when it was read, on the monotonic clock and in seconds since 1970
    (now); the sample is of the time that the line has, as a pipe may hold it back. None for what is no
    such line.
    """
    parts = [part.strip() for part in line.split(",")]
    if len(parts) != len(names):
        return None
    mhz, celsius = _number(parts[1]), _number(parts[2])
    watts = next((found for part in parts[4:] if (found := _number(part)) is not None), None)
    try:
        mask = int(parts[3], 16)
    except ValueError:
        mask = 0
    if mhz is None and watts is None:
        return None
    at -= _age(parts[0], time.time() if wall is None else wall)
    return Sample(at, mhz, watts, celsius, tuple(name for bit, name in BITS.items() if mask & bit))


def _age(stamp: str, wall: float) -> float:
    """Seconds from `stamp` to `wall`; 0 for a stamp that can't be read or isn't of this machine's clock."""
    try:
        age = wall - datetime.strptime(stamp, STAMP).astimezone().timestamp()
    except ValueError:
        return 0.0
    return age if 0.0 <= age <= AGO else 0.0


def parse_amd(text: str, at: float) -> Sample | None:
    """What `amd-smi metric --json` prints of one card; None for what is not read so."""
    try:
        told = json.loads(text)
    except ValueError:
        return None
    told = told.get("gpu_data", told) if isinstance(told, Mapping) else told
    card = told[0] if isinstance(told, list) and told else told
    if not isinstance(card, Mapping):
        return None
    engines = [v for k, v in _part(card, "clock").items() if str(k).startswith("gfx")]
    mhz = [found for one in engines if (found := _value(_part({"": one}, "").get("clk"))) is not None]
    watts = _value(_part(card, "power").get("socket_power"))
    heat = _value(_part(card, "temperature").get("hotspot"))
    if not mhz and watts is None:
        return None
    return Sample(at, max(mhz) if mhz else None, watts, heat, ())


def _part(whole: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = whole.get(name)
    return found if isinstance(found, Mapping) else {}


def _value(told: Any) -> float | None:
    return _number(told.get("value") if isinstance(told, Mapping) else told)


def _number(text: Any) -> float | None:
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def _ends(values: list[float | None]) -> dict[str, float] | None:
    """Least, middle and most."""
    known = sorted(v for v in values if v is not None)
    return {"least": known[0], "median": known[len(known) // 2], "most": known[-1]} if known else None
