"""Evidence as small tables: what was counted, executed, compiled and timed, and how each rung stands."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from book import catalog
from book.drawing.number_text import number
from book.drawing.tables import Column, Table, table
from book.say import say
from kernels.contract.targets import TARGETS
from kernels.evidence.compiled import Compiled
from kernels.evidence.counted.counted_rows import CountedRow
from kernels.evidence.executed import Executed
from kernels.evidence.sweeps import described
from kernels.evidence.timed import Timed

SENTENCES = 4  # at most, about what is asked for again

# Rungs by their names in code, and as a reader is told them.
RUNGS = {
    "counted": say("counted"),
    "executed": say("executed"),
    "compiled": say("compiled"),
    "timed": say("timed"),
    "recorded": say("recorded"),
    "published": say("published"),
}


def counted(name: str, axis: str, rows: Sequence[CountedRow]) -> Table:
    """Bytes by formula and as counted, what the formula leaves out, intensity: one row a size along `axis`.

    "exact" is said of the compulsory bytes, which the formula has. Workspace has none; where there is
    some, a second intensity has all the bytes that were counted.
    """
    workspace = any(r.workspace_bytes for r in rows)
    columns = [
        Column(axis, axis, _whole),
        Column("formula", say("bytes, formula"), _whole),
        Column("counted", say("counted"), _whole),
        Column("exact", say("exact")),
        Column("intensity", "FLOP/byte"),
        *([Column("workspace", say("workspace"), _whole)] if workspace else []),
        *([Column("all", say("FLOP/byte with it"))] if workspace else []),
    ]
    cells = [
        {
            axis: r.sizes[axis],
            "formula": r.formula_bytes,
            "counted": r.counted_bytes,
            "exact": "✓" if r.exact else "✗",
            "intensity": number(float(r.intensity), 4),
            "workspace": r.workspace_bytes or None,
            "all": number(float(r.intensity_of_all), 4),
        }
        for r in rows
    ]
    where = ", ".join([name, *_fixed(axis, rows[0].sizes), rows[0].dtype])
    caption = say("counted: {where}", where=where)
    if workspace:
        caption = say(
            "counted: {where}; exact are the formula's bytes, which leave workspace out", where=where
        )
    return table(cells, columns, caption)


def arithmetic(axis: str, rows: Sequence[CountedRow]) -> Table:
    """The formula's FLOPs, and those that whole tiles issue: one row a size."""
    columns = [
        Column(axis, axis, _whole),
        Column("useful", say("useful FLOP"), _whole),
        Column("issued", say("issued"), _whole),
        Column("padding", say("issued over useful")),
        *([Column("dots", say("FLOP of products"), _whole)] if any(r.dot_flops for r in rows) else []),
    ]
    cells = [
        {
            axis: r.sizes[axis],
            "useful": r.useful_flops,
            "issued": r.issued_flops,
            "padding": None if r.padding is None else f"{r.padding:.4g}×",
            "dots": r.dot_flops,
        }
        for r in rows
    ]
    return table(cells, columns, say("issued: the FLOP of whole tiles, padding included"))


def mistaken(axis: str, rows: Sequence[CountedRow], mistake: str) -> Table:
    """The same count on a kernel with a mistake: what it moved, and how far that is from the formula."""
    columns = [
        Column(axis, axis, _whole),
        Column("formula", say("bytes, formula"), _whole),
        Column("counted", say("counted"), _whole),
        Column("exact", say("exact")),
        Column("times", say("of the formula")),
        *([Column("intensity", "FLOP/byte")] if any(r.useful_flops for r in rows) else []),
    ]
    cells = [
        {
            axis: r.sizes[axis],
            "formula": r.formula_bytes,
            "counted": r.counted_bytes,
            "exact": "✓" if r.exact else "✗",
            "times": f"{r.counted_bytes / r.formula_bytes:.4g}×",
            "intensity": number(float(r.intensity), 4),
        }
        for r in rows
    ]
    words = say(
        "the same count on a kernel with a mistake, which computes the same numbers. {mistake}",
        mistake=mistake,
    )
    return table(cells, columns, words)


