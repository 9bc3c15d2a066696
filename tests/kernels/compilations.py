"""What the tests of machine code compile: every size that the sweeps launch, and what no sweep has."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kernels.contract import devices
from kernels.contract.experiment import Experiment
from kernels.contract.targets import TARGETS, target
from kernels.evidence import child_process, compiled
from kernels.evidence.compiled import Compiled
from kernels.evidence.experiments import all_experiments
from kernels.evidence.sweeps import sweep
from kernels.tiling import products
from tests.kernels.toy import experiment as toy

Sizes = Mapping[str, int]
Wanted = tuple[
    Experiment, str, Sizes, str, Mapping[str, Any]
]  # experiment, chip, sizes, dtype, changes of the plan
Case = tuple[str, str, tuple[Any, ...], str, tuple[Any, ...]]  # the same as a key

EXPERIMENTS = all_experiments()
KNOWN = {**EXPERIMENTS, "toy": toy}
INSTRUCTION = {"sm_80": "mma.sync", "sm_90": "wgmma", "sm_100": "tcgen05.mma", "gfx942": "mfma"}
RUNGS = ("counted", "timed", "compiled")

# The chip that plans stand in for is compiled at every size of every sweep, the others at the largest;
# EVERY_CHIP=1 compiles all of it in every dtype for every chip (`make test-specialisations`, minutes).
EVERYTHING = bool(os.environ.get("EVERY_CHIP"))
WHOLE = tuple(TARGETS) if EVERYTHING else (devices.STAND_IN,)

ROOT = Path(__file__).parents[2]
TRITON = version("triton")
(PINNED,) = re.findall(r"^triton==([\d.]+)", (ROOT / "requirements.txt").read_text(encoding="utf-8"), re.M)

# Bytes that leave the registers of a thread, by Triton, kernel and chip, and why nobody has mended that.
# Tiles are chosen by what the pinned Triton makes of them; with it nothing spills anywhere.
SPILLS: dict[str, dict[tuple[str, str], tuple[int, str]]] = {
    "3.8.0": {
        ("decode attention", "sm_90"): (8, "of ragged caches; its ptxas stops at 128 registers"),
        ("flash attention", "sm_100"): (32, "with head_dim 64; its ptxas wants more than 255 registers"),
    },
    "3.9.0": {
        ("flash attention", "sm_100"): (32, "with head_dim 64; its ptxas wants more than 255 registers"),
        ("flash attention", "gfx942"): (12, "its LLVM wants more than the 256 registers of a lane"),
    },
}

LLAMA = {"d_model": 4096, "d_ff": 14_336}
ATTENTION = {"batch": 1, "heads": 32, "kv_heads": 8, "head_dim": 128, "context": 8192}
PROMPT = {"batch": 1, "length": 8192, "heads": 32, "kv_heads": 8, "head_dim": 128}
HEAD = {"m": 1, "k": 4096, "n": 14_336}
UNALIGNED = {"m": 64, "k": 1000, "n": 1000}
LONGEST_ROW = {**PROMPT, "length": 32_768}
FEW, SQUARE = {"m": 1, "k": 1024, "n": 1024}, {"m": 64, "k": 1024, "n": 1024}

# Query heads on one KV head, of the widest head that decode attention takes: few and many of them.
WIDEST_HEADS = (8, 64)

# What no sweep has: (key, chip, sizes, dtype or None for the best, the main kernel's instruction).
MORE: list[tuple[str, str, dict[str, int], str | None, str]] = [
    ("toy", "sm_90", FEW, None, "mma.sync"),  # few rows: the older one
    ("linear", "sm_80", {"m": 64, "k": 256, "n": 256}, "fp32", "none"),  # true fp32, no tf32
    ("toy", "sm_80", SQUARE, "fp32", "mma.sync"),  # nobody said so, and it is tf32
    ("mlp", "sm_89", {"m": 4096, **LLAMA}, None, "mma.sync"),
    ("mlp", "sm_120", {"m": 4096, **LLAMA}, None, "mma.sync"),
    ("flash_attention", "sm_89", PROMPT, None, "mma.sync"),
    ("flash_attention", "sm_120", PROMPT, None, "mma.sync"),
    ("flash_attention", "sm_90", {**PROMPT, "head_dim": 64}, None, "wgmma"),
    ("flash_attention", "sm_100", {**PROMPT, "head_dim": 64}, None, "tcgen05.mma"),
    ("flash_attention", "sm_90", {**PROMPT, "head_dim": 256}, None, "wgmma"),
    ("unfused_attention", "sm_90", LONGEST_ROW, None, "wgmma"),
    ("linear", "sm_80", FEW, None, "mma.sync"),
    ("linear", "sm_90", UNALIGNED, None, "wgmma"),
    # a group of 4 query heads is too few for the newer instruction, 64 are enough
    ("decode_attention", "sm_89", ATTENTION, None, "mma.sync"),
    ("decode_attention", "sm_90", ATTENTION, None, "mma.sync"),
    ("decode_attention", "gfx942", ATTENTION, None, "mfma"),
    ("decode_attention", "sm_90", {**ATTENTION, "heads": 64, "kv_heads": 1}, None, "wgmma"),
    ("decode_attention", "sm_100", {**ATTENTION, "heads": 64, "kv_heads": 1}, None, "tcgen05.mma"),
    ("decode_attention", "sm_80", {**ATTENTION, "heads": 16, "head_dim": 256}, None, "mma.sync"),
    ("decode_attention", "sm_90", ATTENTION, "fp8", "mma.sync"),
    ("gemv", "sm_80", {**HEAD, "m": 4}, None, "none"),
    ("gemv", "sm_120", HEAD, None, "none"),
    ("gemv.kn", "sm_100", HEAD, None, "none"),
    ("gemv.kn", "sm_90", {**HEAD, "m": 4}, None, "none"),
    ("kv_append", "sm_100", {"batch": 64, "kv_heads": 8, "head_dim": 128, "context": 4096}, None, "none"),
]

# Sizes of the toy on sm_90, and whether Triton compiles them anew beside SQUARE in bf16.
SPECIALISED: list[tuple[dict[str, int], str, bool]] = [
    ({**SQUARE, "m": 128, "k": 2048}, "bf16", False),
    ({**SQUARE, "m": 33}, "bf16", True),  # no multiple of 16
    ({**SQUARE, "n": 1}, "bf16", True),  # a one is known when compiling
    ({**SQUARE, "m": 32}, "bf16", True),  # another tile
    (SQUARE, "fp16", True),
]

# Of flash attention, for a head_dim of 128 on Hopper and Blackwell.
LARGE_TILE = {"block_m": 128, "block_n": 128, "num_warps": 8, "num_stages": 2}
# What is true only of what a plan did not choose: (key, chip, sizes, changes of the plan).
CHANGED: list[tuple[str, str, dict[str, int], dict[str, Any]]] = [
    ("gemv", "sm_80", HEAD, {"block_k": 512, "block_n": 8}),
    ("gemv", "sm_90", HEAD, {"block_k": 512, "block_n": 8}),
    ("linear", "sm_80", FEW, {"max_registers": None}),
    ("flash_attention", "sm_80", {**PROMPT, "head_dim": 256}, {"block_m": 128}),
    ("flash_attention", "sm_90", {**PROMPT, "head_dim": 96}, LARGE_TILE),
]


# Prompts for which flash attention takes the first and the last of its tiles.
PROMPTS = [
    {**PROMPT, "length": length, "head_dim": dim} for dim in (64, 96, 128, 256) for length in (8192, 16)
]


def tiles() -> Iterator[tuple[str, bool, products.Plan]]:
    """(chip, whether for aligned rows, tile) of all that a product could be cut into.

    For the chips that are compiled whole, and one whose shared memory is small.
    """
    for chip in dict.fromkeys([*WHOLE, "sm_89"]):
        if target(chip).has_tensor_cores:
            for aligned in (True, False):
                for tile in products.table("bf16", target(chip), aligned):
                    yield chip, aligned, products.registered(tile, "bf16", target(chip), aligned)


def tile_case(chip: str, aligned: bool, tile: products.Plan) -> tuple[str, str, Sizes, Mapping[str, Any]]:
    """(key, chip, sizes, plan) for which `linear` is compiled in this tile."""
    length = 4096 if aligned else 4001
    return "linear", chip, {"m": 128, "k": length, "n": length}, asdict(tile)


def chips(experiment: Experiment) -> list[str]:
    """Matrix kernels have an instruction to show on each chip; the others are alike on most.

    What a decode step is made of is compiled with the experiments of its parts.
    """
    if experiment.name == "decode_layer":
        return ["sm_90"]
    return list(INSTRUCTION) if experiment.unit == "matrix" else ["sm_75", "sm_90", "gfx942"]


def points(experiment: Experiment, rung: str) -> list[dict[str, int]]:
    """Sizes of its sweep that are compiled; of what is made of other kernels, those of the sweep's end."""
    rows = sweep(experiment, rung)
    return rows if EVERYTHING or experiment.name != "decode_layer" else rows[-1:]


