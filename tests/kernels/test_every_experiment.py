"""What holds of every kernel, written once over their tables: right, exact, refused, compiled.

A new kernel file is tried here as it is; its own test file keeps only what is its own.
"""

import ast
import itertools
import json

import pytest
import torch

from kernels.contract.axes import axes
from kernels.contract.definition import definition
from kernels.contract.targets import target
from kernels.evidence import counted
from kernels.evidence.experiments import all_experiments
from tests.kernels.ragged import ragged, smallest

ALL = all_experiments()
DTYPES = {
    name: [d for d in one.dtypes if one.operands(d) != "bf16"]  # which the interpreter multiplies wrongly
    for name, one in ALL.items()
}


@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n, dtypes in DTYPES.items() for d in dtypes])
def test_results_bytes_and_flops_are_exact_in_both_orders_at_ragged_sizes_and_nothing_is_written_twice(
    name, dtype
):
    cases = ragged(ALL[name])
    for sizes in cases if dtype == DTYPES[name][0] else cases[:3]:  # the masks are the same in each
        row = counted.run(ALL[name], dtype=dtype, **sizes)
        row.check(ALL[name])
        assert (row.race, row.disagreement, row.atomics, row.uneven) == ("", "", 0, ()), sizes
        assert not {n: t for n, t in row.writes.items() if t.block != t.unique}, sizes


@pytest.mark.parametrize("name", ALL)
def test_the_table_and_the_formula_give_the_same_bytes_also_at_the_sizes_that_only_a_gpu_runs(name):
    one = ALL[name]
    for dtype in one.dtypes:
        for rung in ("timed", "compiled"):
            sizes = {k: v if isinstance(v, int) else v[-1] for k, v in one.sweep[rung].items()}
            formula, table = one.formula(dtype, **sizes), one.compulsory(dtype, **sizes)
            own = [
                {n: size for n, size in terms.items() if n not in formula.workspace}
                for terms in (formula.reads, formula.writes)
            ]
            assert own == [dict(table.reads), dict(table.writes)]


@pytest.mark.parametrize("name", ALL)
def test_inputs_are_the_same_for_a_seed_and_none_is_all_zeros_unless_the_table_says_so(name):
    one = ALL[name]
    sizes = smallest(one)
    first, again, other = (one.inputs(**sizes, seed=seed) for seed in (0, 0, 1))
    for key, x in first.items():
        if isinstance(x, torch.Tensor):
            assert torch.equal(x.double(), again[key].double())
            if not one.tensors[key].table:
                assert (x.double() == 0).all() == (one.tensors[key].fill == "zeros")
    assert any(not torch.equal(first[k].double(), other[k].double()) for k in first if k in one.tensors)


def layouts(x):
    """(what it is, the same numbers laid out otherwise in memory), with NaN in every gap."""
    for i in range(x.ndim):
        if x.shape[i] > 1:
            shape = [2 * n if j == i else n for j, n in enumerate(x.shape)]
            apart = torch.full(shape, float("nan"), dtype=x.dtype)
            step = tuple(slice(None, None, 2) if j == i else slice(None) for j in range(x.ndim))
            apart[step] = x
            yield f"gaps along axis {i}", apart[step]
    for i, j in itertools.combinations(range(x.ndim), 2):
        if x.shape[i] > 1 and x.shape[j] > 1:
            yield f"axes {i} and {j} swapped", x.transpose(i, j).contiguous().transpose(i, j)


@pytest.mark.parametrize("name", ALL)
def test_tensors_are_read_where_they_lie_whatever_their_strides_or_refused(name):
    one, sizes = ALL[name], smallest(ALL[name])
    dtype = one.default_dtype()
    expected = one.expected(one.inputs(**sizes))
    tensors = {key: x for key, x in one.inputs(**sizes).items() if key in one.tensors}
    accepted: dict[str, list] = {}  # of several tensors each takes its first other layout in one run
    for key, x in tensors.items():
        if one.tensors[key].table:
            continue
        for what, view in layouts(x):
            try:
                one.check(**{**tensors, key: view})
            except ValueError as refused:
                assert f"{key}.stride()" in str(refused), (what, refused)
            else:
                accepted.setdefault(key, []).append(view)
    for turn in range(max(map(len, accepted.values()), default=0)):
        views = {key: mine[turn] for key, mine in accepted.items() if turn < len(mine)}
        strides = {key: view.stride() for key, view in views.items()}
        with counted.count(views) as tally:  # what lies in a gap is none of the tensor's
            results = one.results({**one.inputs(**sizes), **views})
        assert tally.race == "", strides
        assert counted.relative_error(results, expected) <= one.tolerance(dtype), strides
    assert accepted or {t.shape for t in one.tensors.values()} == {"n"}, "vectors must be dense, others not"


