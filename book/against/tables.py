"""What the page "Against the world" counts, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from book import catalog
from book.against import digest, verdicts
from book.against.digest import Group
from book.against.pictures import Ridge
from book.drawing.number_text import number
from book.drawing.tables import Column, Table, table
from book.say import say

OPERATIONS = {
    "gemm": say("matrix products"),
    "decode_attention": say("attention of decode steps"),
    "prefill_attention": say("attention of prompts"),
    "mla_decode": say("latent attention in decoding"),
    "moe": say("expert layers"),
    "decode_step": say("whole decode steps of servers"),
}
REASONS = {
    verdicts.FITS_IN_L2: say("in L2"),
    verdicts.PARTLY_IN_L2: say("partly in L2"),
    verdicts.SKEWED: say("skewed routing"),
    verdicts.GROUP_LIMITED: say("half the experts"),
    verdicts.HALF_THE_CACHE: say("half of the cache"),
    verdicts.FEWER_RAN: say("fewer ran than asked"),
    verdicts.UNEXPLAINED: say("no reason found"),
}


def of(operation: str = "", accelerator: str = "") -> tuple[Group, ...]:
    """The digest's groups of an operation, of a card, or of both; all if neither is given."""
    return tuple(
        g for g in digest.groups() if operation in ("", g.operation) and accelerator in ("", g.accelerator)
    )


def cards() -> tuple[str, ...]:
    """The cards of the digest, by the catalog's ids, those of the lowest ridge first."""
    there = {g.accelerator for g in digest.groups()}
    return tuple(a.id for a in catalog.accelerators() if a.id in there)


def ridges_of(operation: str) -> tuple[Ridge, ...]:
    """One ridge a card: how often each ratio of floor to measured occurs."""
    return tuple(
        Ridge(catalog.accelerator(c).short_name, digest.density(of(operation, c)).sum(axis=0).tolist())
        for c in cards()
    )


def by_operation() -> Table:
    """Rows of each operation, how many lie under the line, and for which reasons."""
    return _table(
        [(label, of(operation)) for operation, label in OPERATIONS.items()],
        say("operation"),
        say("rows under the line, by reason"),
    )


def by_card() -> Table:
    """The same of each card."""
    return _table(
        [(catalog.accelerator(c).short_name, of(accelerator=c)) for c in cards()],
        say("card"),
        say("rows under the line on each card, by reason"),
    )


def _table(parts: Sequence[tuple[str, Iterable[Group]]], first: str, caption: str) -> Table:
    there = [reason for reason in REASONS if digest.reasons(digest.groups())[reason]]
    columns = [
        Column("name", first),
        Column("rows", say("rows"), _whole),
        Column("under", say("under"), _whole),
        *(Column(reason, REASONS[reason], _whole) for reason in there),
        Column(verdicts.UNEXPLAINED, REASONS[verdicts.UNEXPLAINED], lambda v: f"{v:,}"),
    ]
    every = [*parts, (say("all"), digest.groups())]
    return table([_line(name, tuple(chosen)) for name, chosen in every], columns, caption)


def _line(name: str, chosen: Sequence[Group]) -> dict[str, str | int | None]:
    why = digest.reasons(chosen)
    return {
        "name": name,
        "rows": sum(g.rows for g in chosen),
        "under": sum(g.under_floor for g in chosen),
        **{reason: why[reason] or None for reason in REASONS},
        verdicts.UNEXPLAINED: why[verdicts.UNEXPLAINED],
    }


def judged_here() -> Table:
    """The rows that the catalog holds whole, each judged again when this is called."""
    from book.catalog.measured import decode_attention, gemm_shards, mla_decode, moe, prefill_attention

    rows = {
        "gemm": gemm_shards.rows(),
        "decode_attention": decode_attention.rows(),
        "prefill_attention": prefill_attention.rows(),
        "mla_decode": mla_decode.rows(),
        "moe": moe.rows(),
    }
    lines = []
    for operation, given in rows.items():
        judged = verdicts.judged(operation, given)
        ratios = sorted(v.ratio for v in judged)
        lines.append(
            {
                "name": OPERATIONS[operation],
                "rows": len(judged),
                "under": sum(v.reason != verdicts.OVER for v in judged),
                "below": sum(v.below_expected for v in judged) or None,
                "median": ratios[len(ratios) // 2],
                "best": ratios[-1],
            }
        )
    columns = [
        Column("name", say("operation")),
        Column("rows", say("rows"), _whole),
        Column("under", say("under the floor"), lambda v: f"{v:,}"),
        Column("below", say("under the expected"), _whole),
        Column("median", say("median ratio"), lambda v: number(v, 2)),
        Column("best", say("best ratio"), lambda v: number(v, 2)),
    ]
    return table(lines, columns, say("rows of H100 and H200 that the catalog holds, judged anew"))


def why() -> str:
    """Each reason with its criterion, as a Markdown list, the most frequent first."""
    there = digest.reasons(digest.groups())
    return "\n".join(
        say(
            "- **{reason}**, {rows} rows. {means}",
            reason=REASONS[reason],
            rows=f"{rows:,}",
            means=verdicts.REASONS[reason],
        )
        for reason, rows in there.most_common()
    )


def own_misses() -> Table:
    """Errors of the laws of chapter 09: on held-out halves, and on a model that they were not fitted to."""
    from book.catalog.measured import steps
    from book.serving import served, step_law

    lines = []
    for group in served.GROUPS:
        rows = served.rows(group)
        two = step_law.fit([served.floor_of(r) for r in rows], [r["tpot_s"] for r in rows], relative=True)
        four = served.fitted(group).held_out()
        lines.append(
            {
                "rows": say("Llama-3.1-70B, {group}", group=group.name),
                "count": len(rows),
                "two": float(two.held_out().mean()),
                "four": float(four.mean()),
                "worst": float(four.max()),
            }
        )
    small = [{**row, "model": "llama3.1-8b"} for row in steps.llama_8b()]
    told = list(zip(small, served.predict(small), strict=True))
    for card, engine in dict.fromkeys((r["accelerator"], r["engine"]) for r in small):
        misses = [
            abs(p.tpot / r["tpot_s"] - 1)
            for r, p in told
            if (r["accelerator"], r["engine"]) == (card, engine) and not isinstance(p, str)
        ]
        where = f"{catalog.accelerator(card).short_name}, {engine}"
        lines.append(
            {
                "rows": say("Llama-3.1-8B, {group}, not fitted", group=where),
                "count": len(misses),
                "two": None,
                "four": sum(misses) / len(misses),
                "worst": max(misses),
            }
        )
    columns = [
        Column("rows", say("rows")),
        Column("count", say("how many"), _whole),
        Column("two", say("two numbers"), _percent),
        Column("four", say("four numbers"), _percent),
        Column("worst", say("worst row"), _percent),
    ]
    return table(lines, columns, say("mean error of a step's time, by this book's own laws"))


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _whole(value: float) -> str:
    return f"{value:,.0f}"