def too_many(axis: str, row: CountedRow) -> Table:
    """Which bytes of a kernel with a mistake the formula does not have, a sentence for each tensor."""
    column = Column("why", say("bytes that are not the formula's"), align="left")
    size = described({axis: row.sizes[axis]})
    caption = say("the mistake at {size}, each launch counted by itself", size=size)
    return table([{"why": words} for words in row.extra], [column], caption)


def asked_for(axis: str, rows: Sequence[CountedRow]) -> Table:
    """What the programs asked memory for, loads repeated, and what they did: one row a size."""
    columns = [
        Column(axis, axis, _whole),
        Column("programs", say("programs"), _whole),
        Column("block", say("bytes asked for"), _whole),
        Column("sectors", say("in sectors of 32 B"), _whole),
        Column("again", say("of each byte once")),
        *([Column("atomics", say("atomics"), _whole)] if any(r.atomics for r in rows) else []),
    ]
    cells = [
        {
            axis: r.sizes[axis],
            "programs": r.programs,
            "block": r.block_bytes,
            "sectors": r.sector_bytes,
            "again": f"{r.sector_bytes / (r.counted_bytes + r.workspace_bytes):.3g}×",
            "atomics": r.atomics,
        }
        for r in rows
    ]
    caption = say("asked for: each load and each store once, before any cache")
    uneven = dict.fromkeys(words for r in rows for words in r.uneven)
    return table(cells, columns, "; ".join([caption, *uneven]))


def again(axis: str, row: CountedRow) -> Table:
    """Why bytes of this row were asked for more than once: a sentence for each tensor that weighs most."""
    column = Column("why", say("why more than once"), align="left")
    size = described({axis: row.sizes[axis]})
    caption = say("loaded or stored again at {size}", size=size)
    if (every := len(row.extra)) > SENTENCES:
        caption = say(
            "loaded or stored again at {size}: the {count} largest of {all}",
            size=size,
            count=SENTENCES,
            all=every,
        )
    return table([{"why": words} for words in row.extra[:SENTENCES]], [column], caption)


def executed(rows: Sequence[Executed]) -> Table:
    """What the compiled code did, chips side by side: one row a fact. rows: of one size, one a target.

    Each has passed `Executed.check`, so a race or a wrong result is no number of this table.
    """
    products = [max(r.tensor_flops, key=r.tensor_flops.__getitem__, default="") for r in rows]
    wide = [(r.asked("sectors"), r.asked("requests")) for r in rows]
    lines: list[list[Any]] = [
        [say("relative error"), *(_small(r.relative_error) for r in rows)],
        *([[say("tensor instruction"), *map(_instruction, products)]] if any(products) else []),
        *([[say("its shape"), *map(_shape, products)]] if any(products) else []),
        *([[say("tensor FLOP"), *(sum(r.tensor_flops.values()) for r in rows)]] if any(products) else []),
        [say("bytes asked for"), *(r.asked() for r in rows)],
        [say("sectors a request"), *(number(sectors / asked, 3) if asked else "" for sectors, asked in wide)],
        [say("barriers"), *(r.total("barriers") for r in rows)],
        [say("bank conflicts"), *map(_conflicts, rows)],
    ]
    chips = [Column(i, architecture(r.target), align="right") for i, r in enumerate(rows, start=1)]
    where = ", ".join([rows[0].experiment, described(rows[0].sizes), rows[0].dtype])
    caption = say("executed on this CPU, as compiled for each chip: {where}", where=where)
    return table(lines, [Column(0, say("on")), *chips], caption)


def architecture(target: str) -> str:
    """How a reader knows a target: "Hopper, H100 SXM"."""
    card = catalog.accelerator(TARGETS[target].accelerator)
    return f"{card.arch.partition(' ')[0]}, {card.short_name}"


def _instruction(name: str) -> str:
    """The commonest tensor instruction, of "wgmma m64n64k16.bf16"."""
    return name.split()[0] if name else say("none")


def _shape(name: str) -> str:
    """Its rows, columns and depth; the dtype is in the caption."""
    return name.split()[1].partition(".")[0] if name else ""


