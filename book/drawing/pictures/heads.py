"""Query heads that share what they read: MHA, GQA, MQA and a latent, widths being bytes of a token."""

from __future__ import annotations

from book import catalog, cost
from book.catalog import Model
from book.drawing.number_text import number
from book.drawing.pictures.canvas import Picture, box, dots, finished, line, path, text
from book.drawing.pictures.canvas import number as at
from book.say import say

_LEFT, _WIDE, _ROW, _BLOCK = 32, 640, 112, 22


def heads(model: str | Model = "llama3.1-70b", latent: str | Model = "deepseek-v3") -> Picture:
    """As many query heads as `model` has, over a KV head each, the model's own, one, or a latent.

    latent: the model that has the latent of the last row. Bytes are of one token of one layer in
    bf16. Raises ValueError for a model whose heads aren't grouped, and for one without a latent.
    """
    m, other = (catalog.model(one) if isinstance(one, str) else one for one in (model, latent))
    if m.attention.type == "mla" or not 1 < m.kv_heads < m.heads or m.heads > 64:
        raise ValueError(f"picture 'heads': {m.name} doesn't share KV heads in groups; try 'llama3.1-70b'.")
    if other.attention.type != "mla":
        raise ValueError(f"picture 'heads': latent = {other.name}, which has none; try 'deepseek-v3'.")
    rank, rope = other.attention.kv_lora_rank, other.attention.qk_rope_head_dim
    sizes = [sum(cost.kv_append(1, g, m.head_dim).writes.values()) for g in (m.heads, m.kv_heads, 1)]
    sizes.append(cost.mla_decode(1, m.heads, rank, rope, 1).reads["kv"])
    unit, pitch = _WIDE / sizes[0], _WIDE / m.heads
    ratio = f"{m.heads // m.kv_heads}:1"
    rows = (
        (say("MHA"), say("{n} KV heads", n=number(m.heads)), m.heads),
        (say("GQA {ratio}", ratio=ratio), say("{n} KV heads", n=number(m.kv_heads)), m.kv_heads),
        (say("MQA"), say("1 KV head"), 1),
        (say("MLA"), say("1 latent: K and V in one"), 1),
    )
    parts = []
    for i, ((name, note, groups), size) in enumerate(zip(rows, sizes, strict=True)):
        y, wide = 98 + _ROW * i, size * unit / groups
        centres = [_LEFT + (g + 0.5) * _WIDE / groups for g in range(groups)]
        dots_at = [_LEFT + (h + 0.5) * pitch for h in range(m.heads)]
        fan = "".join(
            f"M{at(x)} {y + 20}L{at(centres[h * groups // m.heads])} {y + 58}" for h, x in enumerate(dots_at)
        )
        blocks = [box(x - wide / 2, y + 58, wide, _BLOCK) for x in centres]
        # Blocks that touch are parted in the page's colour, and keep their width.
        parted = [line(x - wide / 2, y + 58, x - wide / 2, y + 58 + _BLOCK) for x in centres[1:]]
        parts += [
            text(_LEFT, y, name, "b"),
            text(166, y, note, "q"),
            text(672, y, say("{bytes} bytes", bytes=number(int(size))), "tk b e"),
            dots(dots_at[0], dots_at[-1], y + 16, pitch, 6),
            path(fan, "s", 'style="stroke-width:.6" opacity=".55"'),
            path(blocks, "fk", f'data-is="{groups if i < 3 else "latent"}"'),
            path(parted, "sb") if groups * wide >= _WIDE else "",
            path(f"M{_LEFT} {y + 69}H{_LEFT + _WIDE}", "sb") if i < 3 else "",
        ]
    shown = [number(int(s)) for s in sizes]
    return finished(
        "heads",
        530,
        say(
            "Query heads that share a KV head leave fewer bytes in the cache: {mha} bytes a token and "
            "layer, {gqa}, {mqa}",
            mha=shown[0],
            gqa=shown[1],
            mqa=shown[2],
        ),
        say(
            "Four rows, each with the same {heads} query heads of {head_dim}, joined by lines to what they "
            "read; widths of the blocks are bytes of one token in one layer in bf16, keys and values "
            "together. Multi-head attention (MHA): each query head has a KV head of its own, {mha} bytes. "
            "Grouped-query attention (GQA), as in {model}: {group} query heads share one, {gqa} bytes. "
            "Multi-query attention (MQA): all share one, {mqa} bytes. Multi-head latent attention (MLA), "
            "with the latent of {other}: all read one latent of {rank} + {rope} numbers, once for keys and "
            "values, {mla} bytes.",
            heads=number(m.heads),
            head_dim=number(m.head_dim),
            model=m.name,
            other=other.name,
            group=number(m.heads // m.kv_heads),
            rank=number(rank),
            rope=number(rope),
            mha=shown[0],
            gqa=shown[1],
            mqa=shown[2],
            mla=shown[3],
        ),
        text(
            _LEFT,
            6,
            say(
                "Dots: {heads} query heads of {head_dim}. Blocks: what they read\n"
                "of a token in a layer, bf16; their width is bytes.",
                heads=number(m.heads),
                head_dim=number(m.head_dim),
            ),
            "q",
            "top",
        ),
        *parts,
    )
