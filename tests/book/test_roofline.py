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
    with pytest.raises(ValueError, match="broken: link = 0: must be positive"):
        Roof("broken", 1e12, 1e12, 0)


# ------------------------------------------------------------------------- the third roof


def test_a_rank_takes_as_long_as_the_slowest_of_arithmetic_memory_and_link():
    assert roofline.time(6, 8, peak=1, bandwidth=1, sent=9, link=1) == 9
    assert roofline.time(6, 8, peak=1, bandwidth=1, sent=9, link=2) == 8
    assert roofline.time(6, 8, peak=1, bandwidth=2, sent=9, link=2) == 6
    assert roofline.time_serial(6, 8, peak=1, bandwidth=2, sent=9, link=2) == 6 + 4 + 4.5


def test_with_nothing_sent_a_link_changes_nothing():
    assert roofline.time(6, 8, 1, 1, 0, 5) == roofline.time(6, 8, 1, 1)
    assert roofline.time_serial(6, 8, 1, 1, 0, 5) == roofline.time_serial(6, 8, 1, 1)


def test_bytes_to_send_need_a_link():
    for sent in (1, np.array([0, 1]), sympy.Symbol("s", positive=True)):
        with pytest.raises(ValueError, match="link = None: bytes that are sent need a link; give link"):
            roofline.time(1, 1, 1, 1, sent)
    with pytest.raises(ValueError, match="need a link"):
        Roof("alone", 1e12, 1e12).bound(cost.linear_row_parallel(1, 64, 64, 2))


@pytest.mark.parametrize("link", [450e9, 32e9])
def test_a_slow_link_is_what_a_row_parallel_layer_waits_for(link):
    h100 = Roof("H100", 989.4e12, 3.35e12, link)
    c = cost.linear_row_parallel(512, 8192, 8192, 8)
    times = {"compute": c.flops / h100.peak, "memory": c.bytes / h100.bandwidth, "link": c.sent_bytes / link}
    assert h100.bound(c) == max(times, key=times.get) == "link"
    assert h100.time(c) == max(times.values())


def test_one_row_over_nvlink_still_waits_for_its_weights():
    assert (
        Roof("H100", 989.4e12, 3.35e12, 450e9).bound(cost.linear_row_parallel(1, 8192, 8192, 8)) == "memory"
    )


def test_the_third_roof_takes_arrays_and_symbols():
    sent = np.array([0, 6, 12])
    assert roofline.time(8, 8, 2, 2, sent, 1) == pytest.approx([4, 6, 12])
    f, q, p, b, s, lk = sympy.symbols("f q p b s l", positive=True)
    assert roofline.time(f, q, p, b, s, lk) == sympy.Max(f / p, q / b, s / lk)
    assert roofline.time_serial(f, q, p, b, s, lk) == f / p + q / b + s / lk
