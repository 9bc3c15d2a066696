// The rule of book/widgets/judging.py, step for step; a test compares the two in a browser.
import { fill, verdict } from "./check-frame.js";

const SPLIT = /^([+-]?[0-9.,]*(?:e[+-]?[0-9]+)?(?:\/[0-9][0-9.,]*)?)([^]*)$/;
const NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$/;
const THOUSANDS = /^[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?(e[+-]?[0-9]+)?$/;
const UNIT = /^[a-zµ%×/-]+$/;
const POWERS = Array.from({ length: 15 }, (_, i) => i + 1);

const within = (value, target, tolerance) => Math.abs(value - target) <= tolerance * Math.abs(target);
const isPrefix = (shift) => shift !== 0 && shift % 3 === 0;
const powerOf = (shift) => (10 ** Math.abs(shift)).toLocaleString("en");
const off = (value, target) => Math.abs(value / target - 1);

/** The verdict on an answer as typed: {kind, status, message, right}. */
export function judge(payload, text) {
  const typed = read(payload, text);
  if (typed.kind) return typed;
  const { value, withUnit } = typed;
  const { words, answer, tolerance } = payload;
  const rounded = badlyRounded(payload, value);
  if (within(value, answer, tolerance) && !(rounded && Number.isInteger(value)))
    return verdict("right", words.right, payload.right);
  const listed = known(payload, value, withUnit);
  if (listed) return listed;
  if (rounded) return verdict("rounding", words.wrong, words[payload.rounding]);
  let slip = null;
  for (const one of payload.slips)
    if (within(value, one.value, payload.slip_tolerance) && (!slip || off(value, one.value) < off(value, slip.value)))
      slip = one;
  if (slip) return verdict("slip", words.wrong, fill(words[slip.word], slip.names ?? {}));
  if (within(value, answer, payload.near * tolerance))
    return verdict("near", words.wrong, fill(words.near, { tolerance: payload.tolerance_text }));
  const upsideDown = 1 / answer;
  if (within(value, upsideDown, tolerance) || shift(value, upsideDown, tolerance))
    return verdict("slip", words.wrong, words.upside_down);
  const about = shift(value, answer, payload.near * tolerance);
  if (payload.prefixed && isPrefix(about))
    return verdict("scale", words.wrong, fill(words[about > 0 ? "about_high" : "about_low"], { factor: powerOf(about) }));
  return verdict("generic", words.wrong, payload.hint);
}

/** A listed mistake, or the right digits in the wrong place: the nearer one, the mistake if it is a tie. */
function known(payload, value, withUnit) {
  const { words, answer, tolerance } = payload;
  let { mistakes } = payload;
  // "Right number, in milliseconds" is for who typed the number alone
  if (withUnit) mistakes = mistakes.filter((mistake) => !isPrefix(shift(mistake.value, answer, tolerance)));
  const listed = mistakes.find((mistake) => within(value, mistake.value, tolerance));
  const moved = shift(value, answer, tolerance);
  if (listed && (!moved || off(value, listed.value) <= off(value, answer * 10 ** moved)))
    return verdict("mistake", words.wrong, listed.hint);
  if (moved) {
    if (payload.unit === "%" && moved === -2) return verdict("scale", words.wrong, words.percent);
    const name = `${payload.prefixed ? "" : "point_"}${moved > 0 ? "high" : "low"}`;
    return verdict("scale", words.wrong, fill(words[name], { factor: powerOf(moved) }));
  }
  for (const mistake of withUnit ? [] : mistakes) {
    if (isPrefix(shift(value, mistake.value, tolerance))) return verdict("mistake", words.wrong, mistake.hint);
  }
  return null;
}

/** Whether it is the whole number that is asked for, not rounded, or rounded the other way. */
function badlyRounded(payload, value) {
  const beyond = value - payload.answer;
  return {
    down: beyond > 0 && beyond <= 1,
    up: beyond >= -1 && beyond < 0,
    whole: Math.abs(beyond) > 0 && Math.abs(beyond) < 1,
    "": false,
  }[payload.rounding];
}

/** What a reader typed: {value: in the question's unit, withUnit}, or the verdict on what can't be told. */
function read(payload, text) {
  const words = payload.words;
  const said = { text: `“${text.trim()}”`, unit: payload.unit };
  const plain = text.trim().replace(/\s+per\s+/g, "/").replace(/\s+/g, "").replaceAll("−", "-").replaceAll("μ", "µ");
  const [, number, unit] = SPLIT.exec(plain.toLowerCase());
  const factor = unit ? worth(payload.units, unit) : 1;
  if (!number && (!unit || factor)) return verdict("unreadable", "", words.empty);
  const terms = number.split("/");
  if (terms.some((term) => term.includes(",") && !THOUSANDS.test(term)))
    return verdict("unreadable", "", fill(words.comma, said));
  const [over, under = 1] = terms.map((term) => term.replaceAll(",", "")).map((term) => (NUMBER.test(term) ? Number(term) : NaN));
  if (!Number.isFinite(over / under) || !(factor || UNIT.test(unit)))
    return verdict("unreadable", "", fill(words.unreadable, said));
  if (!factor) return verdict("unreadable", "", fill(payload.unit ? words.unit : words.no_unit, said));
  return { value: (over / under) * factor, withUnit: unit !== "" };
}

/** What a typed unit is worth in the question's; 0 if it doesn't measure the same. */
function worth(units, typed) {
  if (Object.hasOwn(units.whole, typed)) return units.whole[typed];
  const parts = typed.split("/");
  if (parts.length !== units.parts.length) return 0;
  let factor = 1;
  for (const [i, part] of parts.entries()) {
    if (!Object.hasOwn(units.parts[i], part)) return 0;
    factor = i === 0 ? factor * units.parts[i][part] : factor / units.parts[i][part];
  }
  return factor;
}

/** How many powers of ten `value` is above `target`, the digits being the same; 0 if they aren't. */
function shift(value, target, tolerance) {
  for (const power of POWERS) {
    const factor = Number(`1e${power}`);
    if (within(value / factor, target, tolerance)) return power;
    if (within(value * factor, target, tolerance)) return -power;
  }
  return 0;
}
