// The legend names each rung of evidence, its source and its shape, and says loudly when the
// shape is not the sliders' own.
import { h } from "./dom.js";
import { differences, speaksOf } from "./evidence.js";
import { exact, fill } from "./format.js";
import { swatch } from "./marks.js";

const equation = (pairs, letters) => pairs.map(([name, value]) => `${letters[name] ?? name} = ${exact(value)}`).join(", ");

function entry(rung, faded, title, ...rest) {
  return h("li", { class: faded ? "rl-faded" : undefined }, swatch(rung, faded), h("span", { class: "rl-entry" }, h("b", {}, title), ...rest));
}

/** ctx: {words, formula, series, rungs, values, view, name, useShape(fixed)}. */
export function legend({ words, formula, series, rungs, values, view, name, useShape }) {
  const letters = Object.fromEntries(formula.parameters.map((p) => [p.symbol, p.letter]));
  const items = [entry("predicted", false, words.rung_predicted, " ", words.predicted_note)];
  for (const one of series) {
    const theirs = equation(Object.entries(one.fixed).filter(([n]) => n !== "itemsize"), letters);
    const where = [one.label, theirs, one.dtype].filter(Boolean).join(" · ");
    const other = differences(one.fixed, values);
    const silent = view === "formula" && !speaksOf(one, formula.value);
    const title = words[`rung_${one.rung}`];
    const text = h("span", { title: one.source }, ` ${where}`);
    if (silent) items.push(entry(one.rung, true, title, text, h("span", { class: "rl-quiet" }, ` ${words.not_in_view}`)));
    else if (!other.length) items.push(entry(one.rung, false, title, text));
    else {
      const shape = Object.fromEntries(other.filter(([n]) => formula.parameters.some((p) => p.symbol === n && !p.source)).map(([n, v]) => [n, v]));
      const loud = h(
        "span",
        { class: "rl-loud" },
        h("strong", {}, fill(words.other_shape, { theirs: equation(other.map(([n, v]) => [n, v]), letters) })),
        ` ${fill(words.other_shape_note, { yours: equation(other.map(([n, , v]) => [n, v]), letters) })} `,
        Object.keys(shape).length ? h("button", { type: "button", class: "rl-link", onclick: () => useShape(shape) }, words.use_shape) : null,
      );
      items.push(entry(one.rung, true, title, text, loud));
    }
  }
  const seen = new Set(series.map((one) => one.rung));
  for (const rung of rungs) {
    if (seen.has(rung) || (rung === "timed" && seen.has("recorded")) || (rung === "recorded" && seen.has("timed"))) continue;
    const note = rung === "published" ? fill(words.none_for, { accelerator: name }) : words.not_measured;
    items.push(entry(rung, false, words[`rung_${rung}`], " ", h("span", { class: "rl-quiet" }, note)));
  }
  return h("ul", { class: "rl-legend", "aria-label": words.legend }, ...items);
}
