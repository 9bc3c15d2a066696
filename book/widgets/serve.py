"""The sentence on top of a page: "I serve [model] in [format] to [n] people with [context] on [k x card]".

A reader says it once for the whole book. The page keeps it in its address and in the browser's storage,
and nothing of it leaves the page. Explorers open there, what doesn't fit says so, and every number is
computed in the page by the JavaScript of `ch00_deployment.deployment`, which the tests hold to
`book.serving`. `data` is what the front-end (src/serve) is given, `static_html` what stands there before
its script runs.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from book import catalog
from book.catalog.facts import ACCELERATOR_FACTS
from book.drawing import number_text
from book.formulas.ch00_deployment import deployment
from book.formulas.formula import Formula
from book.say import say
from book.widgets import explorer_payload
from book.widgets.explorer_payload import sliders

GLOBAL = "InferenceRooflineServe"  # where the page's script finds the data
TOKENS = 1024  # what "k" stands for after a number of tokens; after a number of people it is 1,000


@dataclass(frozen=True)
class Format:
    """How a model is stored, by the catalog's names. arithmetic: where a card lacks it, its 16 bits."""

    label: str
    weights: str
    cache: str
    arithmetic: str


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "bf16": Format(say("bf16"), "bf16", "bf16", "bf16"),
        "fp8": Format(say("fp8"), "fp8", "fp8", "fp8"),
        "fp8w": Format(say("fp8, bf16 cache"), "fp8", "bf16", "fp8"),
        "int4w": Format(say("int4, bf16 cache"), "int4_g128", "bf16", "bf16"),
        "nvfp4": Format(say("nvfp4, fp8 cache"), "nvfp4", "fp8", "nvfp4"),
    }
)


@dataclass(frozen=True)
class Served:
    """What a reader serves. model, card: ids of the catalog; format: of FORMATS; context: tokens of each."""

    model: str = "llama3.1-70b"
    format: str = "fp8"
    people: int = 32
    context: int = 8192
    cards: int = 2
    card: str = "h100_sxm"


START = Served()  # the author's, until a reader says another


@dataclass(frozen=True)
class Field:
    """A number in the sentence. k: what the letter k after it stands for."""

    label: str
    least: int
    most: int
    k: int


FIELDS: Mapping[str, Field] = MappingProxyType(
    {
        "people": Field(say("people at once"), 1, 4096, 1000),
        "context": Field(say("tokens of context each"), 16, 2**20, TOKENS),
        "cards": Field(say("number of cards"), 1, 128, 1000),
    }
)
WORDS: Mapping[str, str] = MappingProxyType(
    {
        "sentence": say(
            "I serve {model} in {format} to {people} with {context}\u00a0context "
            "on {cards}\u00a0×\u00a0{card}."
        ),
        "person": say("person"),
        "people": say("people"),
        "fits": say("Fits: {needed} of {memory}"),
        "lacks": say("Does not fit: {needed} of {memory}"),
        "lacks_engine": say("Does not fit: {needed}, and of {memory} an engine may use {there}"),
        "offer_cards": say("take {cards} cards"),
        "offer_people": say("serve {count}"),
        "offer_context": say("{tokens} tokens at most"),
        "other_model": say(
            "This chapter's short formula takes all layers for alike, and all weights for read. {model} is "
            "built otherwise, so the explorer keeps to the author's numbers."
        ),
        "one_card": say("This formula is of one card: it puts all of the model on one of your {cards}."),
        "step": say("a step takes at least {time}"),
        "each": say("each {rate}"),
        "all": say("all {rate}"),
        "reset": say("the author's numbers"),
        "not_read": say("{value}: write a number, as in 32, 8k or 1M"),
    }
)


@cache
def data() -> dict[str, Any]:
    """All that the page's script needs: formula, cards, models, formats, words. The same at every build."""
    cards = catalog.accelerators()
    payload = explorer_payload.build("serve", deployment, cards)
    for told, card in zip(payload["accelerators"], cards, strict=True):
        facts = {name: fact(card, "") for name, fact in ACCELERATOR_FACTS.items()}
        told["facts"] = {name: float(value) for name, value in facts.items() if value is not None}
        told["first"] = card.default_dtype
    return {
        "payload": payload,
        "formats": {
            name: {
                "label": f.label,
                "weights": catalog.effective_itemsize(f.weights),
                "cache": catalog.effective_itemsize(f.cache),
                "arithmetic": f.arithmetic,
            }
            for name, f in FORMATS.items()
        },
        "models": {m.id: m.name for m in catalog.models() if m.name in payload["presets"]},
        "fields": {
            name: {"label": f.label, "least": f.least, "most": f.most, "k": f.k} for name, f in FIELDS.items()
        },
        "start": asdict(START),
        "words": dict(WORDS),
    }


