// A question of understanding: one of a few sentences, each wrong one with a hint of its own.
// `judge` is the rule of book/widgets/choice.py.
import { frame, make, verdict } from "./check-frame.js";
import { keepKeys, serial } from "./dom.js";

/** The verdict on the option that was picked, as its text. */
export function judge(payload, text) {
  const { words, answer, options } = payload;
  const picked = options.find((option) => option.text === text);
  if (!picked) return verdict("unreadable", "", words.pick);
  const right = picked.text === answer;
  return verdict(right ? "right" : "mistake", right ? words.right : words.wrong, picked.says);
}

export function render({ model, el }) {
  const payload = model.get("payload");
  const { words } = payload;
  const id = `rl-choice-${serial()}`;
  const { feedback, reveal, solution, show, clear } = frame(payload, id);

  // Radio buttons of one name: Tab comes to the group, the arrows move in it, as everywhere else.
  const buttons = payload.options.map(({ text }, i) =>
    make("input", { type: "radio", name: id, value: text, id: `${id}-${i}` }));
  const rows = payload.options.map(({ text }, i) =>
    make("label", { className: "rl-choice-option", htmlFor: buttons[i].id }, buttons[i], make("span", {}, text)));
  const question = make("p", { className: "rl-check-question", id: `${id}-question` }, payload.question);
  const options = make("div", { className: "rl-choice-options" }, ...rows);
  options.setAttribute("role", "radiogroup");
  options.setAttribute("aria-labelledby", question.id);
  options.setAttribute("aria-describedby", feedback.id);
  const button = make("button", { type: "submit", className: "rl-check-button" }, words.check);
  const form = make("form", { className: "rl-choice-form", noValidate: true }, options, button);

  const picked = () => buttons.find((one) => one.checked)?.value ?? "";
  function pick(text) {
    for (const one of buttons) one.checked = one.value === text;
    mark();
  }
  function mark() {
    rows.forEach((row, i) => row.classList.toggle("is-picked", buttons[i].checked));
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const said = judge(payload, picked());
    show(said, root);
    model.set("entry", picked());
    model.set("solved", said.right);
    model.save_changes();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.type === "radio" && !event.shiftKey) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  options.addEventListener("change", () => {
    mark();
    clear(root);
  });
  model.on("change:entry", () => {
    const entry = model.get("entry");
    if (entry === picked()) return; // it came from here
    pick(entry);
    if (entry) show(judge(payload, entry), root);
    else clear(root);
  });

  const root = keepKeys(make("div", { className: "rl-check rl-choice" }, question, form, feedback, reveal, solution));
  root.setAttribute("role", "group");
  root.setAttribute("aria-labelledby", question.id);
  el.append(root);
  if (model.get("entry")) {
    pick(model.get("entry"));
    show(judge(payload, model.get("entry")), root);
  }
}

export default { render, judge };
