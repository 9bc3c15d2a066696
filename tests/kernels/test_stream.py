"""kernels.stream: copy and triad move the bytes that the bandwidth ceiling is computed from."""

import pytest
import torch

from kernels.evidence import counted
from kernels.stream import copy, experiment, plan, triad, triad_experiment


@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
@pytest.mark.parametrize("n", [1, 37, 4096, 100_003])
@pytest.mark.parametrize("kernel", [experiment, triad_experiment], ids=["copy", "triad"])
def test_result_bytes_and_flops_are_exact(kernel, n, dtype):
    counted.run(kernel, n=n, dtype=dtype).check(kernel)


def test_a_large_vector_gets_blocks_of_16_kib_and_a_small_one_more_programs():
    assert plan(2**28, "fp32", "sm_90").block * 4 == plan(2**28, "bf16", "sm_90").block * 2 == 16384
    assert plan(2**18, "fp32", "sm_90").block == 1024


V = torch.ones(64)
BAD = {
    "nothing": (V[:0], V[:0], r"a\.shape = \(0,\): every size must be at least 1"),
    "a matrix": (V.reshape(8, 8), V, r"a\.shape = \(8, 8\): triad needs a\[n\], 1 dimension"),
    "two lengths": (V, V[:8], r"b\.shape = \(8,\), a\.shape = \(64,\): triad needs one length"),
    "strided": (V[::2], V[::2], r"a\.stride\(\) = \(2,\): .*use a\.contiguous\(\)"),
    "integers": (V.int(), V.int(), r"a\.dtype = int32: triad runs in"),
    "wrong device": (V.to("meta"), V.to("meta"), r"a\.device = meta: triad runs on"),
}


@pytest.mark.parametrize("mistake", BAD)
def test_a_wrong_vector_is_named_with_the_remedy(mistake):
    a, b, sentence = BAD[mistake]
    with pytest.raises((ValueError, TypeError), match=sentence):
        triad(a, b)


def test_copy_refuses_bf16_in_the_interpreter():
    with pytest.raises(TypeError, match=r"x\.dtype = bf16"):
        copy(V.bfloat16())
