"""A formula under sliders: `explore(formula, accelerators=[...])`.

In a notebook with a kernel it is an ipywidgets widget: every parameter is a trait that can be
observed and linked. On the static site the same picture moves with no kernel (`book.widgets.dual_widget`).
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import ipywidgets
import traitlets

from book import catalog
from book.formulas.formula import Formula, Parameter, preset_name
from book.formulas.views import Bars
from book.widgets import evidence_series, explorer_payload
from book.widgets.dual_widget import Live
from book.widgets.slider_trait import Position
from book.widgets.summary import summary

OWN = ""  # the preset of a reader who moved a size away from every model's


class Explorer(Live):
    """The widget that `explore` returns. Its traits:

    accelerator, dtype: of the highlighted roof. shown: ids of all cards in the picture.
    view: the kind of one of payload["views"]: "timeline", "bars", "trace", "roofline", "formula".
    against: the parameter on the formula's x axis. preset: "model / layer" or "model"; "" once a size
    was moved away from it, which can't happen where the dropdown alone decides the model's numbers.
    evidence: series on top of the picture. values: all slider positions as one dict; each of them
    is also a trait of its own, as in `explorer.m`.
    """

    accelerator = traitlets.Unicode().tag(sync=True)
    dtype = traitlets.Unicode().tag(sync=True)
    shown = traitlets.List(traitlets.Unicode()).tag(sync=True)
    view = traitlets.Unicode("roofline").tag(sync=True)
    against = traitlets.Unicode().tag(sync=True)
    preset = traitlets.Unicode(OWN).tag(sync=True)
    evidence = traitlets.List(traitlets.Dict()).tag(sync=True)
    rungs = traitlets.List(traitlets.Unicode()).tag(sync=True)
    values = traitlets.Dict()

    formula: Formula

    # ------------------------------------------------------------------------ checks, in sentences

    @traitlets.validate("accelerator", "dtype")
    def _card_has_dtype(self, proposal: Any) -> str:
        name, value = proposal["trait"].name, proposal["value"]
        card = value if name == "accelerator" else self.accelerator
        dtype = value if name == "dtype" else self.dtype
        known = {a["id"]: a for a in self.payload.get("accelerators", ())}
        if not known:
            catalog.itemsize(dtype)
            return value
        if card not in known:
            raise traitlets.TraitError(
                f"accelerator = {card!r}: this explorer was given {', '.join(known)}. "
                "Choose one of those, or name it in explore(accelerators=[...])."
            )
        if dtype not in known[card]["peaks"]:
            raise traitlets.TraitError(
                f"dtype = {dtype!r}: {known[card]['name']} has {', '.join(known[card]['peaks'])}. "
                "Choose one of those, or change both at once with move(accelerator=..., dtype=...)."
            )
        return value

    @traitlets.validate("view", "against", "preset")
    def _known(self, proposal: Any) -> str:
        name, value = proposal["trait"].name, proposal["value"]
        choices = {
            "view": [v["kind"] for v in self.payload["views"]],
            "against": [p.symbol for p in explorer_payload.sliders(self.formula)],
            "preset": [*([] if self._decided() else [OWN]), *_preset_names(self.payload)],
        }[name]
        if value not in choices:
            shown = [repr(c) for c in choices[:8]] + ["..."] * (len(choices) > 8)
            raise traitlets.TraitError(f"{name} = {value!r}: choose one of {', '.join(shown)}.")
        return value

    @traitlets.validate("shown")
    def _shown_known(self, proposal: Any) -> list[str]:
        known = [a["id"] for a in self.payload.get("accelerators", ())]
        if unknown := [i for i in proposal["value"] if i not in known]:
            raise traitlets.TraitError(f"shown = {unknown}: this explorer was given {', '.join(known)}.")
        return list(proposal["value"])

    # ------------------------------------------------------------------------------ its own state

    def move(self, **changes: Any) -> None:
        """Set several traits at once: `explorer.move(m=256, accelerator="t4", dtype="fp16")`."""
        if unknown := [n for n in changes if n not in self.state()]:
            raise traitlets.TraitError(
                f"{unknown[0]}: no such trait; this explorer has {', '.join(self.state())}."
            )
        if "preset" in changes:  # it moves sliders, so it goes first
            self.preset = changes["preset"]
        with self.hold_trait_notifications():
            for name, value in changes.items():
                if name != "preset":
                    setattr(self, name, value)

    def add_points(self, *series: Mapping[str, Any] | Any) -> None:
        """More evidence on the picture: series as dicts, or anything with `.points()`."""
        new = [evidence_series.series(self.formula, s) for item in series for s in _each(item)]
        cards = [a["id"] for a in self.payload["accelerators"]]
        self.evidence = evidence_series.merged([*self.evidence, *new], cards)
        self.rungs = _rungs(self.rungs, new)

    def run_here(self, experiment: Any, measure: Callable[..., Any] | None = None) -> ipywidgets.Widget:
        """Put a button under the explorer that runs `experiment` at the sliders' position.

        measure(experiment, **sizes) returns evidence with `.points()`; `kernels.evidence.confirm`
        if it is left out. Sizes that are no parameter of the formula keep the experiment's own.
        """
        from book.widgets.run_button import Bench

        return Bench(self, experiment, measure)

    def _link_values(self) -> None:
        """Keep `values` and the parameters' own traits the same, whichever is set."""
        names = [p.symbol for p in explorer_payload.sliders(self.formula)]

        def gather(_: Any = None) -> None:
            self.values = {n: getattr(self, n) for n in names}
            if self.preset and self._moved_by(self.preset).items() - self.values.items():
                self.preset = OWN

        def spread(change: Any) -> None:
            if unknown := [n for n in change["new"] if n not in names]:
                raise traitlets.TraitError(
                    f"values: {unknown[0]!r} is no slider; there is {', '.join(names)}."
                )
            with self.hold_trait_notifications():
                for name, value in change["new"].items():
                    setattr(self, name, value)

        def choose(change: Any) -> None:
            if change["new"]:
                self.values = {**self.values, **self._moved_by(change["new"])}

        gather()
        self.observe(gather, names)
        self.observe(spread, "values")
        self.observe(choose, "preset")

    def _decided(self) -> bool:
        """Does the dropdown alone decide a number of the formula? Then it can't be left."""
        return any(p.source == "model" and math.isnan(p.default) for p in self.formula.parameters)

    def _moved_by(self, preset: str) -> dict[str, float]:
        """The sliders that a preset sets; what else it decides is no trait."""
        return {n: v for n, v in self.formula.preset_values(preset).items() if self.has_trait(n)}

    # ---------------------------------------------------------------------- for those who can't move

    def summary(self) -> str:
        """The position and what it means, in one sentence."""
        return summary(self)

    def without_script(self) -> str:
        """The sentence, also where scripts run but this one doesn't, as in a notebook that is not trusted."""
        return f'<p class="rl-words">{html.escape(self.summary())}</p>'