def launched(experiment: Experiment, chip: str) -> Iterator[tuple[dict[str, int], str]]:
    """(sizes, dtype) of every point of its sweeps on this chip, in its best dtype; in all with EVERY_CHIP."""
    best = experiment.best_dtype(target(chip))
    for dtype in experiment.dtypes if EVERYTHING else (best,):
        if not experiment.why_not(target(chip), dtype):
            yield from ((sizes, dtype) for rung in RUNGS for sizes in points(experiment, rung))


def planned() -> list[Wanted]:
    """Every experiment, chip, sizes, dtype and changed plan that is compiled for the tests, each once."""
    wanted: dict[Case, Wanted] = {}

    def add(
        key: str, chip: str, sizes: Sizes, dtype: str | None = None, plan: Mapping[str, Any] | None = None
    ) -> None:
        kind = dtype or KNOWN[key].best_dtype(target(chip))
        wanted.setdefault(case(key, chip, sizes, kind, plan), (KNOWN[key], chip, sizes, kind, plan or {}))

    for name, one in EXPERIMENTS.items():
        for chip in TARGETS:
            if chip in WHOLE and not compiled.why_not(one, target(chip)):
                for sizes, dtype in launched(one, chip):
                    add(name, chip, sizes, dtype)
            elif chip in chips(one):
                add(name, chip, sweep(one, "compiled")[-1])
    for chip in compiled.targets_of(EXPERIMENTS["decode_attention"]):
        for heads in WIDEST_HEADS:
            add("decode_attention", chip, {**ATTENTION, "heads": heads, "kv_heads": 1, "head_dim": 256})
    for key, chip, sizes, own, _ in MORE:
        add(key, chip, sizes, own)
    for chip in WHOLE:
        if chip in compiled.targets_of(EXPERIMENTS["flash_attention"]):
            for sizes in PROMPTS:
                add("flash_attention", chip, sizes)
    for key, chip, sizes, plan in [*CHANGED, *(tile_case(*each) for each in tiles())]:
        add(key, chip, sizes, plan=plan)
    for sizes, dtype, _ in [(SQUARE, "bf16", False), *SPECIALISED]:
        add("toy", "sm_90", sizes, dtype)
    return list(wanted.values())


