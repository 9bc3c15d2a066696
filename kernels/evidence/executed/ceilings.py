"""Lower bounds of a kernel's time, one for each resource, from what its execution counted.

Each is an amount over the card's rate, with all multiprocessors at work and nothing lost: the roofline's
argument for more than two resources. No kernel is faster than the largest of them, and that one says
what it would wait for. By how much a kernel is slower no count says: latencies, caches, how well the
resources overlap, schedules and the last bits of a tensor core's sums are not in it. A cycle model of a
whole chip is FlashGPU-Sim (Yu et al., MICRO 2026); a proof that a kernel has no race in any schedule,
where `races` watches the one that ran, is SentryWard's (Jia, 2026).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from book.catalog import Accelerator
from book.say import say
from kernels.contract.errors import Unsupported
from kernels.evidence.executed import Executed
from kernels.evidence.executed.counts import SECTOR

# What a tensor core's instruction calls its operands -> the catalog's dtype.
OPERANDS = {"bf16": "bf16", "f16": "fp16", "e4m3": "fp8", "e5m2": "fp8"}
# Results of the special-function unit that one multiprocessor gives a cycle. CUDA C++ programming guide,
# "Throughput of native arithmetic instructions": 16 since compute capability 7.5. Blackwell Ultra has twice
# that (Zadouri et al., "FlashAttention-4", 2026, section 2.2; NVIDIA, "Making softmax more efficient with
# NVIDIA Blackwell Ultra", measured).
SPECIAL_PER_CYCLE, SPECIAL_PER_CYCLE_OF = 16, {"10.3": 32}
WAVEFRONTS_PER_CYCLE = 1  # of each multiprocessor's shared memory: 32 banks of 4 bytes (same guide)


@dataclass(frozen=True)
class Ceiling:
    """One resource. amount in `unit`s, rate of the whole card in units/s, seconds = amount / rate.

    bounds: whether no execution can be faster; False for what caches may spare. share: seconds over those
    of the largest that bounds.
    """

    resource: str
    unit: str
    amount: float
    rate: float
    seconds: float
    share: float
    bounds: bool = True


def ceilings(row: Executed, card: Accelerator) -> tuple[Ceiling, ...]:
    """The ceilings of an executed row on `card`, the launches of the row added up.

    "memory": the formula's compulsory bytes over the bandwidth. "requested": the sectors of 32 bytes that
    warps asked for, as if every request went to memory; caches serve a part of them, so it is no bound.
    "tensor cores": FLOPs by what is multiplied. "special functions": exponentials, reciprocals of
    divisions and their like. "shared memory": wavefronts of loads, stores and copies, the fewest that each
    may take (`counts.wavefronts`); what wgmma and tcgen05 read there is not in them.

    The cycles of the last two pass at the clock at which the card reaches its printed peak. Raises
    Unsupported for a card whose clock the catalog can't tell and for one of another vendor,
    catalog's UnsupportedDtype for products that the card has no rate of.
    """
    if card.vendor != "NVIDIA" or card.clock is None:
        raise Unsupported(
            f"accelerator = {card.id!r}: the catalog doesn't say how many FLOP its multiprocessors do a "
            "cycle, so special functions and shared memory have no clock there; choose h100_sxm, or b200."
        )
    cycles = card.sm_count * card.clock
    special = SPECIAL_PER_CYCLE_OF.get(card.compute_capability, SPECIAL_PER_CYCLE)
    found = [
        (say("memory"), "byte", row.compulsory_bytes, card.bandwidth, True),
        (say("requested"), "byte", row.asked("sectors") * SECTOR, card.bandwidth, False),
        *(
            (say("tensor cores, {dtype}", dtype=dtype), "FLOP", flops, card.peak(dtype), True)
            for dtype, flops in _flops(row).items()
        ),
        (say("special functions"), "result", _special(row), special * cycles, True),
        (
            say("shared memory"),
            "wavefront",
            row.total("wavefronts"),
            WAVEFRONTS_PER_CYCLE * cycles,
            True,
        ),
    ]
    longest = max(amount / rate for *_, amount, rate, bounds in found if bounds)
    return tuple(
        Ceiling(
            resource, unit, amount, rate, amount / rate, amount / rate / longest if longest else 0.0, bounds
        )
        for resource, unit, amount, rate, bounds in found
    )


def binding(rows: Sequence[Ceiling]) -> Ceiling:
    """The ceiling that takes longest of those that bound: what binds, whatever the caches do."""
    return max((row for row in rows if row.bounds), key=lambda row: row.seconds)


def sentence(rows: Sequence[Ceiling], card: Accelerator) -> str:
    """What binds, what comes next, and what that doesn't say."""
    first, second = sorted((row for row in rows if row.bounds), key=lambda row: -row.seconds)[:2]
    return say(
        "On the {card} no run takes less than {seconds:.3g} s, for {first}; next is {second}, at {share:.0%} "
        "of that. That is from counts alone, and knows no latencies, no caches and no overlap.",
        card=card.short_name,
        seconds=first.seconds,
        first=first.resource,
        second=second.resource,
        share=second.seconds / first.seconds,
    )


def _flops(row: Executed) -> dict[str, int]:
    """FLOPs of tensor cores by the dtype of their operands, from "wgmma m64n64k16.bf16"."""
    found: dict[str, int] = {}
    for name, flops in row.tensor_flops.items():
        dtype = OPERANDS[name.split()[1].split(".")[1]]
        found[dtype] = found.get(dtype, 0) + flops
    return found


def _special(row: Executed) -> int:
    return sum(sum(launch.special.values()) for launch in row.launches)
