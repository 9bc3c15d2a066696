// Terms that follow one another as one bar, what was measured as a mark on top, and the rest between the two.
import { gridX, plot } from "@observablehq/plot";
import { roundEnd } from "./bars.js";
import { h, image, s, say } from "./dom.js";
import { fill, quantity, sentence, tickIn } from "./format.js";
import { labelLayer } from "./labels.js";
import { stacked } from "./remarks.js";

const ROOM = 1.25; // right of the longest bar, for its sum
const [TOP, TALL] = [46, 40];
const HATCH = 6; // pixels between two strokes of what is left over
// The first two are what they are in every picture; further terms are shades of the roof's grey.
const FILLS = ["var(--rl-weights)", "var(--rl-cache)", ...[100, 62, 34, 80, 48, 22].map((part) => `color-mix(in srgb, var(--rl-roof) ${part}%, var(--rl-background))`)];

const fillOf = (i) => FILLS[i < FILLS.length ? i : 2 + ((i - 2) % (FILLS.length - 2))];

/** Slanted strokes that fill a box: a pattern would need an id. */
function hatched(a, b) {
  const [x0, x1] = [Math.min(a, b), Math.max(a, b)];
  let d = `M${x0} ${TOP}H${x1}V${TOP + TALL}H${x0}Z`;
  for (let x = x0 - TALL; x < x1; x += HATCH) {
    const [from, to] = [Math.max(0, x0 - x), Math.min(TALL, x1 - x)];
    if (to > from) d += `M${(x + from).toFixed(1)} ${(TOP + TALL - from).toFixed(1)}L${(x + to).toFixed(1)} ${(TOP + TALL - to).toFixed(1)}`;
  }
  return d;
}

/** ctx as `pictures.js` has it. Returns {el, label(), move(now, text, ctx)}; the axis is redrawn when it must change. */
export function drawStack({ payload, view, width }) {
  const { words } = payload;
  const { parts } = view;
  const { unit } = parts[0];
  const narrow = width < 480;
  const height = TOP + TALL + 82;
  const frame = { x0: 14, x1: width - 26, y0: 4, y1: height - 34 };
  const said = (value) => sentence(quantity(value, unit));
  const box = h("div", {});
  const key = parts.map((one, i) => ({ one, i, value: h("b", {}), el: h("span", {}) }));
  for (const row of key) row.el.append(h("i", { class: "rl-block", style: `background:${fillOf(row.i)}` }), row.one.label, " ", row.value);
  const saying = h("p", { class: "rl-saying" });
  let [svg, group, end] = [null, null, 0];

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

  function show(now) {
    const { values, sum, measured, rest, whole } = stacked(payload, view, now);
    axis(Math.max(sum, measured || 0, 1e-12));
    const X = (v) => svg.scale("x").apply(Math.max(0, v));
    group?.remove();
    svg.querySelector(".rl-labels")?.remove();
    group = s("g", { "aria-hidden": "true", class: "rl-stack" });
    svg.append(group);
    const place = labelLayer(svg, frame);
    let from = 0;
    const back = []; // terms below zero, drawn over what they take away
    const middles = values.map((value, i) => {
      if (Number.isNaN(value)) return null;
      const [a, b] = [X(from), X(from + value)];
      from += value;
      if (value < 0) back.push(s("path", { d: hatched(a, b), class: "rl-back", "data-part": parts[i].output }));
      else group.append(s("rect", { x: a, y: TOP, width: b - a, height: TALL, fill: fillOf(i), class: "rl-term", "data-part": parts[i].output }));
      return (a + b) / 2;
    });
    group.append(...back);
    if (whole) place([s("tspan", { class: "rl-strong" }, fill(words.sum, { sum: said(sum) }))], [{ x: X(Math.max(sum, measured || 0)) + 8, y: TOP + TALL / 2 + 4 }, { x: X(sum) - 8, y: TOP + TALL / 2 + 4, anchor: "end" }], { required: true });
    if (!Number.isNaN(measured)) {
      const at = X(measured);
      group.append(
        ...(whole ? [s("path", { d: hatched(X(sum), at), class: rest < 0 ? "rl-rest rl-over" : "rl-rest", "data-part": "rest" })] : []),
        s("line", { x1: at, x2: at, y1: TOP - 8, y2: TOP + TALL + 6, class: "rl-measured" }),
        s("path", { d: `M${at} ${TOP - 15}l5 6l-5 6l-5 -6Z`, class: "rl-measured-mark" }),
      );
      place([s("tspan", {}, `${view.measured.label} `), s("tspan", { class: "rl-strong" }, said(measured))], [{ x: at + 9, y: TOP - 6 }, { x: at - 9, y: TOP - 6, anchor: "end" }], { required: true, kind: "rl-of-measured" });
      const text = fill(words.rest, { rest: `${rest < 0 ? "−" : "+"}${said(Math.abs(rest))}` });
      if (whole) place(text, [{ x: (X(sum) + at) / 2, y: TOP - 24, anchor: "middle" }], { required: true, kind: "rl-strong" });
    }
    values.forEach((value, i) => {
      if (middles[i] === null || Math.abs(value) < sum / 60) return;
      place(parts[i].label, [16, 31].map((down) => ({ x: middles[i], y: TOP + TALL + down, anchor: "middle" })), { kind: i < 2 ? `rl-part-${i}` : "" });
    });
    for (const { value, i } of key) say(value, Number.isNaN(values[i]) ? words.no_value : said(values[i]));
  }

  return {
    el: h("div", { class: "rl-panels" }, box),
    below: [h("p", { class: "rl-kinds" }, ...key.map((row) => row.el)), saying],
    label() {}, // labels follow the sliders too
    move(now, text, { summary }) {
      show(now);
      say(saying, stacked(payload, view, now).sentence);
      svg.setAttribute("aria-label", fill(words.alt_stack, { summary: summary() }));
    },
  };
}
