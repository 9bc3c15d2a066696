// The roofline: drawn once per set of cards; only the operating point moves with the sliders.
import { gridX, gridY, line, plot, rect, ruleX } from "@observablehq/plot";
import { image, s, say } from "./dom.js";
import { digits, fill, sentence, si, tick, tickIn } from "./format.js";
import { labelLayer } from "./labels.js";
import { evidenceMarks } from "./marks.js";
import { drawWorks } from "./works.js";

/** Powers of ten inside a domain; every second or third of them if there is no room. */
export function decades([low, high], most = 9) {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  const all = Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => 10 ** (first + i));
  const every = Math.ceil(all.length / most);
  return all.filter((_, i) => i % every === 0);
}

const LOW = 232; // pixels of a picture on a phone, where it stays in view above the sliders

/** Space around the frame, and its size. */
export function layout(width) {
  const narrow = width < 480;
  const margins = { marginLeft: 46, marginRight: 12, marginTop: 26, marginBottom: narrow ? 38 : 42 };
  return { narrow, width, height: narrow ? LOW : Math.round(Math.min(430, width * 0.58)), ...margins };
}

export function frameOf({ width, height, marginLeft, marginRight, marginTop, marginBottom }) {
  return { x0: marginLeft, x1: width - marginRight, y0: marginTop, y1: height - marginBottom };
}

/** What both axes must span: every roof of the picture from edge to edge, and all evidence. */
function domains(compiled, roofs, range, points) {
  const ridges = roofs.map((r) => compiled.ridge(r.peak, r.bandwidth));
  const xs = points.map((p) => p.x);
  const x = [Math.min(range[0], ...ridges.map((r) => r / 30), ...xs) / 1.3, Math.max(range[1], ...ridges.map((r) => r * 6), ...xs) * 1.3];
  const ys = [...points.map((p) => p.y), ...roofs.map((r) => compiled.attainable(x[0], r.peak, r.bandwidth))];
  return { x, y: [Math.min(...ys) / 1.5, Math.max(...ys, ...roofs.map((r) => r.peak)) * 2] };
}

/** Roofs whose flat parts would share one label, highest first. */
function together(roofs, y) {
  const groups = [];
  for (const roof of [...roofs].sort((a, b) => b.peak - a.peak || b.bandwidth - a.bandwidth)) {
    const last = groups.at(-1);
    if (last && y(roof.peak) - y(last.at(-1).peak) < 13) last.push(roof);
    else groups.push([roof]);
  }
  return groups;
}

/** Names for a narrow picture: the first word alone, where that still tells the cards apart. */
function shortNames(roofs) {
  const word = (r) => r.name.split(" ")[0];
  const alone = (r) => roofs.filter((other) => word(other) === word(r)).length === 1;
  return roofs.map((r) => (alone(r) ? { ...r, name: word(r) } : r));
}

/** The group's names: the chosen one strong, no more of the rest than fit. */
function names(group, chosen, words, narrow) {
  const others = group.filter((r) => r.id !== chosen.id);
  const most = narrow ? 2 : 4;
  const parts = [];
  if (others.length < group.length) {
    parts.push(s("tspan", { class: "rl-strong" }, group.find((r) => r.id === chosen.id).name));
  }
  parts.push(...others.slice(0, most).map((r) => s("tspan", {}, r.name)));
  if (others.length > most) parts.push(s("tspan", {}, fill(words.more, { count: others.length - most })));
  return parts.flatMap((p, i) => (i ? [s("tspan", {}, " · "), p] : [p]));
}

/**
 * ctx: {compiled, words, roofs, chosen (one of the roofs), range, points, width, alt, view}.
 * Returns {svg, move(situation, text)}.
 */
