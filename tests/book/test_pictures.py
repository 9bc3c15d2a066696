"""Explanatory pictures: numbers and sizes are those of the catalog, computed here another way."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import nbformat
import pytest

from book import catalog, picture
from book.drawing.palette import PALETTE
from book.drawing.pictures import PICTURES
from book.drawing.pictures.canvas import Picture

FOLDER = Path(__file__).resolve().parents[2] / "book" / "drawing" / "pictures"
SVG = "{http://www.w3.org/2000/svg}"
MOST = 12 * 1024  # bytes of one picture

# A step that others measured, as chapter 09 gives it: more than its terms, and less.
PARTS = {"weights": 2.59e-3, "products beyond the floor": 2.32e-3, "all-reduces": 1.02e-3}
GIVEN: dict[str, dict[str, Any]] = {"terms": {"parts": PARTS, "measured": 9.11e-3}}


@dataclass(frozen=True)
class Other:
    """The same picture of other things."""

    name: str
    what: dict[str, Any] = field(default_factory=dict)


OTHERS = (
    Other("machine", {"card": "b200"}),
    Other("machine", {"card": "l4", "dtype": "fp8"}),
    Other("layer", {"model": "llama3.1-70b"}),
    Other("phases", {"rows": 128, "card": "a100_80gb_sxm"}),
    Other("cache", {"model": "llama3.1-70b", "requests": 3, "prompt": 4096, "apart": 2048}),
    Other("heads", {"model": "llama3.1-8b"}),
    Other("tiles", {"k": 2048, "n": 2048, "splits": 2, "card": "a100_80gb_sxm"}),
    Other("roof", {"card": "b200", "dtype": "fp8"}),
    Other("batch", {"users": 16, "context": 8192}),
    Other("causal", {"length": 2048}),
    Other("step", {"card": "h200_sxm", "prompt": 4096, "chunk": 1024}),
    Other("rows", {"card": "h200_sxm", "counts": (1, 64, 1024)}),
    Other("bytes", {"model": "llama3.1-70b", "card": "h200_sxm"}),
    Other("terms", {"parts": PARTS, "measured": 5e-3}),
)


def drawn(name: str, **what: Any) -> Picture:
    return picture(name, **{**GIVEN.get(name, {}), **what})


ALL = [pytest.param(name, {}, id=name) for name in PICTURES]
ALL += [pytest.param(o.name, o.what, id=f"{o.name}-other-{i}") for i, o in enumerate(OTHERS)]


def root(one: Picture) -> ElementTree.Element:
    return ElementTree.fromstring(one.svg)


def words(one: Picture) -> Iterator[str]:
    """Title, description, and each text of the drawing."""
    yield from (one.title, one.description)
    for text in root(one).iter(f"{SVG}text"):
        lines = ["".join(span.itertext()) for span in text] or ["".join(text.itertext())]
        yield " ".join(lines)


# ------------------------------------------------------------------ every picture


def test_an_unknown_picture_is_refused_with_the_names():
    with pytest.raises(ValueError, match="there is none; there are machine, layer"):
        picture("machines")


@pytest.mark.parametrize(("name", "what"), ALL)
def test_a_picture_is_small_accessible_and_whole(name, what):
    one = drawn(name, **what)
    assert len(one.svg.encode()) < MOST
    svg = root(one)
    assert svg.get("role") == "img"
    title, desc = svg[0], svg[1]
    assert (title.tag, title.text, desc.tag, desc.text) == (
        f"{SVG}title",
        one.title,
        f"{SVG}desc",
        one.description,
    )
    assert svg.get("aria-labelledby") == title.get("id")
    assert svg.get("aria-describedby") == desc.get("id")
    assert "{" not in "".join(words(one)), "a brace that nobody filled"
    assert "nan" not in one.svg.lower()
    assert "-" not in {
        rect.get(side, "")[:1] for rect in svg.iter(f"{SVG}rect") for side in ("width", "height")
    }


def test_ids_are_unique_however_many_pictures_stand_on_a_page():
    everything = [drawn(name) for name in PICTURES] + [drawn(o.name, **o.what) for o in OTHERS]
    ids = [i for one in everything for i in re.findall(r' id="([^"]+)"', one.svg)]
    assert len(ids) == len(set(ids)) >= 2 * len(everything)


@pytest.mark.parametrize("name", PICTURES)
def test_colours_come_from_the_palette_in_both_themes(name):
    svg = drawn(name).svg
    style = re.search(r"<style>(.*?)</style>", svg, re.DOTALL)[1]
    light, dark = style.split("@media(prefers-color-scheme:dark)", 1)
    for shade, block in enumerate((light, dark)):
        used = re.findall(r"var\(--rl-(\w+),(#\w+)\)", block)
        assert len(used) > 8
        assert {role: colour for role, colour in used} == {role: PALETTE[role][shade] for role, _ in used}
    assert re.findall(r"#[0-9a-f]{3,6}\b", svg.replace(style, "")) == []
    asked = set(re.findall(r"var\(--(\w)\)", svg))
    assert asked <= set(re.findall(r"--(\w):", light))


def test_no_number_is_typed_into_the_words():
    """They come in through braces, from the value that is drawn. A name may have digits: bf16, L2."""
    typed = []
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "say":
                text = ast.literal_eval(node.args[0])
                bare = re.sub(r"\{\w+\}|\b(bf16|fp32|L2)\b|\b1 (row|KV head|latent)\b", "", text)
                typed += [f"{path.name}: {text}"] if re.search(r"\d", bare) else []
    assert typed == []


def test_a_picture_shows_itself_with_caption_and_number():
    one = drawn("machine", caption="Look at the line.", number="1.1")
    shown = one._repr_html_()
    assert one.svg in shown
    assert 'id="figure-1-1"' in shown
    assert "Look at the line." in shown
    assert "figcaption>" not in drawn("machine")._repr_html_().replace(".rl-drawing figcaption", "")
    with pytest.raises(ValueError, match="needs a caption"):
        drawn("machine", number="1.1")


@pytest.mark.parametrize(
    ("name", "what", "why"),
    [
        ("machine", {"card": "m4_max_40c"}, "try 'h100_sxm'"),
        ("layer", {"model": "mixtral-8x7b"}, "other parts"),
        ("phases", {"rows": 1}, "use 2 to"),
        ("cache", {"requests": 40}, "more than the drawing"),
        ("cache", {"model": "gpt-oss-20b"}, "windows or experts"),
        ("heads", {"model": "llama2-7b"}, "share KV heads"),
        ("heads", {"latent": "llama3.1-8b"}, "which has none"),
        ("tiles", {"k": 4100}, "pieces of whole"),
        ("tiles", {"splits": 16}, "2 to 4 pieces"),
        ("batch", {"users": 1}, "fit the drawing"),
        ("batch", {"model": "mixtral-8x7b"}, "depends on the batch"),
        ("causal", {"length": 4000}, "whole|isn't"),
        ("step", {"chunk": 500}, "chunks of 500"),
        ("rows", {"counts": (32, 1)}, "that grow"),
        ("rows", {"model": "mixtral-8x7b"}, "experts"),
        ("bytes", {"model": "llama3.2-1b"}, "one table for both ends"),
        ("terms", {"parts": {}}, "1 to 10 terms"),
        ("terms", {"parts": {"a label that is much too long to be put beside a bar": 1.0}}, "shorten it"),
    ],
)
def test_what_a_picture_cannot_show_is_said(name, what, why):
    with pytest.raises(ValueError, match=why):
        drawn(name, **what)


def of_every_card_and_model() -> Iterator[Picture]:
    """Whatever isn't refused, of all that the catalog has."""
    asked = [
        (n, {"card": a.id}) for a in catalog.accelerators() for n in ("machine", "roof", "tiles", "rows")
    ]
    models = ("layer", "cache", "heads", "batch", "rows", "bytes")
    asked += [(n, {"model": m.id}) for m in catalog.models() for n in models]
    for name, what in asked:
        with suppress(ValueError):
            yield picture(name, **what)


