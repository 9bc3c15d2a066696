"""Records: what is refused, what is written, what reaches a figure."""

import json

import pytest

from book import catalog
from kernels.evidence import child_process, published, recorded
from kernels.evidence.recorded import RecordError, personal, plausible
from kernels.linear import experiment as linear


def point(m, seconds=1e-4, alarms=()):
    work = linear.cost(m=m, k=4096, n=4096, itemsize=2)
    return {
        "sizes": {"m": m, "k": 4096, "n": 4096},
        "seconds": seconds,
        "bytes_per_s": work.bytes / seconds,
        "flops_per_s": work.flops / seconds,
        "intensity": work.intensity,
        "relative_error": 1e-3,
        "alarms": list(alarms),
    }


def record(**changes):
    return {
        "schema": recorded.SCHEMA,
        "kind": "measured",
        "device": {"name": "NVIDIA H100 80GB HBM3", "kind": "gpu", "accelerator": "h100_sxm"},
        "software": {"torch": "2.11.0"},
        "clocks": {},
        "date": "2030-01-02T03:04:05+00:00",
        "commit": "0123456789ab",
        "command": "python -m kernels.measure --out x.json",
        "status": "complete",
        "ceilings": {},
        "sweeps": [{"experiment": "linear", "axis": "m", "dtype": "bf16", "points": [point(1), point(64)]}],
        "notes": [],
    } | changes


def test_a_record_survives_a_round_trip(tmp_path):
    path = tmp_path / "h100.json"
    recorded.save(record(), path)
    assert recorded.load(path) == record()
    assert recorded.load_all(tmp_path) == (record(),)


def test_no_user_and_no_machine_is_named_but_by_whoever_names_themselves(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/data/people/lovelace")
    monkeypatch.setattr(personal.getpass, "getuser", lambda: "lovelace")
    monkeypatch.setattr(personal.socket, "gethostname", lambda: "engine7.example.org")
    said = "/data/people/lovelace/.triton/x.c and /home/byron/y of lovelace on engine7: no lovelaces"
    gap = {"experiment": "mlp", "why": "failed", "reason": said}
    one = record(notes=[said], missing=[gap], by="lovelace", command="x --out /home/byron/z")
    recorded.save(one, tmp_path / "x")
    read = recorded.load(tmp_path / "x")
    hidden = "~/.triton/x.c and ~/y of … on …: no lovelaces"
    assert (read["notes"], read["missing"][0]["reason"]) == ([hidden], hidden)
    assert (read["by"], read["command"]) == ("lovelace", "x --out ~/z")


def test_writing_replaces_the_file_in_one_step(tmp_path, monkeypatch):
    path = tmp_path / "h100.json"
    recorded.save(record(), path)
    monkeypatch.setattr(child_process.os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        recorded.save(record(notes=["newer"]), path)
    assert recorded.load(path)["notes"] == []
    assert [p.name for p in tmp_path.iterdir()] == ["h100.json"]


def sweeps(*points):
    return [{"experiment": "linear", "axis": "m", "dtype": "bf16", "points": list(points)}]


LINE = {"work": "noop", "way": "graph", "counts": [1, 2], "seconds": [1e-6, 2e-6]}


def overhead(**changes):
    return {"bandwidth": 3e12, "bandwidth_by": "torch copy", "lines": [LINE], "laws": []} | changes


def vendor(**changes):
    return point(1) | {"baseline": {"name": "torch.matmul", "seconds": 1e-4} | changes}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"schema": 99}, "schema = 99.*measure again"),
        ({"sweeps": None}, "sweeps = None: must be a list"),
        ({"kind": "guessed"}, "kind = 'guessed': must be measured or rehearsed"),
        ({"device": {"name": ""}}, "device.name is missing"),
        ({"device": {"name": "x", "kind": "tpu"}}, "device.kind = 'tpu': must be gpu or cpu"),
        ({"by": "A" * 500}, "by = 'AAA.*at most 120 printable letters"),
        ({"by": "Ada\n# Heading"}, "must be one line"),
        ({"by": "Ada\x1b[31m"}, "must be one line"),
        ({"by": "Ada\u202eevil"}, "must be one line"),
        ({"device": {"name": "NVIDIA $\\frac{H100$"}}, "device.name.*without \\$ and backslash"),
        ({"device": {"name": "Z" * 400}}, "device.name"),
        ({"software": {"torch": 1}}, "software.torch = 1: must be text"),
        ({"clocks": {"before": "1980"}}, "clocks.before = '1980': must be an object"),
        ({"clocks": {"before": {"clocks.sm": [1]}}}, r"clocks.before\['clocks.sm'\] = \[1\]: must be"),
        ({"notes": [5]}, r"notes\[0\] = 5: must be text"),
        ({"overhead": {"foo": 1}}, "overhead.bandwidth is missing"),
        ({"overhead": overhead(lines=[{"work": "noop"}])}, r"overhead.lines\[0\].way is missing"),
        ({"overhead": overhead(lines=[LINE | {"counts": [1]}])}, r"overhead.lines\[0\]: must have work, way"),
        ({"overhead": overhead(lines=[LINE | {"x": 1}])}, r"overhead.lines\[0\]: must have work, way"),
        ({"sweeps": sweeps(point(1) | {"clocks": {"reasons": 5}})}, "clocks.reasons = 5: must be a list"),
        ({"sweeps": sweeps(vendor(others=["x"]))}, r"others = \['x'\]: must be an object"),
        ({"sweeps": sweeps(vendor(others={"x": "fast"}))}, r"others\['x'\] = 'fast': must be a positive"),
        ({"sweeps": sweeps(point(1) | {"seconds": 10**400})}, "seconds = a whole number that is too large"),
        ({"sweeps": sweeps(point(1) | {"launch_seconds": 1e9})}, "launch_seconds = 1.*3600 s at most"),
        ({"sweeps": sweeps(point(1) | {"plan": {"x": float("nan")}})}, "NaN is no number"),
        ({"notes": ["x" * 30_000]}, r"notes\[0\] = text of more than"),
        ({"device": {"name": "x", "imaginary": True}}, "kind = 'measured': its device is imaginary"),
        ({"ceilings": {"bf16": {}}}, r"ceilings\['bf16'\].dtype is missing"),
        ({"missing": ["mlp"]}, r"missing\[0\] = 'mlp': must be an object"),
        ({"correct": {"linear": "yes"}}, "correct.linear = 'yes': must be an object"),
        ({"sweeps": sweeps({})}, r"points\[0\].sizes is missing"),
        ({"sweeps": sweeps(point(1) | {"seconds": -1})}, "seconds = -1: must be a positive"),
        ({"sweeps": sweeps(point(1) | {"runs": True})}, "runs = True: must be a whole number"),
        ({"sweeps": sweeps(point(1) | {"sizes": {"m": 0.5}})}, "sizes.m = 0.5: must be a positive whole"),
        ({"sweeps": sweeps(point(1) | {"baseline": {"name": "torch"}})}, "baseline.seconds is missing"),
    ],
)
def test_a_broken_record_is_refused_with_file_field_and_remedy(tmp_path, change, says):
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(record(**change)), encoding="utf-8")
    with pytest.raises(RecordError, match=rf"broken\.json.*{says}"):
        recorded.load(path)


