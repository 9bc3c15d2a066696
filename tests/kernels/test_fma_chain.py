"""kernels.fma_chain: k multiply-adds an element for one read and one write."""

import pytest
import torch

from kernels.evidence import counted
from kernels.fma_chain import experiment, fma_chain


def test_k_is_a_dial_for_the_intensity():
    one, many = (counted.run(experiment, n=2048, k=k) for k in (1, 32))
    assert many.bytes() == one.bytes()
    assert many.flops == 32 * one.flops
    assert one.flops / one.bytes() == 1 / 4


@pytest.mark.parametrize("k", [0, -1, 1.5])
def test_a_chain_needs_links(k):
    with pytest.raises(ValueError, match=rf"k = {k}: a size must be a whole number of at least 1"):
        fma_chain(torch.ones(8), k)