def test_pictures_of_any_card_or_model_are_small_or_refused():
    everything = list(of_every_card_and_model())
    assert len(everything) > 200
    assert [one for one in everything if len(one.svg.encode()) >= MOST] == []


# ------------------------------------------------------------------ numbers

NAMES = re.compile(
    r"Llama[-\w.]+|Qwen[-\w.]+|DeepSeek[-\w.]+|[HBA]\d{3} ?\w*|\bL4\b|\bL2\b|bf16|fp32|fp8|HBM\w*|GDDR\w*"
)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def numbers(one: Picture) -> set[float]:
    """Every number that is said, names left out. Prefixes stay: 989 of 989 TFLOP/s."""
    said = NAMES.sub("", " ".join(words(one)).replace("×", " "))
    return {float(found.replace(",", "")) for found in NUMBER.findall(said)}


def _digits(value: float, digits: int = 3) -> float:
    return float(f"{value:.{digits - 1}e}")


def _scaled(value: float, digits: int = 3) -> float:
    """As it is shown with a prefix: 3.35 for 3.35e12."""
    value = _digits(value, digits)
    while value >= 1000:
        value /= 1000
    while value < 1:
        value *= 1000
    return _digits(value, digits)


@dataclass(frozen=True)
class Facts:
    """What the numbers are made of, with the book's costs left aside. bf16; 2 bytes a number."""

    card: Any = field(default_factory=lambda: catalog.accelerator("h100_sxm"))
    small: Any = field(default_factory=lambda: catalog.model("llama3.1-8b"))
    large: Any = field(default_factory=lambda: catalog.model("llama3.1-70b"))

    @property
    def ridge(self) -> float:
        return self.card.peaks["bf16"] / self.card.bandwidth

    @property
    def read(self) -> int:
        """Bytes of weights that a step of the 8B reads: all but the input table."""
        return 2 * (self.small.parameters - self.small.vocab * self.small.d_model)

    @property
    def token(self) -> int:
        m = self.small
        return 2 * 2 * m.layers * m.kv_heads * m.head_dim


