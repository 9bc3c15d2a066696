"""The roofline against the numbers of chapter 01."""

import numpy as np
import pytest
import sympy

from book import catalog, cost, roofline
from book.roofline import Roof


@pytest.mark.parametrize(
    ("card", "dtype", "printed"),
    [
        ("a100_80gb_sxm", "bf16", 153.0),
        ("a100_40gb_sxm", "bf16", 200.6),
        ("h100_sxm", "bf16", 295.3),
        ("h200_sxm", "bf16", 206.1),
        ("b200", "bf16", 281.3),
        ("mi300x", "bf16", 246.7),
        ("t4", "fp16", 203.1),
        ("l4", "bf16", 403.3),
        ("h100_sxm", "fp8", 590.7),
    ],
)
def test_ridges(card, dtype, printed):
    a = catalog.accelerator(card)
    assert Roof(a.name, a.peak(dtype), a.bandwidth).ridge == pytest.approx(printed, abs=0.06)


def test_attainable_doubles_until_the_ridge_then_stays():
    h100 = Roof("H100", 989.4e12, 3.35e12)
    got = h100.attainable(np.array([1, 2, 4, 256, 512, 1024])) / 1e12
    assert got == pytest.approx([3.35, 6.7, 13.4, 857.6, 989.4, 989.4])


def test_time_is_the_longer_of_the_two_and_serial_time_their_sum():
    h100 = Roof("H100", 989.4e12, 3.35e12)
    c = cost.linear(1, 8192, 8192)
    assert h100.time(c) == c.bytes / 3.35e12
    assert h100.bound(c) == "memory"
    big = cost.linear(8192, 8192, 8192)
    assert h100.time(big) == big.flops / 989.4e12
    assert h100.bound(big) == "compute"
    serial = roofline.time_serial(big.flops, big.bytes, 989.4e12, 3.35e12)
    assert h100.time(big) < serial < 2 * h100.time(big)


def test_floor_and_attainable_are_the_same_statement():
    h100 = Roof("H100", 989.4e12, 3.35e12)
    for m in (1, 37, 295, 4096):
        c = cost.linear(m, 4096, 14336)
        assert c.flops / h100.time(c) == pytest.approx(h100.attainable(c.intensity))


def test_symbols_pass_through():
    i, f, b = sympy.symbols("I F beta", positive=True)
    assert roofline.attainable(i, f, b) == sympy.Min(f, i * b)
    assert roofline.time(i, f, f, b) == sympy.Max(i / f, f / b)


def test_a_roof_without_height_is_refused():
    with pytest.raises(ValueError, match="broken: bandwidth = 0: must be positive"):
        Roof("broken", 1e12, 0)
