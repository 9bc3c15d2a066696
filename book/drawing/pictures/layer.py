"""One layer of a dense transformer with its shapes: areas are bytes of weights."""

from __future__ import annotations

from book import catalog
from book.catalog import Model
from book.drawing.number_text import number, si
from book.drawing.pictures.canvas import Picture, arrow, finished, line, path, rect, text
from book.say import say

_WIDTH = 72  # units for d_model
_NARROWEST = 8  # units that a letter takes
_ATTENTION, _MLP = ("q projection", "k projection", "v projection", "o projection"), ("gate", "up", "down")


def _by(k: float, n: float) -> str:
    return f"{number(k)}×{number(n)}".replace(",", "")


def _add(x: float, y: float) -> str:
    plus = f"M{x - 5} {y}h10M{x} {y - 5}v10"
    return f'<circle cx="{x}" cy="{y}" r="11" class="fb s"/>' + path(plus)


def layer(model: str | Model = "llama3.1-8b") -> Picture:
    """Attention and MLP of one layer, weights drawn to scale in bf16.

    Raises ValueError for a model whose layer has other parts (experts, a latent cache), or weights that
    the drawing has no room for.
    """
    m = catalog.model(model) if isinstance(model, str) else model
    shapes = m.linear_layers()
    if m.experts is not None or not {*_ATTENTION, *_MLP} <= shapes.keys():
        raise ValueError(
            f"picture 'layer': {m.name} has other parts than q, k, v, o, gate, up and down; "
            "try 'llama3.1-8b'."
        )
    scale = _WIDTH / m.d_model
    queries, keys = (shapes[name][1] * scale for name in ("q projection", "k projection"))
    if m.d_ff > 3.6 * m.d_model or queries + 2 * keys > 1.55 * _WIDTH or keys < _NARROWEST:
        raise ValueError(
            f"picture 'layer': a weight of {m.name} is too wide or too narrow for the drawing; "
            "try 'llama3.1-8b'."
        )
    size = {name: 2 * shapes[name][0] * shapes[name][1] for name in (*_ATTENTION, *_MLP)}
    attention, mlp = (sum(size[n] for n in names) for names in (_ATTENTION, _MLP))
    share = f"{100 * mlp / (attention + mlp):.0f} %"
    d, ff, qn, kn = m.d_model, m.d_ff, shapes["q projection"][1], shapes["k projection"][1]

    def weight(name: str, label: str, x: float, y: float) -> str:
        k, n = shapes[name]
        return rect(x, y, n * scale, k * scale, "fw", measures=name) + text(
            x + n * scale / 2, y + min(k * scale / 2, 126), label, "on m"
        )

    q, k, wide = qn * scale, kn * scale, ff * scale
    high = d * scale
    kx, vx = 82 + q + 6, 82 + q + k + 12
    words = {
        "d": number(d),
        "ff": number(ff),
        "kn": number(kn),
        "qn": number(qn),
        "heads": number(m.heads),
        "kv_heads": number(m.kv_heads),
        "head_dim": number(m.head_dim),
        "attention": si(attention, "B", 2 if attention < 1e8 else 3),
        "mlp": si(mlp, "B"),
        "total": si(attention + mlp, "B"),
        "share": share,
        "layers": number(m.layers),
    }
    wires = (
        arrow((12, 40), (686, 40), (686, 86)),
        line(36, 40, 36, 98),
        arrow((36, 98), (78, 98)),
        arrow((vx + k + 4, 98), (350, 98)),
        arrow((472, 98), (586, 98)),
        arrow((590 + high, 98), (674, 98)),
        line(413, 134, 413, 146),
        arrow((686, 109), (686, 344)),
        line(686, 208, 36, 208),
        line(36, 208, 36, 356),
        arrow((36, 356), (78, 356)),
        arrow((36, 266), (78, 266)),
        line(82 + wide, 266, 400, 266),
        line(400, 266, 400, 298),
        line(82 + wide, 356, 400, 356),
        line(400, 356, 400, 324),
        arrow((413, 311), (586, 311)),
        arrow((590 + high, 356), (674, 356)),
        arrow((686, 367), (686, 488)),
    )
    return finished(
        "layer",
        496,
        say("One layer of {model}: {share} of its weights are the MLP", model=m.name, share=share),
        say(
            "A row for each of M tokens, {d} numbers long, goes through attention: the weights q ({d} by "
            "{qn}: {heads} heads of {head_dim}), k and v ({d} by {kn} each: {kv_heads} KV heads of "
            "{head_dim}), then attention itself, which also reads the KV cache, then o ({qn} by {d}); "
            "{attention} of weights in bf16. Then through the MLP: gate and up ({d} by {ff}), whose "
            "results are multiplied element by element, the gate's after silu, and down ({ff} by {d}); "
            "{mlp}. What each block makes is added to what came in. Weights are drawn to scale, inputs "
            "high and outputs wide, so areas are bytes: the MLP has {share} of {total}. The model has "
            "{layers} such layers. Norms and rotary positions are left out.",
            d=words["d"],
            qn=words["qn"],
            heads=words["heads"],
            head_dim=words["head_dim"],
            kn=words["kn"],
            kv_heads=words["kv_heads"],
            attention=words["attention"],
            ff=words["ff"],
            mlp=words["mlp"],
            share=words["share"],
            total=words["total"],
            layers=words["layers"],
        ),
        path(wires),
        _add(686, 98),
        _add(686, 356),
        text(12, 24, say("x: M rows of {d}", d=number(d).replace(",", "")), "b"),
        text(686, 24, say("x is added back"), "q e"),
        weight("q projection", "q", 82, 62),
        weight("k projection", "k", kx, 62),
        weight("v projection", "v", vx, 62),
        text(278, 82, say("{heads} heads", heads=words["heads"]), "q m"),
        text(278, 114, say("{kv_heads} KV heads", kv_heads=words["kv_heads"]), "q m"),
        rect(354, 62, 118, 72, "fc s1", round=6),
        text(413, 98, say("attention"), "m"),
        rect(354, 146, 118, 30, "fk"),
        text(413, 161, say("KV cache"), "on m"),
        text(531, 82, f"M×{qn}", "q m"),
        weight("o projection", "o", 590, 62),
        text(82, 142, say("{attention} of weights", attention=words["attention"]), "tw b", "top"),
        weight("gate", say("gate"), 82, 230),
        weight("up", say("up"), 82, 320),
        '<circle cx="400" cy="311" r="13" class="fc s"/>' + path("M395 306l10 10m0 -10l-10 10"),
        text(501, 294, f"M×{ff}", "q m"),
        text(368, 252, say("silu"), "q m"),
        text(52, 194, f"M×{d}", "q"),
        weight("down", say("down"), 590, 230),
        text(82, 402, say("{mlp} of weights: {share}", mlp=words["mlp"], share=share), "tw b", "top"),
        text(
            82,
            440,
            say(
                "Boxes to scale: inputs high, outputs\nwide. {model} has {layers} such layers.",
                model=m.name,
                layers=words["layers"],
            ),
            "q",
            "top",
        ),
    )
