"""Where the bytes of a decode step come from: a model's parts as areas."""

from __future__ import annotations

from book import catalog, serving
from book.catalog import Model
from book.drawing.number_text import gigabytes, number, si
from book.drawing.pictures.canvas import Picture, arrow, box, finished, line, path, rect, text
from book.say import say

_LEFT, _WIDE, _TOP, _HIGH = 20, 664, 116, 216


def bytes(model: str | Model = "llama3.1-8b", card: str = "h100_sxm") -> Picture:
    """All weights of a dense model in bf16 as one block of area, cut into layers, head and input table.

    Raises ValueError for a model with experts, and for one whose head is its input table.
    """
    m = catalog.model(model) if isinstance(model, str) else model
    a = catalog.accelerator(card)
    if m.experts is not None or m.tied_embeddings:
        raise ValueError(
            f"picture 'bytes': {m.name} has experts, or one table for both ends; try 'llama3.1-8b'."
        )
    shapes, parts = m.linear_layers(), m.parameter_parts
    mlp = 2 * sum(shapes[n][0] * shapes[n][1] for n in ("gate", "up", "down") if n in shapes)
    blocks, head, table = (2 * parts[n] for n in ("blocks", "head", "input table"))
    attention = blocks / m.layers - mlp
    total = 2 * m.parameters
    read = 2 * serving.parameters_read(m)
    unit = _WIDE / total
    wide, per_layer = blocks * unit, blocks * unit / m.layers
    split = _HIGH * mlp * m.layers / blocks
    x_head = _LEFT + wide
    x_table = x_head + head * unit
    cuts = [
        line(_LEFT + i * per_layer, _TOP, _LEFT + i * per_layer, _TOP + _HIGH) for i in range(1, m.layers)
    ]
    facts = {
        "layers": number(m.layers),
        "mlp": gigabytes(mlp * m.layers),
        "attention": gigabytes(attention * m.layers),
        "head": gigabytes(head),
        "table": gigabytes(table),
        "read": gigabytes(read),
        "total": gigabytes(total),
        "time": si(read / a.bandwidth, "s"),
        "card": a.short_name,
    }
    return finished(
        "bytes",
        _TOP + _HIGH + 142,
        say(
            "A decode step of {model} reads {read} of its {total}: every layer and the head, one row of "
            "the input table",
            model=m.name,
            read=facts["read"],
            total=facts["total"],
        ),
        say(
            "All weights of {model} in bf16 as one block, areas being bytes. {layers} slices are the "
            "layers; in each the MLP, {mlp} in all, lies over attention, {attention} with the norms. Then "
            "the head, {head}. Last, only outlined, the input table, {table}, of which a step reads one "
            "row a sequence. So a step reads {read}, which takes the {card} {time} at its full bandwidth. "
            "The KV cache, which comes on top, is left out.",
            model=m.name,
            layers=facts["layers"],
            mlp=facts["mlp"],
            attention=facts["attention"],
            head=facts["head"],
            table=facts["table"],
            read=facts["read"],
            card=facts["card"],
            time=facts["time"],
        ),
        text(_LEFT, 10, say("{model} in bf16: {total}", model=m.name, total=facts["total"]), "b", "top"),
        text(_LEFT, 40, say("Areas are bytes. A step reads what is filled."), "q", "top"),
        text(x_head + head * unit / 2 - 14, 98, say("head {head}", head=facts["head"]), "tw b e"),
        path(
            line(x_head + head * unit / 2, 98, x_head + head * unit / 2, _TOP - 2)
            + line(x_head + head * unit / 2 - 8, 98, x_head + head * unit / 2, 98)
        ),
        rect(_LEFT, _TOP, wide, split, "fw", measures="mlp"),
        rect(_LEFT, _TOP + split, wide, _HIGH - split, "fw", measures="attention"),
        path(cuts, "sb half"),
        path(line(_LEFT, _TOP + split, x_head, _TOP + split), "sb", 'style="stroke-width:3"'),
        rect(x_head + 2, _TOP, head * unit - 2, _HIGH, "fw", measures="head"),
        path(box(x_table + 2, _TOP + 1, table * unit - 3, _HIGH - 2), "s", 'data-is="table"'),
        path(box(x_table + 2, _TOP + _HIGH - 7, table * unit - 3, 2), "fw"),
        text(
            _LEFT + wide / 2,
            _TOP + split / 2,
            say("MLP of {layers} layers: {mlp}", layers=facts["layers"], mlp=facts["mlp"]),
            "on b m",
            halo="w",
        ),
        text(
            _LEFT + wide / 2,
            _TOP + (split + _HIGH) / 2,
            say("attention: {attention}", attention=facts["attention"]),
            "on b m",
            halo="w",
        ),
        path(
            arrow(
                (x_table + table * unit / 2, _TOP + _HIGH + 34),
                (x_table + table * unit / 2, _TOP + _HIGH + 4),
            )
        ),
        text(
            x_table + table * unit / 2 - 12,
            _TOP + _HIGH + 32,
            say("input table {table}: one row a sequence", table=facts["table"]),
            "e",
        ),
        text(
            352,
            _TOP + _HIGH + 74,
            say(
                "Read in a step: {read}, so at least {time}\non the {card}, for one sequence or for many.",
                read=facts["read"],
                time=facts["time"],
                card=facts["card"],
            ),
            "m",
            "top",
        ),
    )