F = Facts()


def machine() -> set[float]:
    c = F.card
    flops = c.peaks["fp32"], c.peaks["bf16"]
    return {
        *(_scaled(c.capacity, 2), _scaled(c.bandwidth), c.l2_bytes / 2**20, c.sm_count),
        *(_scaled(x) for x in flops),
        _digits(flops[0] / c.bandwidth, 2),
        _digits(F.ridge),
    }


def layer() -> set[float]:
    m = F.small
    kv = m.kv_heads * m.head_dim
    attention = 2 * (2 * m.d_model**2 + 2 * m.d_model * kv)
    mlp = 2 * 3 * m.d_model * m.d_ff
    share = round(100 * mlp / (attention + mlp))
    sizes = {m.d_model, m.d_ff, kv, m.heads, m.kv_heads, m.head_dim, m.layers}
    return {*sizes, _scaled(attention, 2), _scaled(mlp), _scaled(attention + mlp), share}


def phases() -> set[float]:
    rows, width = 1024, 4096
    found = {rows, width, 1, _digits(F.ridge)}
    for m in (rows, 1):
        moved = 2 * (2 * m * width + width * width)
        found |= {_scaled(moved), _scaled(2 * m * width * width)}
        found.add(_digits(2 * m * width * width / moved, 2 if m == 1 else 3))
    return found


def cache() -> set[float]:
    requests, prompt, apart, columns = 4, 10240, 8192, 16
    stride = requests * apart // columns
    held = sum(prompt + (columns - 1) * stride - r * apart for r in range(requests))
    found = {*range(1, requests + 1), prompt, apart, stride, held}
    return found | {_digits(F.read / 1e9), _digits(held * F.token / 1e9), _scaled(F.token)}


