"""Rows of others against the floors: none below one without a reason, bad tables refused."""

import csv
from pathlib import Path

import numpy as np
import pytest

from book import catalog, cost, serving
from book.against import __main__ as command
from book.against import digest, operations, pictures, tables, verdicts
from book.catalog.measured import decode_attention, gemm_shards, mla_decode, moe, prefill_attention

ROWS = {
    "gemm": gemm_shards.rows,
    "decode_attention": decode_attention.rows,
    "prefill_attention": prefill_attention.rows,
    "mla_decode": mla_decode.rows,
    "moe": moe.rows,
}
GEMM = {"accelerator": "h100_sxm", "dtype": "bf16", "m": 16, "n": 8192, "k": 8192, "seconds": 50e-6}
MOE = {
    "accelerator": "h200_sxm",
    "dtype": "bf16",
    "tokens": 64,
    "hidden": 4096,
    "expert_hidden": 1536,
    "top_k": 8,
    "experts": 128,
    "seconds": 1e-3,
}


@pytest.mark.parametrize("operation", ROWS)
def test_no_row_of_others_lies_below_a_floor_without_a_computed_reason(operation):
    judged = verdicts.judged(operation, ROWS[operation]())
    assert len(judged) > 2000
    assert [dict(v.row) for v in judged if v.reason == verdicts.UNEXPLAINED] == []


@pytest.mark.parametrize("operation", ROWS)
def test_a_floor_twice_as_high_would_be_refuted_by_these_rows(operation):
    judged = verdicts.judged(operation, [{**row, "seconds": row["seconds"] / 2} for row in ROWS[operation]()])
    assert any(v.reason == verdicts.UNEXPLAINED for v in judged)


def test_the_average_of_even_routing_is_no_floor_and_the_rows_show_it():
    judged = verdicts.judged("moe", moe.rows())
    below = [v for v in judged if v.below_expected]
    assert below and all(v.seconds >= v.floor for v in below)
    assert {v.row["distribution"] for v in below} - {"balanced"}


def test_experts_touched_lie_between_k_and_kb():
    for experts, chosen, tokens in ((128, 8, 1), (128, 8, 5), (128, 8, 64), (8, 2, 512), (256, 8, 3)):
        low, expected, high = serving.experts_touched_between(experts, chosen, tokens)
        assert low == chosen and high == min(chosen * tokens, experts)
        rng = np.random.default_rng(tokens)
        seen = [
            len({e for _ in range(tokens) for e in rng.choice(experts, chosen, replace=False)})
            for _ in range(400)
        ]
        error = np.std(seen) / len(seen) ** 0.5
        assert low <= min(seen) and max(seen) <= high
        assert abs(np.mean(seen) - expected) <= 4 * error + 1e-9


def test_the_floor_of_a_product_by_hand():
    (v,) = verdicts.judged("gemm", [GEMM])
    assert v.bytes == 2 * (16 * 8192 + 8192 * 8192 + 16 * 8192)
    assert v.floor == pytest.approx(v.bytes / 3.35e12)
    assert (v.limit, v.reason) == ("memory", verdicts.OVER)
    (v,) = verdicts.judged("gemm", [{**GEMM, "m": 8192, "seconds": 2e-3}])
    assert v.floor == pytest.approx(2 * 8192**3 / 989.4e12) and v.limit == "compute"


def test_a_step_of_a_server_has_the_floor_of_the_chapters():
    row = {"accelerator": "h200_sxm", "model": "llama3.1-70b", "dtype": "fp8", "gpus": 2, "seconds": 20e-3}
    (v,) = verdicts.judged("decode_step", [{**row, "batch": 32, "context": 8192}])
    d = serving.deploy("llama3.1-70b", "h200_sxm", weight_itemsize=1, gpus=2, dtype="fp8")
    assert v.floor == pytest.approx(serving.decode_step(d, 32, 8192).time)


def test_what_fits_into_l2_may_be_faster_than_memory():
    small = {**GEMM, "n": 1024, "k": 1024}
    read = cost.linear(16, 1024, 1024).bytes / 3.35e12
    assert verdicts.judged("gemm", [{**small, "seconds": read * 0.9}])[0].reason == verdicts.FITS_IN_L2


def test_an_l2_cache_has_a_speed_of_its_own():
    inside = {**GEMM, "n": 1024, "k": 1024}
    assert verdicts.judged("gemm", [{**inside, "seconds": 20e-9}])[0].reason == verdicts.UNEXPLAINED


