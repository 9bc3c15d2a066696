// Where the parts of an explorer stand. The picture and its first numbers are one stage, which stays in view
// while the sliders are moved: beside them where there is room, above them on a phone.
import { heading } from "./controls.js";
import { h, keepKeys, say } from "./dom.js";
import { fill, shortly } from "./format.js";

const FIRST = 4; // numbers that stay with the picture
const IN_SENTENCE = ["people", "context", "cards"]; // the sentence's numbers; the rest of it are choices

/**
 * Fills `el`. reads: the read-outs, the most important first. choices: {name: element} in their order.
 * payload.more names the sliders and choices that are folded away. Returns the elements that change.
 */
export function frame({ el, page, payload, part, reads, choices, facts }) {
  const { formula, words, readouts, views, more = [], of_sentence: answers = false } = payload;
  const folded = new Set(more);
  const picture = h("div", { class: "rl-picture" });
  const numbers = h("div", { class: "rl-read" }, ...reads.slice(0, FIRST));
  const stage = h("div", { class: "rl-stage" }, picture, numbers);
  const others = reads.length > FIRST ? h("div", { class: "rl-read rl-other-numbers" }, ...reads.slice(FIRST)) : null;
  const below = h("div", { class: "rl-below" });
  const fit = h("p", { class: "rl-fit", hidden: !formula.capacity });
  const note = h("p", { class: "rl-note", role: "status", hidden: true });
  const spoken = h("output", { class: "rl-unseen", "aria-live": "polite" });
  const key = h("div", { class: "rl-key" });
  const copy = h("button", { type: "button", hidden: !page }, words.copy);
  const reset = h("button", { type: "button" }, words.reset);
  const sliders = (list, name) => list.length ? h("div", { class: "rl-sliders", role: "group", "aria-label": name }, ...list.map(([, one]) => one.el)) : null;
  // What stands in the sentence above is no choice of an explorer that answers it.
  const own = ([p]) => !answers || IN_SENTENCE.includes(payload.serves[p.symbol]);
  const first = part.sliders.filter(([p]) => !folded.has(p.symbol)).filter(own);
  const less = part.sliders.filter(([p]) => folded.has(p.symbol)).filter(own);
  const chosen = (keep) => Object.entries(choices).filter(([name]) => (!answers || name === "shown") && folded.has(name) !== keep).map(([, one]) => one);
  const title = h("summary", {});
  const fold = less.length || chosen(false).length
    ? h("details", { class: "rl-more" }, title, sliders(less, words.sliders_more), h("div", { class: "rl-choose" }, ...chosen(false)))
    : null;

  /** Says what is folded away, and where its sliders stand. */
  function showFolded(values) {
    if (!fold) return;
    const named = less.map(([p]) => `${p.label.split(":")[0]} ${shortly(p, values[p.symbol])}`);
    const names = [...named, ...chosen(false).map((one) => one.firstChild.textContent)].join(", ");
    say(title, fill(words.more_controls, { names }));
  }

  /** Opens what is folded away, where one of its sliders doesn't stand where it opens. */
  function unfold(now, opening) {
    if (less.some(([{ symbol }]) => now[symbol] !== opening[symbol])) fold.open = true;
  }

  el.classList.add("rl-live", "rl-alive");
  el.replaceChildren(
    keepKeys(h("div", { class: answers ? "rl-explorer rl-answers" : "rl-explorer", role: "group", "aria-label": formula.title },
      answers ? null : h("div", { class: "rl-head" }, heading(formula, readouts.value), views.length > 1 ? part.view.el : null),
      h("div", { class: "rl-body" },
        h("div", { class: "rl-left" },
          stage,
          h("div", { class: "rl-after" }, others, below, key)),
        h("div", { class: "rl-controls" },
          sliders(first, words.sliders),
          note,
          h("div", { class: "rl-choose" }, ...chosen(true)),
          answers ? null : facts,
          fold,
          fit)),
      h("div", { class: "rl-foot" }, answers && views.length > 1 ? part.view.el : null, h("span", { class: "rl-hint" }, words.keyboard), h("span", { class: "rl-acts" }, reset, copy)),
      spoken)),
  );
  return { stage, picture, below, numbers: [numbers, others].filter(Boolean), fit, note, spoken, copy, reset, key, showFolded, unfold };
}
