// A slider's value as somebody writes it: "4096", "4,096", "32k", "1M", "16 bit", "250 µs". Nothing here touches a document.
import { exact, fill, fully, sentence, si } from "./format.js";
import { allowed } from "./physics.js";

const NUMBER = /^([+-]?(?:\d[\d,_ ]*)?(?:\.\d+)?(?:e[+-]?\d+)?)(.*)$/i;
const SECONDS = { s: 1, ms: 1e-3, µs: 1e-6, us: 1e-6, ns: 1e-9 };

/** A value beside its slider, in two parts: what can be typed, and the unit that stays. */
export function parts(p, value) {
  if (p.shown) return { text: exact(value * p.shown.scale), unit: p.shown.unit };
  if (p.unit === "s") return { text: sentence(si(value, "s")), unit: "" };
  return { text: exact(value), unit: p.unit };
}

/** What each unit, in lower case, is worth in the parameter's own. now: the value that stands there, in whose unit a bare number of seconds is. */
function units(p, now) {
  const own = p.shown?.unit ?? p.unit;
  const scale = p.shown ? 1 / p.shown.scale : 1;
  const k = p.unit === "tokens" ? 1024 : 1000; // as models' contexts are counted
  const found = { "": scale, k: k * scale, m: k * k * scale };
  if (p.unit === "s") return { ...SECONDS, "": SECONDS[si(now, "s").unit] ?? 1 };
  for (const [name, worth] of [[p.unit, 1], [own, scale]])
    for (const form of [name, name.replace(/s$/, ""), `${name}s`]) if (form) found[form.toLowerCase()] = worth;
  return found;
}

/** The number that was typed, in the parameter's unit; NaN where it can't be read. */
export function read(text, p, now) {
  const [, digits, rest] = NUMBER.exec(text.trim().replaceAll("−", "-").replaceAll("μ", "µ")) ?? [];
  if (!digits || !/\d/.test(digits)) return NaN;
  const worth = units(p, now)[rest.trim().toLowerCase()];
  return worth === undefined ? NaN : Number((Number(digits.replace(/[,_ ]/g, "")) * worth).toPrecision(15));
}

/** What becomes of a typed text: {value (undefined where it can't be read), remark (why it is another one, or "")}. */
export function settle(text, p, now, words) {
  const asked = read(text, p, now);
  const name = p.label.split(":")[0];
  if (!Number.isFinite(asked)) return { remark: fill(words.typed_unread, { text, name, now: fully(p, now) }) };
  const value = allowed(p, asked);
  if (value === asked) return { value, remark: "" };
  const between = { text, name, low: fully(p, p.low), high: fully(p, p.high), value: fully(p, value) };
  if (p.steps) return { value, remark: fill(words.typed_steps, { ...between, steps: p.steps.map((one) => fully(p, one)).join(", ") }) };
  return { value, remark: fill(asked < p.low || asked > p.high ? words.typed_range : words.typed_whole, between) };
}
