// The formula itself against one of its parameters, with its limit dashed.
import { gridX, gridY, line, plot, rect, ruleX, ruleY } from "@observablehq/plot";
import { image, s } from "./dom.js";
import { axisOf, digits, fill, tickIn } from "./format.js";
import { labelLayer } from "./labels.js";
import { evidenceMarks } from "./marks.js";
import { possibleAlong } from "./remarks.js";
import { decades, frameOf, layout, operatingPoint } from "./roofline.js";

const SAMPLES = 120;
const WIDEST = 1e5; // of a value axis that can stand still: on a wider one every curve looks flat

function walk(low, high, log) {
  return Array.from({ length: SAMPLES + 1 }, (_, i) => (log ? low * (high / low) ** (i / SAMPLES) : low + ((high - low) * i) / SAMPLES));
}

/** The whole decades round a curve. */
function around(curve) {
  const logs = curve.map(([, v]) => Math.log10(v)).filter(Number.isFinite);
  if (!logs.length) return [1, 10];
  const low = Math.floor(Math.min(...logs));
  return [10 ** low, 10 ** Math.max(low + 1, Math.ceil(Math.max(...logs)))];
}

/**
 * ctx: {compiled, formula, words, view, valueLabel, against (parameter), values (complete), range, points, ridge,
 * corner, name, width, alt}.
 * range: the value's smallest and largest over all slider positions, so that the axis stands still;
 * where that is too wide, the axis goes with the curve in whole decades.
 */