@pytest.mark.parametrize("device", ["gpu", "cpu"])
def test_a_record_of_the_first_schema_is_read_as_a_measurement_of_today(tmp_path, device):
    path = tmp_path / "old.json"
    old = record(schema=1, kind=device)
    del old["device"]["kind"]
    path.write_text(json.dumps(old), encoding="utf-8")
    read = recorded.load(path)
    assert (read["schema"], read["kind"], read["device"]["kind"]) == (2, "measured", device)
    (series,) = recorded.points("linear", records=[read])
    assert series["label"].startswith("CPU, torch") == (device == "cpu")


def test_a_field_that_nobody_needs_may_be_null_or_absent(tmp_path):
    one = record(by=None)
    one["sweeps"][0]["points"][0] |= {"dram_bytes": None, "baseline": None}
    recorded.save(one, tmp_path / "x.json")
    assert recorded.load(tmp_path / "x.json") == one


def test_half_a_file_and_no_file_are_refused(tmp_path):
    path = tmp_path / "half.json"
    path.write_text('{"schema": 1,', encoding="utf-8")
    with pytest.raises(RecordError, match="not JSON"):
        recorded.load(path)
    with pytest.raises(RecordError, match="cannot be read"):
        recorded.load(tmp_path / "absent.json")


def test_brackets_without_end_are_refused_and_a_mark_before_the_first_is_not(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(RecordError, match="not JSON"):
        recorded.load(path)
    path.write_text(json.dumps(record(overhead=overhead())), encoding="utf-8-sig")
    assert recorded.load(path) == record(overhead=overhead())


def test_points_leave_out_what_was_impossible():
    sweep = {"experiment": "linear", "axis": "m", "dtype": "bf16"}
    one = record(sweeps=[sweep | {"points": [point(1), point(2, alarms=["Impossible result"])]}])
    (series,) = recorded.points("linear", records=[one])
    assert (series["rung"], series["accelerator"]) == ("recorded", "h100_sxm")
    assert [p["m"] for p in series["points"]] == [1]
    assert recorded.points("stream", records=[one]) == ()
    assert recorded.points("linear", records=[one], accelerator="b200") == ()


def test_one_bad_record_of_a_folder_is_named(tmp_path):
    recorded.save(record(), tmp_path / "a.json")
    (tmp_path / "b.json").write_text(json.dumps(record(status="guessed")), encoding="utf-8")
    with pytest.raises(recorded.RecordError, match="b.json: status = 'guessed'"):
        recorded.load_all(tmp_path)


def test_the_records_in_the_repository_are_valid():
    files = [path.stem for path in recorded.FOLDER.glob("*.json")]
    assert len(recorded.load_all()) == len(files)  # each is checked as it is read


def test_the_records_in_the_repository_can_be_believed():
    found = {r["date"]: plausible.judge(r).complaints for r in recorded.load_all()}
    assert not any(found.values()), found


def test_published_points_follow_from_the_formula():
    series = published.points(linear)
    assert series and all(s["rung"] == "published" and s["source"] for s in series)
    first = series[0]["points"][0]
    work = linear.cost(m=first["m"], k=first["k"], n=first["n"], itemsize=2)
    assert first["intensity"] == work.intensity
    assert first["flops_per_s"] == work.flops / first["seconds"]
    with pytest.raises(catalog.UnknownName):
        published.points(linear, "linaer")
