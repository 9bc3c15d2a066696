// Numbers and sentences as a reader sees them. Everything inside is in SI base units.

const PREFIXES = ["f", "p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E"];
// Nobody says kiloseconds or millibytes; `book.drawing.number_text` keeps to the same.
const POWERS = { s: [-5, 0], B: [0, 6], "B/s": [0, 6], "B/token": [0, 6], FLOP: [0, 6], "FLOP/s": [0, 6] };
const THIN = "\u2009";

/** Three significant digits, thousands grouped, no exponent for everyday sizes. */
export function digits(value, significant = 3) {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e9 || size < 1e-3) return value.toPrecision(significant).replace("e+", "e");
  const rounded = Math.abs(Number(value.toPrecision(significant))); // 0.9996 is 1.00, with two places
  const places = Math.max(0, significant - 1 - Math.floor(Math.log10(rounded) + 1e-12));
  const text = size.toLocaleString("en", { maximumFractionDigits: places, minimumFractionDigits: size < 1e3 ? places : 0 });
  return value < 0 ? `−${text}` : text;
}

/** An exact value, as on a slider: integers in full, others to four digits without idle zeros. */
export function exact(value) {
  if (Number.isInteger(value)) return value.toLocaleString("en").replace("-", "−");
  return String(Number(value.toPrecision(4)));
}

/** Value and unit apart, with the SI prefix that leaves one to three digits before the point. */
export function si(value, name) {
  const unit = name.replace("byte", "B");
  if (!Number.isFinite(value)) return { number: digits(value), unit: "" };
  const power = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)) / 3 + 1e-9);
  const [least, most] = POWERS[unit] ?? [-5, 6];
  const index = 5 + Math.min(most, Math.max(least, power));
  const scaled = value / 1000 ** (index - 5);
  const rounded = Math.abs(scaled) < 1000 ? Number(scaled.toPrecision(3)) : scaled; // no digit before the point is lost
  const carry = Math.abs(rounded) >= 1000 && index - 5 < most;
  return { number: digits(carry ? rounded / 1000 : rounded), unit: PREFIXES[index + (carry ? 1 : 0)] + unit };
}

/** Units that take SI prefixes; "FLOP/byte" is a ratio and takes none, and a share is shown in percent. */
export function quantity(value, unit) {
  if (unit === "%") return { number: digits(100 * value), unit };
  if (!unit && Number.isInteger(value)) return { number: exact(value), unit }; // a count
  return ["s", "FLOP", "FLOP/s", "byte", "byte/s", "byte/token"].includes(unit) ? si(value, unit) : { number: digits(value), unit: Number.isFinite(value) ? unit : "" };
}

/** A position of a slider: seconds with their prefix, all else as it is. */
export function setting(value, unit) {
  if (unit === "s") return sentence(si(value, unit));
  return unit ? `${exact(value)} ${unit}` : exact(value);
}

/** What a position calls a parameter in plain text: its letter, or words where that has an index. */
export const nameOf = (p) => p.named ?? p.letter;

/** A slider's value as it is named in a sentence: seconds with their prefix, a shown unit with its name. */
export function shortly(p, value) {
  if (p.shown) return `${exact(value * p.shown.scale)} ${p.shown.unit}`;
  return setting(value, p.unit === "s" ? "s" : "");
}

/** The same beside its slider, always with its unit. */
export function fully(p, value) {
  return p.shown ? shortly(p, value) : setting(value, p.unit);
}

/** The axis of a parameter: its label, and the text of a tick. */
export function axisOf(p) {
  const unit = p.shown?.unit ?? p.unit;
  return {
    label: `${p.named ?? `${p.label}, ${p.letter}`}${unit ? ` (${unit})` : ""} →`,
    tickFormat: p.shown ? (v) => exact(v * p.shown.scale) : tickIn(p.unit),
  };
}

export function sentence({ number, unit }) {
  return unit ? `${number} ${unit}` : number;
}

/** A tick of a logarithmic axis: "100 G". */
export function tick(value) {
  const { number, unit } = si(value, "");
  const short = number.replace(/\.0+$/, "");
  return unit ? `${short}${THIN}${unit}` : short;
}

/** A tick of an axis in this unit: shares in percent, small numbers without a unit as they are. */
export function tickIn(unit) {
  if (unit === "%") return (v) => `${Number((100 * v).toPrecision(3))}${THIN}%`;
  if (["s", "byte"].includes(unit)) return (v) => sentence(si(v, unit)).replace(/\.0+(?= )/, "");
  return (v) => (v < 1e4 ? exact(v) : tick(v));
}

/** Percent with three digits. */
export function percent(share) {
  return `${digits(100 * share)}${THIN}%`;
}

/** "{a} of {b}" with its names filled in. All words come from the payload. */
export function fill(template, names) {
  return String(template ?? "").replace(/\{(\w+)\}/g, (_, name) => names[name] ?? "");
}
