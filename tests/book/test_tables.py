"""The reference tables: whole, escaped, sortable by true numbers, every number from the catalog."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from book import catalog
from book.drawing import tables
from book.site import reference_tables


class _Table(HTMLParser):
    """Rows of (text, sort key); heads of (text, data-sort); every id and fragment link."""

    def __init__(self, text):
        super().__init__()
        self.heads, self.rows, self.ids, self.links = [], [], [], []
        self._cell = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if attrs.get("href", "").startswith("#"):
            self.links.append(attrs["href"][1:])
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self._cell = ["", attrs.get("data-key", attrs.get("data-sort"))]
            if "data-sort" in attrs:
                self.heads.append(self._cell)
            else:
                self.rows[-1].append(self._cell)

    def handle_data(self, data):
        if self._cell is not None:
            self._cell[0] += data

    def handle_endtag(self, tag):
        if tag in ("th", "td"):
            self._cell = None


@pytest.fixture(scope="module")
def cards():
    return _Table(reference_tables.accelerators().html)


def _column(table, label):
    index = [text for text, _ in table.heads].index(label)
    return {row[0][0]: row[index] for row in table.rows if row}


def test_every_accelerator_has_a_row(cards):
    names = [row[0][0] for row in cards.rows if row]
    assert names == [a.short_name for a in catalog.accelerators()]


def test_cells_hold_the_catalogs_numbers(cards):
    for card in catalog.accelerators():
        ridge = float(_column(cards, "ridgeFLOP/byte")[card.short_name][1])
        assert ridge == pytest.approx(card.ridge(card.default_dtype))
        assert float(_column(cards, "bandwidthTB/s")[card.short_name][1]) == card.bandwidth / 1e12


def test_numbers_read_as_the_vendor_prints_them(cards):
    assert _column(cards, "bf16TFLOP/s")["H100 SXM"][0] == "989.4"
    assert _column(cards, "bf16TFLOP/s")["B200"][0] == "2,250"
    assert _column(cards, "bandwidthTB/s")["H100 SXM"][0] == "3.35"
    assert _column(cards, "memoryGB")["H100 SXM"][0] == "80"


def test_what_a_card_lacks_is_a_dash_that_sorts_last(cards):
    assert _column(cards, "fp4TFLOP/s")["H100 SXM"] == [tables.EMPTY, ""]


def test_a_card_without_bf16_says_that_the_number_is_fp16(cards):
    assert _column(cards, "bf16TFLOP/s")["T4"][0] == "65 (fp16)"
    assert "(fp16)" in _column(cards, "ridgeFLOP/byte")["T4"][0]


def test_a_memory_is_shown_as_labelled_as_the_driver_says_and_as_a_program_sees_it(cards):
    label, driver, program = (_column(cards, f"{name}GB") for name in ("memory", "driver", "program"))
    assert [c["H100 SXM"][0] for c in (label, driver, program)] == ["80", "85.5", "85.0"]
    for card in catalog.accelerators():
        for column, size in ((driver, card.smi_bytes), (program, card.framework_bytes)):
            text = column[card.short_name][0]
            assert (text == f"{size / 1e9:.1f}") if size else not text.strip("\N{EN DASH}\N{EM DASH}-")


def test_the_sparse_trap_is_flagged_in_words(cards):
    headline = _column(cards, "headline says")
    assert headline["H100 SXM"][0] == "sparse: 1,978.8"
    assert headline["A100 SXM"][0] == "dense"
    flagged = {name for name, (text, _) in headline.items() if text.startswith("sparse")}
    assert flagged == {a.short_name for a in catalog.accelerators() if a.sparse_marketing}


def test_references_lead_somewhere(cards):
    notes = _Table(reference_tables.accelerator_notes().html)
    sources = _Table(reference_tables.accelerator_sources().html)
    ids = [*cards.ids, *notes.ids, *sources.ids]
    assert len(ids) == len(set(ids))
    assert set(cards.links) | set(notes.links) == set(ids)


def test_every_model_has_a_row_with_its_count():
    table = _Table(reference_tables.models().html)
    counts = _column(table, "parameters")
    assert {name: int(key) for name, (_, key) in counts.items()} == {
        m.name: m.parameters for m in catalog.models()
    }


def test_text_is_escaped():
    table = tables.sortable(
        [tables.Heading('<"a">', numeric=False, title='"t"')], [[tables.Cell("x", '"<k>')]], "<c>"
    )
    assert "<c>" not in table.html
    assert 'data-key="&quot;&lt;k&gt;"' in table.html
    assert "&lt;&quot;a&quot;&gt;" in table.html


def test_a_short_row_is_refused():
    with pytest.raises(ValueError, match="1 cells for 2 headings"):
        tables.sortable([tables.Heading("a"), tables.Heading("b")], [[tables.Cell("1", 1)]], "c")


def test_the_region_scrolls_by_keyboard_and_has_a_name():
    assert re.search(
        r'<div class="rl-sortable" role="group" tabindex="0" aria-label="[^"]+"',
        reference_tables.models().html,
    )


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("github.com/a/b@744d01e x/y.md", "https://github.com/a/b/tree/744d01e"),
        ("github.com/a/b/issues/19", "https://github.com/a/b/issues/19"),
        ("docs.cloud.google.com/tpu/docs/v5e", "https://docs.cloud.google.com/tpu/docs/v5e"),
    ],
)
def test_addresses_become_links(text, address):
    assert f'href="{address}"' in reference_tables.linked(text)


@pytest.mark.parametrize(
    "text", ["AnandTech 21136, H200 <b>", "torch.cuda.get_device_properties dumps", "a.b/{c,d}"]
)
def test_other_text_stays_text(text):
    assert "<a" not in reference_tables.linked(text) and "<b>" not in reference_tables.linked(text)


def test_versions_are_read_and_missing_ones_say_so():
    rows = reference_tables.versions(["pyyaml", "no-such-distribution"])
    assert re.match(r"\d+\.", rows[0]["version"])
    assert rows[1] == {"package": "no-such-distribution", "version": "not installed"}


def test_every_published_point_is_listed():
    all_series = [s for kind in catalog.published_kinds() for s in catalog.published(kind)]
    rows = reference_tables.published()
    assert sum(int(row["series"]) for row in rows) == len(all_series)
    assert sum(int(row["points"]) for row in rows) == sum(len(s.points) for s in all_series)


# ------------------------------------------------------------------------------ notation page


def test_every_code_name_on_the_notation_page_exists():
    """The page promises "the name it has in code"; a renamed one must not stay behind."""
    import importlib
    import inspect

    page = (Path(reference_tables.__file__).parents[1] / "pages" / "notation.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`(book\.[\w.]+)`", page))
    assert len(names) > 15
    for name in names:
        parts = name.split(".")
        for cut in range(len(parts), 0, -1):
            try:
                found = importlib.import_module(".".join(parts[:cut]))
                break
            except ModuleNotFoundError:
                continue
        *way, last = parts[cut:] or [None]
        for part in way:
            found = getattr(found, part)
        if last is not None:
            known = set(dir(found)) | set(getattr(found, "__dataclass_fields__", {}))
            if inspect.isfunction(found):
                known |= set(inspect.signature(found).parameters)
            assert last in known, name


def test_a_filtered_table_names_its_rows_and_its_cells():
    rows = [(tables.Cell("a", "a"), tables.Cell("1", 1)), (tables.Cell("b", "b"), tables.Cell("2", 2))]
    headings = (tables.Heading("name", numeric=False), tables.Heading("size"))
    shown = tables.sortable(headings, rows, "Sizes", ids=["row-a", "row-b"], filtered=True).html
    assert '<tr id="row-a">' in shown and 'data-name="size"' in shown and "data-filter=" in shown
    assert "data-filter" not in tables.sortable(headings, rows, "Sizes").html
    with pytest.raises(ValueError, match="1 ids for 2 rows"):
        tables.sortable(headings, rows, "Sizes", ids=["row-a"])
