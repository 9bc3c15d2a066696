// An explorer as it stands before its script runs: the same elements, with nothing in them that moves.
import { h } from "./dom.js";
import explorer from "./explorer.js";
import { PageModel } from "./page-model.js";

/** What only a living explorer needs; two of them on a page would have it twice. */
const OWN = ["id", "for", "name", "aria-labelledby", "aria-describedby", "aria-live", "role", "tabindex"];

/** What says where something is, in pixels: a tenth of one is enough. */
const PLACES = ["d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height", "transform"];

/** The elements of an explorer in this state, drawn once for each of `widths` (pixels, the widest first). */
export function still({ payload, state, widths }) {
  const el = h("div", { id: payload.id });
  explorer.render({ model: new PageModel({ ...state, payload }), el, page: true, widths });
  const made = el.firstElementChild;
  for (const input of made.querySelectorAll("input")) {
    if (input.type === "radio" && input.checked) input.setAttribute("checked", "");
    if (["range", "text"].includes(input.type)) input.setAttribute("value", input.value);
  }
  for (const control of made.querySelectorAll("select")) {
    const chosen = [...control.querySelectorAll("option")].find((o) => o.getAttribute("value") === control.value);
    control.replaceChildren(...(chosen ? [chosen] : []));
  }
  for (const hidden of made.querySelectorAll("[hidden], .rl-compare fieldset, .rl-more > :not(summary), .rl-unseen")) hidden.remove();
  for (const part of made.querySelectorAll(".rl-choose, .rl-segments, .rl-sliders, .rl-more, .rl-foot, .rl-legend button")) part.setAttribute("inert", "");
  for (const part of [made, ...made.querySelectorAll("*")]) {
    if (part.getAttribute("role") === "img") continue; // a picture keeps its words
    for (const name of OWN) part.removeAttribute(name);
  }
  for (const svg of made.querySelectorAll(".rl-panels svg, .rl-at-narrow svg")) svg.setAttribute("style", `height:${svg.getAttribute("height")}px`);
  for (const part of made.querySelectorAll("svg *"))
    for (const name of PLACES) if (part.hasAttribute(name)) part.setAttribute(name, part.getAttribute(name).replace(/(\.\d)\d+/g, "$1"));
  return made.outerHTML;
}
