// Numbers and sentences as a reader sees them. Everything inside is in SI base units.

const PREFIXES = ["f", "p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E"];
const THIN = "\u2009";

/** Three significant digits, thousands grouped, no exponent for everyday sizes. */
export function digits(value, significant = 3) {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e9 || size < 1e-3) return value.toPrecision(significant).replace("e+", "e");
  const places = Math.max(0, significant - 1 - Math.floor(Math.log10(size) + 1e-12));
  return value.toLocaleString("en", { maximumFractionDigits: places, minimumFractionDigits: size < 1e3 ? places : 0 });
}

/** An exact value, as on a slider: integers in full, others to four digits without idle zeros. */
export function exact(value) {
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return String(Number(value.toPrecision(4)));
}

/** Value and unit apart, with the SI prefix that leaves one to three digits before the point. */
export function si(value, name) {
  const unit = name.replace("byte", "B");
  if (!Number.isFinite(value)) return { number: "–", unit };
  const power = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)) / 3 + 1e-9);
  const index = Math.min(PREFIXES.length - 1, Math.max(0, power + 5));
  const scaled = value / 1000 ** (index - 5);
  const rounded = Number(scaled.toPrecision(3));
  const carry = Math.abs(rounded) >= 1000 && index + 1 < PREFIXES.length;
  return { number: digits(carry ? rounded / 1000 : rounded), unit: PREFIXES[index + (carry ? 1 : 0)] + unit };
}

/** Units that take SI prefixes; "FLOP/byte" is a ratio and takes none, and a share is shown in percent. */
export function quantity(value, unit) {
  if (unit === "%") return { number: digits(100 * value), unit };
  return ["s", "FLOP", "FLOP/s", "byte", "byte/s"].includes(unit) ? si(value, unit) : { number: digits(value), unit };
}

/** A position of a slider: seconds with their prefix, all else as it is. */
export function setting(value, unit) {
  if (unit === "s") return sentence(si(value, unit));
  return unit ? `${exact(value)} ${unit}` : exact(value);
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
  return (v) => (v < 1 ? exact(v) : tick(v));
}

/** Percent with three digits. */
export function percent(share) {
  return `${digits(100 * share)}${THIN}%`;
}

/** "{a} of {b}" with its names filled in. All words come from the payload. */
export function fill(template, names) {
  return String(template ?? "").replace(/\{(\w+)\}/g, (_, name) => names[name] ?? "");
}