def heads() -> set[float]:
    m, a = F.large, catalog.model("deepseek-v3").attention
    one = 2 * 2 * m.head_dim
    latent = a.kv_lora_rank + a.qk_rope_head_dim
    sizes = {m.heads * one, m.kv_heads * one, one, 2 * latent, a.kv_lora_rank, a.qk_rope_head_dim}
    return sizes | {m.heads, m.kv_heads, m.head_dim, m.heads // m.kv_heads, 1}


def tiles() -> set[float]:
    m, k, n, wide, high, pieces = 16, 4096, 4096, 256, 64, 4
    found = {
        m,
        k,
        n,
        wide,
        high,
        F.card.sm_count,
        n // wide,
        n // wide * pieces,
        k // pieces,
        k // pieces // high,
    }
    return found | {*range(1, pieces + 1), _scaled(4 * pieces * m * n), _scaled(2 * k * n)}


def roof() -> set[float]:
    c = F.card
    at = (1, round(F.ridge / 2), round(1.7 * F.ridge))
    shares = {_digits(100 * min(1, i / F.ridge), 2 if i / F.ridge < 0.1 else 3) for i in (*at, F.ridge)}
    return {*at, _digits(F.ridge), _scaled(c.bandwidth), _scaled(c.peaks["bf16"]), *shares}


def batch() -> set[float]:
    users, context = 32, 4096
    own = context * F.token
    found = {users, context, _digits(F.read / 1e9), _scaled(F.read / users)}
    return found | {_scaled(own), _digits(users * own / 1e9)}


def causal() -> set[float]:
    length, dim, tile = 4096, 128, 128
    side = length // tile
    below = sum(range(1, side + 1))
    square, strips = 2 * length**2, 2 * 4 * length * dim
    found = {length, dim, tile, below, side**2 - below, _scaled(square), _scaled(strips)}
    return found | {_digits(square / strips, 2)}


def step() -> set[float]:
    users, context, prompt, chunk = 32, 4096, 2048, 512
    m, c = F.small, F.card
    usual = (F.read + users * context * F.token) / c.bandwidth
    # The head is wanted for the last token only, and a causal prompt does half of the square.
    flops = 2 * (F.read / 2 * prompt - m.vocab * m.d_model * (prompt - 1))
    flops += 2 * m.layers * m.heads * m.head_dim * prompt**2
    whole, chunks = flops / c.peaks["bf16"], prompt // chunk
    found = {users, context, prompt, chunk, chunks, _scaled(usual)}
    return found | {_scaled(usual + whole), _scaled(usual + whole / chunks), 4}


def rows() -> set[float]:
    counts = (1, 32, 128, 512)
    reading = F.read / F.card.bandwidth
    multiplying = {_scaled(F.read * c / F.card.peaks["bf16"]) for c in counts}
    return {*counts, _digits(F.ridge), _scaled(reading), *multiplying}


def bytes_() -> set[float]:
    m = F.small
    table = 2 * m.vocab * m.d_model
    mlp = 2 * 3 * m.d_model * m.d_ff * m.layers
    total = 2 * m.parameters
    norm = 2 * m.d_model  # the last one, after all layers
    attention = total - 2 * table - mlp - norm
    found = {m.layers, *(_digits(x / 1e9) for x in (table, mlp, attention, total, F.read))}
    return found | {_scaled(F.read / F.card.bandwidth)}


def terms() -> set[float]:
    total = sum(PARTS.values())
    return {_scaled(x) for x in (*PARTS.values(), total, 9.11e-3, 9.11e-3 - total)}


COMPUTED: dict[str, Callable[[], set[float]]] = {
    **{
        f.__name__: f
        for f in (machine, layer, phases, cache, heads, tiles, roof, batch, causal, step, rows, terms)
    },
    "bytes": bytes_,
}


@pytest.mark.parametrize("name", PICTURES)
def test_every_number_that_is_said_is_a_computed_one(name):
    said, computed = numbers(drawn(name)), COMPUTED[name]()
    assert said - computed == set(), "said and not computed"
    assert computed - said == set(), "computed here and nowhere said"


@pytest.mark.parametrize("other", OTHERS, ids=lambda o: o.name)
def test_of_other_things_other_numbers_are_said(other):
    assert numbers(drawn(other.name, **other.what)) != numbers(drawn(other.name))


# ------------------------------------------------------------------ sizes read back from the drawing


def sized(name: str, **what: Any) -> dict[str, list[tuple[float, float]]]:
    """Width and height of what is drawn, by what it stands for; of a path, the sums over its boxes."""
    found: dict[str, list[tuple[float, float]]] = {}
    for element in root(drawn(name, **what)).iter():
        if is_ := element.get("data-is"):
            if element.tag == f"{SVG}rect":
                size = [(float(element.get("width")), float(element.get("height")))]
            else:
                boxes = re.findall(r"h([\d.]+)v([\d.]+)h-", element.get("d"))
                size = [(float(w), float(h)) for w, h in boxes]
            found.setdefault(is_, []).extend(size)
    return found


def area(boxes: list[tuple[float, float]]) -> float:
    return sum(w * h for w, h in boxes)


@pytest.mark.parametrize("card", ["h100_sxm", "b200", "l4"])
def test_the_machines_widths_are_its_rates(card):
    one, drawn_ = catalog.accelerator(card), sized("machine", card=card)
    width = {name: boxes[0][0] for name, boxes in drawn_.items()}
    assert width["tensor"] / width["bandwidth"] == pytest.approx(one.peak("bf16") / one.bandwidth, rel=0.01)
    assert width["tensor"] / width["vector"] == pytest.approx(one.peak("bf16") / one.peaks["fp32"], rel=0.01)


@pytest.mark.parametrize("model", ["llama3.1-8b", "llama3.1-70b"])
def test_a_layers_areas_are_its_weights(model):
    shapes = catalog.model(model).linear_layers()
    per_weight = [area(b) / (shapes[n][0] * shapes[n][1]) for n, b in sized("layer", model=model).items()]
    assert len(per_weight) == 7
    assert max(per_weight) == pytest.approx(min(per_weight), rel=0.01)


def test_the_caches_of_a_batch_are_areas_on_the_weights_scale():
    drawn_ = sized("batch")
    assert len(drawn_["caches"]) == 32
    ratio = 32 * 4096 * F.token / F.read
    assert area(drawn_["caches"]) / area(drawn_["weights"]) == pytest.approx(ratio, rel=0.01)


def test_the_parts_of_a_models_bytes_are_areas():
    m, drawn_ = F.small, sized("bytes")
    mlp = 3 * m.d_model * m.d_ff * m.layers
    assert area(drawn_["mlp"]) / area(drawn_["head"]) == pytest.approx(mlp / (m.vocab * m.d_model), rel=0.06)
    attention = (2 * m.d_model + 2 * m.kv_heads * m.head_dim) * m.d_model * m.layers
    assert area(drawn_["mlp"]) / area(drawn_["attention"]) == pytest.approx(mlp / attention, rel=0.02)


def test_bars_of_rows_and_terms_are_times():
    drawn_ = sized("rows")
    widths = [w for w, _ in drawn_["multiplying"]]
    assert [w / widths[-1] for w in widths] == pytest.approx([1 / 512, 32 / 512, 128 / 512, 1], rel=0.01)
    assert widths[-1] / drawn_["reading"][0][0] == pytest.approx(512 / F.ridge, rel=0.01)
    of_terms = sized("terms")
    told = [w for w, _ in of_terms["term"]]
    assert [w / told[0] for w in told] == pytest.approx(
        [s / PARTS["weights"] for s in PARTS.values()], rel=0.01
    )
    whole = of_terms["measured"][0][0]
    assert sum(told) + of_terms["rest"][0][0] == pytest.approx(whole, rel=0.01)


def test_terms_that_are_too_long_are_said_to_be():
    one = drawn("terms", measured=5e-3)
    assert "930 µs more than was measured" in one.description
    assert "too much" in "".join(words(one))
    assert "left over" not in "".join(words(one))


def test_what_heads_share_is_as_wide_as_its_bytes():
    drawn_ = sized("heads")
    widths = {name: sum(w for w, _ in boxes) for name, boxes in drawn_.items()}
    assert {name: len(boxes) for name, boxes in drawn_.items()} == {"64": 64, "8": 8, "1": 1, "latent": 1}
    unit = widths["1"] / 512
    assert widths == pytest.approx(
        {"64": 32768 * unit, "8": 4096 * unit, "1": 512 * unit, "latent": 1152 * unit}
    )


def test_a_column_of_the_cache_is_as_high_as_its_bytes():
    drawn_ = sized("cache")
    last = sum(h for _, h in drawn_["cache"][-4:])
    in_bytes = sum(10240 + 15 * 2048 - 8192 * r for r in range(4)) * F.token
    assert last / drawn_["weights"][0][1] == pytest.approx(in_bytes / F.read, rel=0.01)


def test_the_slab_is_as_high_as_its_rows():
    heights = [float(h) for h in re.findall(r"v([\d.]+)L", drawn("phases", rows=2048).svg)]
    assert heights[0] == heights[1] == pytest.approx(176 / 2)
    assert len(heights) == 2, "one row is thinner than a line, and is drawn as one"


def test_as_many_programs_are_drawn_as_are_said():
    walks = [e.get("d") for e in root(drawn("tiles")).iter() if e.get("data-is") == "walk"]
    assert walks[0].count("V") == 64 - 1, "and one of them tile by tile"


def test_a_negative_term_leads_back():
    one = {**PARTS, "more rows": -1e-3}
    drawn_ = sized("terms", parts=one)
    told = [w for w, _ in drawn_["term"]]
    assert told[-1] / told[0] == pytest.approx(1 / 2.59, rel=0.01)
    assert "−1.00 ms" in drawn("terms", parts=one).description
    with pytest.raises(ValueError, match="sums are not negative"):
        drawn("terms", parts={"more rows": -1e-3, **PARTS})


def test_strips_and_square_are_on_one_scale():
    drawn_ = sized("causal")
    side = drawn_["square"][0][0]
    assert sorted(min(b) / side for b in drawn_["strip"]) == pytest.approx([128 / 4096] * 4, rel=0.01)
    assert [max(b) for b in drawn_["strip"]] == pytest.approx([side] * 4)


def test_columns_under_the_roof_are_shares_of_the_peak():
    drawn_ = sized("roof")
    heights = {float(name.removeprefix("at ")): boxes[0][1] for name, boxes in drawn_.items()}
    peak = max(heights.values())
    for intensity, height in heights.items():
        assert height / peak == pytest.approx(min(1, intensity / F.ridge), abs=0.003)


def test_a_prompt_in_chunks_is_as_long_as_whole():
    boxes = sized("step")["prompt"]
    whole, *pieces = (w + 1 for w, _ in boxes)  # a unit is left to the line at its end
    assert len(pieces) == 4
    assert sum(pieces) == pytest.approx(whole, rel=0.01)


# ------------------------------------------------------------------ in the chapters

CHAPTERS = sorted((FOLDER.parents[2] / "chapters").glob("[0-9]*.ipynb"))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_draws_before_it_derives(path):
    """A picture of the thing before its formula."""
    code = [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    drawing = [i for i, source in enumerate(code) if re.search(r"\bpicture\(", source)]
    deriving = [i for i, source in enumerate(code) if re.search(r"\b(math|boxed)\(", source)]
    assert drawing
    assert drawing[0] < deriving[0]
