// The legend names each rung of evidence, its source and its shape, and says loudly when the
// shape is not the sliders' own.
import { h } from "./dom.js";
import { differences, drawnIn } from "./evidence.js";
import { exact, fill, nameOf } from "./format.js";
import { swatch } from "./marks.js";

/** "K = N = 8,192" or "K = 4,096, N = 14,336". */
function equation(pairs, letters) {
  const byValue = new Map();
  for (const [name, value] of pairs) byValue.set(value, [...(byValue.get(value) ?? []), letters[name] ?? name]);
  return [...byValue].map(([value, names]) => `${names.join(" = ")} = ${exact(value)}`).join(", ");
}

function entry(rung, faded, title, ...rest) {
  return markedEntry(0, rung, faded, title, ...rest);
}

function markedEntry(variant, rung, faded, title, ...rest) {
  return h("li", { class: faded ? "rl-other" : undefined }, swatch(rung, faded, variant), h("span", { class: "rl-entry" }, h("b", {}, title), " ", ...rest));
}

const ORDER = ["predicted", "counted", "compiled", "timed", "recorded", "published"];
const rungOrder = (rung) => ORDER.indexOf(rung);

/** Series of one source and rung share an entry. */
function bySource(series) {
  const groups = new Map();
  for (const one of series) {
    const key = JSON.stringify([one.rung, one.label, one.dtype, one.source]);
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  return [...groups.values()];
}

/** ctx: {words, formula, series, rungs, elsewhere (rungs measured on other machines), values, dtype, view, name, useShape(changes)}. */
export function legend({ words, formula, series, rungs, elsewhere, values, dtype, view, name, useShape }) {
  const letters = Object.fromEntries(formula.parameters.map((p) => [p.symbol, nameOf(p)]));
  const movable = new Set(formula.parameters.filter((p) => !p.source).map((p) => p.symbol));
  const byFormat = new Set(formula.parameters.filter((p) => p.source === "dtype").map((p) => p.symbol)).add("dtype");
  const shapeOf = (one) => Object.entries(one.fixed).filter(([n]) => movable.has(n));

  /** Sizes as "K = N = 8,192, fp8": what a number format decides is called by its name. */
  function shapeText(sizes, format) {
    const text = equation(sizes.filter(([n]) => !byFormat.has(n)), letters);
    return [text, sizes.some(([n]) => byFormat.has(n)) ? format : ""].filter(Boolean).join(", ");
  }

  function otherShapes(others) {
    const mine = new Map(others.flatMap((one) => differences(one.fixed, values)).map(([n, , v]) => [n, v]));
    const choices = new Map(); // two series of one shape are one choice
    for (const one of others) {
      const sizes = differences(one.fixed, values).map(([n, v]) => [n, v]);
      choices.set(shapeText(sizes, one.dtype), { one, sizes });
    }
    const offers = [...choices].flatMap(([text, { one, sizes }], i) => {
      const shape = Object.fromEntries(sizes.filter(([n]) => !byFormat.has(n)));
      const use = () => useShape(sizes.some(([n]) => byFormat.has(n)) ? { ...shape, dtype: one.dtype } : shape);
      const offer = h("button", { type: "button", class: "rl-link", "aria-label": `${words.use_shape} ${text}`, onclick: use }, text);
      return [i ? ` ${words.or} ` : "", offer];
    });
    const loud = fill(words.other_shape, { yours: shapeText([...mine], dtype) });
    return h("span", { class: "rl-loud" }, h("strong", {}, loud), h("span", { class: "rl-offers" }, ` ${words.use_shape} `, ...offers, "."));
  }

  const items = new Map([[0, [entry("predicted", false, words.rung_predicted, words[`predicted_note_${view}`] ?? words.predicted_note)]]]);
  const add = (rung, item) => items.set(rungOrder(rung), [...(items.get(rungOrder(rung)) ?? []), item]);
  for (const group of bySource(series)) {
    const [{ rung, label, source, variant, dtype: format }] = group;
    const others = group.filter((one) => differences(one.fixed, values).length);
    const own = group.filter((one) => !others.includes(one));
    const silent = !group.some((one) => drawnIn(view, one, formula.value));
    const shapes = [...new Set(own.map((one) => equation(shapeOf(one), letters)))].filter(Boolean).join("; ");
    // where the weights' format is another one from point to point, the series' own is that of the arithmetic
    const mixed = group.some((one) => one.points.some((p) => p.at.weight_itemsize !== undefined));
    const said = format && mixed ? fill(words.multiplied_in, { dtype: format }) : format;
    const about = h("span", { title: source }, [label || words[`note_${rung}`], said, silent ? "" : shapes].filter(Boolean).join(" · "));
    const title = words[`rung_${rung}`];
    if (silent) add(rung, entry(rung, true, title, about, h("span", { class: "rl-quiet" }, `: ${view === "formula" && formula.value === "intensity" ? words.not_in_view : words.not_in_picture}`)));
    else add(rung, markedEntry(variant, rung, !own.length, title, about, others.length ? otherShapes(others) : null));
  }
  const seen = new Set(series.map((one) => one.rung));
  const times = ["timed", "recorded"];
  for (const rung of rungs) {
    if (seen.has(rung) || (times.includes(rung) && times.some((t) => seen.has(t)))) continue;
    const note = rung === "published" || elsewhere.includes(rung) ? fill(words.none_for, { accelerator: name }) : words.not_measured;
    add(rung, entry(rung, true, words[`rung_${rung}`], h("span", { class: "rl-quiet" }, note)));
  }
  return h("ul", { class: "rl-legend", "aria-label": words.legend }, ...[...items].sort(([a], [b]) => a - b).flatMap(([, list]) => list));
}
