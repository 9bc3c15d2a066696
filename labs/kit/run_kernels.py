"""Process T: runs a plan, with the kernels taken from the text, and says what they did to memory.

    python -m labs.kit.run_kernels            < request.json    (TRITON_INTERPRET=1: run and count)
    python -m labs.kit.run_kernels --compile  < request.json    (TRITON_INTERPRET=0: for real chips)

Kernels are in Triton's language and nothing else (`kernel_source.py`), so nothing here can reach
the counter. The inputs come in with the request and were never seen by the launcher's process. No
comparison happens here: outputs and the access trace go out.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from kernels.evidence.counted import extra_traffic
from kernels.evidence.counted.interpreter import Order, count
from kernels.evidence.counted.orders import results_differ
from kernels.evidence.counted.tally import Tally
from labs.kit.arrays import packed, unpacked

MODULE = "submitted_kernels"
ROUNDING = 1e-2  # relative: what atomics that add in another order may change, in fp16 as well


def main() -> None:
    """Read one request, answer it event by event (see `run_submitted_code.py`)."""
    request = json.load(sys.stdin)
    channel = os.fdopen(int(os.environ["ROOFLINE_ANSWER_FD"]), "w", encoding="utf-8")
    steps = compile_all(request) if "--compile" in sys.argv else replay_all(request)
    for name, step in steps:
        channel.write(json.dumps({"begin": name}) + "\n")
        channel.flush()
        try:
            answer = step()
        except Exception as error:  # noqa: BLE001 - an error of the kernel's, told to its author
            answer = {"error": said(error)}
        channel.write(json.dumps({"done": name, **answer}) + "\n")
        channel.flush()
    gc.freeze()  # all of it ends with the process: it need not be looked through once more


def load(text: str) -> ModuleType:
    """The kernels as a module. Triton reads a kernel's source, so it has to lie in a file."""
    path = Path(tempfile.mkdtemp()) / f"{MODULE}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(MODULE, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    spec.loader.exec_module(module)
    return module


def said(error: BaseException) -> str:
    """The error, and the line of the kernel that it happened in."""
    chain = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    root = chain[-1]
    lines = [
        frame.line
        for one in (error, root)
        for frame in traceback.extract_tb(one.__traceback__)
        if Path(frame.filename).stem == MODULE and not frame.line.startswith(("@", "def "))
    ]
    text = str(root) if root.args else ""
    for one in chain:  # Triton's compiler puts a page of source before what it has to say
        if hasattr(one, "node"):
            at = getattr(one.node, "lineno", 0)
            lines += (one.src or "").split("\n")[at - 1 : at]
            text = one.error_message or "Triton can't compile this" if one is root else text
    text = f"{type(root).__name__}: {text}"[:600]
    return f"{text} (in `{lines[-1].strip()}`)" if lines else text


# ------------------------------------------------------------------------------------ interpreted


def replay_all(request: Mapping[str, Any]) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """(name, the work) for each plan of the request."""
    module = load(request["kernels"])
    for case in request["cases"]:
        inputs = {name: unpacked(array) for name, array in case["inputs"].items()}
        yield case["id"], lambda case=case, inputs=inputs: replay(module, case["plan"], inputs)


