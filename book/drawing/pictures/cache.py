"""The KV cache growing: a column a decode step, whose height is the bytes that it reads."""

from __future__ import annotations

from book import catalog, serving
from book.catalog import Model
from book.drawing.number_text import gigabytes, number, si
from book.drawing.pictures.canvas import PHONE_TYPE, Picture, box, finished, line, path, rect, text
from book.say import say

_LEFT, _WIDE, _FLOOR, _GAP = 23, 658, 292, 3
_WEIGHTS = 180  # units of height for the weights


def cache(
    model: str | Model = "llama3.1-8b",
    requests: int = 4,
    prompt: int = 10240,
    apart: int = 8192,
    columns: int = 16,
) -> Picture:
    """What decode steps read as requests arrive and grow: weights below, on top a block of cache for each.

    prompt: tokens with which each request arrives, `apart` steps after the one before it. Columns are
    equally far apart in time, the last one before another request would come. Sizes are bf16. Raises
    ValueError for what outgrows the drawing or the model's context.
    """
    m = catalog.model(model) if isinstance(model, str) else model
    stride = requests * apart // columns
    weights = 2 * serving.parameters_read(m)
    token = serving.kv_bytes_per_token(m)
    if m.attention.window or m.experts is not None:
        raise ValueError(
            f"picture 'cache': {m.name} has windows or experts, which this drawing hasn't; try 'llama3.1-8b'."
        )

    def held(column: int) -> list[int]:
        """Tokens of each request that is there, in that column."""
        now = column * stride
        return [prompt + now - r * apart for r in range(requests) if now >= r * apart]

    last = held(columns - 1)
    unit = _WEIGHTS / weights
    if max(last) > m.max_context or sum(last) * token * unit > 200:
        raise ValueError(
            f"picture 'cache': {requests} requests hold {sum(last):,} tokens at the end, more than the "
            f"drawing or the context of {m.name} has room for; take fewer or shorter ones."
        )
    pitch = _WIDE / columns
    blocks: list[str] = []
    top = _FLOOR
    for c in range(columns):
        top = _FLOOR - _GAP
        for tokens in held(c):
            height = tokens * token * unit
            top -= height
            blocks.append(box(_LEFT + c * pitch, top, pitch - 6, height))
            top -= _GAP
    heights = [tokens * token * unit for tokens in last]
    names = []
    y = float(_FLOOR - _GAP)
    for i, height in enumerate(heights):
        if height > PHONE_TYPE:  # else there is no room for it
            names.append(text(_LEFT + _WIDE - pitch / 2 - 3, y - height / 2, str(i + 1), "b on m"))
        y -= height + _GAP
    rows = [box(24 + 16 * i, 12 + 18 * r, 12, 13) for r in range(requests) for i in range(10 - 2 * r)]
    new = [box(24 + 16 * (10 - 2 * r) + 0.5, 12.5 + 18 * r, 11, 12) for r in range(requests)]
    total = sum(last) * token
    facts = {
        "requests": number(requests),
        "weights": gigabytes(weights),
        "cache": gigabytes(total),
        "token": si(token, "B"),
        "stride": number(stride),
    }
    return finished(
        "cache",
        540,
        say(
            "The weights stay as they are while the KV cache grows: here to {cache} beside {weights} of "
            "weights",
            cache=facts["cache"],
            weights=facts["weights"],
        ),
        say(
            "Decode steps of {model} in bf16, {stride} steps apart, each a column whose height is the "
            "bytes that it reads. The weights are the same {weights} in each (without the input table, of "
            "which a step reads one row a request). On top lies the cache: each of {requests} requests "
            "arrives with a prompt of {prompt} tokens, {apart} steps after the one before it, and adds one "
            "token of {token} in each step. In the last column they hold {tokens} tokens, {cache}.",
            model=m.name,
            prompt=number(prompt),
            apart=number(apart),
            tokens=number(sum(last)),
            stride=facts["stride"],
            weights=facts["weights"],
            requests=facts["requests"],
            token=facts["token"],
            cache=facts["cache"],
        ),
        path(blocks, "fk", 'data-is="cache"'),
        *names,
        rect(_LEFT, _FLOOR, _WIDE, _WEIGHTS, "fw", measures="weights"),
        path(
            [
                line(_LEFT + i * pitch - 3, _FLOOR, _LEFT + i * pitch - 3, _FLOOR + _WEIGHTS)
                for i in range(1, columns)
            ],
            "sb half",
        ),
        text(
            36,
            382,
            say("Weights: {weights}.\nEvery step reads all of them.", weights=facts["weights"]),
            "b on",
            halo="w",
        ),
        text(
            _LEFT,
            482,
            say(
                "One column: what one decode step reads.\nThe next one is {stride} steps later.",
                stride=facts["stride"],
            ),
            "q",
            "top",
        ),
        path(rows, "fk"),
        path(new, "sk"),
        text(
            24,
            98,
            say(
                "A step reads all filled tokens and\nadds one a request, {token} each.", token=facts["token"]
            ),
            at="top",
        ),
        text(681, 50, say("Cache: {cache}", cache=facts["cache"]), "tk b e"),
        text(681, 80, say("of {requests} requests", requests=facts["requests"]), "e"),
    )
