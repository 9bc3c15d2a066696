"""One weight read for all, a cache read for each: a decode step of a batch, areas being bytes."""

from __future__ import annotations

from book import catalog, serving
from book.catalog import Model
from book.drawing.number_text import gigabytes, number, si
from book.drawing.pictures.canvas import Picture, box, dots, finished, path, rect, text
from book.drawing.pictures.canvas import number as at
from book.say import say

_LEFT, _WIDE, _TOP, _WEIGHTS, _FAN = 32, 640, 44, 150, 74


def batch(model: str | Model = "llama3.1-8b", users: int = 32, context: int = 4096) -> Picture:
    """What a decode step of `users` users with `context` tokens each reads, in bf16.

    Raises ValueError for a batch or a context that the drawing or the model has no room for.
    """
    m = catalog.model(model) if isinstance(model, str) else model
    if m.experts is not None:
        raise ValueError(
            f"picture 'batch': which experts of {m.name} are read depends on the batch; try 'llama3.1-8b'."
        )
    weights = 2 * serving.parameters_read(m)
    each = serving.kv_bytes(m, context)
    area = _WIDE * _WEIGHTS / weights  # square units a byte
    pitch = _WIDE / users
    high = each * area / (pitch - 3)
    if not 2 <= users <= 64 or context > m.max_context or not 2 <= high <= 400:
        raise ValueError(
            f"picture 'batch': {users} users of {context:,} tokens don't fit the drawing (2 to 64 users), "
            f"or the context of {m.name}."
        )
    below = _TOP + _WEIGHTS
    caches = below + _FAN
    centres = [_LEFT + (i + 0.5) * pitch for i in range(users)]
    facts = {
        "users": number(users),
        "context": number(context),
        "weights": gigabytes(weights),
        "share": si(weights / users, "B"),
        "each": si(each, "B"),
        "all": gigabytes(users * each),
    }
    return finished(
        "batch",
        caches + high + 112,
        say(
            "{users} users share one reading of the weights, and no byte of their caches",
            users=facts["users"],
        ),
        say(
            "A decode step of {model} in bf16 for {users} users with {context} tokens each; areas are "
            "bytes. On top the weights, {weights}, read once: lines lead from them to all {users} users, "
            "{share} for each. Below each user the cache that nobody else reads, {each}; {all} together. "
            "Another user adds a cache and no weights.",
            model=m.name,
            users=facts["users"],
            context=facts["context"],
            weights=facts["weights"],
            share=facts["share"],
            each=facts["each"],
            all=facts["all"],
        ),
        text(
            352,
            8,
            say(
                "Read once, for all {users}: the weights, {weights}",
                users=facts["users"],
                weights=facts["weights"],
            ),
            "b m",
            "top",
        ),
        rect(_LEFT, _TOP, _WIDE, _WEIGHTS, "fw", measures="weights"),
        text(352, _TOP + _WEIGHTS / 2, say("{share} of it for each user", share=facts["share"]), "on m"),
        path((f"M{at(x)} {below}V{caches - 14}" for x in centres), "s", 'style="stroke-width:1"'),
        dots(centres[0], centres[-1], caches - 12, pitch, min(10, pitch - 4)),
        text(352, below + 28, say("{users} users, one token each", users=facts["users"]), "m", halo="b"),
        path((box(x - pitch / 2 + 1.5, caches, pitch - 3, high) for x in centres), "fk", 'data-is="caches"'),
        text(
            352,
            caches + high + 14,
            say(
                "Read for one user each: {each} of cache,\n{all} in all", each=facts["each"], all=facts["all"]
            ),
            "tk b m",
            "top",
        ),
        text(
            352,
            caches + high + 76,
            say("Areas are bytes; {context} tokens a user.", context=facts["context"]),
            "q m",
            "top",
        ),
    )
