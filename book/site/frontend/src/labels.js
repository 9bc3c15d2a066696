// Labels that never lie on each other: each takes the first of its places that is free.
import { s } from "./dom.js";

const overlap = (a, b) => a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1;

/** How many of the lines' sample points a box covers. */
function crossed(box, lines) {
  let count = 0;
  for (const line of lines)
    for (let i = 1; i < line.length; i++) {
      const [ax, ay] = line[i - 1];
      const [bx, by] = line[i];
      const steps = Math.max(1, Math.ceil(Math.hypot(bx - ax, by - ay) / 6));
      for (let k = 0; k <= steps; k++) {
        const x = ax + ((bx - ax) * k) / steps;
        const y = ay + ((by - ay) * k) / steps;
        if (x > box.x0 && x < box.x1 && y > box.y0 && y < box.y1) count++;
      }
    }
  return count;
}

let ruler;

/** Width of a text of 12 pixels, without making the browser lay out the page to learn it. */
let measure = (text, weight, family) => {
  ruler ??= document.createElement("canvas").getContext("2d");
  ruler.font = `${weight} 12px ${family}`;
  return ruler.measureText(text).width;
};

/** Where there is no browser, a table of widths does: measure(text, weight) -> pixels. */
export function measureBy(other) { measure = other; }

function widthOf(el, family) {
  const parts = el.children.length ? [...el.children] : [el];
  const is = (part, kind) => part.classList.contains(kind);
  const width = (part) => measure(part.textContent, is(part, "rl-strong") || is(part, "rl-here") ? 650 : 400, family);
  return parts.reduce((sum, part) => sum + width(part), 0) * (is(el, "rl-here") ? 13 / 12 : 1); // as explorer.css has it
}

const families = new WeakMap();

/** The font of an explorer's pictures, asked for once: an answer makes the browser compute all styles anew. */
function familyOf(svg) {
  const explorer = svg.closest(".rl-explorer") ?? svg;
  if (!families.has(explorer)) families.set(explorer, globalThis.getComputedStyle?.(svg).fontFamily);
  return families.get(explorer);
}

/** A layer in an SVG that places labels inside `frame` ({x0, y0, x1, y1} in pixels). */
export function labelLayer(svg, frame, { lines = [], points = [] } = {}) {
  const layer = s("g", { class: "rl-labels", "aria-hidden": "true" });
  svg.append(layer);
  const family = familyOf(svg);
  const taken = points.map(([x, y, r = 4]) => ({ x0: x - r, x1: x + r, y0: y - r, y1: y + r }));

  /**
   * places: [{x, y, anchor}] in order of liking, y at the baseline. required: goes to the least bad
   * place when none is free; otherwise it is left out.
   */
  function place(text, places, { kind = "", required = false } = {}) {
    const el = s("text", { class: `rl-label ${kind}` }, ...(Array.isArray(text) ? text : [text]));
    layer.append(el);
    const width = widthOf(el, family);
    let best = null;
    for (const { x, y, anchor = "start" } of places) {
      const left = anchor === "end" ? x - width : anchor === "middle" ? x - width / 2 : x;
      const shift = Math.max(frame.x0 + 2 - left, 0) + Math.min(frame.x1 - 2 - left - width, 0);
      const x0 = left + shift;
      const box = { x0: x0 - 3, x1: x0 + width + 3, y0: y - 9, y1: y + 3 };
      const inside = box.y0 >= frame.y0 - 1 && box.y1 <= frame.y1 + 1 && Math.abs(shift) < width / 2;
      const cost = 100 * taken.filter((t) => overlap(t, box)).length + crossed(box, lines) + (inside ? 0 : 1000);
      if (!best || cost < best.cost) best = { cost, x0, y, box };
      if (cost === 0) break;
    }
    if (!best || (best.cost > 0 && !required)) {
      el.remove();
      return null;
    }
    el.setAttribute("x", best.x0);
    el.setAttribute("y", best.y);
    taken.push(best.box);
    return el;
  }
  /** How bad a text of 13 pixels would stand at each of these places: its box, and what it would lie on. */
  place.rank = (text, places) => {
    const width = (measure(text, 650, family) * 13) / 12;
    return places.map((spot) => {
      const wished = spot.anchor === "end" ? spot.x - width : spot.x;
      const shift = Math.max(frame.x0 + 2 - wished, 0) + Math.min(frame.x1 - 2 - wished - width, 0);
      const x = wished + shift;
      const box = { x0: x - 2, x1: x + width + 2, y0: spot.y - 11, y1: spot.y + 4 };
      const out = Math.max(frame.y0 - 14 - box.y0, 0) + Math.max(box.y1 - frame.y1, 0);
      return { x, y: spot.y, width, anchor: "start", cost: 100 * taken.filter((t) => overlap(t, box)).length + crossed(box, lines) + 1000 * Math.ceil(out) + Math.abs(shift) / 10 };
    }).sort((a, b) => a.cost - b.cost); // places of one cost stay in the order of liking
  };
  return place;
}