def script() -> str:
    """The data as a classic script, so that it loads from disk, too."""
    text = json.dumps(data(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return f"globalThis.{GLOBAL}={text};\n"


def tokens(count: int) -> str:
    """A number of tokens as it is written: 8k for 8,192, 1M for 1,048,576, others in full."""
    for letter, size in (("M", TOKENS**2), ("k", TOKENS)):
        if count >= size and count % size == 0:
            return f"{count // size}{letter}"
    return f"{count:,}"


def static_html() -> str:
    """The sentence with its controls at the author's numbers; a reader without scripts reads it as it is."""
    told = data()
    shown = {
        "model": _select("model", say("model"), told["models"], START.model),
        "format": _select(
            "format", say("number format"), {n: f.label for n, f in FORMATS.items()}, START.format
        ),
        "people": f"{_number('people', f'{START.people:,}')}\u00a0<span data-plural>{WORDS['people']}</span>",
        "context": _number("context", tokens(START.context)),
        "cards": _number("cards", f"{START.cards:,}"),
        "card": _select(
            "card", say("card"), {a["id"]: a["name"] for a in told["payload"]["accelerators"]}, START.card
        ),
    }
    inside = " ".join(map(_kept_together, WORDS["sentence"].split(" ")))
    inside = re.sub(r"\{(\w+)\}", lambda found: shown[found[1]], inside)
    label = html.escape(say("What you serve"))
    return (
        f'<div class="rl-serve"><form aria-label="{label}" autocomplete="off">{inside}</form>{_BEFORE}'
        f'<p class="rl-verdict" role="status">{_verdict()}</p></div>'
    )


def _kept_together(piece: str) -> str:
    """A control and what belongs to it stay in one line."""
    return f'<span class="rl-nobr">{html.escape(piece)}</span>' if "{" in piece else html.escape(piece)


# Before the first paint: the controls as they were left, and as wide, so that nothing moves later.
_BEFORE = """<script>(form => {
let text = new URLSearchParams(location.hash.slice(1)).get("serve");
try { text ??= localStorage.getItem("serve"); } catch {}
const [model, format, people, context, machine = ""] = (text ?? "").split("~"), x = machine.indexOf("x");
const said = { model, format, people, context, cards: machine.slice(0, x), card: machine.slice(x + 1) };
const ruler = document.createElement("canvas").getContext("2d");
for (const one of form.querySelectorAll("[data-serve]")) {
  const value = said[one.dataset.serve] ?? "";
  const known = one.options ? [...one.options].some((o) => o.value === value) : /^[\\d.kM]{1,8}$/.test(value);
  if (known) one.value = value;
  const { fontWeight, fontSize, fontFamily, fontStyle } = getComputedStyle(one);
  ruler.font = [fontStyle, fontWeight, fontSize, fontFamily].join(" ");
  const shown = one.selectedOptions?.[0].textContent ?? one.value;
  one.style.width = Math.ceil(ruler.measureText(shown).width) + 4 + "px";
}
})(document.currentScript.previousElementSibling)</script>"""


def position(served: Served) -> dict[str, float]:
    """{symbol: value} of the deployment's formula."""
    form, card = FORMATS[served.format], catalog.accelerator(served.card)
    dtype = form.arithmetic if form.arithmetic in card.peaks else card.default_dtype
    return {
        **deployment.preset_values(catalog.model(served.model).name),
        **{"batch": served.people, "context": served.context, "gpus": served.cards},
        "weight_itemsize": catalog.effective_itemsize(form.weights),
        "kv_itemsize": catalog.effective_itemsize(form.cache),
        **{"peak": card.peak(dtype), "bandwidth": card.bandwidth, "capacity": card.usable},
        "alone": ACCELERATOR_FACTS["alone"](card, ""),
    }


def opening(formula: Formula) -> dict[str, Any]:
    """What `explore` is told so that it opens at the author's deployment: model, dtype and sliders."""
    form = FORMATS[START.format]
    moved = {n: v for n, v in position(START).items() if n in {p.symbol for p in sliders(formula)}}
    return {"model": START.model, "dtype": form.arithmetic, **moved}


def _verdict() -> str:
    """What the script will say of the author's deployment, which fits."""
    at = position(START)
    held = {name: float(size) * START.cards for name, size in deployment.held(**at).items()}
    sizes = {name: number_text.si(held[name], "byte") for name in ("needed", "memory")}
    time = number_text.si(deployment(**at), "s")
    each, every = (number_text.number(deployment.evaluate(o, **at)) for o in ("per_user", "throughput"))
    rates = [
        WORDS["step"].format(time=time),
        WORDS["each"].format(rate=f"{each} token/s"),
        WORDS["all"].format(rate=f"{every} token/s"),
    ]
    fits = html.escape(WORDS["fits"].format(**sizes))
    return (
        f'<span class="rl-fits">✓ {fits}</span> <span class="rl-rates">{html.escape(", ".join(rates))}</span>'
    )


def _select(name: str, label: str, choices: Mapping[str, str], chosen: str) -> str:
    options = "".join(
        f'<option value="{html.escape(key)}"{" selected" * (key == chosen)}>{html.escape(text)}</option>'
        for key, text in choices.items()
    )
    return f'<select data-serve="{name}" aria-label="{html.escape(label)}">{options}</select>'


def _number(name: str, text: str) -> str:
    field = FIELDS[name]
    return (
        f'<input data-serve="{name}" role="spinbutton" aria-label="{html.escape(field.label)}" '
        f'aria-valuemin="{field.least}" aria-valuemax="{field.most}" inputmode="text" '
        f'autocomplete="off" spellcheck="false" size="{max(2, len(text))}" value="{text}">'
    )
