// The formulas, as generated from Python, and what they say about one position of the sliders.
import prelude from "./prelude.js";

/** A generated JavaScript expression as a function of the named arguments. */
export function compile(names, code) {
  return new Function("prelude", ...names, `"use strict"; return (${code});`).bind(null, prelude);
}

/** All outputs of a payload's formula and the roof, as functions of {symbol: value}. */
export function compileAll({ formula, roof }) {
  const names = formula.parameters.map((p) => p.symbol);
  const outputs = {};
  for (const [name, code] of Object.entries(formula.code)) {
    const run = compile(names, code);
    outputs[name] = (values) => run(...names.map((n) => values[n]));
  }
  return {
    outputs,
    capacity: memoryCode(formula, names),
    ridge: compile(["peak", "bandwidth"], roof.ridge),
    attainable: compile(["intensity", "peak", "bandwidth"], roof.attainable),
    time: compile(["flops", "bytes", "peak", "bandwidth"], roof.time),
  };
}

/** What a position holds in memory, as functions of {symbol: value} and a number of cards; null where nothing is held. */
function memoryCode({ capacity }, names) {
  if (!capacity) return null;
  const functions = (code) => Object.fromEntries(Object.entries(code).map(([name, text]) => {
    const run = compile([...names, "cards"], text);
    return [name, (values, cards) => run(...names.map((n) => values[n]), cards)];
  }));
  return { held: capacity.held, gpus: capacity.gpus, code: functions(capacity.code), broken: functions(capacity.broken) };
}

/** The machine's numbers at one precision, or null where it has no such unit. */
export function roofOf(accelerator, dtype) {
  const peak = accelerator?.peaks[dtype];
  return peak ? { ...accelerator, bandwidth: accelerator.facts.bandwidth, peak } : null;
}

/** All presets by their full names. */
export function presetNames({ presets }) {
  return Object.entries(presets).flatMap(([group, labels]) => Object.keys(labels).map((label) => (label ? `${group} / ${label}` : group)));
}

/** {symbol: value} of a preset, "group / label" or "group"; undefined if there is none of that name. */
export function presetSizes(payload, name) {
  const cut = name.indexOf(" / ");
  const [group, label] = cut < 0 ? [name, ""] : [name.slice(0, cut), name.slice(cut + 3)];
  const found = Object.hasOwn(payload.presets, group) ? payload.presets[group][label] : undefined;
  return found && Object.fromEntries(payload.preset_symbols.map((s, i) => [s, found[i]]).filter(([, v]) => v !== null));
}

/** Slider values completed by what the dropdowns decide; NaN for a fact that the card lacks. */
export function complete(payload, values, accelerator, dtype, preset) {
  const facts = {
    accelerator: { ...accelerator?.facts, peak: accelerator?.peaks[dtype] },
    dtype: payload.dtypes[dtype],
    model: presetSizes(payload, preset),
  };
  const decided = (p) => facts[p.source]?.[p.fact] ?? p.default ?? NaN;
  return Object.fromEntries(payload.formula.parameters.map((p) => [p.symbol, p.source ? decided(p) : values[p.symbol]]));
}

/** Everything the readouts and the picture need to know about this position. */
export function situation(compiled, payload, values, accelerator, dtype, preset) {
  const all = complete(payload, values, accelerator, dtype, preset);
  const { outputs } = compiled;
  const at = (name) => (outputs[name] ? outputs[name](all) : undefined);
  const now = { values: all, value: at(payload.formula.value), intensity: at("intensity"), limit: at("limit"), at };
  const roof = accelerator ? roofOf(accelerator, dtype) : null;
  if (roof && payload.views.some((v) => v.kind === "roofline")) {
    now.roof = roof;
    now.ridge = compiled.ridge(roof.peak, roof.bandwidth);
    now.attainable = compiled.attainable(now.intensity, roof.peak, roof.bandwidth);
    now.share = now.attainable / roof.peak;
    now.bound = now.intensity < now.ridge ? "memory" : "compute";
    if (outputs.flops) now.time = compiled.time(at("flops"), at("bytes"), roof.peak, roof.bandwidth);
  }
  return now;
}

/** Where a slider can stop: whole steps between doublings, so that each arrow press changes the number. */
export function stops({ low, high, scale, integer, steps }) {
  if (steps) return steps;
  const found = new Set([low, high]);
  if (scale === "log2") {
    for (let e = Math.floor(Math.log2(low)); 2 ** e <= high; e++)
      for (let part = 8; part < 16; part++) {
        const value = (2 ** e * part) / 8;
        if (!integer || Number.isInteger(value)) found.add(value);
      }
  } else {
    const step = integer ? Math.max(1, Math.round((high - low) / 200)) : (high - low) / 200;
    for (let i = 0; low + i * step <= high; i++) found.add(Number((low + i * step).toPrecision(12)));
  }
  return [...found].filter((v) => v >= low && v <= high).sort((a, b) => a - b);
}

/** The stop nearest to a value, by ratio where the slider walks in doublings. */
export function nearest(list, value, scale) {
  const far = (v) => (scale === "log2" ? Math.abs(Math.log(v / value)) : Math.abs(v - value));
  let best = 0;
  list.forEach((v, i) => { if (far(v) < far(list[best])) best = i; });
  return best;
}

/** The stop that is `by` stops above (below, where negative) a value that may lie between two. */
export function stepped(list, value, by) {
  const above = list.findIndex((stop) => stop > value);
  const from = by > 0 ? (above < 0 ? list.length : above) - 1 : list.filter((stop) => stop < value).length;
  return list[Math.min(list.length - 1, Math.max(0, from + by))];
}

/** The value nearest to this one that a parameter can have: within its range, whole or on a step where it must be. */
export function allowed(p, value) {
  const within = Math.min(p.high, Math.max(p.low, p.integer ? Math.round(value) : value));
  return p.steps ? p.steps[nearest(p.steps, within, p.scale)] : within;
}

/** Smallest and largest value of an output over the corners of the sliders' box. */
export function extremes(compiled, payload, output, accelerators, dtypes, preset) {
  const sliders = payload.formula.parameters.filter((p) => !p.source);
  const seen = [];
  for (const accelerator of accelerators)
    for (const dtype of dtypes) {
      if (!accelerator.peaks[dtype]) continue;
      for (let corner = 0; corner < 2 ** sliders.length; corner++) {
        const values = Object.fromEntries(sliders.map((p, i) => [p.symbol, (corner >> i) & 1 ? p.high : p.low]));
        seen.push(compiled.outputs[output](complete(payload, values, accelerator, dtype, preset)));
      }
    }
  const finite = seen.filter((v) => Number.isFinite(v) && v > 0);
  return finite.length ? [Math.min(...finite), Math.max(...finite)] : [1, 10];
}
