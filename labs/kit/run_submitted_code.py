"""Process S: runs the code that somebody submitted, and says what came out. It decides nothing.

    python run_submitted_code.py < request.json     (the answer goes to file descriptor ROOFLINE_ANSWER_FD)

The file stands alone: whatever runs beside foreign code can be tampered with by it, so nothing of
ours is here to be tampered with. It runs the cells, then answers what it is asked:

- "values": what these variables hold;
- "calls": what this function returns for these arguments;
- "plans": what this launcher *would* launch. `@triton.jit` is replaced by a recorder, so the kernel
  does not run here. Out comes a plan: buffers, launches and the view that was returned. Another
  process (`run_kernels.py`) runs the plan, with kernels taken from the text, on numbers that this
  process never saw. So patching a counter or calling `torch.matmul` here changes no grade.

One line of JSON an event: {"begin": id}, then {"done": id, ...}. What was done before a crash or a
time limit counts, and an event that was begun and never done names the culprit.
"""

from __future__ import annotations

import gc
import inspect
import json
import linecache
import math
import numbers
import os
import re
import sys
import traceback
from typing import Any

LARGEST_ANSWER = 100_000  # numbers in one returned value
PREAMBLE = ("import math", "import numpy as np")
# These take more than a second, so they are there for cells that say one of their names.
TRITON = ("import torch", "import triton", "import triton.language as tl")
NAMES = re.compile(r"\b(torch|triton|tl)\b")
# Host work that makes room for a result. Anything else that makes a tensor has computed something.
EMPTY = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")
ZEROS = ("zeros", "zeros_like", "new_zeros")
OPTIONS = ("num_warps", "num_stages")


class Problem(Exception):
    """Something in the submitted code that ends in a sentence for its author."""


def main() -> None:
    """Read one request from standard input and answer it, event by event."""
    request = json.load(sys.stdin)
    channel = os.fdopen(int(os.environ["ROOFLINE_ANSWER_FD"]), "w", encoding="utf-8")

    def tell(event: dict[str, Any]) -> None:
        channel.write(json.dumps(event) + "\n")
        channel.flush()

    namespace = prepared(any(NAMES.search(cell["source"]) for cell in request["cells"]))
    for cell in request["cells"]:
        tell({"begin": cell["id"]})
        tell({"done": cell["id"], "error": run_cell(cell["id"], cell["source"], namespace)})
    for ask in request["asks"]:
        tell({"begin": ask["id"]})
        try:
            answer = {"values": values, "calls": calls, "plans": plans}[ask["kind"]](ask, namespace)
        except Problem as problem:
            answer = {"error": str(problem)}
        except BaseException as error:  # noqa: BLE001 - even a SystemExit belongs to the submission
            answer = {"error": said(error)}
        tell({"done": ask["id"], **answer})
    gc.freeze()  # all of it ends with the process: it need not be looked through once more


