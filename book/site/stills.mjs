// Runs the pages' own script (static/explorer.js) in a document without a browser, and hands out what
// it draws. A line of JSON in, one out: first {"font": {weight: {character: em}}}, then explorers as
// {"payload", "state", "widths"}, answered by {"html"} or {"error"}.
import { parseHTML } from "linkedom";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import vm from "node:vm";

const PIXELS = 12; // of a label's text
const WIDE = 0.65; // em, of a character that the font lacks

const { document, window, HTMLSelectElement } = parseHTML("<!doctype html><html><body></body></html>");
// Of a select, this document lacks the setter; its value is the option that is marked.
const { get } = Object.getOwnPropertyDescriptor(HTMLSelectElement.prototype, "value");
Object.defineProperty(HTMLSelectElement.prototype, "value", {
  get,
  set(value) { for (const option of this.options) option.toggleAttribute("selected", option.getAttribute("value") === value); },
});
Object.assign(globalThis, { document, window });
vm.runInThisContext(readFileSync(new URL("static/explorer.js", import.meta.url), "utf8"));
const { still, measureBy } = globalThis.InferenceRoofline;

function answer({ font, ...asked }) {
  if (!font) return { html: still(asked) };
  measureBy((text, weight) => PIXELS * [...text].reduce((sum, c) => sum + (font[weight][c] ?? WIDE), 0));
  return {};
}

for await (const line of createInterface({ input: process.stdin })) {
  let said;
  try {
    said = answer(JSON.parse(line));
  } catch (error) {
    said = { error: error.stack };
  }
  process.stdout.write(`${JSON.stringify(said)}\n`);
}
