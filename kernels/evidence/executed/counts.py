"""What a launch asks of memory and of the units that no ptxas can merge: counts, no times.

A request is one memory instruction of one warp. Sectors are 32 bytes; they are what a request asks of
the L1 cache, where another request may already have brought them. A wavefront of shared memory serves
every one of its 32 banks once (4 bytes each); what a request takes beyond the fewest possible are its
bank conflicts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels.evidence.executed.ptx import WARP, Instruction

BANKS, SECTOR = 32, 32


@dataclass
class Counts:
    """traffic: (what, direction, tensor, cache policy) -> bytes, requests or sectors. shared: ("wavefronts"
    or "ideal", instruction). tensor_flops: by instruction. special: results of the special-function unit,
    by function. barriers: waits of whole programs. entered: how many warps executed a basic block, by the
    place where it begins; idle: of those, by the place of an instruction, for whose threads its predicate
    didn't hold. labels: of products, (where, form) -> what the shape of their tile calls them.
    """

    traffic: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    shared: Counter[tuple[str, str]] = field(default_factory=Counter)
    tensor_flops: Counter[str] = field(default_factory=Counter)
    special: Counter[str] = field(default_factory=Counter)
    entered: Counter[int] = field(default_factory=Counter)
    idle: Counter[int] = field(default_factory=Counter)
    barriers: int = 0
    atomics: int = 0
    labels: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)

    def product(self, one: Instruction, label: str, flops: int) -> None:
        """So many FLOP of tensor cores by this instruction, which its shape and dtype give a name."""
        self.tensor_flops[label] += flops
        self.labels.setdefault((one.where, one.form), {})[label] = None

    def total(self, what: str, direction: str = "", tensor: str = "") -> int:
        """Bytes, requests or sectors, of one direction and tensor or of all."""
        return sum(
            n
            for (kind, way, name, _), n in self.traffic.items()
            if kind == what and direction in ("", way) and tensor in ("", name)
        )


def count_global(
    machine: Any, direction: str, address: np.ndarray, size: int, on: Any, policy: str = ""
) -> None:
    """One global access: `size` bytes for each lane that is on; address [programs, threads]."""
    counts, live = machine.counts, address if on is None else address[on]
    name = machine.memory.name(int(live.flat[0]))
    key = (direction, name, policy)
    counts.traffic["bytes", *key] += live.size * size
    counts.traffic["requests", *key] += machine.warps(on)
    sector = address // SECTOR
    if on is not None:
        sector = np.where(on, sector, -1)
    lines = np.sort(sector.reshape(-1, WARP), axis=1)
    counts.traffic["sectors", *key] += int((lines[:, 1:] != lines[:, :-1]).sum()) + int(
        (lines[:, 0] >= 0).sum()
    )


def count_shared(machine: Any, kind: str, address: np.ndarray, size: int, on: Any) -> None:
    """One shared access: `size` bytes for each lane. 16 bytes go out in quarters of a warp, 8 in halves."""
    words = max(1, size // 4)
    word = address.reshape(-1, WARP)[..., None] // 4 + np.arange(words)
    if on is not None:
        word = np.where(on.reshape(-1, WARP)[..., None], word, -1)
    wavefronts(machine, kind, word.reshape(-1, words, WARP))


def wavefronts(machine: Any, kind: str, word: np.ndarray) -> None:
    """Adds up the wavefronts of requests; word [requests, phases, 32]: 4-byte words asked for, or -1.

    A request that needs all its lanes' words takes its phases one after another, each as long as its busiest
    bank (NVIDIA, GTC 2019, S9593: 16 bytes of a lane go out in four phases of eight lanes). Where lanes share
    words, or idle, hardware may serve two phases at once: on 7.x it does if pairs of lanes agree (NVIDIA,
    forums.developer.nvidia.com/t/unexpected-shared-memory-bank-conflict/77228). For later chips no rule is
    published, so such a request counts the least that any rule allows, what its busiest bank has to give:
    the sum stays a bound that no card beats.
    """
    requests, phases, lanes = word.shape
    flat = np.sort(word.reshape(requests, phases * lanes), axis=1)
    new = flat >= 0
    new[:, 1:] &= flat[:, 1:] != flat[:, :-1]
    distinct = new.sum(1)
    all_differ = distinct == phases * lanes
    found = 0
    if all_differ.any():
        found += _busiest(word[all_differ].reshape(-1, lanes))
    if not all_differ.all():
        found += _busiest(flat[~all_differ], new[~all_differ])
    machine.counts.shared["wavefronts", kind] += found
    machine.counts.shared["ideal", kind] += int((-(-distinct // BANKS)).sum())


def _busiest(word: np.ndarray, asked: Any = ...) -> int:
    """Of each row the most words that are `asked` of one bank, added up."""
    bank = np.arange(len(word))[:, None] * BANKS + word % BANKS
    each = np.bincount(bank[asked].reshape(-1), minlength=len(word) * BANKS)
    return int(each.reshape(len(word), BANKS).max(1).sum())
