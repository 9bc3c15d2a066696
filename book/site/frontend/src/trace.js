// A simulator's run along time: a row a lane, a block for each thing that happens in it. The runs travel
// with the page, one for each stop of a small grid; the sliders choose the nearest.
import { gridX, plot } from "@observablehq/plot";
import { h, image, s, say } from "./dom.js";
import { fill, nameOf, quantity, sentence, shortly, tickIn } from "./format.js";
import { labelLayer } from "./labels.js";
import { nearest } from "./physics.js";

const MOST_HIGH = 30; // pixels of a row, where there are few
const ALL_HIGH = 260; // pixels of all rows, where there are many
const APART = 8; // pixels between groups of lanes
const NAMED = 13; // pixels that a row needs for its name, and a block for its label

/** "slot" of "slot 3": lanes of one name and a number belong together. */
const groupOf = (name) => name.replace(/\s*\d+$/, "");
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Where each lane's row begins, groups of lanes apart, and their names with the rows that they name. */
function rowsOf(lanes, row) {
  const groups = [];
  const tops = [];
  let y = 0;
  lanes.forEach((name, i) => {
    const group = groupOf(name);
    if (groups.at(-1)?.name !== group) {
      if (i) y += APART;
      groups.push({ name: group, top: y });
    }
    tops.push(y);
    y += row;
    groups.at(-1).bottom = y;
  });
  const own = row >= NAMED;
  const named = own
    ? lanes.map((name, i) => ({ name, y: tops[i] + row / 2 }))
    : groups.map(({ name, top, bottom }) => ({ name: name || `${lanes[0]} – ${lanes.at(-1)}`, y: (top + bottom) / 2 }));
  return { tops, named, height: y };
}

/** The stop nearest to the sliders on every axis of the grid: {at: {symbol: value}, index}. */
function nearestRun({ grid }, values, movable) {
  const at = {};
  let index = 0;
  for (const [symbol, stops] of Object.entries(grid)) {
    const place = nearest(stops, values[symbol], movable.find((p) => p.symbol === symbol)?.scale);
    at[symbol] = stops[place];
    index = index * stops.length + place;
  }
  return { at, index };
}

