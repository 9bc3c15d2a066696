"""The banner of a lab, on each kind of machine: what it says is what will happen."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from kernels.contract import devices
from labs.kit import this_machine


@pytest.fixture
def card(monkeypatch):
    """Pretend that torch sees this card, and that Triton compiles for it."""

    def pretend(name: str, major: int, minor: int, gibibytes: int, mode: str = "compiled") -> None:
        properties = SimpleNamespace(name=name, major=major, minor=minor, multi_processor_count=40)
        size = gibibytes * 2**30
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index=0: properties)
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda index=0: (size - 2**30, size))
        monkeypatch.setattr(devices, "MODE", mode)
        devices._chip_here.cache_clear()

    yield pretend
    devices._chip_here.cache_clear()


def test_without_a_gpu_it_says_that_bytes_are_counted(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    found = this_machine.look()
    assert (found.mode, found.device, found.dtype) == ("counted", "cpu", "fp16")
    assert found.words[0] == "No GPU here."
    assert "Triton's interpreter" in found.words[1] and found.name in found.words[2]


def test_without_triton_it_says_that_kernels_cannot_run(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(devices, "MODE", "missing")
    found = this_machine.look()
    assert found.mode == "no triton"
    assert found.words[0].startswith("Triton is not installed") and "interpreter" not in repr(found)


def test_a_t4_gets_fp16_sizes_that_fit_and_fair_warning(card):
    card("Tesla T4", 7, 5, 16)
    found = this_machine.look()
    assert (found.mode, found.device, found.dtype) == ("gpu", "cuda", "fp16")
    assert found.torch_dtype is torch.float16
    assert found.largest < 4 * 2**30, "a quarter of what is free"
    words = repr(found)
    assert "Tesla T4, 16.0 GiB, 15.0 GiB free" in words and "Matrices are fp16" in words
    assert "older than Triton's tensor-core code" in words


def test_an_h100_gets_bf16_and_no_warning(card):
    card("NVIDIA H100 80GB HBM3", 9, 0, 80)
    found = this_machine.look()
    assert (found.mode, found.dtype, found.torch_dtype) == ("gpu", "bf16", torch.bfloat16)
    assert found.words[0].startswith("NVIDIA H100 80GB HBM3, 80.0 GiB")
    assert "Matrices are bf16" in repr(found) and "older" not in repr(found)
    assert "nothing was installed" in found.words[-1]


def test_a_card_that_is_too_old_is_named_with_a_remedy(card):
    card("Tesla P100-PCIE-16GB", 6, 0, 16)
    with pytest.raises(ValueError, match=r"compute capability = 6\.0: .* use a T4 or a newer card"):
        this_machine.look()


def test_in_a_notebook_a_name_cannot_become_markup(card):
    card("<b>Card</b>", 9, 0, 80)
    assert "&lt;b&gt;Card" in this_machine.look()._repr_html_()