# ------------------------------------------------------------------------------------------ refusals


def broken(one, inputs):
    """(what was broken, the inputs with one tensor broken) for everything that a table rules out."""
    for key, x in inputs.items():
        if key not in one.tensors:
            continue
        tensor, rank = one.tensors[key], x.ndim
        yield f"{key} is a list", {**inputs, key: [1.0]}
        yield f"{key} has one dimension more", {**inputs, key: x[None]}
        yield f"{key} is empty", {**inputs, key: x.narrow(rank - 1, 0, 0)}
        yield f"{key} lies elsewhere", {**inputs, key: x.to("meta")}
        yield f"{key} is double", {**inputs, key: x.to("cpu", torch.float64)}
        if not tensor.table:
            yield f"{key} is whole numbers", {**inputs, key: torch.ones(x.shape, dtype=torch.int32)}
        shared = [
            i
            for i, axis in enumerate(axes(tensor.shape))
            if any(axis in axes(t.shape) for k, t in one.tensors.items() if k in inputs and k != key)
        ]
        for i in shared:
            longer = torch.cat([x, x], i)
            yield f"{key} is too long along {axes(tensor.shape)[i]}", {**inputs, key: longer}
        if tensor.side_by_side and rank > 1 and min(x.shape[-2:]) > 1:
            apart = x.mT.contiguous().mT
            yield f"{key} has numbers apart", {**inputs, key: apart}


@pytest.mark.parametrize("name", ALL)
def test_a_tensor_that_its_table_rules_out_is_named_with_its_value_and_the_remedy(name):
    one = ALL[name]
    inputs = one.inputs(**smallest(one))
    tried = 0
    for what, wrong in broken(one, inputs):
        with pytest.raises((TypeError, ValueError)) as refused:
            one.run(**wrong)
        said = str(refused.value)
        field, _, rest = said.partition(" = ")
        assert field.split(".")[0] in (*one.tensors, *one.sizes), (what, said)
        assert ": " in rest and any(
            verb in rest for verb in ("use ", "pass ", "make ", "reshape", "give ", "pad ")
        ), (what, said)
        tried += 1
    assert tried >= 4


@pytest.mark.parametrize("name", ALL)
def test_bf16_is_refused_in_the_interpreter_and_said_why(name):
    one = ALL[name]
    if "bf16" not in one.dtypes or not DTYPES[name]:
        return  # nothing to refuse; that it is not counted then is said by `counted.interpretable`
    inputs = {
        k: x.bfloat16() if isinstance(x, torch.Tensor) and x.is_floating_point() else x
        for k, x in one.inputs(**smallest(one), dtype=DTYPES[name][0]).items()
    }
    with pytest.raises(TypeError, match=r"\.dtype = bf16: Triton's interpreter multiplies bf16 wrongly; use"):
        one.run(**inputs)


@pytest.mark.parametrize("name", ALL)
def test_a_plan_that_cannot_be_made_says_why(name):
    one = ALL[name]
    good = smallest(one)
    for size in one.sizes:
        for value in (0, 2.5, True):
            with pytest.raises(ValueError, match=rf"{size} = {value!r}: a size must be a whole number"):
                one.plan(**{**good, size: value})
    with pytest.raises(ValueError, match="target = 'sm_42': not known here; choose one of sm_75"):
        one.plan(**good, target="sm_42")
    with pytest.raises(ValueError, match="dtype = 'complex': these kernels do not take it; use"):
        one.plan(**good, dtype="complex", target="sm_90")
    for dtype in one.dtypes:
        if dtype not in one.mixed and not target("sm_75").has(dtype):
            with pytest.raises(ValueError, match=rf"dtype = '{dtype}': T4 \(sm_75\) has none; use"):
                one.plan(**good, dtype=dtype, target="sm_75")