def _preset_names(payload: Mapping[str, Any]) -> list[str]:
    return [preset_name(group, label) for group, layers in payload["presets"].items() for label in layers]


def _each(item: Any) -> Iterable[Mapping[str, Any]]:
    """The series of an Evidence, of one series, or of a list of them."""
    if hasattr(item, "points") and callable(item.points):
        return item.points()
    return [item] if isinstance(item, Mapping) else item


def _rungs(before: Sequence[str], series: Iterable[Mapping[str, Any]]) -> list[str]:
    """The rungs that the legend must speak of, also where nothing is measured yet."""
    found = {*before, *(s["rung"] for s in series)}
    return [r for r in evidence_series.RUNGS if r in found]


def _preset(formula: Formula, model: str | None, layer: str | None) -> str:
    """The preset's full name. Raises catalog.UnknownName or ValueError with the choices."""
    if model is None:
        return formula.preset or OWN
    groups = explorer_payload.presets(formula)
    if not groups:
        raise ValueError(
            f"model = {model!r}: the formula {formula.name} has no model presets; leave model out."
        )
    group = model if model in groups else catalog.model(model).name
    if group not in groups:
        raise ValueError(f"model = {model!r}: {formula.name} has presets for {', '.join(groups)}.")
    label = layer if layer is not None else next(iter(groups[group]))
    if label not in groups[group]:
        raise ValueError(f"layer = {layer!r}: {group} has {', '.join(groups[group])}.")
    return preset_name(group, label)


