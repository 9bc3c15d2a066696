"""The page "Records": what is on the shelf, against the floor and the vendor; and one line if nothing is."""

import dataclasses

import pytest

from kernels.evidence import record_tables, recorded, timed
from kernels.evidence.recorded import schema
from kernels.evidence.timed.machine import Device
from tests.kernels.records import REACHED, made


def test_with_no_record_there_is_one_line_with_the_command():
    nothing = record_tables.shelf([])
    assert repr(nothing) == f"No card has been measured yet. On a machine with a GPU: {record_tables.COMMAND}"
    assert "<table" not in nothing._repr_html_() and f"<code>{record_tables.COMMAND}</code>" in (
        nothing._repr_html_()
    )


def test_each_time_stands_between_its_floor_and_the_vendors():
    rows = record_tables.times([made()])
    assert [one.kernel for one in rows] == ["decode_attention"] * 2 + ["linear"] * 3  # as the kernels' files
    for one in rows:
        assert (one.card, one.date, one.by) == ("H100 SXM", "2026-02-03", "Ada")
        assert one.of_floor == pytest.approx(REACHED) and one.of_vendor == pytest.approx(0.9)
        assert one.vendor == "torch.matmul"


def test_cards_are_side_by_side_under_a_kernel():
    other = made()
    other["device"] |= {"name": "NVIDIA H200", "accelerator": "h200_sxm"}
    rows = [one for one in record_tables.times([other, made()]) if one.kernel == "linear"]
    assert [one.card for one in rows] == ["H100 SXM"] * 3 + ["H200 SXM"] * 3
    assert rows[3].floor < rows[0].floor  # more bandwidth, a lower floor for the same row of weights


def test_a_card_of_nobodys_datasheet_has_its_times_and_no_floor():
    record = made(by=None)
    record["device"] |= {"name": "<Some> Card", "accelerator": None}
    for sweep in record["sweeps"]:
        for point in sweep["points"]:
            del point["baseline"]
    (first, *_) = record_tables.times([record])
    assert (first.card, first.of_floor, first.of_vendor, first.by) == ("<Some> Card", None, None, "")
    page = record_tables.shelf([record])._repr_html_()
    assert "&lt;Some&gt; Card" in page and "<Some>" not in page


def test_an_impossible_time_is_not_listed():
    record = made()
    record["sweeps"][0]["points"][0]["alarms"] = ["Impossible result"]
    assert len(record_tables.times([record])) == len(record_tables.times([made()])) - 1


def test_a_time_below_the_floor_is_not_listed_though_nothing_was_said_of_it():
    record = made()
    record["sweeps"][0]["points"][0]["seconds"] /= 2
    assert len(record_tables.times([record])) == len(record_tables.times([made()])) - 1


def test_the_share_of_the_roof_is_computed_whatever_the_point_says():
    record = made()
    for one in record["sweeps"][0]["points"]:
        one["of_roof"] = 42.0
    assert record_tables.times([record]) == record_tables.times([made()])
    assert 0.8 < record_tables.times([record])[-1].of_roof < 1


def test_what_is_no_kernel_of_the_book_is_not_listed():
    record = made()
    record["sweeps"][0]["experiment"] = "torch linear"
    assert {one.kernel for one in record_tables.times([record])} == {"decode_attention"}


def test_a_page_with_records_has_the_runs_and_a_table_for_each_kernel():
    runs, goals, *tables = record_tables.shelf([made()]).blocks()
    assert {row[0] for row in goals.cells} >= {"linear bf16", "flash_attention"}
    versions = "torch 2.13.0, triton 3.7.1"
    assert runs.cells == (
        ("NVIDIA H100 80GB HBM3", "2", "5", "2026-02-03", "Ada", "complete", "0123456", versions),
    )
    assert [table.alt.partition(" (")[0] for table in tables] == [
        "decode_attention, batch = 16, heads = 32, kv_heads = 8, head_dim = 128",
        "linear, k = 8,192, n = 8,192",  # what all rows have in common
    ]
    assert "2026-02-03, Ada" in tables[0].html and "<small>(torch.matmul)</small>" in tables[0].html
    assert 'data-key="0.8' in tables[0].html  # sorts by the share itself


def test_the_page_of_fields_lists_all_that_a_record_has():
    record = made()
    recorded.validate(record, "x.json")
    listed = {row[0] for row in record_tables.fields("record").cells}
    assert set(record) <= listed
    point = record["sweeps"][0]["points"][0]
    assert set(point) <= {row[0] for row in record_tables.fields("sweeps[].points[]").cells}
    timed_point = {field.name for field in dataclasses.fields(timed.Timed)} - {"began", "ended"}  # not kept
    assert timed_point <= {field.name for field in schema.POINT}
    assert {field.name for field in dataclasses.fields(Device)} <= {field.name for field in schema.DEVICE}
    assert {field.name for field in dataclasses.fields(timed.Ceilings)} <= {f.name for f in schema.CEILINGS}
    assert all(record_tables.fields(part).cells for part in schema.TABLES)
