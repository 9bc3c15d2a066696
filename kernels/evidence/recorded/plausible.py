"""Whether a record can be believed, before it is put into `kernels/records`.

The schema says what a record holds; here its numbers are held against each other, against the
formulas and against the card's datasheet. A complaint is a sentence with a remedy, and keeps a record
off the shelf; a remark is something to know that keeps nothing off.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from book import catalog, roofline
from book.catalog import Accelerator
from kernels.contract.experiment import Experiment
from kernels.evidence import alarm, recorded, timed
from kernels.evidence.experiments import all_experiments
from kernels.evidence.recorded import limits, provenance, write
from kernels.evidence.recorded.limits import Limits
from kernels.evidence.sweeps import described
from kernels.evidence.timed.ceilings import DATASHEET

ROUNDING = 1e-6  # rates and seconds are kept in full, so they must agree
SLOWEST = 0.5  # of the datasheet: a card that reaches less is shared, or short of power as an L4 may be
BY_ANOTHER_CATALOG = 0.1  # a row may have been corrected since
SLOWER_VENDOR = 100  # times our own time: no vendor's kernel for the same work
WRITTEN_BACK = 1.5  # times what the bandwidth moves: a counter's run has a clock of its own
LARGER_TAKES = 0.8  # of the time of half the work: less than that is no tile's doing


@dataclass(frozen=True)
class Verdict:
    """What a check found. complaints: sentences, each with its remedy; remarks: sentences."""

    complaints: tuple[str, ...]
    remarks: tuple[str, ...]


def judge(
    record: recorded.Record, now: datetime.datetime | None = None, *, rehearsals: bool = False
) -> Verdict:
    """Judge a record that has passed `recorded.load`. now: by default the clock of this machine.

    rehearsals: the numbers of a rehearsal are looked at as well; that it is one stays the first complaint.
    What can't be judged has a complaint, too.
    """
    try:
        return _judged(record, now or datetime.datetime.now(datetime.UTC), rehearsals)
    except Exception as error:  # noqa: BLE001 - a stranger's file: whatever is in it, the answer is a sentence
        what = f"{type(error).__name__}: {error}"
        return Verdict(
            (f"It can't be judged ({what[:200]}): something in it is of no run; measure again.",), ()
        )


def _judged(record: recorded.Record, now: datetime.datetime, rehearsals: bool) -> Verdict:
    complaints = []
    if not recorded.measured([record]):
        complaints = ["It is a rehearsal: nothing in it was measured. Measure on a card that is there."]
        if not rehearsals:
            return Verdict(tuple(complaints), ())
    else:
        complaints += provenance.of_rehearsal(record)
    if record["device"].get("kind") is None:
        return Verdict((*complaints, "device.kind is missing: it must be gpu; measure again."), ())
    if record["device"]["kind"] != "gpu":
        only = (
            "It is of a CPU, where torch's kernels were timed and none of this book's: keep it for yourself."
        )
        return Verdict((only,), ())
    known = all_experiments()
    card, most = _card(record), limits.of(record)
    complaints += [
        *provenance.of_run(record, now),
        *provenance.of_device(record, card),
        *provenance.of_results(record),
        *_ceilings(record, card, most),
    ]
    if not any(sweep["points"] for sweep in record["sweeps"]):
        complaints.append("Nothing was timed: read its notes, mend what they say, and measure again.")
    complaints += _twins(record)
    for sweep in record["sweeps"]:
        experiment = known.get(sweep["experiment"])
        if experiment is None:
            complaints.append(
                f"sweeps: {sweep['experiment']!r} is no kernel of this book; take the sweep out, or measure "
                "with the commit that has it."
            )
            continue
        complaints += _sweep(record, experiment, sweep, most)
    return Verdict(tuple(dict.fromkeys(complaints)), tuple(_remarks(record, card)))


def _twins(record: recorded.Record) -> Iterator[str]:
    """What was timed once and stands there twice."""
    sweeps = [
        (one["experiment"], one["axis"], one["dtype"], str(one.get("fixed"))) for one in record["sweeps"]
    ]
    for name, *_ in {one: None for one in sweeps if sweeps.count(one) > 1}:
        yield f"sweeps: one of {name} is there twice; take one out, or measure again."
    for sweep in record["sweeps"]:
        sizes = [tuple(sorted(point["sizes"].items())) for point in sweep["points"]]
        for one in dict.fromkeys(one for one in sizes if sizes.count(one) > 1):
            where = f"{sweep['experiment']}: {described(dict(one))}"
            yield f"{where} is there twice; take one out, or measure again."


def _card(record: recorded.Record) -> Accelerator | None:
    name = recorded.card_of(record)
    return catalog.accelerator(name) if name else None


def _remarks(record: recorded.Record, card: Accelerator | None) -> Iterator[str]:
    if record["status"] != "complete":
        yield "The run was cut short: it has what was measured until then."
    if card is None:
        yield (
            f"The catalog has no row of {record['device']['name']}: times were held against "
            "the best rates of the whole catalog."
        )
    yield from _low_ceilings(record, card)
    if missing := record.get("missing"):
        yield f"Not all was measured: it says of {len(missing)} what is missing, and why."
    points = [point for sweep in record["sweeps"] for point in sweep["points"]]
    slowed = [reasons for p in points if (reasons := (p.get("clocks") or {}).get("reasons"))]
    if slowed:
        why = ", ".join(dict.fromkeys(reason for reasons in slowed for reason in reasons))
        yield f"The card was slowed down during {len(slowed)} of {len(points)} points: {why}."
    if not record.get("by"):
        yield "Nobody is named as having measured it; add --by NAME to be."


# ---------------------------------------------------------------------------------------- numbers


def _ceilings(record: recorded.Record, card: Accelerator | None, most: Limits) -> Iterator[str]:
    for arithmetic, kept in record["ceilings"].items():
        try:
            catalog.dtype(arithmetic)
        except catalog.UnknownName:
            yield f"ceilings.{arithmetic}: the catalog has no such dtype; take it out, or measure again."
            return
        yield from (
            f"ceilings.{arithmetic}{words}; measure again." for words in _copies(arithmetic, kept, most)
        )
        tops = write.ceilings_of(kept)
        found = alarm.inspect(
            bytes_per_s=tops.bandwidth,
            flops_per_s=tops.peak,
            bandwidth=most.bandwidth,
            peak=most.peak(arithmetic),
        )
        for one in found:
            yield f"ceilings.{arithmetic}: {one.sentence}{most.said} Measure again."
    rates = {a: kept["peak"] for a, kept in record["ceilings"].items() if kept["peaks"]}
    for one in alarm.dtype_ratio(rates, card, timed.MEASURED_TOLERANCE):
        yield f"ceilings: {one.sentence} Measure again."


def _copies(arithmetic: str, kept: Mapping[str, Any], most: Limits) -> Iterator[str]:
    """What a ceiling says twice, where it says two things."""
    if kept["dtype"] != arithmetic:
        yield f".dtype = {kept['dtype']!r}: it is kept as {arithmetic}"
    for one, every in (("bandwidth", "bandwidths"), ("peak", "peaks")):
        if one == "peak" and kept["peak_by"] == DATASHEET:
            sheet = most.peak(arithmetic)
            if kept["peaks"] or not sheet or not kept["peak"] <= sheet * (1 + BY_ANOTHER_CATALOG):
                yield f".peak = {kept['peak']:.4g}: it is not the datasheet's"
            continue
        best = kept[every].get(kept[f"{one}_by"])
        if best is None or kept[one] != best or best < max(kept[every].values()):
            yield f".{one} = {kept[one]:.4g}: it must be the best of {every}, and {one}_by its name"


def _low_ceilings(record: recorded.Record, card: Accelerator | None) -> Iterator[str]:
    for arithmetic, kept in record["ceilings"].items():
        if card is None:
            return
        sheet = {"bandwidth": card.bandwidth, "peak": Limits((card,), True).peak(arithmetic)}
        for name, limit in sheet.items():
            if limit and kept[name] < SLOWEST * limit:
                yield (
                    f"ceilings.{arithmetic}.{name} is {100 * kept[name] / limit:.0f} % of the datasheet: "
                    "another program on the card, or a limit of its power; nvidia-smi shows both."
                )


def _sweep(
    record: recorded.Record, experiment: Experiment, sweep: Mapping[str, Any], most: Limits
) -> Iterator[str]:
    dtype = sweep["dtype"]
    if dtype not in experiment.dtypes:
        known = ", ".join(experiment.dtypes)
        yield f"{experiment.key}: dtype = {dtype!r}: choose {known}, and measure again."
        return
    kept = record["ceilings"].get(sweep.get("arithmetic", dtype))
    if kept is None:
        yield (
            f"{experiment.key}: ceilings.{sweep.get('arithmetic', dtype)} is missing: its times stand beside "
            "no ceiling of the same run; measure again."
        )
    right = []
    for point in sweep["points"]:
        where = f"{experiment.key}, {dtype}, {described(point['sizes'])}"
        problems = list(_point(experiment, dtype, point, kept, most, record["device"].get("l2_bytes")))
        yield from (f"{where}: {problem}" for problem in problems)
        if set(point["sizes"]) == set(experiment.sizes):
            right.append(point)
    for more in right:
        half = [less for less in right if _doubled(experiment, dtype, less, more)]
        less = max(half, key=lambda p: p["seconds"], default=more)
        if more["seconds"] < LARGER_TAKES * less["seconds"]:
            yield (
                f"{experiment.key}, {dtype}, {described(more['sizes'])}: it took {more['seconds']:.3g} s, "
                f"and at {described(less['sizes'])}, at most half the work, {less['seconds']:.3g} s; "
                "something else ran on the card, or its clock moved: measure again."
            )


def _work(experiment: Experiment, dtype: str, point: Mapping[str, Any]) -> tuple[float, float]:
    cost = experiment.formula(dtype, **point["sizes"])
    return cost.bytes, cost.flops


def _doubled(experiment: Experiment, dtype: str, less: Mapping[str, Any], more: Mapping[str, Any]) -> bool:
    return all(
        a >= 2 * b
        for a, b in zip(_work(experiment, dtype, more), _work(experiment, dtype, less), strict=True)
    )


def _point(
    experiment: Experiment,
    dtype: str,
    point: Mapping[str, Any],
    ceiling: Mapping[str, Any] | None,
    most: Limits,
    l2_bytes: float | None,
) -> Iterator[str]:
    if set(point["sizes"]) != set(experiment.sizes):
        yield f"sizes: must be {', '.join(experiment.sizes)}; measure again."
        return
    cost, seconds = experiment.formula(dtype, **point["sizes"]), point["seconds"]
    follows = {
        "bytes_per_s": cost.bytes / seconds,
        "flops_per_s": cost.flops / seconds,
        "intensity": cost.intensity,
        **dict(_shares(experiment, dtype, point, ceiling, most)),
    }
    for name, value in follows.items():
        rounding = BY_ANOTHER_CATALOG if name == "of_datasheet" else ROUNDING
        if point.get(name) is not None and not math.isclose(point[name], value, rel_tol=rounding):
            yield (
                f"{name} = {point[name]:.6g}: by the formula and its seconds it is {value:.6g}; the record "
                "is of another version, or was edited: measure again."
            )
    low, high = point.get("low") or seconds, point.get("high") or seconds
    if not low * (1 - ROUNDING) <= seconds <= high * (1 + ROUNDING):
        yield f"seconds = {seconds:.4g}: not between low and high, {low:.4g} and {high:.4g}; measure again."
    error, allowed = point.get("relative_error"), experiment.tolerance(dtype)
    if error is None or error > allowed:
        yield f"relative_error = {error}: must be {allowed:.0e} or less; a wrong kernel's time means nothing."
    alarms = [*point["alarms"], *_faster_than_it_can(experiment, dtype, follows, ceiling, most)]
    yield from (f"{words} Mend the cause, and measure again." for words in dict.fromkeys(alarms))
    counted = point.get("dram_bytes")
    if counted and l2_bytes and counted < (cost.bytes - l2_bytes) * (1 - alarm.TOLERANCE):
        yield (
            f"dram_bytes = {counted:,.0f}: {cost.bytes:,.0f} bytes have to move, and the cache holds "
            f"{l2_bytes:,.0f}; the counter saw less than a whole run: measure again with --counters."
        )
    moved = WRITTEN_BACK * most.bandwidth * high + (l2_bytes or 0)
    if counted and counted > moved:
        yield (
            f"dram_bytes = {counted:.4g}: the card moves {moved:.4g} bytes in that time; the counter "
            "saw more than this run: measure again with --counters."
        )
    at_low = {"bytes_per_s": cost.bytes / low, "flops_per_s": cost.flops / low}
    for one in () if alarms else alarm.inspect(**at_low, **_rates(experiment, dtype, most)):
        yield f"low = {low:.4g}: {one.sentence}{most.said} Measure again."
    yield from _vendors(experiment, dtype, point, most)


def _rates(experiment: Experiment, dtype: str, most: Limits) -> dict[str, float | None]:
    """The datasheet's two rates for this kernel, as `alarm.inspect` takes them."""
    peak = most.peak(experiment.arithmetic(dtype), (experiment.unit,))
    return {"bandwidth": most.bandwidth, "peak": peak}