def prepared(with_triton: bool = True) -> dict[str, Any]:
    """The names that every cell may use, with Triton's decorators replaced by recorders.

    with_triton: False leaves torch and Triton out.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    gc.disable()  # modules are made here, and none of them is garbage
    if with_triton:
        import triton

        triton.jit = recorded
        triton.autotune = triton.heuristics = refuse_tuning
    for line in PREAMBLE + (TRITON if with_triton else ()):
        exec(line, namespace)
    gc.enable()
    return namespace


def run_cell(name: str, source: str, namespace: dict[str, Any]) -> str | None:
    """Run one cell; the sentence that says why it failed, or None."""
    file = f"<{name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    try:
        exec(compile(source, file, "exec"), namespace)
    except BaseException as error:  # noqa: BLE001
        return said(error)
    return None


def said(error: BaseException) -> str:
    """The error as its author would read it: kind, message, and the line of the cell."""
    text = f"{type(error).__name__}: {error}".strip().rstrip(":")[:500]
    if isinstance(error, SyntaxError):
        name = (error.filename or "").strip("<>")
        return f"{type(error).__name__}: {error.msg} (line {error.lineno} of {name})" if name else text
    if text == "NotImplementedError":  # what stands in a blank
        text = "not answered yet: a blank is left"
    if isinstance(error, ModuleNotFoundError):
        text += "; graded cells have numpy, torch, triton and what comes with Python"
    lines = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith("<")]
    return f"{text} (line {lines[-1].lineno} of {lines[-1].filename[1:-1]})" if lines else text


# ------------------------------------------------------------------------------- values and calls


def values(ask: dict[str, Any], namespace: dict[str, Any]) -> dict[str, Any]:
    """{"values": {name: what it holds}}; a name that is missing or holds no number has an error."""
    found, errors = {}, {}
    for name in ask["names"]:
        try:
            value = wanted(name, namespace)
        except Problem as problem:
            errors[name] = str(problem)
            continue
        try:
            found[name] = plain(value)
        except Problem as problem:
            errors[name] = f"{name}: {problem}"
    return {"values": found, "errors": errors}


def calls(ask: dict[str, Any], namespace: dict[str, Any]) -> dict[str, Any]:
    """{"returns": [{"value": ...} or {"error": ...}]}, one for each list of arguments."""
    function, returns = wanted(ask["function"], namespace), []
    for arguments in ask["calls"]:
        try:
            returns.append({"value": plain(function(*arguments))})
        except Problem as problem:
            returns.append({"error": str(problem)})
        except Exception as error:  # noqa: BLE001
            returns.append({"error": said(error)})
    return {"returns": returns}


def wanted(name: str, namespace: dict[str, Any]) -> Any:
    """What `name` was set to."""
    if name not in namespace or namespace[name] is Ellipsis:
        raise Problem(f"{name} is not defined in the graded cells; put what your answer needs into them.")
    return namespace[name]


def plain(value: Any) -> Any:
    """`value` as JSON can hold it: numbers, strings, lists and dicts of them."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if hasattr(value, "tolist"):  # numpy, torch
        if math.prod(getattr(value, "shape", ())) > LARGEST_ANSWER:
            raise Problem(f"an array of shape {tuple(value.shape)} is too large for an answer.")
        return value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    try:
        return float(value)  # a SymPy number, a Fraction
    except Exception:  # noqa: BLE001
        raise Problem(f"a {type(value).__name__} is no number; give a number.") from None


# ----------------------------------------------------------------------------------------- plans


class Recorder:
    """What `@triton.jit` makes here: it notes launches and runs nothing."""

    tape: Tape | None = None

    def __init__(self, function: Any) -> None:
        self.function, self.__name__ = function, function.__name__

    def __getitem__(self, grid: Any) -> Any:
        return lambda *args, **options: self._launch(grid, args, options)

    def __call__(self, *args: Any, **options: Any) -> Any:
        raise Problem(
            f"{self.__name__}(...) was called without a grid; launch it as {self.__name__}[grid](...)."
        )

    def _launch(self, grid: Any, args: tuple, options: dict[str, Any]) -> None:
        if Recorder.tape is None:
            return  # a cell that tries its kernel out while it is being defined
        launch_options = {name: int(options.pop(name)) for name in OPTIONS if name in options}
        try:
            bound = inspect.signature(self.function).bind(*args, **options)
        except TypeError as error:
            raise Problem(f"{self.__name__}: {error}; pass each of its arguments once.") from None
        bound.apply_defaults()
        size = grid(dict(bound.arguments)) if callable(grid) else grid
        size = tuple(size) if isinstance(size, list | tuple) else (size,)
        Recorder.tape.launch(self.__name__, [int(n) for n in size], bound.arguments, launch_options)


def recorded(function: Any = None, **options: Any) -> Any:
    """Stands for `triton.jit`, with and without parentheses."""
    return Recorder(function) if function is not None else Recorder


def refuse_tuning(*args: Any, **options: Any) -> Any:
    """Stands for `triton.autotune` and `triton.heuristics`."""
    raise Problem(
        "this lab needs one plan for each size: choose the tile in your launcher, without autotune."
    )