def test_a_little_more_than_l2_may_come_from_it_in_part_and_much_more_may_not():
    l2 = catalog.accelerator("h100_sxm").l2_bytes
    large = {**GEMM, "n": 16384}
    read = cost.linear(16, 8192, 16384).bytes
    fastest = (read - l2) / 3.35e12
    assert verdicts.judged("gemm", [{**large, "seconds": fastest * 1.01}])[0].reason == verdicts.PARTLY_IN_L2
    assert verdicts.judged("gemm", [{**large, "seconds": fastest * 0.99}])[0].reason == verdicts.UNEXPLAINED


def test_faster_than_the_arithmetic_is_never_explained_by_a_cache():
    tiny = {**GEMM, "m": 4096, "n": 64, "k": 64}
    time = cost.linear(4096, 64, 64).flops / 989.4e12
    assert verdicts.judged("gemm", [{**tiny, "seconds": time * 0.9}])[0].reason == verdicts.UNEXPLAINED


@pytest.mark.parametrize(
    ("operation", "row", "said"),
    [
        ("gemm", {**GEMM, "m": None}, "m: missing"),
        ("gemm", {**GEMM, "m": 1.5}, "m = 1.5"),
        ("gemm", {**GEMM, "m": "many"}, "m = 'many'"),
        ("gemm", {**GEMM, "m": float("nan")}, "m = nan"),
        ("gemm", {**GEMM, "m": float("inf")}, "m = inf"),
        ("gemm", {**GEMM, "dtype": "fp6"}, "dtype = 'fp6'"),
        ("gemm", {**GEMM, "accelerator": "a100_80gb_sxm", "dtype": "nvfp4"}, "multiplies none of nvfp4"),
        ("gemm", {**GEMM, "seconds": 0}, "seconds = 0"),
        ("moe", {**MOE, "top_k": 200}, "top_k = 200"),
        ("moe", {**MOE, "tp": 0}, "tp = 0"),
    ],
)
def test_a_row_that_can_not_be_is_refused_by_its_column(operation, row, said):
    with pytest.raises(operations.NotAnswerable, match=said.replace("(", r"\(")):
        verdicts.judged(operation, [row])


def test_heads_that_do_not_divide_are_refused():
    row = {"accelerator": "h100_sxm", "cache_dtype": "bf16", "batch": 1, "context": 64, "head_dim": 64}
    with pytest.raises(operations.NotAnswerable, match="kv_heads = 5"):
        verdicts.judged("decode_attention", [{**row, "heads": 8, "kv_heads": 5, "seconds": 1}])


# ------------------------------------------------------------------------------------------ the command


def written(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, list(rows[0]))
        out.writeheader()
        out.writerows(rows)
    return path


def test_the_command_judges_a_readers_file(tmp_path, capsys):
    rows = [
        {"operation": "gemm", "card": "x", **GEMM},
        {"operation": "gemm", "card": "x", **GEMM, "accelerator": "B200"},
    ]
    path = written(tmp_path / "rows.csv", rows)
    out, picture = tmp_path / "judged.csv", tmp_path / "rows.svg"
    assert command.main([str(path), "--out", str(out), "--picture", str(picture)]) == 0
    said = capsys.readouterr().out
    assert "gemm on H100 SXM: 1 rows" in said and "gemm on B200: 1 rows" in said
    judged = list(csv.DictReader(out.read_text(encoding="utf-8").splitlines()))
    assert {float(r["floor_over_measured"]) < 1 for r in judged} == {True}
    assert picture.read_text(encoding="utf-8").lstrip().startswith("<?xml")


def test_microseconds_and_what_holds_for_all_rows(tmp_path, capsys):
    row = {k: v for k, v in GEMM.items() if k not in ("seconds", "accelerator")}
    path = written(tmp_path / "rows.csv", [{**row, "us": 50}])
    assert command.main([str(path), "--operation", "gemm", "--accelerator", "H100 SXM"]) == 0
    assert "median 0.8" in capsys.readouterr().out