def _small(value: float) -> str:
    return f"{value:.1e}" if value else "0"


def _conflicts(row: Executed) -> str:
    """Wavefronts of shared memory over the fewest that would do."""
    fewest = row.total("ideal_wavefronts")
    if not fewest:
        return say("not used")
    ratio = row.total("wavefronts") / fewest
    return say("none") if ratio == 1 else f"{ratio:.2f}×"


def compiled(axis: str, rows: Sequence[Compiled]) -> Table:
    """Instruction, registers, spills, shared memory, occupancy, and what a turn of the loop does.

    One row a target and size; nothing of loops where none was found.
    """
    loops = any(r.hot for r in rows)
    columns = [
        Column("target", say("target")),
        Column(axis, axis, _whole),
        *(
            [Column("instruction", say("matrix instruction"))]
            if any(r.matrix_instructions for r in rows)
            else []
        ),
        Column("registers", say("registers")),
        Column("spills", say("spills"), align="left"),
        Column("shared", say("shared memory"), align="right"),
        Column("occupancy", say("occupancy"), align="right"),
        *(
            [
                Column("barriers", say("barriers in the loop"), _whole),
                Column("wide", say("wide loads in the loop"), align="right"),
            ]
            if loops
            else []
        ),
    ]
    cells = [
        {
            "target": r.target,
            axis: r.sizes[axis],
            "instruction": r.instruction,
            "registers": r.registers,
            "spills": f"{r.spill_bytes} B" if r.spills else say("none"),
            "shared": f"{r.shared_bytes / 1024:.3g} KiB" if r.shared_bytes else say("none"),
            "occupancy": f"{100 * r.occupancy:.0f} %",
            "barriers": r.hot.barriers if r.hot else None,
            "wide": _of(r.hot.wide_loads + r.hot.wide_async_copies, r.hot.loads + r.hot.async_copies)
            if r.hot
            else None,
        }
        for r in rows
    ]
    where = [rows[0].kernel, *_fixed(axis, rows[0].sizes)]
    return table(cells, columns, say("compiled: {where}; no GPU needed", where=", ".join(where)))


def timed(axis: str, rows: Sequence[Timed]) -> Table:
    """Time, rates and the share of the measured roof: one row a size along `axis`."""
    columns = [
        Column(axis, axis, _whole),
        Column("time", say("time"), align="right"),
        Column("bytes", "GB/s"),
        Column("flops", "TFLOP/s"),
        Column("roof", say("of measured roof"), align="right"),
        *([Column("alarm", say("alarm"))] if any(r.alarms for r in rows) else []),
    ]
    cells = [
        {
            axis: r.sizes[axis],
            "time": f"{r.seconds * 1e6:,.1f} µs",
            "bytes": f"{r.bytes_per_s / 1e9:,.0f}",
            "flops": number(r.flops_per_s / 1e12, 3),
            "roof": f"{100 * r.of_roof:.0f} %",
            "alarm": say("impossible") if r.alarms else "",
        }
        for r in rows
    ]
    where = [*_fixed(axis, rows[0].sizes), rows[0].dtype]
    return table(cells, columns, say("timed here: {where}", where=", ".join(where)))


def rungs(status: Mapping[str, str]) -> Table:
    """How each rung of evidence stands, in words."""
    cells: list[dict[str, Any]] = [
        {"rung": RUNGS.get(rung, rung), "here": words} for rung, words in status.items()
    ]
    return table(
        cells,
        [Column("rung", say("rung")), Column("here", say("how it stands"))],
        say("evidence, rung by rung"),
    )


def finding(words: str) -> str:
    """The sentence that the numbers of the table above come to, as HTML."""
    return f'<p class="rl-finding">{html.escape(words)}</p>'


def _of(part: int, whole: int) -> str:
    return say("{part} of {whole}", part=part, whole=whole)


def _whole(value: float) -> str:
    return number(int(value))


def _fixed(axis: str, sizes: Mapping[str, int]) -> list[str]:
    words = described({name: value for name, value in sizes.items() if name != axis})
    return [words] if words else []
