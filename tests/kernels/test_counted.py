"""kernels.evidence.counted: it counts what kernels do, names what they do wrong, and cleans up."""

from dataclasses import replace

import pytest
import torch

from book.cost import Cost
from kernels import linear
from kernels.contract.devices import tl, triton
from kernels.contract.errors import PhysicsDisagrees
from kernels.evidence import counted
from kernels.evidence.counted.tally import OutOfBounds

SIZES = {"m": 3, "k": 64, "n": 96}


@triton.jit
def gather_kernel(x_ptr, y_ptr, n, STEP: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets // STEP * STEP, mask=offsets < n, other=0.0)
    tl.store(y_ptr + offsets, x, mask=offsets < n)


@triton.jit
def shift_kernel(x_ptr, y_ptr, shift, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + shift + offsets))


def _shift(x, y, shift, block=16):
    with counted.count():
        shift_kernel[(1,)](x, y, shift, BLOCK=block)


def test_the_four_byte_counts():
    x, y = torch.ones(64), torch.empty(64)
    with counted.count() as tally:
        for _ in range(2):
            gather_kernel[(1,)](x, y, 32, STEP=16, BLOCK=64)
    read, written = tally.reads()["x"], tally.writes()["y"]
    assert (read.unique, read.block, read.issued) == (2 * 4, 2 * 2 * 4, 2 * 32 * 4)
    offset = x.data_ptr() % 32
    assert read.sector == 2 * 2 * 32
    assert written.sector == 2 * (128 if offset == 0 or y.data_ptr() % 32 == 0 else 160)
    assert tally.programs == 2


def test_masked_lanes_count_nowhere():
    x, y = torch.ones(64), torch.empty(64)
    with counted.count() as tally:
        gather_kernel[(1,)](x, y, 0, STEP=1, BLOCK=64)
    assert tally.reads() == tally.writes() == {}


@pytest.mark.parametrize("shift", [-1, 1, 10**6])
def test_an_access_outside_the_tensor_is_raised_with_its_name(shift):
    with pytest.raises(Exception, match=r"x: program \(0, 0, 0\) reads element -?\d+") as caught:
        _shift(torch.ones(16), torch.empty(16), shift)
    assert "OutOfBounds" in repr(caught.value)


def test_an_access_that_lands_in_another_tensor_is_no_access_to_that_one():
    both = torch.ones(64)
    x, y = both[:16], both[32:48]
    with pytest.raises(Exception, match=r"x: program .* reads element 32"):
        _shift(x, y, 32)


def test_the_gaps_of_a_strided_view_are_not_its_own():
    x = torch.ones(16, 8)[:, :4]
    with pytest.raises(Exception, match=r"x: program .* reads element 4, "):
        _shift(x, torch.empty(16), 0)


def test_the_interpreter_is_restored_after_success_and_after_errors():
    from triton.runtime import interpreter

    watched = interpreter.interpreter_builder, interpreter.GridExecutor, interpreter.ReduceOps
    before = tuple(dict(vars(one)) for one in watched)
    _shift(torch.ones(16), torch.empty(16), 0)
    during = {}
    with pytest.raises(ZeroDivisionError), counted.count():
        during.update(vars(watched[0]))
        raise ZeroDivisionError
    with pytest.raises(Exception, match="x: program"):
        _shift(torch.ones(16), torch.empty(16), 1)
    after = tuple(dict(vars(one)) for one in watched)
    for state in (*before, *after):  # where the last launch was is the interpreter's own
        state.pop("grid_idx", None), state.pop("grid_dim", None)
    assert after == before
    assert "create_masked_load" in during


@triton.jit
def arithmetic_kernel(x_ptr, y_ptr, OP: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    r, c = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + r[:, None] * COLUMNS + c[None, :])
    if OP == "sum of rows":
        tl.store(y_ptr + r, tl.sum(x, axis=1))
    elif OP == "sum of all":
        tl.store(y_ptr, tl.sum(x))
    elif OP == "sum of whole numbers":
        tl.store(y_ptr + c, tl.sum(x.to(tl.int32), axis=0).to(tl.float32))
    elif OP == "products and their sum":
        tl.store(y_ptr + c, tl.sum(x * x, axis=0) + 1.0)
    elif OP == "max":
        tl.store(y_ptr + r, tl.max(x, axis=1))
    elif OP == "exp2":
        tl.store(y_ptr + r, tl.max(tl.exp2(x), axis=1))
    elif OP == "exp of a difference":
        tl.store(y_ptr + r, tl.sum(tl.exp(x - tl.max(x, axis=1)[:, None]), axis=1))
    elif OP == "division":
        tl.store(y_ptr + r, tl.max(x / 3.0, axis=1))
    elif OP == "root":
        tl.store(y_ptr + r, tl.max(tl.rsqrt(x), axis=1))