export function drawCurve({ compiled, formula, words, view, valueLabel, against, values, range, points, ridge, corner, name, width, alt }) {
  const shape = { ...layout(width), ...(["s", "byte"].includes(formula.unit) && { marginLeft: 58 }) }; // ticks with their unit
  const frame = frameOf(shape);
  const log = against.scale === "log2";
  const at = (output, v) => compiled.outputs[output]({ ...values, [against.symbol]: v });
  const bend = against.symbol === "intensity" ? [corner] : []; // where the curve may have a corner
  const xs = [...walk(against.low, against.high, log), ...bend].filter((v) => v >= against.low && v <= against.high).sort((a, b) => a - b);
  const along = possibleAlong(compiled, values, against.symbol, xs);
  const curve = along.map(([v, can]) => [v, at(formula.value, v), can]);
  const limit = compiled.outputs.limit ? xs.map((v) => [v, at("limit", v)]) : [];
  // Where a value is expected, the band between its two sure ends.
  const band = view.low ? xs.map((v) => ({ x: v, low: at(view.low, v), high: at(view.high, v) })).filter((b) => b.low > 0 && b.high > 0) : [];
  const [least, most] = range[1] / range[0] > WIDEST ? around(curve) : range;
  const y = [
    Math.min(least, ...points.map((p) => p.y), ...band.map((b) => b.low)) / 1.5,
    Math.max(most, ...points.map((p) => p.y), ...band.map((b) => b.high), ridge ?? 0) * 2,
  ];
  const x = log ? [against.low / 1.15, against.high * 1.15] : [against.low, against.high];
  const xTicks = against.steps ?? (log ? decades(x, shape.narrow ? 5 : 8) : undefined);
  const yTicks = decades(y, 6);
  // Where the curve turns along this slider, if the formula says so.
  const turns = view.turn?.parameter === against.symbol ? compiled.outputs[view.turn.output](values) : NaN;
  const turn = turns >= x[0] && turns <= x[1] ? turns : 0;
  const inside = limit.filter(([, v]) => v >= y[0] && v <= y[1]);
  const svg = image(plot({
    ...shape,
    className: "rl-plot",
    x: { type: log ? "log" : "linear", domain: x, ...axisOf(against), labelAnchor: "right", labelArrow: "none", labelOffset: shape.narrow ? 33 : 36, ticks: xTicks ?? 5, tickSize: 4 },
    y: { type: "log", domain: y, label: `↑ ${valueLabel}${formula.unit ? ` (${formula.unit})` : ""}`, labelArrow: "none", ticks: yTicks, tickFormat: tickIn(formula.unit), tickSize: 4 },
    marks: [
      ...(ridge
        ? [
            rect([0], { x1: x[0], x2: x[1], y1: y[0], y2: ridge, fill: "var(--rl-memory)" }),
            rect([0], { x1: x[0], x2: x[1], y1: ridge, y2: y[1], fill: "var(--rl-compute)" }),
            ruleY([ridge], { stroke: "var(--rl-dim)", strokeDasharray: "2,3" }),
          ]
        : []),
      gridX(xTicks ?? [], { stroke: "var(--rl-line)", strokeOpacity: 1 }),
      gridY(yTicks, { stroke: "var(--rl-line)", strokeOpacity: 1 }),
      ...["low", "high"].map((end) => line(band, { x: "x", y: end, stroke: "var(--rl-predicted)", strokeOpacity: 0.55, strokeWidth: 1 })),
      ...(turn ? [ruleX([turn], { stroke: "var(--rl-dim)", strokeWidth: 1.6, strokeDasharray: "7,5" })] : []),
      line(inside, { stroke: "var(--rl-dim)", strokeWidth: 1.8, strokeDasharray: "7,5" }),
      ...[true, false].map((can) => line(curve, { x: (d) => d[0], y: (d) => (d[2] === can ? d[1] : NaN), stroke: "var(--rl-predicted)", strokeWidth: can ? 2.6 : 1.8, strokeLinejoin: "round", ...(!can && { strokeDasharray: "2,5", strokeOpacity: 0.75, className: "rl-beyond" }) })),
      ...evidenceMarks(points),
    ],
  }));
  const X = (v) => svg.scale("x").apply(v);
  const Y = (v) => svg.scale("y").apply(v);

  if (band.length) {
    const edge = (list, end) => list.map((b) => `${X(b.x).toFixed(1)} ${Y(b[end]).toFixed(1)}`);
    const round = [...edge(band, "high"), ...edge([...band].reverse(), "low")].join("L");
    svg.querySelector("[data-mark=line]").before(s("path", { d: `M${round}Z`, class: "rl-band" }));
  }

  let place = null;
  function label() {
    const pixels = (list) => list.map(([a, b]) => [X(a), Y(b)]);
    place = labelLayer(svg, frame, { lines: [pixels(curve), pixels(inside)], points: points.map((p) => [X(p.x), Y(p.y)]) });
    if (formula.limit && inside.length) {
      const along = [0.97, 0.85, 0.7, 0.55, 0.4, 0.25].map((t) => inside[Math.round(t * (inside.length - 1))]);
      const places = along.flatMap(([a, b]) => [{ x: X(a) - 8, y: Y(b) - 8, anchor: "end" }, { x: X(a), y: Y(b) + 18, anchor: "end" }]);
      place(fill(words.limit, { label: formula.limit.label }), places, { required: true });
    }
    if (turn) {
      const told = `${view.turn.label} = ${digits(turn)}`;
      place(told, [{ x: X(turn) + 7, y: frame.y1 - 8 }, { x: X(turn) - 7, y: frame.y1 - 8, anchor: "end" }, { x: X(turn) + 7, y: frame.y0 + 16 }], { required: true });
    }
    const beyond = curve.filter(([, , can]) => !can);
    if (beyond.length) {
      const spots = [0.5, 0.75, 0.3, 0.9, 0.1].map((t) => beyond[Math.round(t * (beyond.length - 1))]);
      place(words.beyond, spots.flatMap(([a, b]) => [{ x: X(a) + 8, y: Y(b) + 18 }, { x: X(a) - 8, y: Y(b) - 8, anchor: "end" }, { x: X(a) - 8, y: Y(b) + 18, anchor: "end" }]), { kind: "rl-quiet" });
    }
    if (band.length) {
      const along = [0.98, 0.8, 0.6, 0.4].map((t) => band[Math.round(t * (band.length - 1))]);
      const inside = along.map((b) => ({ x: X(b.x), y: (Y(b.low) + Y(b.high)) / 2 + 4, anchor: "end" }));
      place(words.band, [...inside, ...along.map((b) => ({ x: X(b.x), y: Y(b.low) + 18, anchor: "end" }))], { kind: "rl-quiet" });
    }
    if (ridge) {
      const text = fill(words.ridge_of, { accelerator: name, ridge: digits(ridge) });
      const up = Y(ridge) - 7;
      place(text, [{ x: frame.x0 + 6, y: up }, { x: frame.x1 - 6, y: up, anchor: "end" }, { x: frame.x1 - 6, y: up + 22, anchor: "end" }], { kind: "rl-quiet" });
      place(words.waits, [{ x: frame.x1 - 6, y: frame.y1 - 8, anchor: "end" }, { x: frame.x0 + 6, y: frame.y1 - 8 }], { kind: "rl-quiet" });
      place(words.computes, [{ x: frame.x0 + 6, y: frame.y0 + 16 }, { x: frame.x1 - 6, y: frame.y0 + 16, anchor: "end" }], { kind: "rl-quiet" });
    }
  }

  const point = operatingPoint(svg, frame);
  return {
    svg,
    label,
    grips: [{ el: point.grip, symbol: against.symbol, x: (px) => svg.scale("x").invert(px) }],
    points: points.map((p) => ({ ...p, px: X(p.x), py: Y(p.y) })),
    move(now, text, { summary }) {
      svg.setAttribute("aria-label", alt(summary()));
      point.move(X(values[against.symbol] === undefined ? x[0] : now.values[against.symbol]), Y(Math.min(y[1], Math.max(y[0], now.value))), text, false, place);
    },
  };
}

