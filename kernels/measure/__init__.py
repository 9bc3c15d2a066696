"""Time every kernel on the GPU of this machine and keep the result as a record.

    python -m kernels.measure --out kernels/records/h100.json
    python -m kernels.measure --out h100.json --minutes 8    # the most telling first, then stop
    python -m kernels.measure --out h100.json --resume       # what is missing in it, and nothing else
    python -m kernels.measure --out try.json --rehearse      # with no GPU: all of this on an imaginary card

Needs a checkout, Python 3.11, torch, Triton, NumPy, PyYAML, and a C compiler (gcc or clang) with Python's
headers (Python.h), with which Triton builds its driver at the first launch; nothing else that the book needs.

This process never touches the card. It orders the work, and a child process for each kernel times it:
an illegal access, a launch that is refused, a process that is killed or hangs cost one point, and the
next one is measured by another child. First every kernel is checked against float64; then the
ceilings are measured; then the sweeps, each size with the vendor's own kernel beside it; then what a
launch costs, and at last DRAM bytes by hardware counters. With --minutes each kernel has one size and
a launch its cost before any kernel has its second size; counters have what is left, and where that is
too little a note says so. The minutes begin with the process and hold for its end, too.

The record is written anew after each point, so a run that is cut short keeps what it had. At the end
stand the goals and what is missing, with the command that measures only that.

Exit codes: 0 done; 1 a kernel was wrong or a result impossible; 2 nothing to measure on, or nowhere to
write; 3 something failed and is missing; 130 stopped by Ctrl-C, what was measured is kept.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

OLDEST = (3, 11)
if sys.version_info < OLDEST:  # before anything is imported that an older Python can't read
    sys.exit("Python {}.{} is too old here: take {}.{} or newer.".format(*sys.version_info[:2], *OLDEST))


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line, parsed."""
    from kernels.contract.devices import STAND_IN
    from kernels.evidence.executed import EXECUTABLE
    from kernels.evidence.experiments import all_experiments  # here: a child needs no kernel but its own

    about = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        prog="python -m kernels.measure",
        description=about[0],
        epilog=about[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = list(dict.fromkeys(d for one in all_experiments().values() for d in one.dtypes))
    parser.add_argument("--out", required=True, type=Path, help="the record to write (JSON)")
    parser.add_argument("--kernels", help="comma-separated names; all kernels by default")
    parser.add_argument(
        "--dtype", choices=known, help="where a kernel has it; by default, and else, its best here"
    )
    parser.add_argument("--quick", action="store_true", help="three points a sweep and shorter timing")
    parser.add_argument(
        "--minutes", type=_minutes, help="be done by then: the most telling first, the rest is listed"
    )
    parser.add_argument(
        "--resume", action="store_true", help="measure what is missing in --out, and add it there"
    )
    parser.add_argument(
        "--counters",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="count DRAM bytes with ncu, after all else, where it may be used",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--device", choices=("gpu", "cpu"), default="gpu", help="cpu: this CPU's roofline, by torch"
    )
    where.add_argument(
        "--rehearse",
        nargs="?",
        const=STAND_IN,
        choices=EXECUTABLE,
        metavar="CHIP",
        help=f"on an imaginary card with this chip ({', '.join(EXECUTABLE)}; by default {STAND_IN}): the "
        "whole command with made-up times, which are no measurement",
    )
    return parser.parse_args(words)


def _minutes(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 10_000:
        raise argparse.ArgumentTypeError(f"{text!r}: give the minutes that it may take, 8 for example")
    return value