def replay(module: ModuleType, plan: Mapping[str, Any], inputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Run one plan: {"output", "traffic": {buffer: {"reads", "writes"}}, "dot_flops", "programs", ...}.

    "race": two programs of a launch that meet in memory, or a result that depends on which of them runs
    first; "extra": why bytes were asked for more than once. Sentences; see `kernels.evidence.counted`.
    """
    tally, buffers = in_order(module, plan, inputs, "in order")
    output = window(plan["returns"], buffers)
    race = tally.race
    if tally.atomics and not race:  # without atomics and races no order gives another result
        again, others = in_order(module, plan, inputs, "reversed")
        reverse = window(plan["returns"], others)
        race = again.race or results_differ(["result"], [output], [reverse], allowed=ROUNDING)
    return {
        "output": packed(output.double().numpy()),
        "traffic": by_buffer(tally, buffers),
        "dot_flops": tally.dot_flops,
        "alu_flops": tally.alu_flops,
        "programs": tally.programs,
        "race": race,
        "extra": list(extra_traffic.sentences(tally)),
    }


def in_order(
    module: ModuleType, plan: Mapping[str, Any], inputs: Mapping[str, np.ndarray], order: Order
) -> tuple[Tally, dict[str, torch.Tensor]]:
    """Run one plan, the programs of each launch in this order: what was counted, and the memory after it."""
    buffers = {b["id"]: room(b, inputs) for b in plan["buffers"]}
    views: dict[str, torch.Tensor] = {}  # keeps every tensor alive: the tally knows them by address
    with count(order=order) as tally:
        for step in plan["steps"]:
            if "zero" in step:
                buffers[step["zero"]].zero_()
                continue
            arguments = {name: argument_of(value, buffers, views) for name, value in step["args"].items()}
            kernel = getattr(module, step["kernel"])
            kernel[tuple(step["grid"])](**arguments, **step["options"])
    return tally, buffers


def room(buffer: Mapping[str, Any], inputs: Mapping[str, np.ndarray]) -> torch.Tensor:
    """A buffer's bytes: an input's numbers, zeros, or NaN wherever nothing was written yet."""
    if buffer["id"] in inputs:
        return torch.from_numpy(inputs[buffer["id"]].copy()).view(torch.uint8).reshape(-1)
    fill = 0 if buffer["fill"] == "zeros" else 255  # all ones is NaN in every float format
    return torch.full((buffer["bytes"],), fill, dtype=torch.uint8)


def window(view: Mapping[str, Any], buffers: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """The tensor that a view names."""
    dtype = getattr(torch, view["dtype"])
    buffer = buffers[view["buffer"]]
    whole = buffer[: buffer.numel() // dtype.itemsize * dtype.itemsize].view(dtype)
    return whole.as_strided(view["shape"], view["strides"], view["offset"])


def argument_of(value: Mapping[str, Any], buffers: Mapping[str, torch.Tensor], views: dict) -> Any:
    """What the kernel is called with."""
    import triton.language as tl

    if "view" in value:
        key = json.dumps(value["view"], sort_keys=True)
        return views.setdefault(key, window(value["view"], buffers))
    return getattr(tl, value["tl"]) if "tl" in value else value["scalar"]


def by_buffer(tally: Tally, buffers: Mapping[str, torch.Tensor]) -> dict[str, dict[str, Any]]:
    """Traffic added up for each buffer, whichever views of it the kernels were given."""
    places = {name: (b.data_ptr(), b.data_ptr() + b.numel()) for name, b in buffers.items()}
    found: dict[str, dict[str, Any]] = {}
    for verb in ("reads", "writes"):
        for base, traffic in tally.traffic_by_address(verb):
            name = next(n for n, (first, end) in places.items() if first <= base < end)
            sums = found.setdefault(name, {}).setdefault(verb, dict.fromkeys(vars(traffic), 0))
            for kind, size in vars(traffic).items():
                sums[kind] += size
    return found


# --------------------------------------------------------------------------------------- compiled


def compile_all(request: Mapping[str, Any]) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """(name, the work) for each plan and target; facts as in `kernels.evidence.compiled.machine_code`."""
    module = load(request["kernels"])
    for case in request["cases"]:
        for target in case["targets"]:
            yield f"{case['id']} {target}", lambda case=case, target=target: compiled(module, case, target)


def compiled(module: ModuleType, case: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Compile the launches of one plan for one target, without a GPU: {"compiled": [facts]}."""
    from kernels.contract.targets import target
    from kernels.evidence.compiled import machine_code
    from kernels.evidence.stand_in import activate

    chip = target(name)
    activate(chip)
    facts = []
    for step in case["plan"]["steps"]:
        if "kernel" not in step:
            continue
        arguments = {key: described(value) for key, value in step["args"].items()}
        kernel = getattr(module, step["kernel"])
        made = kernel.warmup(**arguments, grid=tuple(step["grid"]), **step["options"])
        facts.append({"kernel": step["kernel"], **machine_code.read(made, chip)})
    return {"compiled": facts}


def described(value: Mapping[str, Any]) -> Any:
    """An argument as the compiler needs it: a tensor without memory, or the number."""
    import triton.language as tl

    if "view" not in value:
        return getattr(tl, value["tl"]) if "tl" in value else value["scalar"]
    view = value["view"]
    return torch.empty_strided(
        view["shape"], view["strides"], dtype=getattr(torch, view["dtype"]), device="meta"
    )


if __name__ == "__main__":
    main()
