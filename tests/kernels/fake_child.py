"""A child of `kernels.measure` that measures nothing: it tells made-up results, or dies as it is told to.

    python tests/kernels/fake_child.py '{"linear m=16": "killed"}'

It imports nothing of the book, so that it starts at once. What it was asked goes to $ASKED, a line each.
"""

import json
import os
import signal
import sys
import time

CARD = {
    "kind": "gpu",
    "name": "Pretended H100",
    "torch_device": "cpu",
    "accelerator": "h100_sxm",
    "target": "sm_90",
    "sm_count": 132,
}
TOPS = {"bandwidth": 3e12, "bandwidth_by": "copy", "peak": 7e14, "peak_by": "matmul", "bandwidths": {}}
TOPS |= {"peaks": {}, "notes": []}


def tell(kind, **told):
    print(json.dumps({"is": kind, **told}), flush=True)


def point(sizes):
    rates = {"seconds": 1e-3, "low": 1e-3, "high": 1e-3, "bytes_per_s": 1e12, "flops_per_s": 1e12}
    shares = {"of_bandwidth": 0.9, "of_peak": 0.1, "of_roof": 0.9, "of_datasheet": 0.8}
    vendor = {"name": "theirs", "seconds": 9e-4, "share": 0.9, "others": {}}
    words = {
        "alarms": [],
        "notes": [],
        "dram_bytes": None,
        "relative_error": 1e-3,
        "runs": 9,
        "intensity": 1.0,
    }
    return {"sizes": sizes, "dtype": "bf16", **rates, **shares, "baseline": vendor, **words}


def happen(fault, sizes):
    """True if the rest of the work goes on."""
    kind, _, rest = fault.partition(" ")
    if kind == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if kind == "hangs":
        time.sleep(600)
    if kind == "exits":
        print("Traceback ...\nValueError: last words", file=sys.stderr, flush=True)
        sys.exit(7)
    if kind == "slow":
        time.sleep(float(rest))
        return True
    if kind == "garbled":
        print("a library prints\n{", flush=True)
        return True
    if kind == "memory":
        tell(
            "left_out",
            sizes=sizes,
            reason="it needs 9.00 GB and 1.00 GB are free: close others.",
            memory=True,
        )
    elif kind == "wrong":
        tell("failed", sizes=sizes, reason="relative error 0.1, allowed 0.01", wrong=True)
    else:
        tell("failed", sizes=sizes, reason=rest, wrong=False)
        if kind == "lost":
            tell("lost", reason=rest)
            sys.exit(0)
    return False


def named(asked):
    return asked.get("experiment", "").partition(":")[0].rpartition(".")[2]


def remember(words):
    with open(os.environ["ASKED"], "a", encoding="utf-8") as log:
        log.write(" ".join(words).strip() + "\n")


def check(asked, faults):
    """One kernel of those that a check is asked of."""
    words = ["check", named(asked)]
    remember(words)
    tell("begins", **asked)
    fault = faults.get(" ".join(words))
    if not fault or happen(fault, None):
        outcome = {"dtype": asked["dtype"], "verdict": "correct", "relative_error": 1e-4, "runs": 3}
        tell("checked", outcome=outcome, arithmetic=asked["dtype"])


def main():
    faults = json.loads(sys.argv[1])
    line = sys.stdin.readline()
    if not line:
        return
    asked = json.loads(line)
    for one in asked.get("kernels", []):
        check(one, faults)
    if asked["task"] == "check":
        return tell("done")
    name = named(asked)
    words = [asked["task"], name or asked.get("dtype", ""), *map(sized, asked.get("sizes", []))]
    remember(words)
    fault = faults.get(f"{asked['task']} {name}".strip())
    if fault and not happen(fault, None):
        return tell("done")
    if asked["task"] == "describe":
        tell("device", device=CARD, reason="")
    if asked["task"] == "ceilings":
        tell("ceilings", dtype=asked["dtype"], ceilings={"dtype": asked["dtype"], **TOPS}, clock={})
    if asked["task"] == "launches":
        tell("launches", overhead={"bandwidth": 3e12, "bandwidth_by": "torch copy", "lines": [], "laws": []})
    for sizes in asked.get("sizes", []):
        tell("at", sizes=sizes)
        fault = faults.get(f"{name} {sized(sizes)}")
        if fault and fault.startswith("beside "):
            if asked["baselines"]:
                alone = point(sizes) | {"baseline": None}
                tell("point", point=alone, began=time.monotonic(), ended=time.monotonic())
                tell("beside", sizes=sizes)
                kind, _, reason = fault.removeprefix("beside ").partition(" ")
                if kind in ("lost", "exits"):  # after the size was told again, with a note
                    tell("point", point=alone, began=time.monotonic(), ended=time.monotonic())
                if kind == "lost":
                    tell("lost", reason=reason)
                    sys.exit(0)
                happen(fault.removeprefix("beside "), sizes)
            fault = None
        if not fault or happen(fault, sizes):
            made = point(sizes) if asked["baselines"] else point(sizes) | {"baseline": None}
            tell("point", point=made, began=time.monotonic(), ended=time.monotonic())
    return tell("done")


def sized(sizes):
    axis = next(name for name in ("context", "length", "m", "n") if name in sizes)
    return f"{axis}={sizes[axis]}"


if __name__ == "__main__":
    main()
