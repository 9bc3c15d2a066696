"""`rehearsal.torch_work`: what a simulated card is told of torch's operations, none of which is computed."""

import pytest
import torch
from torch.nn import functional

from kernels.evidence.rehearsal.torch_work import TorchWork


def told(work):
    """What it returned, and the operations that it told of, by their short names."""
    heard, waits = [], []
    with TorchWork(heard.append, lambda: waits.append(1)):
        made = work()
    return made, {one.name.removeprefix("aten.").partition(".")[0]: one for one in heard}, len(waits)


X, W = torch.ones(4, 8), torch.ones(8, 16)


def test_a_product_is_told_with_its_bytes_and_flops_and_is_not_computed():
    made, (heard), _ = told(lambda: X @ W)
    assert made.shape == (4, 16) and made.dtype == torch.float32 and made.device.type == "cpu"
    assert list(heard) == ["mm"]
    assert heard["mm"].moved == 4 * (4 * 8 + 8 * 16 + 4 * 16) and heard["mm"].flops == 2 * 4 * 8 * 16
    assert heard["mm"].dtype == "fp32" and heard["mm"].data == str(W.data_ptr())


def test_a_copy_moves_both_tensors_and_writes_nothing():
    y = torch.zeros(8, 16)
    made, heard, _ = told(lambda: y.copy_(W))
    assert made is y and not y.any()
    assert (heard["copy_"].moved, heard["copy_"].flops) == (2 * W.nbytes, 0)


def test_an_output_that_is_given_is_counted_once_and_returned():
    y = torch.zeros(8, 16)
    made, heard, _ = told(lambda: torch.add(W, W, alpha=3.0, out=y))
    assert made is y and not y.any() and heard["add"].moved == 2 * W.nbytes


def test_a_product_into_a_tensor_has_its_flops():
    _, heard, _ = told(lambda: torch.mm(X, W, out=torch.zeros(4, 16)))
    assert heard["mm"].flops == 2 * 4 * 8 * 16


def test_views_and_memory_cost_nothing():
    def work():
        x = torch.empty_like(W)
        return x.view(128), W.new_empty(3), torch.empty(5), W[0].expand(2, 16), W.transpose(0, 1)

    made, heard, _ = told(work)
    assert heard == {} and made[0].shape == (128,)
    assert made[4].data_ptr() == W.data_ptr(), "a view is one"


def test_a_broadcast_tensor_is_read_once():
    _, heard, _ = told(lambda: W[:1].expand(1000, 16) * 2)
    assert heard["mul"].moved == 16 * 4 * 8 + 1000 * 16 * 4  # all of the storage, at most


def test_random_numbers_are_not_drawn():
    made, _, _ = told(lambda: torch.randn(2**28, dtype=torch.float32).to(torch.bfloat16))
    assert made.dtype == torch.bfloat16 and made.numel() == 2**28


def test_attention_has_the_flops_of_its_two_products():
    q = torch.ones(1, 2, 32, 16, dtype=torch.bfloat16)
    made, heard, _ = told(lambda: functional.scaled_dot_product_attention(q, q, q, is_causal=True))
    assert made.shape == q.shape
    assert sum(one.flops for one in heard.values()) == 2 * 2 * 2 * 32 * 32 * 16


def test_a_number_that_python_reads_is_waited_for():
    assert told(lambda: X.sum().item())[2] == 1


def test_what_torch_can_not_say_without_the_numbers_is_computed():
    made, heard, _ = told(lambda: torch.nonzero(X))
    assert len(made) == 32 and "nonzero" in heard


def test_outside_all_is_as_it_was():
    told(lambda: X @ W)
    assert torch.equal(X @ W, torch.full((4, 16), 8.0))
    with pytest.raises(ZeroDivisionError), TorchWork(print, print):
        raise ZeroDivisionError
    assert (X @ W)[0, 0] == 8