def case(
    key: str, chip: str, sizes: Sizes, dtype: str | None = None, plan: Mapping[str, Any] | None = None
) -> Case:
    """What `every` keeps its rows under. dtype: by default the best."""
    kind = dtype or KNOWN[key].best_dtype(target(chip))
    return key, chip, tuple(sizes.items()), kind, tuple((plan or {}).items())


@functools.cache
def every() -> dict[Case, list[Compiled]]:
    """The rows of each case, a kernel each: compiled once for all workers, in a child for each core."""
    groups: dict[str, list[Wanted]] = {}
    for one in planned():
        groups.setdefault(one[1] if one[1] in WHOLE else "others", []).append(one)
    with _alone(), ThreadPoolExecutor(os.cpu_count()) as children:
        made = children.map(_rows, groups.values())
        return {key: rows for some in made for key, rows in some.items()}


def _rows(wanted: list[Wanted]) -> dict[Case, list[Compiled]]:
    rows = iter(compiled.cases(wanted))
    made = {case(one.key, *rest): [next(rows) for _ in range(launches(one, *rest))] for one, *rest in wanted}
    assert next(rows, None) is None
    return made


def planned_for(key: str, chip: str, sizes: Sizes, dtype: str | None = None) -> Any:
    """The plan of an experiment there. dtype: by default the best."""
    one, where = KNOWN[key], target(chip)
    return one.plan(**sizes, dtype=dtype or one.best_dtype(where), target=where)


def launches(one: Experiment, chip: str, sizes: Sizes, dtype: str, changes: Mapping[str, Any]) -> int:
    """How many kernels one run of it starts there."""
    plan = planned_for(one.key, chip, sizes, dtype)
    return len(one.meta_launches(replace(plan, **changes) if changes else plan, dtype, **sizes))


@contextlib.contextmanager
def _alone() -> Iterator[Any]:
    """One worker at a time: what the first has compiled the others find on disk."""
    folder = child_process.cache_dir()
    if folder is None:
        yield
        return
    with (folder / "tests.lock").open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # let go when the file is closed
        yield
