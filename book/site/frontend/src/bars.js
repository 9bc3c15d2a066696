// Parts of a whole as one bar that the sliders stretch, what runs beside it as bars of their own,
// and below, the parts' shares along one slider, with the place where two parts are equal.
import { gridX, plot, ruleY } from "@observablehq/plot";
import { h, image, s, say } from "./dom.js";
import { axisOf, fill, nameOf, quantity, sentence, shortly, tickIn } from "./format.js";
import { labelLayer } from "./labels.js";
import { possibleAlong } from "./remarks.js";
import { decades } from "./roofline.js";

const COLOURS = ["var(--rl-weights)", "var(--rl-cache)"]; // what works with weights, and with the cache
const SAMPLES = 64;
const ENDS = [1, 1.5, 2, 3, 4, 5, 6, 8, 10];
const ROOM = 1.34; // right of the longest bar, for its sum

/** The end of an axis that holds `most`: one of a few round numbers, so that bars grow between them. */
export function roundEnd(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  return power * ENDS.find((e) => e * power >= most * (1 - 1e-9));
}

const set = (el, values) => { for (const [k, v] of Object.entries(values)) el.setAttribute(k, v); };

/** The bars: an SVG whose rectangles and labels follow the sliders; its axis is redrawn when it must change. */
function barsOf({ payload, view, width }) {
  const { words } = payload;
  const { parts, beside = [], balance } = view;
  const { unit } = parts[0];
  const narrow = width < 480;
  const tall = narrow ? { whole: 30, single: 14 } : { whole: 36, single: 16 };
  const room = narrow ? 40 : 44; // above a bar, for its name
  const tops = [room, ...beside.map((_, i) => room + tall.whole + room + i * room)];
  const height = tops.at(-1) + (beside.length ? tall.single : tall.whole) + room;
  const frame = { x0: 14, x1: width - 26, y0: 4, y1: height - 34 };
  const box = h("div", {});
  let end = 0;
  let svg;

  function axis(most) {
    const next = roundEnd(most * ROOM);
    if (next === end) return;
    end = next;
    svg = image(plot({
      width, height, marginLeft: frame.x0, marginRight: width - frame.x1, marginTop: frame.y0, marginBottom: height - frame.y1,
      className: "rl-plot", 
      x: { domain: [0, end], ticks: narrow ? 4 : 7, tickFormat: tickIn(unit), tickSize: 4, label: null },
      y: { domain: [0, 1], axis: null },
      marks: [gridX({ stroke: "var(--rl-line)", strokeOpacity: 1, ticks: narrow ? 4 : 7 })],
    }));
    box.replaceChildren(svg);
  }

  let group;
  return {
    el: box,
    show(now, summary) {
      const values = parts.map((one) => now.at(one.output));
      const sum = values.reduce((a, b) => a + b, 0);
      axis(Math.max(sum, ...beside.map((one) => now.at(one.output))));
      const X = (v) => svg.scale("x").apply(v);
      group?.remove();
      svg.querySelector(".rl-labels")?.remove();
      group = s("g", { "aria-hidden": "true", class: "rl-bars" });
      svg.append(group);
      const place = labelLayer(svg, frame);
      const told = (one) => [s("tspan", {}, `${one.label} `), s("tspan", { class: "rl-strong" }, sentence(quantity(now.at(one.output), one.unit)))];
      let from = 0;
      parts.forEach((one, i) => {
        const [a, b] = [X(from), X(from + values[i])];
        from += values[i];
        group.append(s("rect", { x: a, y: tops[0], width: Math.max(b - a, 0), height: tall.whole, fill: COLOURS[i], "data-part": one.output }));
        const above = tops[0] - 8;
        place(told(one), [{ x: i ? b : a, y: above, anchor: i ? "end" : "start" }, { x: a, y: above }, { x: b + 4, y: above }, { x: a, y: above - 17 }, { x: b, y: tops[0] + tall.whole + 16, anchor: "end" }], { required: true, kind: `rl-part-${i}` });
      });
      if (parts.length > 1) place([s("tspan", { class: "rl-strong" }, `= ${sentence(quantity(sum, unit))}`)], [{ x: X(sum) + 7, y: tops[0] + tall.whole / 2 + 4 }], { required: true });
      if (balance) {
        const half = X(sum / 2);
        group.append(s("line", { x1: half, x2: half, y1: tops[0] - 3, y2: tops[0] + tall.whole + 5, class: "rl-half" }));
        place("½", [{ x: half, y: tops[0] + tall.whole + 17, anchor: "middle" }], { kind: "rl-quiet", required: true });
      }
      beside.forEach((one, i) => {
        const top = tops[i + 1];
        group.append(s("rect", { x: X(0), y: top, width: Math.max(X(now.at(one.output)) - X(0), 0), height: tall.single, fill: "var(--rl-roof)", "data-part": one.output }));
        place(told(one), [{ x: X(0), y: top - 7 }], { required: true });
      });
      svg.setAttribute("aria-label", fill(words.alt_bars, { summary }));
    },
  };
}