class Tape:
    """The plan of one call: which buffers there are, what was launched, what the host did to them."""

    def __init__(self, inputs: dict[str, Any]) -> None:
        self.buffers: dict[int, dict[str, Any]] = {}
        self.steps: list[dict[str, Any]] = []
        self.keep: list[Any] = []  # storages that must live so that none takes another's address
        for name, tensor in inputs.items():
            self.note(tensor, name, "input")

    def note(self, tensor: Any, name: str, fill: str, made_by: str = "") -> None:
        """Learn a buffer."""
        storage = tensor.untyped_storage()
        self.keep.append(storage)
        self.buffers[storage._cdata] = {
            "id": name,
            "bytes": storage.nbytes(),
            "fill": fill,
            "made_by": made_by,
        }

    def buffer(self, tensor: Any) -> dict[str, Any] | None:
        return self.buffers.get(tensor.untyped_storage()._cdata)

    def view(self, tensor: Any) -> dict[str, Any]:
        """A tensor as the plan names it: a window on a buffer, in elements."""
        import torch

        if type(tensor) is not torch.Tensor:
            raise Problem(f"{type(tensor).__name__}: only a plain torch.Tensor can be graded.")
        known = self.buffer(tensor)
        if known is None:
            raise Problem(
                "a tensor is used that this call did not make; allocate it in the launcher, every time."
            )
        return {
            "buffer": known["id"],
            "offset": tensor.storage_offset(),
            "shape": list(tensor.shape),
            "strides": list(tensor.stride()),
            "dtype": str(tensor.dtype).removeprefix("torch."),
        }

    def launch(
        self, kernel: str, grid: list[int], arguments: dict[str, Any], options: dict[str, int]
    ) -> None:
        """Note one launch."""
        described = {name: self._argument(name, value) for name, value in arguments.items()}
        self.steps.append({"kernel": kernel, "grid": grid, "args": described, "options": options})

    def _argument(self, name: str, value: Any) -> dict[str, Any]:
        import torch

        if isinstance(value, torch.Tensor):
            return {"view": self.view(value)}
        if value is None or isinstance(value, bool | int | float | str):
            return {"scalar": value}
        if isinstance(value, numbers.Integral):
            return {"scalar": int(value)}
        text = str(value).removeprefix("torch.")
        if type(value).__name__ in ("dtype", "constexpr"):  # tl.float32, torch.float32
            return {"tl": {"fp16": "float16", "fp32": "float32", "bf16": "bfloat16"}.get(text, text)}
        raise Problem(f"argument {name}: a {type(value).__name__} can't be passed to a kernel.")

    def host(self, name: str, mutable: bool, args: tuple, out: Any) -> None:
        """Note what torch did on the host: room was made, a buffer was written, or a result computed."""
        import torch

        short = name.removeprefix("aten.").split(".")[0]
        if mutable:
            target = args[0] if args and isinstance(args[0], torch.Tensor) else None
            known = self.buffer(target) if target is not None else None
            if known is None:
                return
            whole = target.numel() * target.element_size() == known["bytes"]
            if (short == "zero_" or (short == "fill_" and args[1] == 0)) and whole:
                self.steps.append({"zero": known["id"]})
            else:
                known.update(fill="host", made_by=short)
            return
        # A view of something that this call did not make is no new room: `view` refuses it by name.
        given = {a.untyped_storage()._cdata for a in args if isinstance(a, torch.Tensor)}
        for tensor in out if isinstance(out, list | tuple) else [out]:
            if isinstance(tensor, torch.Tensor) and self.buffer(tensor) is None:
                if tensor.untyped_storage()._cdata in given:
                    continue
                fill = "empty" if short in EMPTY else "zeros" if short in ZEROS else "host"
                self.note(tensor, f"buffer {len(self.buffers)}", fill, short)


def plans(ask: dict[str, Any], namespace: dict[str, Any]) -> dict[str, Any]:
    """{"plans": [{"buffers", "steps", "returns"} or {"error"}]}, one for each call."""
    function, made = wanted(ask["function"], namespace), []
    for call, scalars in zip(ask["calls"], ask["scalars"], strict=True):
        try:
            made.append(plan(function, call, scalars))
        except Problem as problem:
            made.append({"error": str(problem)})
        except Exception as error:  # noqa: BLE001
            made.append({"error": said(error)})
    return {"plans": made}


def plan(function: Any, inputs: dict[str, dict[str, Any]], scalars: dict[str, Any]) -> dict[str, Any]:
    """Call the launcher once with tensors of these shapes and return what it would have launched."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    tensors = {name: tensor(spec) for name, spec in inputs.items()}
    tape = Tape(tensors)

    class Watch(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            """As kernels.contract.dispatch has it, which isn't here."""
            return False

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            tape.host(str(func), func._schema.is_mutable, args, out)
            return out

    Recorder.tape = tape
    try:
        with Watch():
            returned = function(**tensors, **scalars)
    finally:
        Recorder.tape = None
    if not isinstance(returned, torch.Tensor):
        raise Problem(f"it returned {type(returned).__name__}, and a tensor is asked for.")
    return {"buffers": list(tape.buffers.values()), "steps": tape.steps, "returns": tape.view(returned)}


def tensor(spec: dict[str, Any]) -> Any:
    """A tensor of this shape, strides and dtype. Its numbers are random and mean nothing."""
    import torch

    length = 1 + sum((n - 1) * s for n, s in zip(spec["shape"], spec["strides"], strict=True))
    flat = torch.randn(length).to(getattr(torch, spec["dtype"]))
    return flat.as_strided(spec["shape"], spec["strides"])


if __name__ == "__main__":
    main()
