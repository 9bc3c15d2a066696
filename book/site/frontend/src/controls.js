// The explorer's controls: native elements, each with a label, each writing to the model only.
import { h, letter, math, mathTerms, say } from "./dom.js";
import { exact, fill } from "./format.js";

/** A control with its name above it; texts: what it may have to show, for which it takes the room. */
function labelled(id, text, control, texts = []) {
  const room = texts.length ? `flex-basis:${Math.ceil(42 + 7.6 * Math.max(...texts.map((t) => t.length)))}px` : undefined;
  return h("div", { class: "rl-field", style: room }, h("label", { for: id }, text), control);
}

function select(id, onchange) {
  return h("select", { id, onchange: (e) => onchange(e.target.value) });
}

const option = (value, text, disabled) => h("option", { value, disabled }, text);

/** Two or more choices side by side, as radio buttons. Returns {el, show(value)}. */
export function segments(id, legend, choices, onchoose) {
  const radios = choices.map(([value, text]) => {
    const input = h("input", { type: "radio", name: id, id: `${id}-${value}`, value, onchange: () => onchoose(value) });
    return { value, input, label: h("label", { for: `${id}-${value}` }, text) };
  });
  const el = h("fieldset", { class: "rl-segments" }, h("legend", { class: "rl-unseen" }, legend), ...radios.flatMap((r) => [r.input, r.label]));
  return { el, show: (value) => radios.forEach((r) => { r.input.checked = r.value === value; }) };
}

/** The accelerator dropdown. */
export function cards(id, words, accelerators, onchange) {
  const control = select(id, onchange);
  control.append(...accelerators.map((a) => option(a.id, a.name)));
  return { el: labelled(id, words.accelerator, control, accelerators.map((a) => a.name)), show: (value) => { control.value = value; } };
}

/** The number formats: those that the card lacks are there, greyed out, and say why. */
export function dtypes(id, words, payload, onchange) {
  const control = select(id, onchange);
  const note = `${id}-note`;
  const why = h("small", { id: note, class: "rl-unseen" });
  control.setAttribute("aria-describedby", note);
  return {
    el: labelled(id, words.dtype, h("span", {}, control, why)),
    show(value, card) {
      const key = card.id;
      if (control.dataset.card !== key) {
        const lacks = (d) => !card.peaks[d];
        control.dataset.card = key;
        control.replaceChildren(...Object.keys(payload.dtypes).map((d) => option(d, lacks(d) ? fill(words.lacks, { dtype: d }) : d, lacks(d))));
        const missing = Object.keys(payload.dtypes).filter(lacks).join(", ");
        say(why, missing ? fill(words.lacking, { accelerator: card.name, missing }) : "");
      }
      control.value = value;
    },
  };
}

/** Models, or models and their layers in groups. Sizes of the reader's own come first, if sliders move them. */
export function presets(id, words, payload, onchange) {
  const control = select(id, onchange);
  const decides = payload.formula.parameters.some((p) => p.source === "model" && !p.quiet);
  if (!decides) control.append(option("", words.own_sizes));
  for (const [group, labels] of Object.entries(payload.presets)) {
    if ("" in labels) control.append(option(group, group));
    else control.append(h("optgroup", { label: group }, ...Object.keys(labels).map((label) => option(`${group} / ${label}`, `${group} · ${label}`))));
  }
  const name = words[`preset_${payload.formula.preset_kind}`];
  return { el: labelled(id, name, control, [...control.querySelectorAll("option")].map((o) => o.textContent)), show: (value) => { control.value = value; } };
}

/** What the model dropdown decides and no slider moves: the shape, in the formula's letters. */
export function facts(words, parameters) {
  const parts = parameters.map((p) => [p, h("span", {})]);
  const list = parts.map(([p, value]) => h("span", { class: "rl-fact" }, p.label, letter(p, " "), " = ", value));
  return {
    el: h("p", { class: "rl-facts" }, ...list),
    show(values) { for (const [p, value] of parts) say(value, exact(values[p.symbol])); },
  };
}

/** Which parameter is on the formula's x axis. */
export function against(id, words, parameters, onchange) {
  const control = select(id, onchange);
  control.append(...parameters.map((p) => option(p.symbol, p.named ?? `${p.letter}, ${p.label.split(":")[0]}`)));
  const el = labelled(id, words.against, control, [...control.querySelectorAll("option")].map((o) => o.textContent));
  return { el, show: (value, visible) => { control.value = value; el.hidden = !visible; } };
}

/** A folded list of checkboxes: which cards' roofs are in the picture. */
export function compare(id, words, payload, onchange) {
  const count = h("span", { id: `${id}-count` });
  const boxes = payload.accelerators.map((a) => {
    const input = h("input", { type: "checkbox", id: `${id}-${a.id}`, onchange: tell });
    const note = h("small", { class: "rl-quiet" });
    return { a, input, note, row: h("label", { for: `${id}-${a.id}` }, input, ` ${a.name} `, note) };
  });
  function tell() { onchange(boxes.filter((b) => b.input.checked).map((b) => b.a.id)); }
  const details = h("details", { class: "rl-compare" }, h("summary", { "aria-labelledby": `${id}-name ${id}-count` }, count),
    h("fieldset", {}, h("legend", { class: "rl-unseen" }, words.compare_legend), ...boxes.map((b) => b.row)));
  details.addEventListener("keydown", (e) => {
    if (e.key !== "Escape" || !details.open) return;
    details.open = false;
    details.querySelector("summary").focus();
  });
  details.addEventListener("focusout", (e) => { if (e.relatedTarget && !details.contains(e.relatedTarget)) details.open = false; });
  const el = h("div", { class: "rl-field" }, h("span", { class: "rl-above", id: `${id}-name` }, words.compare), details);
  return {
    el,
    show(shown, chosen, dtype, visible) {
      el.hidden = !visible;
      let drawn = 0;
      for (const { a, input, note } of boxes) {
        const lacks = !a.peaks[dtype];
        input.checked = shown.includes(a.id) || a.id === chosen;
        input.disabled = a.id === chosen; // the highlighted card is always drawn
        if (input.checked && !lacks) drawn++;
        say(note, lacks ? fill(words.not_drawn, { dtype }) : "");
      }
      say(count, fill(words.compare_count, { count: drawn, all: boxes.length }));
    },
  };
}

/** One big number with a name above and a remark below. Returns {el, show({number, unit}, note)}. */
export function readout(name) {
  const number = h("span", { class: "rl-number" });
  const unit = h("span", { class: "rl-unit" });
  const note = h("small", {});
  const output = h("output", { "aria-live": "off" }, number, " ", unit); // spoken in one sentence instead
  return {
    el: h("div", {}, h("span", { class: "rl-name" }, name), output, note),
    show(value, remark = "") {
      say(number, value.number);
      say(unit, value.unit ?? "");
      say(note, remark);
    },
  };
}

/** The heading: what is explored, its formula, and what its short letters stand for. */
export function heading(formula, label) {
  const where = formula.aliases.map((text) => {
    const set = math(text);
    const words = [...set.querySelectorAll("mtext")].find((one) => one.textContent.includes(" ")); // they wrap; math doesn't
    words?.remove();
    return h("span", { class: "rl-formula rl-quiet", tabindex: 0 }, set, words ? ` ${words.textContent}` : null);
  });
  return h("div", { class: "rl-title" }, h("span", { class: "rl-what" }, formula.title), h("span", { class: "rl-formula", tabindex: 0 }, `${label} = `, ...mathTerms(formula.mathml)), ...where);
}
