"""kernels.stream: copy and triad move the bytes that the bandwidth ceiling is computed from."""

from kernels.stream import plan


def test_a_large_vector_gets_blocks_of_16_kib_and_a_small_one_more_programs():
    assert plan(2**28, "fp32", "sm_90").block * 4 == plan(2**28, "bf16", "sm_90").block * 2 == 16384
    assert plan(2**18, "fp32", "sm_90").block == 1024
