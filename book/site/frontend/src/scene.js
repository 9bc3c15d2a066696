// What a payload and a state of it mean: the position, the evidence on it, and all of it in a sentence.
// Nothing here touches a document, so the page, a notebook and the still picture say the same.
import { relevant } from "./evidence.js";
import { digits, fill, nameOf, percent, quantity, sentence, shortly, si } from "./format.js";
import { compileAll, situation } from "./physics.js";
import { memory, stacked } from "./remarks.js";

/** Every output that the views call by a label, once: {output, label, unit}. */
function shownOutputs(views, readouts) {
  const every = [...views, readouts].flatMap((v) => [...(v.parts ?? []), ...(v.beside ?? []), ...(v.compare ?? []), ...(v.measured ? [v.measured] : []), ...(v.others ?? [])]);
  return [...new Map(every.filter((one) => one.output).map((one) => [one.output, one])).values()]; // a kind of work has none
}

export function sceneOf(payload) {
  const { formula, words, accelerators, views, readouts } = payload;
  const compiled = compileAll(payload);
  const movable = formula.parameters.filter((p) => !p.source);
  const shown = shownOutputs(views, readouts);
  const rated = formula.parameters.some((p) => p.fact === "peak" || p.source === "dtype");
  const card = (id) => accelerators.find((a) => a.id === id);
  const names = ["accelerator", "dtype", "shown", "view", "against", "preset", "evidence", "rungs", ...movable.map((p) => p.symbol)];

  /** All that follows from a state: {now, series, card, lacking (a sentence, or "")}. */
  function look(state) {
    const values = Object.fromEntries(movable.map((p) => [p.symbol, state[p.symbol]]));
    const chosen = card(state.accelerator);
    const now = situation(compiled, payload, values, chosen, state.dtype, state.preset);
    // Where the format decides no size, it still decides whose arithmetic a measured point was.
    if (rated && !formula.parameters.some((p) => p.source === "dtype")) now.values.dtype = state.dtype;
    const missing = chosen && formula.parameters.find((p) => p.source === "accelerator" && !Number.isFinite(now.values[p.symbol]));
    const stack = views.find((v) => v.kind === "stack");
    const held = missing ? { state: "", sentence: "" } : memory(payload, compiled, now.values, state.preset);
    const remarks = missing ? [] : [stack && stacked(payload, stack, now).sentence, held.sentence].filter(Boolean);
    return {
      now, held, remarks, card: chosen, series: relevant(state.evidence, state.accelerator),
      lacking: missing ? fill(words.no_fact, { accelerator: chosen.name, fact: missing.label }) : "",
    };
  }

  /** The sentence of a formula with several outputs: each by its name. */
  function whole({ now, card: chosen }, state, position) {
    const told = shown.map((one) => `${one.label} ${sentence(quantity(now.at(one.output), one.unit))}`);
    const value = `${readouts.value} ${sentence(quantity(now.value, formula.unit))}`;
    const bound = now.roof ? [`${words.bound} ${words[now.bound]}`] : [];
    const about = [chosen?.name, rated ? state.dtype : "", state.preset].filter(Boolean).join(", ");
    const values = [value, ...told, ...bound].join(", ");
    return about ? fill(words.summary_whole, { about, position, values }) : fill(words.summary_plain, { position, value: values });
  }

  /** The position and what it means, then what is said below the picture. Python's `summary` says the same. */
  function summary(looked, state) {
    return looked.lacking || [meaning(looked, state), ...looked.remarks].join(" ");
  }

  /** Where the sliders stand and what follows from it. */
  function meaning(looked, state) {
    const { now } = looked;
    const position = movable.map((p) => `${nameOf(p)} = ${shortly(p, now.values[p.symbol])}`).join(", ");
    if (shown.length) return whole(looked, state, position);
    if (!now.roof) return fill(words.summary_plain, { position, value: `${readouts.value} ${sentence(quantity(now.value, formula.unit))}` });
    return fill(words.summary_roof, {
      position, accelerator: now.roof.name, dtype: state.dtype, intensity: digits(now.intensity),
      attainable: sentence(si(now.attainable, "FLOP/s")), percent: percent(now.share), bound: words[now.bound],
    });
  }

  return { payload, compiled, movable, names, card, look, summary };
}
