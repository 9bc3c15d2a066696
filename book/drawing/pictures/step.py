"""Serving steps with somebody else's prompt in them: whole, and in chunks. Lengths are seconds."""

from __future__ import annotations

from book import serving
from book.drawing.number_text import number, si
from book.drawing.pictures.canvas import Picture, arrow, box, finished, line, path, text
from book.say import say
from book.serving import deploy

_LEFT, _WIDE, _PITCH, _HIGH = 20, 664, 22, 14
_PEOPLE = 4  # rows drawn, of the users that there are


def step(
    model: str = "llama3.1-8b",
    card: str = "h100_sxm",
    users: int = 32,
    context: int = 4096,
    prompt: int = 2048,
    chunk: int = 512,
) -> Picture:
    """Decode steps of `users` users on a line of time, one with a whole prompt in it, then with chunks.

    Steps and prompts are floors, one after the other; a chunk takes its share of the prompt, so what
    later chunks read again of earlier ones is left out. Raises ValueError for chunks that don't
    divide the prompt, or for more of them than the line has room for.
    """
    if prompt % chunk or not 2 <= prompt // chunk <= 6:
        raise ValueError(f"picture 'step': a prompt of {prompt} isn't 2 to 6 chunks of {chunk}.")
    d = deploy(model, card)
    usual = float(serving.decode_step(d, users, context).time)
    whole = float(serving.prefill(d, prompt).time)
    chunks = prompt // chunk
    piece = whole / chunks
    before, after = 2, 2
    unit = _WIDE / ((before + chunks + after) * usual + whole)

    def lane(y: float, extra: list[float]) -> tuple[str, float]:
        """Users' rows and the newcomer's: `extra` seconds of prompt in each step."""
        x, marks, tokens, prompts = float(_LEFT), [], [], []
        for seconds in extra:
            wide, added = usual * unit, seconds * unit
            for user in range(_PEOPLE):
                tokens.append(box(x + 3, y + user * _PITCH, wide - 6, _HIGH))
            if added:
                prompts.append(box(x + wide, y, added - 1, _PEOPLE * _PITCH - _PITCH + _HIGH))
            x += wide + added
            marks.append(line(x, y - 6, x, y + _PEOPLE * _PITCH))
        drawn = (
            path(tokens, "fd")
            + path(prompts, "fp", 'data-is="prompt"')
            + path(marks, "s", 'style="stroke-width:1"')
        )
        return drawn, x

    first, _ = lane(86, [0, 0, whole] + [0] * (chunks - 1 + after))
    second, _ = lane(286, [0, 0] + [piece] * chunks + [0] * after)
    x_whole = _LEFT + (before + 1) * usual * unit
    facts = {
        "users": number(users),
        "context": number(context),
        "prompt": number(prompt),
        "chunk": number(chunk),
        "usual": si(usual, "s"),
        "whole": si(usual + whole, "s"),
        "piece": si(usual + piece, "s"),
        "chunks": number(chunks),
    }
    return finished(
        "step",
        496,
        say(
            "Everybody waits for a newcomer's prompt: one gap of {whole}, or {chunks} of {piece}",
            whole=facts["whole"],
            chunks=facts["chunks"],
            piece=facts["piece"],
        ),
        say(
            "Two lines of time to one scale, of {model} on the {card}: {users} users with {context} tokens "
            "each, of whom {people} are drawn as rows, and a newcomer with a prompt of {prompt}. A step "
            "gives each user one token and takes {usual}. Above, one step has the whole prompt in it and "
            "takes {whole}; nobody gets a token meanwhile. Below, the prompt goes in as {chunks} chunks of "
            "{chunk}, one a step, and each such step takes {piece}. The sum is the same, the longest gap "
            "is not. All times are floors, decode and prompt one after the other; what chunks read again "
            "is left out.",
            model=d.model.name,
            card=d.accelerator.short_name,
            people=number(_PEOPLE),
            users=facts["users"],
            context=facts["context"],
            prompt=facts["prompt"],
            usual=facts["usual"],
            whole=facts["whole"],
            chunks=facts["chunks"],
            chunk=facts["chunk"],
            piece=facts["piece"],
        ),
        text(_LEFT, 8, say("The whole prompt in one step"), "b", "top"),
        text(684, 8, say("a gap of {whole}", whole=facts["whole"]), "e", "top"),
        text(
            _LEFT,
            40,
            say(
                "{users} users, {usual} a step; a prompt of {prompt} tokens",
                users=facts["users"],
                usual=facts["usual"],
                prompt=facts["prompt"],
            ),
            "q",
            "top",
        ),
        first,
        text(x_whole + whole * unit / 2, 127, say("the prompt"), "on m b"),
        text(_LEFT, 206, say("In chunks of {chunk}", chunk=facts["chunk"]), "b", "top"),
        text(
            684,
            206,
            say("{chunks} gaps of {piece}", chunks=facts["chunks"], piece=facts["piece"]),
            "e",
            "top",
        ),
        text(_LEFT, 240, say("the same work, in turn with theirs"), "q", "top"),
        second,
        path(arrow((_LEFT, 396), (_LEFT + _WIDE, 396))),
        text(684, 402, say("time, to scale"), "q e", "top"),
        text(
            352,
            430,
            say("A box is a token of one user; the prompt is blue.\nA step ends for all its users at once."),
            "m",
            "top",
        ),
    )
