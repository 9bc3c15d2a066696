// What a reader serves: {model, format, people, context, cards, card}, read, written and put into a formula.
// Nothing here touches a document. The data are book/widgets/serve.py's.
import { fill } from "../format.js";
import { memory, offers } from "../remarks.js";
import { compileAll, presetSizes, situation } from "../physics.js";

const KILO = 1024; // tokens

/** A number as somebody writes it: "32", "1,000", "8k", "1M"; NaN for anything else. k: what the letter stands for. */
export function read(text, k = 1000) {
  const found = /^\s*(\d[\d\s,_]*(?:\.\d+)?)\s*([kKmM]?)\s*$/.exec(text);
  if (!found) return NaN;
  const times = { k, m: k * k }[found[2].toLowerCase()] ?? 1;
  return Math.round(Number.parseFloat(found[1].replace(/[\s,_]/g, "")) * times);
}

/** Tokens, short where they are whole: "8k" for 8,192, "1M" for 1,048,576. */
export function tokens(count) {
  for (const [letter, size] of [["M", KILO ** 2], ["k", KILO]])
    if (count >= size && count % size === 0) return `${count / size}${letter}`;
  return count.toLocaleString("en");
}

/** A field's number as it stands in the sentence. */
export const written = (name, value) => (name === "context" ? tokens(value) : value.toLocaleString("en"));

/** The address of a deployment: llama3.1-70b~fp8~32~8k~2xh100_sxm, all of it, so that a link means the same to everybody. */
export function pack(served) {
  const plain = (name) => written(name, served[name]).replace(/,/g, "");
  return [served.model, served.format, plain("people"), plain("context"), `${served.cards}x${served.card}`].join("~");
}

/** The deployment of an address, or of what was stored. What it lacks or gets wrong is the author's. Never throws. */
export function unpack(text, data) {
  const [model, format, people, context, machine = ""] = String(text).split("~");
  const [, cards, card] = /^(\d+)x(.+)$/.exec(machine) ?? [];
  const found = { ...data.start };
  if (Object.hasOwn(data.models, model)) found.model = model;
  if (Object.hasOwn(data.formats, format ?? "")) found.format = format;
  if (data.payload.accelerators.some((a) => a.id === card)) found.card = card;
  for (const [name, raw] of Object.entries({ people, context, cards })) {
    const value = within(name, read(raw ?? "", data.fields[name].k), data);
    if (Number.isFinite(value)) found[name] = value;
  }
  return found;
}

/** A number pulled into what its field takes; NaN stays NaN. */
export function within(name, value, { fields }) {
  return Math.min(fields[name].most, Math.max(fields[name].least, value));
}

/** A number field one step further, in doublings from its least to its most. */
export function stepped(name, value, up, { fields }) {
  const { least, most } = fields[name];
  const power = 2 ** (up ? Math.floor(Math.log2(value)) + 1 : Math.ceil(Math.log2(value)) - 1);
  return Math.min(most, Math.max(least, power));
}

export const same = (a, b) => Object.keys(a).every((name) => a[name] === b[name]);

/** What its arithmetic runs in: the format's own units, or the card's 16 bits where it has none. */
export function arithmetic(served, data) {
  const card = data.payload.accelerators.find((a) => a.id === served.card);
  const wanted = data.formats[served.format].arithmetic;
  return card.peaks[wanted] ? wanted : card.first;
}

let compiled;
/** All that follows: {now, held (does it fit?), offers (what would)}. */
export function consequences(served, data) {
  const { payload } = data;
  compiled ??= compileAll(payload);
  const { weights, cache } = data.formats[served.format];
  const values = { batch: served.people, context: served.context, gpus: served.cards, weight_itemsize: weights, kv_itemsize: cache };
  const card = payload.accelerators.find((a) => a.id === served.card);
  const preset = data.models[served.model];
  const now = situation(compiled, payload, values, card, arithmetic(served, data), preset);
  const held = memory(payload, compiled, now.values, preset);
  return { now, held, card, offers: held.state === "fits" ? {} : offers(compiled, now.values, Infinity) };
}

/** Where an explorer stands for this deployment: changes of its state, for the sliders and choices that it has. */
export function positionIn(payload, preset, served, data) {
  const { formula, accelerators, serves = {} } = payload;
  const format = data.formats[served.format];
  const wanted = { ...served, weights: format.weights, cache: format.cache };
  const changes = {};
  const group = data.models[served.model];
  if (formula.preset_kind === "model" && !Object.hasOwn(payload.presets, group)) return {}; // `apart` says so
  for (const [slider, what] of Object.entries(serves)) {
    const p = formula.parameters.find((one) => one.symbol === slider);
    changes[slider] = Math.min(p.high, Math.max(p.low, wanted[what]));
  }
  if (formula.preset_kind === "model") {
    const label = preset.split(" / ")[1] ?? "";
    const labels = Object.keys(payload.presets[group]);
    const chosen = labels.includes(label) ? label : labels[0];
    changes.preset = chosen ? `${group} / ${chosen}` : group;
    const sizes = presetSizes(payload, changes.preset);
    for (const p of formula.parameters) if (!p.source && p.symbol in sizes) changes[p.symbol] = sizes[p.symbol];
  }
  if (accelerators.some((a) => a.id === served.card)) {
    changes.accelerator = served.card;
    const dtype = arithmetic(served, data);
    if (Object.hasOwn(payload.dtypes, dtype)) changes.dtype = dtype;
  }
  return changes;
}

/** What an explorer must say of its not standing where the deployment is; "" where it does. */
export function apart(payload, served, data) {
  const { formula, serves = {} } = payload;
  const model = data.models[served.model];
  if (formula.preset_kind === "model" && !Object.hasOwn(payload.presets, model)) return fill(data.words.other_model, { model });
  return formula.capacity && !serves.gpus && served.cards > 1 ? fill(data.words.one_card, { cards: written("cards", served.cards) }) : "";
}

/** A payload whose cards hold the reader's, too; the same one where they do, or where the formula knows no card. */
export function withCard(payload, served, data) {
  const { accelerators, dtypes } = payload;
  if (!accelerators.length || accelerators.some((a) => a.id === served.card)) return payload;
  const card = data.payload.accelerators.find((a) => a.id === served.card);
  const peaks = Object.fromEntries(Object.entries(card.peaks).filter(([d]) => Object.hasOwn(dtypes, d)));
  return Object.keys(peaks).length ? { ...payload, accelerators: [...accelerators, { ...card, peaks }] } : payload;
}