def breaking(condition, sizes):
    """These sizes with one of the condition's changed so that it no longer holds."""
    limits = {node.value for node in ast.walk(ast.parse(condition)) if isinstance(node, ast.Constant)}
    tried = sorted({1, 2, 3, 5, 7, 2**16, *(n + d for n in limits for d in (-1, 0, 1) if n + d > 0)})
    for name, value in itertools.product(sorted(_names(condition)), tried):
        other = {**sizes, name: value}
        if not eval(condition, {}, dict(other)):
            return other
    pytest.fail(f"{condition}: none of {tried} breaks it; a condition that always holds says nothing")


@pytest.mark.parametrize(("name", "condition"), [(n, c) for n, one in ALL.items() for c in one.conditions])
def test_conditions_refuse_by_name_value_and_reason(name, condition):
    one = ALL[name]
    sizes = breaking(condition, smallest(one))
    with pytest.raises(ValueError) as refused:
        one.plan(**sizes)
    concerned = ", ".join(f"{n} = {sizes[n]}" for n in one.sizes if n in _names(condition))
    assert str(refused.value) == f"{concerned}: {one.conditions[condition]}."


def _names(condition):
    return {node.id for node in ast.walk(ast.parse(condition)) if isinstance(node, ast.Name)}


# ------------------------------------------------------------------------------------ storage, roofs


@pytest.mark.parametrize("name", ALL)
def test_each_experiment_says_the_units_that_its_kernels_use(name):
    one, chip = ALL[name], target("sm_90")
    sizes = {k: v if isinstance(v, int) else v[-1] for k, v in one.sweep["compiled"].items()}
    dtype = one.best_dtype(chip)
    launches = one.meta_launches(one.plan(**sizes, dtype=dtype, target=chip), dtype, **sizes)
    assert any(_calls_dot(launch.kernel, set()) for launch in launches) == (one.unit == "matrix")


def _calls_dot(kernel, seen):
    """Whether a kernel calls tl.dot, itself or through a helper."""
    function = getattr(kernel, "fn", None)
    if function is None or function in seen:
        return False
    seen.add(function)
    names = function.__code__.co_names
    return "dot" in names or any(_calls_dot(function.__globals__.get(n), seen) for n in names)


# -------------------------------------------------------------------------- FlashInfer's definitions

FLASHINFER_DTYPES = {"float32", "float16", "bfloat16", "float8_e4m3fn", "int32", "int64", "int8"}


@pytest.mark.parametrize("name", ALL)
def test_its_definition_in_flashinfers_schema_is_whole_and_its_reference_runs_alone(name):
    one = ALL[name]
    made = json.loads(json.dumps(definition(one)))
    assert set(made) >= {"name", "op_type", "axes", "inputs", "outputs", "reference"}
    assert not set(made["inputs"]) & set(made["outputs"]) and made["outputs"]
    for spec in (*made["inputs"].values(), *made["outputs"].values()):
        assert spec["dtype"] in FLASHINFER_DTYPES
        assert spec["shape"] is None or set(spec["shape"]) <= set(made["axes"])
    for axis in made["axes"].values():
        assert axis["type"] == "var" or (axis["type"] == "const" and axis["value"] >= 1)
    for condition in made["constraints"]:
        ast.parse(condition, mode="eval")

    inputs = one.inputs(**smallest(one))
    expected = one.expected(inputs)
    alone: dict = {}
    exec(made["reference"], alone)  # in a namespace of its own: nothing of ours is there
    defined = [node.name for node in ast.parse(made["reference"]).body if isinstance(node, ast.FunctionDef)]
    assert defined[-1] == "run"
    got = alone["run"](*(inputs[name] for name in made["inputs"]))  # in the order of the interface
    got = got if isinstance(got, tuple) else (got,)
    assert len(got) == len(made["outputs"]) == len(expected)
    for mine, theirs in zip(expected, got, strict=True):
        assert torch.allclose(mine.double(), theirs.double(), rtol=1e-3, atol=1e-3)


def test_every_experiment_has_a_key_of_its_own_and_main_ones_come_first():
    assert len(ALL) == len(set(ALL)) and all("." in k or ALL[k].name == k for k in ALL)
