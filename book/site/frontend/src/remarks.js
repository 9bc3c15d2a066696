// Sentences below the picture that go with the sliders. Python's book/widgets/remarks.py says the same.
import { fill, quantity, sentence } from "./format.js";

/** A stack of terms beside what was measured: {values, sum, measured, rest (NaN where nothing was), sentence}. */
export function stacked({ words }, view, now) {
  const { unit } = view.parts[0];
  const said = (value) => sentence(quantity(value, unit));
  const values = view.parts.map((one) => now.at(one.output));
  const sum = values.filter((v) => !Number.isNaN(v)).reduce((a, b) => a + b, 0);
  const measured = view.measured ? now.at(view.measured.output) : NaN;
  const rest = measured - sum;
  const told = words[Number.isNaN(measured) ? "stack_alone" : rest < 0 ? "stack_over" : "stack_under"];
  const unknown = view.parts.filter((_, i) => Number.isNaN(values[i])).map((one) => one.label).join(", ");
  const parts = [fill(told, { sum: said(sum), measured: said(measured), rest: said(Math.abs(rest)) })];
  if (unknown) parts.push(fill(words.stack_unknown, { parts: unknown }));
  return { values, sum, measured, rest, sentence: parts.join(" ") };
}
