"""An experiment as a Definition in FlashInfer-Bench's schema: one kernel problem as JSON.

Axes (variable or constant), inputs and outputs with shapes in axis names and dtypes, a reference
that runs by itself, conditions. Whoever has that harness can put other kernels to the same
problem. The schema: docs/flashinfer_trace/definition.md of flashinfer-ai/flashinfer-bench.

    python -m kernels.contract.definition linear fp16 > linear.json
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import textwrap
from collections.abc import Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any

from kernels.contract import devices
from kernels.contract.axes import length, names
from kernels.contract.experiment import Experiment
from kernels.contract.tensors import Tensor

OURS = "kernels"


def definition(experiment: Experiment, dtype: str | None = None, **sizes: int) -> dict[str, Any]:
    """`experiment` in `dtype` (by default its best): the sweep's axis varies, the other sizes are constant.

    sizes: constants in the place of those of the "timed" sweep. What is written in place is an
    output of another name; optional inputs are left out, and conditions on what is no axis. Raises
    ValueError for a dtype that the schema lacks.
    """
    dtype = dtype or experiment.dtypes[0]
    swept = {**experiment.sweep["timed"], **sizes}
    constant = {n: v for n, v in swept.items() if isinstance(v, int) and n != experiment.axis}
    found: dict[str, Any] = {}
    conditions = list(experiment.conditions)
    inputs: dict[str, Any] = {}
    outputs: dict[str, Any] = {}
    storage = experiment.storage(dtype)
    for name, tensor in experiment.tensors.items():
        if tensor.optional:
            continue
        shape = []
        for i, axis in enumerate(tensor.stored_axes(storage(tensor))):
            label = axis if axis in names(axis) else f"{name}_dim{i}"
            shape.append(label)
            if names(axis) <= set(constant):
                found[label] = {"type": "const", "value": length(axis, constant)}
            else:
                found[label] = {"type": "var"}
                if label != axis and "/" not in axis:
                    conditions.append(f"{label} == {axis}")
        spec = {"shape": shape, "dtype": _dtype(tensor, storage(tensor))}
        if not tensor.out:
            inputs[name] = spec
        if tensor.written:
            outputs[name if tensor.out else f"{name}_after"] = spec
    inputs |= {name: {"shape": None, "dtype": "int32"} for name in experiment.arguments}
    key = "_".join([experiment.key.replace(".", "_"), dtype, *(f"{n}{v}" for n, v in constant.items())])
    module = sys.modules[experiment.run.__module__]
    return {
        "name": key,
        "op_type": experiment.name,
        "description": (module.__doc__ or "").partition("\n")[0],
        "axes": found,
        "inputs": inputs,
        "outputs": outputs,
        "constraints": [c for c in conditions if _named(c) <= set(found)],
        "reference": alone(experiment.reference, tuple(inputs)),
    }


def _named(condition: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(condition)) if isinstance(node, ast.Name)}


def _dtype(tensor: Tensor, storage: str) -> str:
    named = str(devices.torch_dtype(storage)).removeprefix("torch.")
    if named == "uint8":
        raise ValueError(
            f"dtype = {storage!r}: packed numbers are bytes without a sign, which FlashInfer's schema lacks; "
            "define the kernel in another dtype."
        )
    return named


# ------------------------------------------------------------------- a function without its module


def alone(function: Any, arguments: Sequence[str]) -> str:
    """Source with a function `run(*arguments)` that does what `function` does and imports nothing of ours.

    What it uses of our modules (functions, constants) comes along under names of their own.
    """
    emitted: dict[str, str] = {}
    imports: dict[str, None] = {}
    name = _emit(function, emitted, imports)
    head = "".join(f"import {module}\n" for module in imports)
    passed = ", ".join(f"{argument}={argument}" for argument in arguments)
    call = f"def run({', '.join(arguments)}):\n    return {name}({passed})\n"
    return "\n\n".join([head, *emitted.values(), call])


def _emit(function: FunctionType, emitted: dict[str, str], imports: dict[str, None]) -> str:
    name = f"{function.__module__.rpartition('.')[2]}_{function.__name__}"
    if name in emitted:
        return name
    emitted[name] = ""  # in its place before what it uses is looked at: functions may call each other
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise ValueError(f"{function.__qualname__}: give it a `def`: only a function's own source travels.")
    tree.name, tree.decorator_list = name, []
    before: list[str] = []
    tree = _Uses(function.__globals__, before, emitted, imports).visit(tree)
    del emitted[name]
    emitted.update({text: text for text in before if text not in emitted})
    emitted[name] = ast.unparse(ast.fix_missing_locations(tree))
    return name


class _Uses(ast.NodeTransformer):
    """Gives what a function takes from its module a name of its own, and notes it."""

    def __init__(
        self,
        scope: Mapping[str, Any],
        before: list[str],
        emitted: dict[str, str],
        imports: dict[str, None],
    ) -> None:
        self.scope, self.before, self.emitted, self.imports = scope, before, emitted, imports

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:  # noqa: N802 - ast's own name
        owner = self.scope.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if isinstance(owner, ModuleType) and owner.__name__.startswith(OURS):
            return ast.copy_location(self._known(getattr(owner, node.attr), node.attr), node)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:  # noqa: N802 - ast's own name
        if not isinstance(node.ctx, ast.Load) or node.id not in self.scope:
            return node
        return ast.copy_location(self._known(self.scope[node.id], node.id), node)

    def _known(self, value: Any, name: str) -> ast.AST:
        if isinstance(value, ModuleType):
            self.imports[value.__name__] = None
        elif isinstance(value, FunctionType) and value.__module__.startswith(OURS):
            name = _emit(value, self.emitted, self.imports)
        elif isinstance(value, (int, float, str, tuple)):
            self.before.append(f"{name} = {value!r}")
        return ast.Name(name, ast.Load())


if __name__ == "__main__":
    import importlib

    asked, *kind = sys.argv[1:]
    chosen = importlib.import_module(f"{OURS}.{asked}").experiment
    print(json.dumps(definition(chosen, *kind), indent=2))
