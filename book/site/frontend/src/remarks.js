// Sentences below the picture that go with the sliders. Python's book/widgets/remarks.py says the same.
import { digits, exact, fill, quantity, sentence, si } from "./format.js";

/** Can these values be? "fits", "lacks" memory, "broken" whatever the memory, or "" where nothing is held. */
export function stateOf({ capacity }, values) {
  if (!capacity) return "";
  const cards = values[capacity.gpus] ?? 1;
  if (Object.values(capacity.broken).some((run) => run(values, cards) > 0)) return "broken";
  return capacity.code.needed(values, cards) <= capacity.code.there(values, cards) ? "fits" : "lacks";
}

/** Where along `xs` it begins or ends to be possible: [x, whether it can be there], with the turns found between two of them. */
export function possibleAlong(compiled, values, symbol, xs) {
  const can = (v) => !["lacks", "broken"].includes(stateOf(compiled, { ...values, [symbol]: v }));
  const found = [];
  for (const x of xs) {
    const now = can(x);
    const last = found.at(-1);
    if (last && last[1] !== now) {
      let [a, b] = [last[0], x];
      for (let i = 0; i < 30; i++) {
        const middle = (a + b) / 2;
        if (can(middle) === last[1]) a = middle;
        else b = middle;
      }
      found.push([a, last[1]], [b, now]);
    }
    found.push([x, now]);
  }
  return found;
}

/** The least number of cards that would do, of those that the heads can be dealt out to; undefined where none up to `most` does. */
function fewest({ code }, values, most) {
  for (let cards = 1; cards <= most; cards++)
    if (!code.uneven(values, cards) && code.needed(values, cards) <= code.there(values, cards)) return cards;
  return undefined;
}

function cardsFor({ words }, capacity, values, most) {
  const cards = fewest(capacity, values, most);
  return cards === undefined ? fill(words.cards_none, { most: exact(most) }) : fill(words[cards === 1 ? "cards_one" : "cards"], { cards: exact(cards) });
}

/** What would do where these values don't: {cards (at most so many), batch (sequences that fit), context (the longest that the model takes)}. */
export function offers({ capacity }, values, most) {
  const run = (name) => capacity.code[name]?.(values, values[capacity.gpus] ?? 1);
  const over = capacity.broken.over_context?.(values, 1) > 0;
  const uneven = ["uneven_cards", "no_link"].some((name) => capacity.broken[name]?.(values, values[capacity.gpus] ?? 1) > 0);
  const found = { context: over ? values.max_context : undefined };
  if (!over) found.cards = fewest(capacity, values, Math.min(most, run("heads")));
  if (!over && !uneven && run("sequences") >= 1) found.batch = run("sequences");
  return found;
}

/** Whether a card's memory holds what the sliders ask for, and what would: {state, sentence, sizes (bytes of one card)}. */
export function memory(payload, compiled, values, preset) {
  const { words } = payload;
  const { capacity } = compiled;
  const state = stateOf(compiled, values);
  if (!state) return { state, sentence: "" };
  const cards = values[capacity.gpus] ?? 1;
  const held = Object.fromEntries(Object.entries(capacity.code).map(([name, run]) => [name, run(values, cards)]));
  const sizes = Object.fromEntries(["needed", "there", "memory"].map((name) => [name, held[name]]));
  const inWords = Object.fromEntries(Object.entries(sizes).map(([name, value]) => [name, sentence(si(value, "byte"))]));
  if (state === "broken") {
    const numbers = Object.fromEntries(payload.formula.parameters.map((p) => [p.symbol, exact(values[p.symbol])]));
    const broken = Object.keys(capacity.broken).filter((name) => capacity.broken[name](values, cards) > 0);
    const said = broken.map((name) => fill(words[name], { ...numbers, model: preset.split(" / ")[0] }));
    if (held.needed > held.there) said.push(fill(words[`lacks_${capacity.held}`], inWords));
    return { state, sentence: said.join(" "), sizes };
  }
  const said = [fill(words[`${state}_${capacity.held}`], inWords)];
  if (held.weights > held.there) {
    if (capacity.held === "model") said.push(words.weights_alone);
  } else if (held.sequences !== undefined) said.push(fill(words[{ 0: "holds_none", 1: "holds_one" }[held.sequences] ?? "holds"], { count: exact(held.sequences) }));
  if (state === "lacks" && held.heads) said.push(cardsFor(payload, capacity, values, held.heads));
  return { state, sentence: said.join(" "), sizes };
}

/**
 * A stack of terms beside what was measured: {values, sum (of those that are known), whole (are all of them?),
 * measured, rest (NaN where nothing was, or no sum is), sentence}.
 */
export function stacked({ words, readouts }, view, now) {
  const { unit } = view.parts[0];
  const said = (value) => sentence(quantity(value, unit));
  const missing = (list) => list.filter((one) => Number.isNaN(now.at(one.output))).map((one) => one.label);
  const values = view.parts.map((one) => now.at(one.output));
  const sum = values.filter((v) => !Number.isNaN(v)).reduce((a, b) => a + b, 0);
  const measured = view.measured ? now.at(view.measured.output) : NaN;
  const terms = missing(view.parts);
  const known = { values, sum, measured, whole: !terms.length };
  if (terms.length) {
    const others = missing(readouts.others ?? []);
    const want = fill(words.stack_none, { parts: (others.length ? others : terms).join(", ") });
    return { ...known, rest: NaN, sentence: [want, view.unknown].filter(Boolean).join(" ") };
  }
  const rest = measured - sum;
  const told = words[Number.isNaN(measured) ? "stack_alone" : rest < 0 ? "stack_over" : "stack_under"];
  const parts = [fill(told, { sum: said(sum), measured: said(measured), rest: said(Math.abs(rest)) })];
  const running = view.running ? now.at(view.running) : Infinity;
  const asked = view.asked ? now.values[view.asked] : 0;
  if (running < asked) parts.push(fill(words.stack_queue, { running: digits(running), asked: exact(asked) }));
  return { ...known, rest, sentence: parts.join(" ") };
}
