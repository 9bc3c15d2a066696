// A numeric self-check: question, field, and a verdict that knows the usual mistakes.
// `judge` is the rule of book/widgets/self_check.py, step for step; a test compares the two in a browser.
import { fill, frame, make, verdict } from "./check-frame.js";
import { keepKeys, serial } from "./dom.js";

const NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$/;
const THOUSANDS = /^[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?(e[+-]?[0-9]+)?$/;
const POWERS = Array.from({ length: 15 }, (_, i) => i + 1);

const within = (value, target, tolerance) => Math.abs(value - target) <= tolerance * Math.abs(target);

/** The number that a reader typed, or what to say if it can't be told which one. */
function read(payload, text) {
  const words = payload.words;
  let plain = text.replace(/\s+/g, "").replaceAll("−", "-").toLowerCase();
  const unit = payload.unit.replace(/\s+/g, "").toLowerCase();
  if (unit && plain.endsWith(unit)) plain = plain.slice(0, -unit.length);
  if (!plain) return verdict("unreadable", "", words.empty);
  const said = { text: `“${text.trim()}”` };
  if (plain.includes(",")) {
    if (!THOUSANDS.test(plain)) return verdict("unreadable", "", fill(words.comma, said));
    plain = plain.replaceAll(",", "");
  }
  if (!NUMBER.test(plain) || !Number.isFinite(Number(plain)))
    return verdict("unreadable", "", fill(words.unreadable, said));
  return Number(plain);
}

/** The verdict on an answer as typed: {kind, status, message, right}. */
export function judge(payload, text) {
  const { words, answer, tolerance } = payload;
  const value = read(payload, text);
  if (typeof value !== "number") return value;
  if (within(value, answer, tolerance)) return verdict("right", words.right, payload.right);
  for (const mistake of payload.mistakes)
    if (within(value, mistake.value, tolerance)) return verdict("mistake", words.wrong, mistake.hint);
  for (const power of POWERS) {
    const factor = Number(`1e${power}`);
    for (const [name, scaled] of [["high", value / factor], ["low", value * factor]])
      if (within(scaled, answer, tolerance))
        return verdict("scale", words.wrong, fill(words[name], { factor: factor.toLocaleString("en") }));
  }
  if (within(value, answer, payload.near * tolerance))
    return verdict("near", words.wrong, fill(words.near, { tolerance: payload.tolerance_text }));
  return verdict("generic", words.wrong, payload.hint || words.generic);
}

export function render({ model, el }) {
  const payload = model.get("payload");
  const { words } = payload;
  const id = `rl-check-${serial()}`;
  const below = frame(payload, id);

  const question = make("p", { className: "rl-check-question", id: `${id}-question` }, payload.question);
  // Not type=number: that one refuses "2,730.7" in silence.
  const input = make("input", {
    type: "text", id: `${id}-input`, inputMode: "decimal", autocomplete: "off", spellcheck: false,
  });
  input.setAttribute("aria-describedby", `${id}-question ${id}-feedback`);
  const label = make("label", { htmlFor: input.id }, words.your_answer);
  const unit = make("span", { className: "rl-check-unit" }, payload.unit);
  const field = make("span", { className: "rl-check-field" }, input, unit);
  const button = make("button", { type: "submit", className: "rl-check-button" }, words.check);
  const form = make("form", { className: "rl-check-form", noValidate: true }, label, field, button);

  function show(text) {
    const said = judge(payload, text);
    input.setAttribute("aria-invalid", String(!said.right));
    below.show(said, root);
    return said;
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const said = show(input.value);
    model.set("entry", input.value);
    model.set("solved", said.right);
    model.save_changes();
  });
  input.addEventListener("input", () => {
    input.removeAttribute("aria-invalid");
    below.clear(root);
  });
  model.on("change:entry", () => {
    if (input.value === model.get("entry")) return; // it came from here
    input.value = model.get("entry");
    if (input.value) show(input.value);
  });

  const { feedback, reveal, solution } = below;
  const root = keepKeys(make("div", { className: "rl-check" }, question, form, feedback, reveal, solution));
  root.setAttribute("role", "group");
  root.setAttribute("aria-labelledby", question.id);
  el.append(root);
  if (model.get("entry")) {
    input.value = model.get("entry");
    show(input.value);
  }
}

export default { render, judge };