/** Where the first two parts are equal along `against`: the formula's own answer, or a search for it. */
function equalAt(compiled, { balance, parts }, values, against, xs) {
  if (balance.parameter === against.symbol) return compiled.outputs[balance.output](values);
  const gap = (v) => { const at = { ...values, [against.symbol]: v }; return compiled.outputs[parts[0].output](at) - compiled.outputs[parts[1].output](at); };
  const found = xs.findIndex((v, i) => i && gap(xs[i - 1]) * gap(v) <= 0);
  if (found < 1) return NaN;
  let [low, high] = [xs[found - 1], xs[found]];
  for (let i = 0; i < 40; i++) {
    const middle = (low + high) / 2;
    if (gap(low) * gap(middle) <= 0) high = middle;
    else low = middle;
  }
  return high;
}

/** The parts' shares of the whole along one slider. The axes stand still; all inside follows the sliders. */
function sharesOf({ payload, view, compiled, state, movable, width }) {
  const { words } = payload;
  const { parts } = view;
  const against = movable.find((p) => p.symbol === state.against);
  const narrow = width < 480;
  const log = against.scale === "log2";
  const [low, high] = [against.low, against.high];
  const xs = Array.from({ length: SAMPLES + 1 }, (_, i) => (log ? low * (high / low) ** (i / SAMPLES) : low + ((high - low) * i) / SAMPLES));
  const height = narrow ? 150 : 200;
  const frame = { x0: 46, x1: width - 14, y0: 26, y1: height - (narrow ? 38 : 42) };
  const svg = image(plot({
    width, height, marginLeft: frame.x0, marginRight: width - frame.x1, marginTop: frame.y0, marginBottom: height - frame.y1,
    className: "rl-plot",
    x: { type: log ? "log" : "linear", domain: [low, high], ticks: against.steps ?? (log ? decades([low, high], narrow ? 5 : 8) : 5), tickSize: 4, ...axisOf(against), labelAnchor: "right", labelArrow: "none", labelOffset: 36 },
    y: { domain: [0, 1], ticks: [0, 0.5, 1], tickFormat: tickIn("%"), tickSize: 4, label: `↑ ${words.shares}`, labelArrow: "none" },
    marks: [ruleY([0.5], { stroke: "var(--rl-dim)", strokeDasharray: "2,3" })],
  }));
  const X = (v) => svg.scale("x").apply(v);
  const Y = (v) => svg.scale("y").apply(v);
  const pixels = xs.map(X);
  const area = (i) => s("path", { fill: COLOURS[i], "fill-opacity": 0.28, "data-part": parts[i].output });
  const areas = parts.map((_, i) => area(i));
  const edge = s("path", { class: "rl-edge" });
  const beyond = s("path", { class: "rl-edge rl-beyond" });
  const equal = s("line", { class: "rl-equal", y1: frame.y0, y2: frame.y1 });
  svg.prepend(s("g", { "aria-hidden": "true" }, ...areas));
  const rod = s("line", { class: "rl-rod", y1: frame.y0, y2: frame.y1 });
  const ball = s("circle", { class: "rl-point", r: 6.5 });
  const touch = s("circle", { class: "rl-touch", r: 20 });
  const grip = s("g", { class: "rl-grip" }, touch, ball);
  const text = s("text", { class: "rl-label rl-here", y: frame.y0 - 8 });
  svg.append(s("g", { "aria-hidden": "true" }, edge, beyond, equal), s("g", { class: "rl-operating", "aria-hidden": "true" }, rod, text), grip);

  function label(curve, found, told) {
    svg.querySelector(".rl-labels")?.remove();
    const place = labelLayer(svg, frame, { lines: [curve, found ? [[found, frame.y0], [found, frame.y1]] : []] });
    const [left, right, foot] = [frame.x0 + 8, frame.x1 - 8, frame.y1 - 8];
    if (found) place(told, [{ x: found + 7, y: frame.y0 + 18 }, { x: found - 7, y: foot, anchor: "end" }, { x: found + 7, y: foot }, { x: found - 7, y: frame.y0 + 18, anchor: "end" }], { required: true });
    place(parts[0].label, [{ x: left, y: foot }, { x: right, y: foot, anchor: "end" }, { x: left, y: foot - 40 }, { x: (left + right) / 2, y: foot, anchor: "middle" }], { kind: "rl-part-0" });
    place(parts[1].label, [{ x: right, y: frame.y0 + 18, anchor: "end" }, { x: left, y: frame.y0 + 18 }, { x: right, y: frame.y0 + 50, anchor: "end" }], { kind: "rl-part-1" });
    svg.setAttribute("aria-label", fill(words.alt_shares, { parts: parts.map((one) => one.label).join(", "), against: against.label, equal: told }));
  }

  let ground = "";
  return {
    el: svg,
    grips: [{ el: grip, symbol: against.symbol, x: (px) => svg.scale("x").invert(px) }],
    show({ values }, position) {
      const share = (v) => {
        const at = { ...values, [against.symbol]: v };
        const [one, other] = parts.map((part) => compiled.outputs[part.output](at));
        return one / (one + other);
      };
      const now = JSON.stringify({ ...values, [against.symbol]: 0 });
      if (now !== ground) {
        ground = now;
        const curve = xs.map((v, i) => [pixels[i], Y(share(v))]);
        const path = curve.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L");
        const along = possibleAlong(compiled, values, against.symbol, xs);
        const drawn = (can) => along.map(([v, now], i) => (now === can ? `${i && along[i - 1][1] === can ? "L" : "M"}${X(v).toFixed(1)} ${Y(share(v)).toFixed(1)}` : "")).join("");
        set(edge, { d: drawn(true) });
        set(beyond, { d: drawn(false) });
        set(areas[0], { d: `M${path}L${frame.x1} ${frame.y1}L${frame.x0} ${frame.y1}Z` });
        set(areas[1], { d: `M${path}L${frame.x1} ${frame.y0}L${frame.x0} ${frame.y0}Z` });
        const at = equalAt(compiled, view, values, against, xs);
        const found = at >= low && at <= high ? X(at) : 0;
        set(equal, { x1: found, x2: found, visibility: found ? "visible" : "hidden" });
        const told = Number.isFinite(at) ? fill(words.equal_at, { at: `${nameOf(against)} = ${shortly(against, at >= 100 ? Math.round(at) : at)}` }) : "";
        label(curve, found, told);
      }
      const v = values[against.symbol];
      const px = X(v);
      set(rod, { x1: px, x2: px });
      for (const one of [touch, ball]) set(one, { cx: px, cy: Y(share(v)) });
      const room = px < (frame.x0 + frame.x1) / 2;
      set(text, { x: room ? Math.max(px - 10, frame.x0 + 70) : px + 6, "text-anchor": room ? "start" : "end" });
      say(text, position);
    },
  };
}

/** ctx as `pictures.js` has it. Returns {el, label(), move(now, text, ctx)}. */
export function drawBars(ctx) {
  const bars = barsOf(ctx);
  const { words, formula } = ctx.payload;
  const shares = ctx.view.balance ? sharesOf(ctx) : null;
  const rule = ctx.view.beside?.length && formula.unit === "s" ? h("p", { class: "rl-saying" }, words.bars_rule) : null;
  return {
    el: h("div", { class: "rl-panels" }, bars.el, shares?.el),
    below: rule ? [rule] : [],
    grips: shares?.grips ?? [],
    label() {}, // labels follow the sliders too
    move(now, text, { summary }) {
      bars.show(now, summary());
      shares?.show(now, text);
    },
  };
}
