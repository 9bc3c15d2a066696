// The sentence at the top of a page: native controls that look like text, and what follows from them.
import { h, say } from "../dom.js";
import { fill, quantity, sentence, si } from "../format.js";
import { consequences, read, stepped, within, written } from "./deployment.js";
import { choice, choose, follow, served } from "./store.js";

const NUMBERS = ["people", "context", "cards"];

/** Brings one `.rl-serve` to life. */
export function mount(el) {
  const data = globalThis.InferenceRooflineServe;
  if (!data || el.dataset.alive) return;
  el.dataset.alive = "yes";
  const { words, fields } = data;
  const form = el.querySelector("form");
  const verdict = el.querySelector(".rl-verdict");
  const control = Object.fromEntries([...form.querySelectorAll("[data-serve]")].map((one) => [one.dataset.serve, one]));
  const plural = form.querySelector("[data-plural]");
  const measure = ruler();

  /** A field is as wide as what it shows. */
  function fitted(one, text) {
    const { fontWeight, fontSize, fontFamily, fontStyle } = getComputedStyle(one); // not `font`, which Firefox leaves empty
    one.style.width = `${Math.ceil(measure(text, [fontStyle, fontWeight, fontSize, fontFamily].join(" "))) + 4}px`;
  }

  function show() {
    const now = served();
    for (const [name, one] of Object.entries(control)) {
      const text = NUMBERS.includes(name) ? written(name, now[name]) : String(now[name]);
      if (one.value !== text) one.value = text;
      if (NUMBERS.includes(name)) {
        one.setAttribute("aria-valuenow", now[name]);
        one.setAttribute("aria-valuetext", text);
        one.setCustomValidity("");
      }
      fitted(one, one.selectedOptions?.[0].textContent ?? text);
    }
    say(plural, now.people === 1 ? words.person : words.people);
    verdict.replaceChildren(...judged(now));
    el.classList.toggle("rl-own", choice() !== null);
  }

  /** Whether it fits, what would, and what a step takes at least. */
  function judged(now) {
    const { now: at, held, offers, card } = consequences(now, data);
    const size = (value) => sentence(si(value, "byte"));
    const code = held.sizes;
    const fits = held.state === "fits";
    const all = { needed: size(code.needed * now.cards), memory: size(code.memory * now.cards), there: size(code.there * now.cards) };
    const lacks = code.needed > code.memory ? words.lacks : words.lacks_engine;
    const whether = held.state === "broken" ? held.sentence : fill(fits ? words.fits : lacks, all);
    const buttons = [];
    const offer = (text, changes) => buttons.push(h("button", { type: "button", onclick: () => choose(changes) }, text));
    if (offers.cards) offer(fill(words.offer_cards, { cards: `${written("cards", offers.cards)} × ${card.name}` }), { cards: offers.cards });
    if (offers.batch) offer(fill(words.offer_people, { count: written("people", offers.batch) }), { people: offers.batch });
    if (offers.context) offer(fill(words.offer_context, { tokens: written("context", offers.context) }), { context: offers.context });
    const number = (name, unit) => sentence(quantity(at.at(name), unit));
    const rates = [
      fill(words.step, { time: number("time", "s") }),
      fill(words.each, { rate: number("per_user", "token/s") }),
      fill(words.all, { rate: number("throughput", "token/s") }),
    ].join(", ");
    return [
      h("span", { class: fits ? "rl-fits" : "rl-lacks" }, fits ? "✓ " : "✗ ", whether), " ", ...buttons, " ",
      fits ? h("span", { class: "rl-rates" }, rates) : h("s", { class: "rl-rates" }, rates), " ",
      choice() ? h("button", { type: "button", class: "rl-author", onclick: () => choose(null) }, words.reset) : "",
    ];
  }

  /** What was typed, or a sentence on why it can't be. */
  function typed(name) {
    const one = control[name];
    const value = within(name, read(one.value, fields[name].k), data);
    if (Number.isFinite(value)) return choose({ [name]: value });
    one.setCustomValidity(fill(words.not_read, { value: one.value }));
    one.reportValidity();
  }

  for (const [name, one] of Object.entries(control)) {
    if (!NUMBERS.includes(name)) {
      one.addEventListener("change", () => choose({ [name]: one.value }));
      continue;
    }
    one.addEventListener("change", () => typed(name));
    one.addEventListener("input", () => { one.setCustomValidity(""); fitted(one, one.value); });
    one.addEventListener("focus", () => one.select());
    one.addEventListener("keydown", (e) => {
      const steps = { ArrowUp: 1, ArrowDown: -1, PageUp: 2, PageDown: -2 }[e.key];
      if (!steps) return;
      e.preventDefault();
      let value = served()[name];
      for (let i = 0; i < Math.abs(steps); i++) value = stepped(name, value, steps > 0, data);
      choose({ [name]: value });
      one.select();
    });
  }
  form.addEventListener("submit", (e) => { e.preventDefault(); document.activeElement?.blur(); });
  follow(show);
  show();
  document.fonts?.ready.then(show); // other letters have other widths
}

/** Measures a text in a font. */
function ruler() {
  const context = document.createElement("canvas").getContext("2d");
  return (text, font) => {
    context.font = font;
    return context.measureText(text).width;
  };
}