def explore(
    formula: Formula,
    accelerators: Sequence[str] = ("h100_sxm", "b200"),
    dtype: str = "bf16",
    model: str | None = None,
    layer: str | None = None,
    evidence: Any = None,
    published: str | None = None,
    view: str | None = None,
    against: str | None = None,
    less_used: Sequence[str] | None = None,
    of_sentence: bool = False,
    id: str | None = None,
    **values: float,
) -> Explorer:
    """A formula under sliders, with the evidence for it in the same picture.

    accelerators: catalog ids; the first one is highlighted. model, layer: a preset, as in
    model="llama3.1-8b", layer="gate"; a formula of a whole model needs the model alone. evidence:
    what `confirm` returned, or a list of series. published: a kind in the catalog, as in "linear".
    view: the kind of one of the formula's pictures, "roofline", "formula", "bars" ..., the first of
    them if left out. against: the symbol on the formula's x axis, and that of the bars' shares.
    less_used: sliders and dropdowns that are folded away, as in ("heads", "against"); all sliders after the
    fourth if left out. of_sentence: it answers the sentence above it, changes that when its sliders are
    moved, and has no choices that stand there. id: the element's id, if a page explores one formula
    twice. values: the sliders' positions, as in m=32.
    Raises catalog.UnknownName, ValueError or traitlets.TraitError, each with what to do.
    """
    cards = [catalog.accelerator(a) for a in accelerators]
    if len({c.id for c in cards}) != len(cards):
        raise ValueError(f"accelerators = {list(accelerators)}: the same card twice; name each once.")
    catalog.itemsize(dtype)
    if id is not None and not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", id):
        raise ValueError(f"id = {id!r}: start with a letter; then letters, digits, - and _.")
    name = id or f"explore-{formula.name.replace('_', '-')}"
    payload = explorer_payload.build(name, formula, cards, less_used)
    if of_sentence:
        payload["of_sentence"] = True
    movable = explorer_payload.sliders(formula)
    if unknown := [n for n in values if n not in {p.symbol for p in movable}]:
        raise ValueError(
            f"{unknown[0]}: {formula.name} has the sliders {', '.join(p.symbol for p in movable)}."
        )
    if clash := [p.symbol for p in movable if hasattr(Explorer, p.symbol)]:
        raise ValueError(
            f"parameter {clash[0]}: the explorer has a trait of that name; rename the parameter."
        )

    raw = evidence_series.published(published, [c.id for c in cards]) if published is not None else []
    given = list(_each(evidence)) if evidence is not None else []
    raw += given
    series = evidence_series.merged([evidence_series.series(formula, s) for s in raw], [c.id for c in cards])
    ours = evidence is not None and not (given and all(s.get("rung") == "published" for s in given))
    spoken = ["counted", "timed"] * ours + ["published"] * (published is not None)

    traits = {p.symbol: Position(p).tag(sync=True) for p in movable}
    made = type("Explorer", (Explorer,), {**traits, "formula": formula, "__module__": __name__})
    preset = _preset(formula, model, layer)
    widget = made(
        kind="explorer",
        payload=payload,
        accelerator=cards[0].id if cards else "",
        dtype=dtype,
        shown=[c.id for c in cards],
        view=view or payload["views"][0]["kind"],
        against=against or _axis(formula, movable),
        evidence=series,
        rungs=_rungs(spoken, series),
    )
    widget._link_values()
    if preset:
        widget.preset = preset
    widget.move(**values)
    return widget


def _axis(formula: Formula, movable: Sequence[Parameter]) -> str:
    """The parameter that a formula is drawn against if nobody says: the one that its story is about."""
    if formula.limit is not None:
        return formula.limit.parameter
    bars = formula.view("bars")
    if isinstance(bars, Bars) and bars.balance is not None:
        return bars.balance.parameter
    return movable[0].symbol
