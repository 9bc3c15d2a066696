"""The reference tables of the book's pages, made from the catalog: no number is typed twice."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata

from book import catalog
from book.catalog import Accelerator, Model, Source
from book.drawing.tables import EMPTY, Cell, Heading, Html, sortable
from book.say import say

# -------------------------------------------------------------------------------- accelerators


def _plain(value: float | None, decimals: int = 1) -> Cell:
    """A number as printed by the vendor: 989.4, 75, 1,125."""
    if value is None:
        return Cell(EMPTY)
    text = f"{value:,.{decimals}f}"
    return Cell(text.rstrip("0").rstrip(".") if decimals else text, value)


def _marked(cell: Cell, note: str) -> Cell:
    return Cell(f"{cell.html} <small>({html.escape(note)})</small>", cell.key) if note else cell


def _giga(size: int | None) -> Cell:
    """Bytes in units of 1e9."""
    return Cell(EMPTY) if size is None else Cell(f"{size / 1e9:.1f}", size)


def _tera(card: Accelerator, dtype: str) -> Cell:
    peak = card.peaks.get(dtype)
    return _plain(None if peak is None else peak / 1e12)


def _headline(card: Accelerator) -> Cell:
    """What a brochure prints for the default dtype, and whether that is the usable number."""
    dtype = card.default_dtype
    sparse = card.sparse_peaks.get(dtype)
    if card.sparse_marketing and sparse is not None:
        sparse_is = say("sparse: {rate}", rate=_plain(sparse / 1e12).html)
        return Cell(f'<span class="trap">{sparse_is}</span>', f"sparse {dtype}")
    return Cell(say("dense"), "dense")


def accelerators() -> Html:
    """All accelerators: memory, bandwidth, dense peaks, ridge, the sparse trap, confidence, sources."""
    headings = (
        Heading(say("accelerator"), numeric=False),
        Heading(say("memory"), "GB", title=say("as the vendor labels it")),
        Heading(say("driver"), "GB", title=say("what nvidia-smi, rocm-smi or hl-smi prints, in 1e9 bytes")),
        Heading(say("program"), "GB", title=say("what torch or XLA may share out, in 1e9 bytes")),
        Heading(say("bandwidth"), "TB/s", first=True),
        Heading("fp32", "TFLOP/s", title=say("vector units, dense")),
        Heading(
            "bf16",
            "TFLOP/s",
            title=say("tensor or matrix units, dense; fp16 where the card has no bf16"),
            first=True,
        ),
        Heading("fp8", "TFLOP/s", title=say("tensor or matrix units, dense")),
        Heading("fp4", "TFLOP/s", title=say("tensor or matrix units, dense")),
        Heading(
            say("ridge"),
            "FLOP/byte",
            title=say("bf16 peak over bandwidth; fp16 where the card has no bf16"),
            first=True,
        ),
        Heading(
            say("headline says"),
            numeric=False,
            title=say("the 16-bit rate in the vendor's headline, TFLOP/s"),
        ),
        Heading(say("confidence"), numeric=False),
        Heading(say("sources"), title=say("how many; they are named in the notes on the card")),
    )

    def row(card: Accelerator) -> tuple[Cell, ...]:
        dtype = card.default_dtype
        note = "" if dtype == "bf16" else dtype
        order = ("low", "medium", "high").index(card.confidence)
        return (
            Cell(f'<a href="#{_anchor(card)}">{html.escape(card.short_name)}</a>', card.short_name),
            _plain(card.capacity / 1e9),
            _giga(card.smi_bytes),
            _giga(card.framework_bytes),
            _plain(card.bandwidth / 1e12, 3),
            _tera(card, "fp32"),
            _marked(_tera(card, dtype), note),
            _tera(card, "fp8"),
            _tera(card, "fp4"),
            _marked(Cell(f"{card.ridge(dtype):.1f}", card.ridge(dtype)), note),
            _headline(card),
            Cell(card.confidence, str(order)),
            Cell(f'<a href="#{_anchor(card)}">{len(card.sources)}</a>', len(card.sources)),
        )

    return sortable(
        headings, map(row, catalog.accelerators()), say("Accelerators: dense peaks and their ridges")
    )


_FOLDS = (
    ".rl-folds{color:var(--rl-text,inherit)}"
    ".rl-folds details{border-bottom:1px solid var(--rl-line,#8886);padding:.35em 0}"
    ".rl-folds summary{cursor:pointer}.rl-folds ul{margin:.4em 0 .4em 1.2em}"
)


def accelerator_notes() -> Html:
    """One fold a card: full name, what its numbers rest on, where sources disagree."""
    numbers = _numbered(a.sources for a in catalog.accelerators())
    folds = "".join(_note(card, numbers) for card in catalog.accelerators())
    return Html(f'<div class="rl-folds"><style>{_FOLDS}</style>{folds}</div>', alt=say("notes on each card"))


def _note(card: Accelerator, numbers: dict[str, int]) -> str:
    sparse = ", ".join(f"{d} {_plain(p / 1e12).html}" for d, p in card.sparse_peaks.items())
    facts = {
        say("architecture"): ", ".join(filter(None, (card.arch, card.compute_capability))),
        say("memory"): ", ".join(_memory(card)),
        say("processors"): ", ".join(_processors(card)),
        say("link"): ", ".join(_link(card)),
        say("power"): f"{card.tdp} W" if card.tdp else "",
        say("check"): card.derivation,
        say("with 2:4 sparsity, TFLOP/s"): sparse,
        say("not verified"): ", ".join(card.unverified),
        say("notes"): card.notes,
    }
    sources = say("sources: {numbers}", numbers=_references(card, numbers))
    items = "".join(f"<li>{html.escape(k)}: {html.escape(v)}</li>" for k, v in facts.items() if v)
    return (
        f"<details><summary>{html.escape(card.name)}</summary>"
        f'<ul id="{_anchor(card)}">{items}<li>{sources}</li></ul></details>'
    )


def _memory(card: Accelerator) -> Iterator[str]:
    size = _plain(card.capacity / 1e9).html
    yield say("{type}, {size} GB on the label", type=card.memory_type, size=size)
    if card.smi_bytes:
        yield say("{size:,.0f} MiB by the driver's tool", size=card.smi_bytes / 2**20)
    if card.framework_bytes:
        yield say("{size:.2f} GiB for a program", size=card.framework_bytes / 2**30)


def _processors(card: Accelerator) -> Iterator[str]:
    yield say("{count} (SMs, CUs or cores)", count=card.sm_count)
    if card.l2_bytes:
        yield say("{size} MiB of L2", size=_plain(card.l2_bytes / 2**20).html)


def _link(card: Accelerator) -> Iterator[str]:
    yield card.interconnect
    if card.interconnect_bandwidth:
        yield say("{rate} GB/s each way", rate=_plain(card.interconnect_bandwidth / 1e9).html)


def accelerator_sources() -> Html:
    """The numbered list that the tables' references point to."""
    numbers = _numbered(a.sources for a in catalog.accelerators())
    text = {s.key: s.text for a in catalog.accelerators() for s in a.sources}
    items = "".join(f'<li id="source-{key}"><em>{key}</em>: {linked(text[key])}</li>' for key in numbers)
    return Html(f"<ol>{items}</ol>", alt=say("{count} sources", count=len(numbers)))


