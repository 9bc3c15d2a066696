"""Numbers more than 2^31 apart in memory: every tensor of every kernel, in memory that is never touched."""

from __future__ import annotations

import mmap
from dataclasses import replace
from math import prod

import pytest
import torch
from triton.runtime import interpreter
from triton.runtime.interpreter import interpreter_builder

from kernels.contract import devices
from kernels.contract.axes import axes
from kernels.evidence import counted
from kernels.evidence.counted import shortcuts
from kernels.evidence.experiments import all_experiments
from tests.kernels.ragged import ragged

ALL = all_experiments()
FAR = 2**31  # the first offset that 32 bits with a sign don't hold
NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)  # only what is touched takes memory


def contiguous(shape):
    """The strides of a tensor without gaps."""
    return tuple(prod(shape[i + 1 :]) for i in range(len(shape)))


def untouched(shape, dtype, stride=None):
    """A tensor of zeros of any size: pages that nobody touches don't exist.

    FAR numbers before it and behind it are zeros, too: there an offset of 32 bits would end up.
    """
    stride = stride or contiguous(shape)
    numbers = 2 * FAR + 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE
    memory = mmap.mmap(-1, numbers * dtype.itemsize, flags=private)
    return torch.frombuffer(memory, dtype=dtype).as_strided(shape, stride, FAR)


