"""kernels.evidence.poison: what nobody wrote, and what a mask leaves out, is no lucky zero."""

import json

import numpy as np
import pytest
import torch

from kernels.evidence import child_process, counted, poison
from tests.kernels import racing_kernels as made
from tests.kernels import with_torch


def _sum_without_other(dtype, size=8):
    x, y = torch.ones(16, dtype=dtype), torch.empty(1, dtype=torch.float32)
    with counted.count():
        made.sum_without_other_kernel[(1,)](x, y, size, BLOCK=16)
    return y.item()


def test_a_kernel_that_forgets_other_gets_no_lucky_zero():
    assert np.isnan(_sum_without_other(torch.float32))
    assert np.isnan(_sum_without_other(torch.float16))
    assert _sum_without_other(torch.int32, size=15) > 1e9
    assert _sum_without_other(torch.float32, size=16) == 16


def test_without_the_count_it_looks_right():
    y = torch.empty(1)
    made.sum_without_other_kernel[(1,)](torch.ones(16), y, 8, BLOCK=16)
    assert y.item() == 8, "the interpreter's zeros: if they are gone, the poison may go as well"


@pytest.mark.parametrize("storage, torch_dtype", [("uint16", torch.bfloat16), ("uint8", torch.float8_e4m3fn)])
def test_poison_is_not_a_number_also_in_formats_that_numpy_lacks(storage, torch_dtype):
    bits = poison.like(np.zeros(3), np.dtype(storage), floating=True)
    assert torch.from_numpy(bits).view(torch_dtype).float().isnan().all()


@pytest.mark.parametrize("dtype, value", [("int8", 123), ("int32", 2_071_690_107), ("bool", True)])
def test_poison_of_whole_numbers_is_large(dtype, value):
    assert poison.like(np.zeros((2, 3)), np.dtype(dtype), floating=False).tolist() == [[value] * 3] * 2


def test_fresh_memory_is_poisoned_inside_the_count_and_only_there():
    before = torch.are_deterministic_algorithms_enabled()
    with counted.count():
        assert torch.empty(5).isnan().all()
        assert torch.empty(5, dtype=torch.int32).min() > 1e9
    assert torch.are_deterministic_algorithms_enabled() == before


def test_neither_poison_nor_a_watch_brings_torchs_compiler_along():
    """It takes a second to import, in every process that counts, executes or checks."""
    done = with_torch.python(
        "import json, sys, torch\n"
        "from kernels.contract.dispatch import Watch\n"
        "from kernels.evidence.poison import poisoned\n"
        "class All(Watch):\n"
        "    def __torch_dispatch__(self, func, types, args=(), kwargs=None):\n"
        "        return func(*args, **(kwargs or {}))\n"
        "with poisoned(), All():\n"
        "    full = torch.empty(3).isnan().all().item()\n"
        "names = [name for name in sys.modules if name in ('torch._dynamo', 'torch._inductor')]\n"
        "print(json.dumps([full, names]))\n",
        child_process.environment(interpret=False),
    )
    assert done.returncode == 0 and json.loads(done.stdout) == [True, []], done.stderr
