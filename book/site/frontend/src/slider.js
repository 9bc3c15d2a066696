// One slider: a native range over stops, and beside it the exact value, which can be typed, too.
import { h, letter } from "./dom.js";
import { fully } from "./format.js";
import { nearest, stepped, stops } from "./physics.js";
import { parts, settle } from "./typed.js";

const PAGE = 10; // of a slider's stops that Page Up moves it by, one in so many: as browsers have it

/** onmove(value): to be set. onremark(sentence): on what was typed. Returns {el, show(value)}. */
export function slider(id, parameter, words, onmove, onremark) {
  const p = parameter;
  const list = stops(p);
  let shown; // the value that stands there
  const input = h("input", {
    id, type: "range", min: 0, max: list.length - 1, step: 1,
    oninput: () => onmove(list[Number(input.value)]),
  });
  const field = h("input", {
    id: `${id}-value`, class: "rl-value", type: "text", role: "spinbutton", inputmode: "text", autocomplete: "off", spellcheck: "false",
    "aria-label": `${p.label} (${words.typed})`, "aria-valuemin": p.low, "aria-valuemax": p.high,
    onchange: typed, onkeydown: keys, onfocus: () => field.select(),
  });
  const unit = h("span", { class: "rl-value-unit", "aria-hidden": "true" });

  function typed() {
    if (field.value === parts(p, shown).text) return;
    const { value, remark } = settle(field.value, p, shown, words);
    if (value !== undefined) onmove(value);
    write(value ?? shown);
    onremark(remark);
  }

  function keys(event) {
    const steps = { ArrowUp: 1, ArrowDown: -1, PageUp: Math.ceil(list.length / PAGE), PageDown: -Math.ceil(list.length / PAGE) }[event.key];
    if (event.key === "Escape") write(shown);
    if (event.key === "Enter") typed();
    if (!steps) return;
    event.preventDefault();
    onmove(stepped(list, shown, steps));
  }

  function write(value) {
    const now = parts(p, value);
    shown = value;
    if (field.value !== now.text) field.value = now.text;
    if (unit.textContent !== now.unit) unit.textContent = now.unit;
    field.setAttribute("size", Math.max(4, now.text.length));
  }

  return {
    el: h("div", { class: "rl-slider" }, h("label", { for: id }, p.label, letter(p, ", ")), h("span", { class: "rl-typed" }, field, unit), input),
    show(value) {
      const at = nearest(list, value, p.scale);
      if (Number(input.value) !== at) input.value = at;
      const text = fully(p, value);
      for (const one of [input, field]) one.setAttribute("aria-valuetext", text);
      field.setAttribute("aria-valuenow", value);
      input.style.setProperty("--rl-filled", `${(100 * at) / (list.length - 1)}%`);
      write(value);
    },
  };
}
