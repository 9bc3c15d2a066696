"""The impossible-result alarm, each usual mistake with a faked timing."""

import pytest

from book import catalog, cost, roofline
from kernels.contract.errors import ImpossibleResult
from kernels.evidence import alarm

H100 = catalog.accelerator("h100_sxm")
B200 = catalog.accelerator("b200")


def test_an_honest_measurement_raises_no_alarm():
    alarms = alarm.inspect(
        bytes_per_s=0.9 * H100.bandwidth,
        flops_per_s=0.7 * H100.peak("bf16"),
        bandwidth=H100.bandwidth,
        peak=H100.peak("bf16"),
        measured_bandwidth=0.91 * H100.bandwidth,
        measured_peak=0.75 * H100.peak("bf16"),
    )
    assert alarms == ()
    alarm.raise_if(alarms)


def test_data_that_sat_in_l2_is_more_bandwidth_than_the_card_has():
    work = cost.copy(2**22, 4)  # 32 MiB: inside the cache if nobody flushed it
    seconds = work.bytes / 5.5e12
    (found,) = alarm.inspect(bytes_per_s=work.bytes / seconds, bandwidth=H100.bandwidth)
    assert found.causes[0] == "l2"
    assert "164 % of the card's dense datasheet" in found.sentence
    with pytest.raises(ImpossibleResult, match="data sat in L2"):
        alarm.raise_if((found,))


def test_a_sparse_peak_shows_as_an_fp8_ratio_above_two():
    (found,) = alarm.dtype_ratio(fp8=H100.sparse_peaks["fp8"], bf16=H100.peak("bf16"))
    assert found.value == pytest.approx(4, rel=0.01)
    assert "sparse" in found.causes and "headline is often twice the dense rate" in found.sentence
    assert alarm.dtype_ratio(fp8=H100.peak("fp8"), bf16=H100.peak("bf16")) == ()


def test_another_card_s_measurement_beats_this_card_s_peak():
    found = alarm.inspect(flops_per_s=0.8 * B200.peak("bf16"), peak=H100.peak("bf16"))
    assert "card" in found[0].causes
    assert alarm.inspect(flops_per_s=0.8 * B200.peak("bf16"), peak=B200.peak("bf16")) == ()


def test_concurrency_taken_for_batch_beats_the_floor():
    asked, reached, weights = 256, 64, 16.06e9
    step = weights / H100.bandwidth
    claimed = reached / step * (asked / reached)  # tokens/s, if every request in flight were in the step
    (found,) = alarm.against_floor(seconds=asked / claimed / 1.5, floor=step)
    assert found.causes[0] == "batch" and "concurrency is not batch" in found.sentence


def test_charging_all_experts_beats_the_floor():
    everything, touched = 93e9, 26e9  # bytes of a mixture of experts, and of those that a token uses
    floor = roofline.time(0, everything, H100.peak("bf16"), H100.bandwidth)
    seconds = touched / H100.bandwidth / 0.8
    (found,) = alarm.against_floor(seconds, floor)
    assert "experts" in found.causes
    assert alarm.against_floor(seconds, touched / H100.bandwidth) == ()


@pytest.mark.parametrize(("beats_by", "alarms"), [(1.02, 0), (1.10, 1)])
def test_a_measured_ceiling_has_a_small_tolerance(beats_by, alarms):
    found = alarm.inspect(bytes_per_s=beats_by * 3e12, measured_bandwidth=3e12, tolerance=0.05)
    assert len(found) == alarms
