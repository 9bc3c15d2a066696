// Which picture a view is, when it must be drawn anew, and when moving its point is enough.
import { drawBars } from "./bars.js";
import { drawCurve } from "./curve.js";
import { differences, onCurve, onRoofline } from "./evidence.js";
import { fill, nameOf, shortly } from "./format.js";
import { extremes, roofOf } from "./physics.js";
import { drawRoofline } from "./roofline.js";
import { drawStack } from "./stack.js";
import { drawTimeline } from "./timeline.js";
import { drawTrace } from "./trace.js";
import { reach } from "./works.js";

const make = {
  trace: drawTrace,
  stack: drawStack,
  timeline: drawTimeline,
  bars: drawBars,
  roofline(ctx) {
    const { payload, compiled, now, state, series, accelerators } = ctx;
    const { words, formula } = payload;
    return drawRoofline({
      ...ctx, words, chosen: now.roof,
      range: ctx.view.works ? reach(ctx.view.works, compiled, payload, now.roof, state.dtype, state.preset) : extremes(compiled, payload, "intensity", [now.roof], [state.dtype], state.preset),
      points: onRoofline(series, now.values, now.roof, compiled, formula),
      roofs: accelerators.filter((a) => state.shown.includes(a.id) || a.id === now.roof.id).map((a) => roofOf(a, state.dtype)).filter(Boolean),
      alt: (summary) => fill(words.alt_roofline, { summary }),
    });
  },
  formula(ctx) {
    const { payload, compiled, now, state, series, movable } = ctx;
    const valueLabel = payload.readouts.value;
    const { words, formula } = payload;
    const card = roofOf(ctx.accelerators.find((a) => a.id === state.accelerator), state.dtype) ?? { peaks: { [state.dtype]: 1 } };
    return drawCurve({
      ...ctx, words, formula, valueLabel, values: now.values, against: movable.find((p) => p.symbol === state.against), name: now.roof?.name,
      range: extremes(compiled, payload, formula.value, [card], [state.dtype], state.preset),
      points: onCurve(series, now.values, state.against, formula.value, { formula, compiled, roof: now.roof }),
      ridge: formula.value === "intensity" ? now.ridge : undefined,
      corner: now.ridge,
      alt: (summary) => fill(words.alt_formula, { value: valueLabel, against: movable.find((p) => p.symbol === state.against).label, summary }),
    });
  },
};

/** What the picture depends on beyond its moving point. */
function ground({ now, state, series, width }) {
  const fades = series.map((one) => differences(one.fixed, now.values).length > 0);
  const still = [width, state.view, state.accelerator, state.dtype, state.shown, state.evidence.length, fades];
  if (state.view === "roofline") return [still, state.preset];
  if (["stack", "timeline"].includes(state.view)) return still; // they redraw what moves by themselves
  if (state.view === "trace") return still; // it redraws what moves by itself
  if (state.view === "bars") return [still, state.against]; // they redraw what moves by themselves
  return [still, state.against, { ...now.values, [state.against]: 0 }];
}

/** Draws if it must, then moves the point. Returns what is drawn, to be handed in again. */
export function draw(drawn, ctx) {
  const { payload, now, state, movable, picture } = ctx;
  const key = JSON.stringify(ground(ctx));
  let current = drawn;
  if (drawn.key !== key) {
    const kind = state.view === "roofline" && !now.roof ? "formula" : state.view;
    const made = make[kind]({ ...ctx, view: payload.views.find((v) => v.kind === kind) ?? { kind } });
    picture.replaceChildren(made.el ?? made.svg);
    ctx.below.replaceChildren(...(made.below ?? []));
    made.label();
    current = { key, ...made };
  }
  const p = movable.find((q) => q.symbol === state.against) ?? movable[0];
  const position = `${nameOf(p)} = ${shortly(p, now.values[p.symbol])}`;
  const why = { lacks: payload.words.here_lacks, broken: payload.words.here_broken }[ctx.held.state];
  // every picture's words follow its point
  current.move(now, why ? fill(why, { position }) : position, ctx);
  return current;
}
