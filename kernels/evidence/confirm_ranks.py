"""A chapter's proof on several ranks: count each, hold it to the formula of one, show a row a rank.

from kernels.ranks import linear
confirm_ranks(linear.row, ranks=2, m=16, k=1024, n=1024)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from book.drawing.number_text import number
from book.drawing.tables import Column, Table
from book.drawing.tables import table as make_table
from book.say import say
from kernels.evidence.counted import per_rank
from kernels.evidence.counted.per_rank import CountedRanks, RankRow
from kernels.evidence.sweeps import described
from kernels.ranks.parallel import Parallel


@dataclass(frozen=True)
class RankEvidence:
    """What was counted on every rank, and found equal to the formula. Shows itself as a table."""

    counted: CountedRanks

    def _repr_html_(self) -> str:
        return table(self.counted)._repr_html_()

    def __repr__(self) -> str:
        return repr(table(self.counted))


def confirm_ranks(parallel: Parallel, *, ranks: int = 2, **more: Any) -> RankEvidence:
    """Run `parallel` on `ranks` processes; raises PhysicsDisagrees where a rank is off by a byte.

    more: sizes, and what else `per_rank.run` takes and raises.
    """
    counted = per_rank.run(parallel, ranks=ranks, **more)
    counted.check()
    return RankEvidence(counted)


def table(counted: CountedRanks) -> Table:
    """One row a rank: memory by formula and as counted, bytes sent by formula, counted, measured."""
    sends, measured = counted.formula.sent_bytes > 0, any(row.wire is not None for row in counted.rows)
    columns = [
        Column("rank", say("rank"), number),
        Column("formula", say("memory bytes, formula"), number),
        Column("counted", say("counted"), number),
        Column("sent_formula", say("sent bytes, formula"), number),
        Column("sent", say("counted"), number),
        Column("exact", say("exact")),
        *([Column("wire", say("on the wire"), number)] if measured and sends else []),
        Column("useful", say("useful FLOP"), number),
        Column("error", say("relative error"), align="right"),
    ]
    share = counted.formula.sent_bytes
    cells = [
        {
            "rank": row.rank,
            "formula": int(counted.formula.bytes),
            "counted": row.bytes - _workspace(counted, row),
            "sent_formula": int(share) if share == int(share) else float(share),
            "sent": sum(row.sent.values()),
            # `check` would have raised. What can't be cut equally is exact for all ranks together.
            "exact": "✓" if sum(row.sent.values()) == share else say("together"),
            "wire": row.wire,
            "useful": int(counted.formula.flops),
            "error": f"{row.relative_error:.1e}",
        }
        for row in counted.rows
    ]
    what = ", ".join((counted.name, described(counted.sizes), counted.dtype))
    if measured and sends:
        caption = say(
            "counted: {what}, on {ranks} ranks, a process each; sent as round a ring; "
            "on the wire, as the system measured it, with the headers of gloo's messages",
            what=what,
            ranks=counted.ranks,
        )
    else:
        caption = say("counted: {what}, on {ranks} ranks, a process each", what=what, ranks=counted.ranks)
    return make_table(cells, columns, caption)


def _workspace(counted: CountedRanks, row: RankRow) -> int:
    extra = counted.issued.workspace
    return sum(terms.get(name, 0) for terms in (row.reads, row.writes) for name in extra)
