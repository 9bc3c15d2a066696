// Kinds of work that take turns, each a point on the roof at its own intensity: a circle, a square.
import { s, say } from "./dom.js";
import { digits, fill, percent } from "./format.js";
import { extremes } from "./physics.js";

const INKS = ["weights", "cache"]; // as the bars of the same parts have them
const HALF = 8;
const NARROW = 480; // pixels, below which a point is told in fewer words

/** The intensities between which the sliders can move the parts' points. */
export function reach(parts, compiled, payload, roof, dtype, preset) {
  const ends = parts.flatMap((part) => extremes(compiled, payload, part.intensity, [roof], [dtype], preset));
  return [Math.min(...ends), Math.max(...ends)];
}

/** The parts' points in a picture. Returns {move(now, X, Y, place)}; a label goes where the rest leaves room. */
export function drawWorks(svg, frame, parts, words, domain, attainable) {
  const shapes = parts.map((part, i) => {
    const mark = i ? s("rect", { width: 2 * HALF, height: 2 * HALF, rx: 2 }) : s("circle", { r: HALF });
    const plumb = s("line", { class: "rl-plumb" });
    const touch = s("circle", { class: "rl-touch", r: 20 });
    const grip = s("g", { class: "rl-grip" }, touch, mark);
    mark.setAttribute("class", "rl-work");
    for (const [el, what] of [[mark, "fill"], [plumb, "stroke"]]) el.style[what] = `var(--rl-${INKS[i]})`;
    const told = [s("text", { class: `rl-label rl-strong rl-part-${i}` }), s("text", { class: "rl-label rl-quiet-here" })];
    svg.append(s("g", { class: "rl-operating", "aria-hidden": "true", "data-part": part.time }, plumb, s("g", { class: "rl-labels" }, ...told)), grip);
    return { part, mark, touch, grip, plumb, told, i };
  });
  const put = (el, values) => { for (const [k, v] of Object.entries(values)) el.setAttribute(k, v); };
  const into = (v, [low, high]) => Math.min(high, Math.max(low, v));
  return {
    grips: shapes.map(({ part, grip }) => ({ el: grip, output: part.intensity, name: part.label, x: (px) => svg.scale("x").invert(px) })),
    move(now, X, Y, place) {
      const whole = parts.reduce((sum, part) => sum + now.at(part.time), 0);
      const taken = [];
      const points = shapes.map(({ part }) => {
        const intensity = now.at(part.intensity);
        return { intensity, px: X(into(intensity, domain.x)), py: Y(into(attainable(intensity), domain.y)) };
      });
      shapes.forEach(({ part, mark, touch, plumb, told, i }, k) => {
        const { intensity, px, py } = points[k];
        put(mark, i ? { x: px - HALF, y: py - HALF } : { cx: px, cy: py });
        put(touch, { cx: px, cy: py });
        put(plumb, { x1: px, x2: px, y1: py, y2: frame.y1 });
        const texts = [part.label, fill(frame.x1 < NARROW ? words.work_short : words.work, { intensity: digits(intensity), percent: percent(now.at(part.time) / whole) })];
        // The left one stands to the left of its point, the right one to the right, so that they part.
        const left = points.every((other, j) => j === k || px < other.px || (px === other.px && k > j));
        const spot = room(place, texts, px, py, left, frame, [...taken, ...points.filter((_, j) => j !== k).map((o) => box(o.px - 12, o.px + 12, o.py - 12, o.py + 12))]);
        taken.push(spot.box);
        told.forEach((el, line) => {
          put(el, { x: spot.x, y: spot.y + 15 * line, "text-anchor": "start" });
          say(el, texts[line]);
        });
      });
    },
  };
}

const box = (x0, x1, y0, y1) => ({ x0, x1, y0, y1 });
const overlap = (a, b) => a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1;

/** Where two lines of text stand best beside a point. */
function room(place, texts, px, py, left, frame, others) {
  const sides = left ? ["end", "start"] : ["start", "end"];
  const further = frame.x1 < NARROW ? (left ? [-80, 80] : [100, -60]) : []; // where other words take more of the room
  const heights = [...(left ? [-24, -40, 22, 40, -60, 62] : [22, 40, -24, 60, 80, -40]), ...further];
  const spots = sides.flatMap((anchor) => heights.map((dy) => ({ x: anchor === "end" ? px - 14 : px + 14, y: py + dy, anchor })));
  const longest = [...texts].sort((a, b) => b.length - a.length)[0];
  const ranked = spots.map((spot, order) => {
    const [first] = place.rank(longest, [spot]);
    const [second] = place.rank(longest, [{ ...spot, y: spot.y + 15 }]);
    const width = first.width ?? 0;
    const here = box(first.x - 2, first.x + width + 2, spot.y - 12, spot.y + 19);
    const lies = others.filter((other) => overlap(other, here)).length;
    return { x: first.x, y: spot.y, box: here, cost: first.cost + second.cost + 100 * lies + order / 10 };
  });
  return ranked.sort((a, b) => a.cost - b.cost)[0];
}
