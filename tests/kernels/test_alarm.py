"""The impossible-result alarm, each usual mistake with a faked timing."""

from dataclasses import replace

import pytest

from book import catalog, cost, roofline
from kernels import linear
from kernels.contract.errors import ImpossibleResult
from kernels.evidence import alarm, published

H100 = catalog.accelerator("h100_sxm")
B200 = catalog.accelerator("b200")
B300 = catalog.accelerator("b300")


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
    (found,) = alarm.dtype_ratio({"fp8": H100.sparse_peaks["fp8"], "bf16": H100.peak("bf16")})
    assert (found.what, found.limit) == ("FP8 over BF16", 2)
    assert found.value == pytest.approx(4, rel=0.01)
    assert "sparse" in found.causes and "headline is often twice the dense rate" in found.sentence
    assert alarm.dtype_ratio({"fp8": H100.peak("fp8"), "bf16": H100.peak("bf16")}) == ()


def test_a_dtype_may_gain_what_its_card_gives_it():
    rates = {"fp4": 0.9 * B300.peak("fp4"), "fp8": 0.9 * B300.peak("fp8")}  # 3.1 times: not only the bytes
    assert alarm.dtype_ratio(rates, B300) == ()
    assert [found.what for found in alarm.dtype_ratio(rates)] == ["FP4 over FP8"]


def test_weights_with_scales_may_gain_what_their_bytes_give_them():
    rates = {"bf16": 100, "int4_g32": 100 * 16 / 5}
    assert alarm.dtype_ratio(rates) == ()
    (found,) = alarm.dtype_ratio({**rates, "int4_g32": 400})  # as if its scales took no bytes
    assert found.limit == 16 / 5


def test_fp32_is_compared_only_where_the_card_is_known_and_16_bits_never_with_each_other():
    assert alarm.dtype_ratio({"fp32": 1, "bf16": 10}) == ()
    assert alarm.dtype_ratio({"fp32": H100.peak("fp32"), "bf16": H100.peak("bf16")}, H100) == ()
    assert alarm.dtype_ratio({"fp32": 1, "bf16": 20}, H100)
    assert alarm.dtype_ratio({"fp16": 1, "bf16": 3}) == ()


def test_one_card_of_the_catalog_has_an_fp8_rate_above_twice_its_bf16_rate_and_is_allowed_it():
    above = set()
    for card in catalog.accelerators():
        rates = {d: card.peaks[d] for d in ("bf16", "fp8") if d in card.peaks}
        if alarm.dtype_ratio(rates):
            above.add(card.id)
        alarm.raise_if(alarm.dtype_ratio(rates, card))  # the card's own peaks are never an alarm
    assert above == {"trainium3"}  # MXFP8 at 3.75 times BF16


def test_no_published_stream_gains_more_from_its_weights_dtype_than_their_bytes():
    compared = 0
    for series in catalog.published("single_stream"):
        rates = {p["weights"]: p["tokens_per_second"] for p in series.points if "weights" in p}
        alarm.raise_if(alarm.dtype_ratio(rates, catalog.accelerator(series.accelerator)))
        compared += len(rates) > 1
    assert compared


def test_a_published_row_that_beats_its_card_is_refused(monkeypatch):
    good = catalog.series("linear", accelerator="h100_sxm", k=8192)
    assert published.points(linear.experiment)
    rows = [{**p, "seconds": p["seconds"] / 1000} for p in good.points]  # microseconds taken for ms
    monkeypatch.setattr(catalog, "published", lambda kind: (replace(good, points=tuple(rows)),))
    with pytest.raises(ImpossibleResult, match="of the card's dense datasheet.*it is another card"):
        published.points(linear.experiment)


def test_a_published_pair_of_dtypes_is_held_against_each_other(monkeypatch):
    bf16 = catalog.series("linear", accelerator="h100_sxm", k=8192)
    fast = [{**p, "seconds": p["seconds"] / 2.2} for p in bf16.points if p["m"] == 1]
    slow = [{**p, "seconds": p["seconds"] * 2} for p in bf16.points if p["m"] == 1]
    pair = tuple(
        replace(bf16, dtype=dtype, points=tuple({**p, "seconds": 4 * p["seconds"]} for p in rows))
        for dtype, rows in (("fp8", fast), ("bf16", slow))
    )
    monkeypatch.setattr(catalog, "published", lambda kind: pair)
    with pytest.raises(ImpossibleResult, match="FP8 over BF16 is 220 % of the ratio 2"):
        published.points(linear.experiment)


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