def test_an_impossible_row_ends_with_status_1(tmp_path, capsys):
    path = written(tmp_path / "rows.csv", [{**GEMM, "seconds": 1e-6}])
    assert command.main([str(path), "--operation", "gemm"]) == 1
    assert "impossible by the datasheet" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("m,n,k\n1,2,3\n", "0 columns of times"),
        ("m,seconds,ms\n1,2,3\n", "2 columns of times"),
        ("m,m,seconds\n1,2,3\n", "two columns of one name"),
        ("m,seconds\n1,2\n", "no column accelerator"),
        ("accelerator,m,seconds\nh100_sxm,1\n", "line 2: not as many fields"),
        ("accelerator,m,seconds\nh1000,1,2\n", "h1000"),
        ("accelerator,m,seconds\nh100_sxm,1,soon\n", "seconds = 'soon'"),
        ("accelerator,m,seconds\nh100_sxm,1,1\n", "line 2: n: missing"),
        ("accelerator,m,seconds\n", "no row under the heading"),
    ],
)
def test_a_file_that_is_no_table_is_refused_by_line_and_column(tmp_path, capsys, text, said):
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf-8")
    assert command.main([str(path), "--operation", "gemm"]) == 2
    assert said in capsys.readouterr().err


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path, capsys):
    assert command.main([str(tmp_path / "none.csv"), "--operation", "gemm"]) == 2
    (tmp_path / "rows.csv").write_bytes(b"\xff\xfe\x00m,s\n")
    assert command.main([str(tmp_path / "rows.csv"), "--operation", "gemm"]) == 2
    assert capsys.readouterr().err.count("can't be read") == 2


# ------------------------------------------------------------------------------------------ the digest


def test_the_digest_agrees_with_itself():
    every = digest.groups()
    assert sum(g.rows for g in every) == 4_591_296
    assert sum(g.under_floor for g in every) == 59_639 == sum(digest.reasons(every).values())
    assert digest.reasons(every)[verdicts.UNEXPLAINED] == 0
    binned = [g for g in every if g.histogram]
    assert digest.density(binned).sum() == sum(g.rows for g in binned)
    assert digest.density(binned)[:, -1].sum() == sum(g.under_floor for g in binned)
    assert {g.operation for g in every} <= tables.OPERATIONS.keys()
    assert set(digest.reasons(every)) <= tables.REASONS.keys() == verdicts.REASONS.keys()


def test_a_digest_whose_counts_disagree_is_refused(tmp_path):
    path = tmp_path / "world.json"
    text = digest.PATH.read_text(encoding="utf-8")
    path.write_text(text.replace('"rows":9240', '"rows":9241', 1), encoding="utf-8")
    with pytest.raises(ValueError, match="they must agree"):
        digest.groups.__wrapped__(path)


def test_the_catalogs_own_rows_are_a_part_of_the_digest():
    """The same tables: each bin of theirs has at least as many rows in the digest."""
    rows = [r for r in gemm_shards.rows() if (r["engine"], r["engine_version"]) == ("vLLM", "0.24.0")]
    for card in ("h100_sxm", "h200_sxm"):
        for dtype in ("bf16", "fp8"):
            judged = verdicts.judged(
                "gemm", [r for r in rows if (r["accelerator"], r["dtype"]) == (card, dtype)]
            )
            label = {"bf16": "bfloat16"}.get(dtype, dtype)
            groups = [g for g in tables.of("gemm", card) if (g.engine, g.group) == ("vLLM", label)]
            assert len(groups) == 1, [g.group for g in tables.of("gemm", card)]
            whole = digest.density(groups).sum(axis=0)
            assert all(whole[at] >= n for at, n in enumerate(command.bins(judged)))


def test_pictures_say_their_finding_and_refuse_nothing_to_show():
    figure = pictures.ridges(tables.ridges_of("moe"), "expected")
    assert "H100 SXM: median" in figure.get_label()
    with pytest.raises(ValueError, match="nothing to show"):
        pictures.ridges([], "floor")
    with pytest.raises(ValueError, match="no row"):
        pictures.by_size(np.zeros_like(digest.density([])), "floor")


def test_a_quantile_is_that_of_the_rows():
    rng = np.random.default_rng(1)
    ratios = rng.uniform(0, 1, 10_000)
    counts = np.histogram(ratios, bins=50, range=(0, 1))[0].tolist() + [0]
    for share in (0.05, 0.5, 0.95):
        assert abs(digest.quantile(np.array(counts), share) - np.quantile(ratios, share)) < 0.02


def test_the_page_shows_where_the_books_own_laws_miss():
    shown = tables.own_misses()
    assert sum(int(row[1].replace(",", "")) for row in shown.cells) == 177 + 244
    fitted = [row for row in shown.cells if row[2]]
    assert all(float(row[3].split()[0]) < 4 < float(row[2].split()[0]) for row in fitted)


def test_chapter_01_says_how_many_rows_lay_below_their_floor_since_the_l2_cache_held_them():
    text = (Path(__file__).parents[2] / "chapters" / "01-roofline.ipynb").read_text(encoding="utf-8")
    assert "some forty thousand rows of [Against the world]" in text
    assert round(digest.reasons(digest.groups())["fits_in_l2"], -4) == 40_000