def _anchor(card: Accelerator) -> str:
    return f"card-{card.id}"


def _numbered(groups: Iterable[Iterable[Source]]) -> dict[str, int]:
    """source key -> number, in the order in which the rows cite them."""
    keys = dict.fromkeys(source.key for group in groups for source in group)
    return {key: number for number, key in enumerate(keys, start=1)}


def _references(card: Accelerator, numbers: dict[str, int]) -> str:
    """The card's sources as numbered links, each with its text as a tooltip."""
    return " ".join(
        f'<a href="#source-{s.key}" title="{html.escape(s.text, quote=True)}">[{numbers[s.key]}]</a>'
        for s in sorted(card.sources, key=lambda s: numbers[s.key])
    )


_GITHUB = re.compile(r"github\.com/([\w.-]+/[\w.-]+)@([0-9a-f]{7,40})\Z")
_PAGE = re.compile(r"[\w-]+(\.[\w-]+)+/[\w./-]*\w\Z")


def linked(text: str) -> str:
    """A source's text with its first word as a link, where that word is an address."""
    first, _, rest = text.partition(" ")
    bare = first.rstrip(":;,")
    if match := _GITHUB.match(bare):
        address = f"https://github.com/{match[1]}/tree/{match[2]}"
    elif _PAGE.match(bare):
        address = f"https://{bare}"
    else:
        return html.escape(text)
    tail = first[len(bare) :] + (f" {rest}" if rest else "")
    return f'<a href="{html.escape(address)}">{html.escape(bare)}</a>{html.escape(tail)}'


# -------------------------------------------------------------------------------------- models


def models() -> Html:
    """All models: shape, parameters counted from the shape, and the difference to the published total."""
    headings = (
        Heading(say("model"), numeric=False),
        Heading(say("parameters"), title=say("counted from the shapes")),
        Heading(say("minus published"), title=say("difference to the total in the source")),
        Heading(say("layers")),
        Heading("d_model"),
        Heading(say("heads")),
        Heading("kv_heads"),
        Heading("head_dim"),
        Heading("d_ff"),
        Heading(say("experts"), title=say("used / held")),
        Heading(say("vocabulary")),
    )

    def whole(value: int) -> Cell:
        return Cell(f"{value:,}".replace("-", "\N{MINUS SIGN}"), value)

    def row(m: Model) -> tuple[Cell, ...]:
        moe = m.experts
        experts = (
            Cell(say("{used} of {held}", used=moe.top_k, held=moe.n_experts), moe.n_experts)
            if moe
            else Cell(EMPTY)
        )
        title = html.escape(m.source, quote=True)
        return (
            Cell(f'<span title="{title}">{html.escape(m.name)}</span>', m.name),
            whole(m.parameters),
            whole(m.parameters - m.published_parameters),
            *(whole(v) for v in (m.layers, m.d_model, m.heads, m.kv_heads, m.head_dim)),
            whole(moe.d_ff_expert if moe else m.d_ff),
            experts,
            whole(m.vocab),
        )

    return sortable(
        headings, map(row, catalog.models()), say("Models: shapes, and parameters counted from them")
    )


# -------------------------------------------------------------------------------- status page


def versions(distributions: Sequence[str]) -> list[dict[str, str]]:
    """Name and installed version of each distribution, as read now; "not installed" where it isn't."""

    def version(name: str) -> str:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            return say("not installed")

    return [{"package": name, "version": version(name)} for name in distributions]


def published() -> list[dict[str, str]]:
    """What others published: a row for each measurement, card and table, with its series and points."""
    counts: dict[tuple[str, str, str], list[int]] = {}
    for kind in catalog.published_kinds():
        for series in catalog.published(kind):
            card = catalog.accelerator(series.accelerator).short_name if series.accelerator else EMPTY
            table = f"{', '.join(s.key for s in series.sources)}: {series.table}"
            counts.setdefault((kind.replace("_", " "), card, table), []).append(len(series.points))
    return [
        {"measurement": kind, "on": card, "series": str(len(n)), "points": str(sum(n)), "table": table}
        for (kind, card, table), n in counts.items()
    ]