def _shares(
    experiment: Experiment,
    dtype: str,
    point: Mapping[str, Any],
    ceiling: Mapping[str, Any] | None,
    most: Limits,
) -> Iterator[tuple[str, float]]:
    """Each share that a point may keep, from its seconds and what it is a share of."""
    cost, seconds = experiment.formula(dtype, **point["sizes"]), point["seconds"]
    if ceiling:
        yield "of_bandwidth", cost.bytes / seconds / ceiling["bandwidth"]
        yield "of_peak", cost.flops / seconds / ceiling["peak"]
        yield "of_roof", write.of_roof(cost, seconds, ceiling)
    if most.known and (floor := most.floor(experiment, dtype, point["sizes"])):
        yield "of_datasheet", floor / seconds


def _vendors(experiment: Experiment, dtype: str, point: Mapping[str, Any], most: Limits) -> Iterator[str]:
    """What no vendor's kernel took, the others included."""
    baseline = point.get("baseline") or {}
    if not baseline:
        return
    cost = experiment.formula(dtype, **point["sizes"])
    every = {**(baseline.get("others") or {}), baseline["name"]: baseline["seconds"]}
    peak = most.peak(experiment.operands(dtype))  # it may use other units than ours
    floor = roofline.time(cost.flops, cost.bytes, peak, most.bandwidth) if peak else 0.0
    for name, seconds in every.items():
        for one in alarm.against_floor(seconds, floor):
            yield f"baseline {name}: {one.sentence}{most.said} Measure again."
        if seconds < baseline["seconds"]:
            yield f"baseline {name}: it took less than {baseline['name']}, which counts; measure again."
        if seconds > SLOWER_VENDOR * point["seconds"]:
            yield (
                f"baseline {name}: {seconds:.3g} s, over {SLOWER_VENDOR} times ours, isn't its kernel's; "
                "measure again."
            )
    share = baseline.get("share")
    if share is not None and not math.isclose(
        share, baseline["seconds"] / point["seconds"], rel_tol=ROUNDING
    ):
        yield f"baseline.share = {share:.4g}: its seconds over ours are another; measure again."


def _faster_than_it_can(
    experiment: Experiment,
    dtype: str,
    rates: Mapping[str, float],
    ceiling: Mapping[str, Any] | None,
    most: Limits,
) -> Iterator[str]:
    reached = {name: rates[name] for name in ("bytes_per_s", "flops_per_s")}
    tops = write.ceilings_of(ceiling) if ceiling else None
    found = (
        *alarm.inspect(**reached, **_rates(experiment, dtype, most)),
        *alarm.inspect(
            **reached,
            measured_bandwidth=tops.bandwidth if tops else None,
            measured_peak=tops.peak if tops and tops.peak_measured else None,
            tolerance=timed.MEASURED_TOLERANCE,
        ),
    )
    yield from (one.sentence + most.said for one in found)