/** ctx as `pictures.js` has it. Returns {el, label(), move(now, text, ctx)}. */
export function drawTrace({ payload, view, compiled, movable, width }) {
  const { words } = payload;
  const narrow = width < 480;
  const box = h("div", {});
  const saying = h("p", { class: "rl-saying" });
  const names = h("p", { class: "rl-kinds", "aria-hidden": "true" });
  const unitTick = view.unit === "s" ? tickIn("s") : tickIn("");
  const colour = (kind) => (view.kinds[kind]?.colour ? `var(--rl-${view.kinds[kind].colour})` : undefined);
  const said = (value, unit) => sentence(quantity(value, unit));
  let svg;
  let drawn = -1;

  function legendOf(run) {
    names.replaceChildren(...run.kinds.map((kind) =>
      h("span", {}, h("i", { class: colour(kind) ? "rl-block" : "rl-block rl-idle", style: colour(kind) && `background:${colour(kind)}` }), view.kinds[kind]?.label ?? kind)));
  }

  function drawRun(run, marks) {
    const row = Math.min(MOST_HIGH, ALL_HIGH / run.lanes.length);
    const { tops, named, height: rows } = rowsOf(run.lanes, row);
    const longest = Math.max(...named.map(({ name }) => name.length));
    const frame = { x0: Math.min(narrow ? 100 : 150, 16 + 7.4 * longest), x1: width - 26, y0: 26, y1: 26 + rows };
    const height = Math.round(frame.y1 + 52);
    const end = 1.03 * Math.max(...run.spans.map(([, , to]) => to), ...marks.map((m) => m.value));
    svg = image(plot({
      width, height, marginLeft: frame.x0, marginRight: width - frame.x1, marginTop: frame.y0, marginBottom: height - frame.y1,
      className: "rl-plot",
      x: { domain: [0, end], ticks: narrow ? 4 : 7, tickFormat: unitTick, tickSize: 4, label: `${words.time_axis}${view.unit === "s" ? "" : ` (${view.unit})`} →`, labelAnchor: "right", labelArrow: "none", labelOffset: 36 },
      y: { domain: [0, 1], axis: null },
      marks: [gridX({ stroke: "var(--rl-line)", strokeOpacity: 1, ticks: narrow ? 4 : 7 })],
    }));
    box.replaceChildren(svg); // before a label is measured, in the page's font
    const X = (t) => svg.scale("x").apply(t);
    const layer = s("g", { "aria-hidden": "true", class: "rl-trace" });
    svg.append(layer);
    for (const top of tops) {
      const y = frame.y0 + top + row / 2;
      layer.append(s("line", { x1: frame.x0, x2: frame.x1, y1: y, y2: y, class: "rl-lane" }));
    }
    for (const { name, y } of named) layer.append(s("text", { x: frame.x0 - 8, y: frame.y0 + y + 4, "text-anchor": "end", class: "rl-lane-name" }, name));
    const thick = Math.max(row * 0.76, 1);
    for (const [lane, from, to, kind, text] of run.spans) {
      const [a, b] = [X(from), X(to)];
      const wide = b - a;
      const y = frame.y0 + tops[lane] + (row - thick) / 2;
      const name = run.kinds[kind];
      layer.append(s("rect", { x: a, y, width: Math.max(wide > 4 ? wide - 1 : wide, 0.5), height: thick, rx: wide > 6 ? 2 : 0, fill: colour(name), class: colour(name) ? "rl-span" : "rl-span rl-idle", "data-kind": name }));
      if (text && thick >= NAMED && wide > 8 + 7 * text.length) layer.append(s("text", { x: a + wide / 2, y: y + thick / 2 + 4, "text-anchor": "middle", class: colour(name) ? "rl-span-name" : "rl-span-name rl-on-idle" }, text));
    }
    const place = labelLayer(svg, { x0: 0, x1: width, y0: 0, y1: frame.y1 }); // above the rows there is nothing else
    for (const { value, text } of marks) {
      const x = X(value);
      layer.append(s("line", { x1: x, x2: x, y1: frame.y0 - 4, y2: frame.y1, class: "rl-expected" }));
      place(text, [{ x, y: frame.y0 - 9, anchor: "middle" }, { x, y: frame.y0 - 9, anchor: "end" }, { x: x + 4, y: frame.y0 - 9 }], { kind: "rl-here", required: true });
    }
    legendOf(run);
  }

  return {
    el: h("div", { class: "rl-panels" }, box),
    below: [names, saying],
    label() {}, // labels follow the sliders too
    move(now, text, { summary }) {
      const { at, index } = nearestRun(view, now.values, movable);
      const run = view.runs[index];
      const made = { ...now.values, ...view.at, ...at }; // where the run was made, and so the formula is asked
      const compared = view.compare.map((one) => ({ ...one, measured: run.measured[one.measured], value: compiled.outputs[one.output](made) }));
      const shown = movable.filter((p) => p.symbol in at || made[p.symbol] !== now.values[p.symbol]);
      const position = shown.map((p) => `${nameOf(p)} = ${shortly(p, made[p.symbol])}`).join(", ");
      const key = JSON.stringify([index, compared]);
      const moved = shown.some((p) => made[p.symbol] !== now.values[p.symbol]);
      const comparison = compared.map((one) => fill(words.run_says, { label: capital(one.label), measured: said(one.measured, one.unit), value: said(one.value, one.unit) })).join(" ");
      if (key !== drawn) {
        drawn = key;
        const marks = compared.filter((one) => one.unit === view.unit).map((one) => ({ value: one.value, text: fill(words.run_expected, { value: said(one.value, one.unit) }) }));
        drawRun(run, marks);
      }
      say(saying, `${fill(moved ? words.run_moved : words.run_at, { position })} ${comparison}`);
      svg.setAttribute("aria-label", fill(words.alt_trace, { position, comparison, summary: summary() }));
    },
  };
}