@pytest.mark.parametrize(
    ("op", "flops", "special"),
    [
        ("sum of rows", 4 * 7, 0),
        ("sum of all", 31, 0),
        ("sum of whole numbers", 0, 0),
        ("products and their sum", 2 * 32, 0),
        ("max", 0, 0),
        ("exp2", 0, 32),
        ("exp of a difference", 32 + 4 * 7, 32),
        ("division", 0, 32),
        ("root", 0, 32),
    ],
)
def test_sums_are_flops_and_special_functions_are_not(op, flops, special):
    x, y = torch.rand(4, 8) + 1, torch.zeros(8)
    with counted.count() as tally:
        arithmetic_kernel[(1,)](x, y, OP=op, ROWS=4, COLUMNS=8)
    assert (tally.alu_flops, tally.sfu_ops, tally.dot_flops) == (flops, special, 0)
    assert y[0] != 0


def test_two_tensors_under_one_name_are_kept_apart():
    x, y, other = torch.ones(16), torch.empty(16), torch.ones(16)
    with counted.count() as tally:
        shift_kernel[(1,)](x, y, 0, BLOCK=16)
        shift_kernel[(1,)](other, y, 0, BLOCK=8)
    assert {name: t.unique for name, t in tally.reads().items()} == {"x": 64, "x'": 32}
    assert tally.writes()["y"].unique == 64


# ---------------------------------------------------------------- when formula and kernel differ


def _wrong(**changes):
    experiment = replace(linear.experiment, **changes)
    counted.run(experiment, **SIZES).check(experiment)


def _cost(m, k, n, itemsize=2, **changes):
    right = {"reads": {"x": m * k * 2, "w": k * n * 2}, "writes": {"y": m * n * 2}}
    return Cost(2 * m * k * n, **{**right, **changes})


def test_a_formula_with_too_many_bytes_is_caught_by_tensor():
    wrong = {"x": 3 * 64 * 2, "w": 2 * 64 * 96 * 2}
    with pytest.raises(
        PhysicsDisagrees, match=r"linear \(m = 3.*reads of w.* expected 24,576 .*counted 12,288"
    ):
        _wrong(cost=lambda **s: _cost(**s, reads=wrong))


def test_a_formula_that_forgets_a_tensor_is_caught():
    with pytest.raises(PhysicsDisagrees, match=r"writes of y, bytes: expected 0 .*counted 576"):
        _wrong(cost=lambda **s: _cost(**s, writes={}))


def test_unpadded_flops_are_caught():
    with pytest.raises(PhysicsDisagrees, match=r"FLOPs issued: expected 36,864 .*counted"):
        _wrong(issued=lambda plan, **s: _cost(**s))


def test_a_wrong_product_is_caught():
    with pytest.raises(PhysicsDisagrees, match=r"relative error .* allowed 0\.002"):
        _wrong(reference=lambda x, w: 1.01 * (x.double() @ w.double()))


def test_a_product_that_is_not_a_number_is_caught():
    with pytest.raises(PhysicsDisagrees, match=r"relative error nan"):
        _wrong(reference=lambda x, w: float("nan") * (x.double() @ w.double()))


def test_sizes_must_be_the_experiments():
    with pytest.raises(ValueError, match=r"sizes = \['m', 'q'\]: linear needs exactly m, k, n"):
        counted.run(linear.experiment, m=1, q=2)


def test_a_pointer_made_from_nothing_known_is_refused():
    @triton.jit
    def wild_kernel(y_ptr):
        pointer = (y_ptr.to(tl.int64) + 4096).to(tl.pointer_type(tl.float32))
        tl.store(y_ptr, tl.load(pointer))

    with pytest.raises(Exception, match="no tensor argument it was made from is known"), counted.count():
        wild_kernel[(1,)](torch.empty(1))
    assert issubclass(OutOfBounds, IndexError)