export function drawRoofline({ compiled, words, roofs, chosen, range, points, width, alt, view }) {
  const shape = layout(width);
  const frame = frameOf(shape);
  const { x, y } = domains(compiled, roofs, range, points);
  const ridge = compiled.ridge(chosen.peak, chosen.bandwidth);
  const bend = (r) => [x[0], compiled.ridge(r.peak, r.bandwidth), x[1]].map((i) => [i, compiled.attainable(i, r.peak, r.bandwidth)]);
  const xTicks = decades(x, shape.narrow ? 5 : 8);
  const yTicks = decades(y, 6);
  const svg = image(plot({
    ...shape,
    className: "rl-plot",
    x: { type: "log", domain: x, label: words.intensity_axis, labelAnchor: "right", labelArrow: "none", labelOffset: shape.narrow ? 33 : 36, ticks: xTicks, tickFormat: tickIn(""), tickSize: 4 },
    y: { type: "log", domain: y, label: words.rate_axis, labelArrow: "none", ticks: yTicks, tickFormat: (v) => tick(v), tickSize: 4 },
    marks: [
      rect([0], { x1: x[0], x2: ridge, y1: y[0], y2: y[1], fill: "var(--rl-memory)" }),
      rect([0], { x1: ridge, x2: x[1], y1: y[0], y2: y[1], fill: "var(--rl-compute)" }),
      gridX(xTicks, { stroke: "var(--rl-line)", strokeOpacity: 1 }),
      gridY(yTicks, { stroke: "var(--rl-line)", strokeOpacity: 1 }),
      ruleX([ridge], { stroke: "var(--rl-dim)", strokeDasharray: "2,3", y1: y[0], y2: chosen.peak }),
      ...roofs.filter((r) => r.id !== chosen.id).map((r) => line(bend(r), { stroke: "var(--rl-roof)", strokeWidth: 1.2, strokeOpacity: 0.65 })),
      line(bend(chosen), { stroke: "var(--rl-text)", strokeWidth: 2.6, strokeLinejoin: "round" }),
      ...evidenceMarks(points),
    ],
  }));
  const X = (v) => svg.scale("x").apply(v);
  const Y = (v) => svg.scale("y").apply(v);

  let place = null;
  function label() {
    const lines = roofs.map((r) => bend(r).map(([a, b]) => [X(a), Y(b)]));
    place = labelLayer(svg, frame, { lines, points: points.map((p) => [X(p.x), Y(p.y)]) });
    for (const group of together(shape.narrow ? shortNames(roofs) : roofs, Y)) {
      const top = Y(group[0].peak) - 7;
      const corner = Math.max(...group.map((r) => X(compiled.ridge(r.peak, r.bandwidth)))) + 8;
      const places = [6, 40, 80, 120].map((back) => ({ x: frame.x1 - back, y: top, anchor: "end" }));
      place(names(group, chosen, words, shape.narrow), [...places, { x: corner, y: top }], { required: true });
    }
    const foot = frame.y1 - 8;
    const at = X(ridge);
    const rows = [foot, foot - 16, foot - 32, foot - 48];
    place(fill(words.ridge, { ridge: digits(ridge) }), rows.map((py) => ({ x: at + 6, y: py })), { kind: "rl-quiet" });
    const rate = (text, value, unit) => (shape.narrow ? text : `${text}: ${sentence(si(value, unit))}`);
    place(rate(words.waits, chosen.bandwidth, "byte/s"), rows.map((py) => ({ x: at - 8, y: py, anchor: "end" })), { kind: "rl-quiet" });
    place(rate(words.computes, chosen.peak, "FLOP/s"), rows.slice(1).map((py) => ({ x: at + 6, y: py })), { kind: "rl-quiet" });
  }

  const attainable = (i) => compiled.attainable(i, chosen.peak, chosen.bandwidth);
  const works = view?.works && drawWorks(svg, frame, view.works, words, { x, y }, attainable);
  const point = works ?? operatingPoint(svg, frame);
  return {
    svg,
    label, // once it is in the document, where its font is known
    grips: works?.grips ?? [{ el: point.grip, output: "intensity", x: (px) => svg.scale("x").invert(px) }],
    points: points.map((p) => ({ ...p, px: X(p.x), py: Y(p.y) })),
    move(now, text, { summary }) {
      svg.setAttribute("aria-label", alt(summary()));
      if (works) return works.move(now, X, Y, place);
      point.move(X(Math.min(x[1], Math.max(x[0], now.intensity))), Y(Math.min(y[1], Math.max(y[0], now.attainable))), text, now.bound === "compute", place);
    },
  };
}

/** The blue point with its two plumb lines. */
export function operatingPoint(svg, frame) {
  const down = s("line", { class: "rl-plumb" });
  const across = s("line", { class: "rl-plumb" });
  const touch = s("circle", { class: "rl-touch", r: 20 });
  const ball = s("circle", { class: "rl-point", r: 7.5 });
  const text = s("text", { class: "rl-label rl-here" });
  const group = s("g", { class: "rl-operating", "aria-hidden": "true" }, down, across, text);
  const grip = s("g", { class: "rl-grip" }, touch, ball); // that a hand takes hold of: hand.js
  svg.append(group, grip);
  return {
    grip,
    /** place: the picture's labels, among which the point's own finds room. */
    move(px, py, words, flat = false, place = null) {
      const set = (el, values) => { for (const [k, v] of Object.entries(values)) el.setAttribute(k, v); };
      const there = Number.isFinite(px) && Number.isFinite(py); // a table may have no row here
      for (const one of [group, grip]) set(one, { visibility: there ? "visible" : "hidden" });
      if (!there) return;
      set(down, { x1: px, x2: px, y1: py, y2: frame.y1 });
      set(across, { x1: frame.x0, x2: px, y1: py, y2: py });
      for (const one of [touch, ball]) set(one, { cx: px, cy: py });
      // Above a slope lie only other cards' roofs. Above a flat roof are names, just below it evidence.
      const left = (dy) => ({ x: px - 11, y: py + dy, anchor: "end" });
      const right = (dy) => ({ x: px + 12, y: py + dy, anchor: "start" });
      const spots = flat ? [left(36), right(36), left(54), right(54), left(72), right(72), left(96), right(96), left(20), right(20)] : [left(-9), right(21), left(-26), right(38), left(21), right(-9), left(-44), right(56), left(-62), right(74)];
      const [spot] = place ? place.rank(words, spots) : spots;
      set(text, { x: spot.x, y: spot.y, "text-anchor": spot.anchor });
      say(text, words);
    },
  };
}