def apart(x, axis, step=0):
    """The same numbers, those of one axis `step` apart, by default so far that the last lies beyond FAR."""
    step = step or -(-FAR // (x.shape[axis] - 1)) // 16 * 16 + 16
    stride = list(contiguous(x.shape))
    stride[axis] = max(step, stride[axis])
    return untouched(x.shape, x.dtype, stride).copy_(x)


# A stride that 32 bits hold, and not its multiples: a block of numbers is further than they reach.
STEP = 2**26
# Sizes of several blocks, where no other case has any.
LONGER = {"gemv": [{"m": 1, "k": 70_000, "n": 3}]}  # more than each of 64 splits takes at once


def far_axes(one):
    """(tensor, axis, sizes, stride) of each axis of each input that has three numbers or more.

    Once the cheapest case, once the longest one, in which a kernel goes from block to block; there in the
    widest stride that the launcher takes, if it has a limit.
    """
    dtype = one.default_dtype()
    cases = [*ragged(one), *LONGER.get(one.key, [])]
    cases = sorted(cases, key=lambda sizes: one.formula(dtype, **sizes).bytes)
    made = [one.inputs(**sizes) for sizes in cases]
    for name, tensor in one.tensors.items():
        if tensor.out or tensor.optional:
            continue
        for i, axis in enumerate(axes(tensor.shape)):
            lengths = [inputs[name].shape[i] for inputs in made]
            most = max(lengths)
            if most > 2:
                yield name, i, next(s for s, n in zip(cases, lengths, strict=True) if n > 2), 0
                step = min(tensor.within.get(axis, STEP) - 16, STEP)
                yield name, i, cases[lengths.index(most)], step


def runs(one):
    """(sizes, {tensor: (axis, stride)}): in each run as many tensors as possible, of each one axis."""
    found = []
    for name, axis, sizes, step in far_axes(one):
        for others, far in found:
            if others == sizes and name not in far:
                far[name] = axis, step
                break
        else:
            found.append((sizes, {name: (axis, step)}))
    return found


def wrong(one, inputs, expected):
    """What is wrong with the results, or with the run; "" if nothing is."""
    try:
        error = counted.relative_error(one.results(inputs), expected)
    except Exception as stopped:  # noqa: BLE001 - the interpreter found an overflow, whose culprit is asked for
        return str(stopped)
    return "" if error <= one.tolerance(one.default_dtype()) else f"relative error {error:.1g}"


def taken(one, inputs, name, far, axis, step):
    """Whether the launcher takes `far`, this tensor with one axis far apart; if not, it says why."""
    assert step or far.stride(axis) * (far.shape[axis] - 1) >= FAR
    try:
        one.check(**{key: x for key, x in {**inputs, name: far}.items() if key in one.tensors})
    except ValueError as refused:
        assert f"{name}.stride()" in str(refused) and f"use {name}.contiguous()" in str(refused)
        assert not step or one.tensors[name].side_by_side and axis == far.ndim - 1
        return False
    return True


@pytest.fixture
def quick(monkeypatch):
    """The interpreter takes its shortcuts, and still looks for overflows of 32 bits, as it does by itself."""
    shortcuts.take(
        lambda one, name, make: monkeypatch.setattr(one, name, make(getattr(one, name))), interpreter
    )


@pytest.mark.parametrize(
    ("key", "sizes", "far"),
    [
        pytest.param(key, sizes, far, id=f"{key}: {', '.join(f'{n} along {i}' for n, (i, _) in far.items())}")
        for key, one in ALL.items()
        for sizes, far in runs(one)
    ],
)
def test_a_tensor_is_read_and_written_beyond_two_to_the_31_numbers_or_refused(quick, key, sizes, far):
    one, inputs = ALL[key], ALL[key].inputs(**sizes)
    expected = one.expected(inputs)
    moved = {name: apart(inputs[name], *where) for name, where in far.items()}
    moved = {name: x for name, x in moved.items() if taken(one, inputs, name, x, *far[name])}
    if moved and (what := wrong(one, {**inputs, **moved}, expected)):
        alone = {n: {**one.inputs(**sizes), n: apart(inputs[n], *far[n])} for n in moved}
        alone = [n for n, given in alone.items() if wrong(one, given, expected)]
        pytest.fail(f"{' and '.join(alone or moved)} far apart, {far} at {sizes}: {what}")


# Each sequence has a length of its own, so where these are many, deriving the sizes takes its time.
LONG = {"decode_attention.ragged": ("heads",)}


def far_sizes(one, name):
    """Sizes, as small as its conditions allow, at which this output has more than FAR numbers."""
    for base in sorted(ragged(one), key=lambda sizes: prod(sizes.values())):
        for axis in LONG.get(one.key, axes(one.tensors[name].shape)):
            each = prod(one.tensors[name].lengths({**base, axis: 1}, one.default_dtype()))
            far = {**base, axis: FAR // each + 2}
            if all(eval(condition, {}, dict(far)) for condition in one.conditions):
                return far
    raise ValueError(
        f"{one.key}: its conditions leave no axis of {name} that could be long; give it another."
    )


@pytest.fixture
def only_the_last_program(monkeypatch):
    """Launches start one program, the last of the grid."""
    whole, tell = interpreter_builder.set_grid_dim, interpreter_builder.set_grid_idx

    def start(launches, where):
        for one in launches:
            n = one.grid[0]
            monkeypatch.setattr(interpreter_builder, "set_grid_dim", lambda x, y, z, n=n: whole(n, y, z))
            monkeypatch.setattr(interpreter_builder, "set_grid_idx", lambda x, y, z, n=n: tell(n - 1, y, z))
            one.kernel[(1,)](*one.args, **one.options)

    monkeypatch.setattr(devices, "launch", start)


def planned_far(one, sizes, dtype):
    """Its plan; of persistent programs as many as tiles, so that the last of them has the last tile."""
    plan = one.plan(**sizes, dtype=dtype)
    if one.key == "matmul.persistent":
        return replace(plan, programs=plan.tile.tiles(sizes["m"], sizes["n"]))
    return plan


# A layer is made of kernels that stand here themselves.
LEFT_OUT = ("decode_layer", "decode_layer.context")
WHOLE = [one for key, one in ALL.items() if key not in LEFT_OUT]
OUTPUTS = [(one.key, name) for one in WHOLE for name, tensor in one.tensors.items() if tensor.out]


@pytest.mark.parametrize(("key", "name"), OUTPUTS)
def test_the_end_of_an_output_beyond_two_to_the_31_numbers_is_written(only_the_last_program, key, name):
    one, dtype = ALL[key], ALL[key].default_dtype()
    sizes = far_sizes(one, name)
    storage, made = one.storage(dtype), {}
    for other, tensor in one.tensors.items():
        if not tensor.optional:
            kind = devices.torch_dtype(storage(tensor))
            made[other] = untouched(tensor.lengths(one._all(sizes), storage(tensor)), kind)
    end = made[name].reshape(-1)[-1:]
    assert made[name].numel() > FAR
    end.fill_(float("nan"))
    plan = planned_far(one, sizes, dtype)
    devices.launch(one.launches(plan, **made, **{n: sizes[n] for n in one.arguments}), end.device)
    assert end.isfinite()


# How each is cut so that partial results, or scores, are more than FAR numbers, and sizes for it.
IN_PARTS = {
    "linear": ({"m": FAR // 64 + 2, "k": 256, "n": 64}, {"splits": 2, "reduce_block": 1024}),
    "gemv": ({"m": 1, "k": 8192, "n": FAR + 2}, {"splits": 2, "reduce_block": 1024}),
    "decode_attention": (
        {"batch": FAR // 64 + 2, "heads": 1, "kv_heads": 1, "head_dim": 64, "context": 128},
        {"splits": 2, "split_context": 64},
    ),
    "unfused_attention": (
        {"batch": FAR // 2**14 + 2, "heads": 1, "kv_heads": 1, "length": 128, "head_dim": 64},
        {},
    ),
}


@pytest.mark.parametrize("key", IN_PARTS)
def test_partial_results_beyond_two_to_the_31_numbers_are_found_again(
    only_the_last_program, monkeypatch, key
):
    one, dtype = ALL[key], ALL[key].default_dtype()
    sizes, cut = IN_PARTS[key]
    kind, made = devices.torch_dtype(dtype), {}
    for name, tensor in one.tensors.items():
        if not tensor.optional:
            made[name] = untouched(tensor.lengths(one._all(sizes), dtype), kind)
    for name in ("x", "v"):  # all that the last program multiplies is one, or adds up to one
        if name in made:
            made[name][-1].fill_(1)
    if "w" in made:
        made["w"][:, -1].fill_(1)
    workspaces = []

    def far_workspace(*shape, dtype, device):
        workspaces.append(untouched(shape, dtype))
        return workspaces[-1]

    plan = replace(one.plan(**sizes, dtype=dtype), **cut)
    with monkeypatch.context() as patch:
        patch.setattr(torch, "empty", far_workspace)
        launched = one.launches(plan, **made)
    devices.launch(launched, next(iter(made.values())).device)
    assert max(one.numel() for one in workspaces) > FAR
    (out,) = (made[name] for name, tensor in one.tensors.items() if tensor.out)
    assert out.reshape(-1)[-1] > 0


@pytest.mark.parametrize(
    "key", [key for key, one in ALL.items() if any(t.writes for t in one.tensors.values())]
)
def test_nothing_is_written_through_a_tensor_whose_numbers_share_a_place(key):
    one = ALL[key]
    sizes = next(s for s in ragged(one) if s["batch"] > 1)
    for name, tensor in one.tensors.items():
        if tensor.writes:
            inputs = one.inputs(**sizes)
            inputs[name] = inputs[name][:1].expand(inputs[name].shape)
            with pytest.raises(
                ValueError, match=rf"{name}.stride\(\) = \(0, .*give {name} memory of its own"
            ):
                one.run(**inputs)
