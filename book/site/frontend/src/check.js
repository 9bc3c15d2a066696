// A numeric self-check: question, field, and a verdict that knows the usual mistakes.
import { frame, make } from "./check-frame.js";
import { keepKeys, serial } from "./dom.js";
import { judge } from "./judge.js";

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
