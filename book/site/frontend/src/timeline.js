// Decode steps along time for a few users, and what one newcomer's prompt does to all of them.
import { gridX, plot } from "@observablehq/plot";
import { roundEnd } from "./bars.js";
import { h, image, s, say } from "./dom.js";
import { digits, exact, fill, quantity, sentence, tickIn } from "./format.js";
import { labelLayer } from "./labels.js";

const BEFORE = 6; // steps that are drawn before the newcomer arrives, and at the least after
const LEAST = 1.6; // pixels between two ticks that can be told apart
const ROW = 32;
const GAP = 16; // between the users and the newcomer, for a label

const seconds = (v) => sentence(quantity(v, "s"));

/** One path of upright ticks at these times; those that would fall on the last one are left out. */
function ticks(times, X, y, half) {
  let last = -Infinity;
  let d = "";
  for (const t of times) {
    const x = X(t);
    if (x - last < LEAST) continue;
    last = x;
    d += `M${x.toFixed(1)} ${y - half}V${y + half}`;
  }
  return s("path", { d, class: "rl-ticks" });
}

/** What a wait of this long is like, in the payload's words. */
function pace(words, paces, wait) {
  return words[paces.find(([most]) => most === null || wait < most)[1]];
}

/** ctx as `pictures.js` has it. Returns {el, label(), move(now, text, ctx)}; the axis is redrawn when it must change. */
export function drawTimeline({ payload, view, width }) {
  const { words } = payload;
  const { paces } = view;
  const narrow = width < 480;
  const box = h("div", {});
  const saying = h("p", { class: "rl-saying" });
  let [svg, layer, frame, shape] = [null, null, null, ""];

  function axis(end, rows) {
    if (shape === `${end} ${rows}`) return;
    shape = `${end} ${rows}`;
    frame = { x0: narrow ? 98 : 104, x1: width - 26, y0: 30, y1: 30 + ROW * (rows + 1) + GAP + 4 };
    const height = frame.y1 + 34;
    svg = image(plot({
      width, height, marginLeft: frame.x0, marginRight: width - frame.x1, marginTop: frame.y0, marginBottom: height - frame.y1,
      className: "rl-plot",
      x: { domain: [0, end], ticks: narrow ? 4 : 7, tickFormat: tickIn("s"), tickSize: 4, label: null },
      y: { domain: [0, 1], axis: null },
      marks: [gridX({ stroke: "var(--rl-line)", strokeOpacity: 1, ticks: narrow ? 4 : 7 })],
    }));
    box.replaceChildren(svg);
  }

  function show(now) {
    const [step, mixed, chunks] = [now.at(view.step), now.at(view.mixed), now.at(view.chunks)];
    const batch = now.values[view.batch];
    const arrives = BEFORE * step;
    const served = arrives + chunks * mixed;
    const end = roundEnd(Math.max(served + BEFORE * step, (served - arrives) * 1.15 + arrives));
    const users = batch <= 4 ? Array.from({ length: batch }, (_, i) => i + 1) : [1, 2, batch];
    axis(end, users.length);
    svg.querySelector(".rl-labels")?.remove();
    layer?.remove();
    layer = s("g", { "aria-hidden": "true", class: "rl-time" });
    svg.append(layer);
    const X = (t) => svg.scale("x").apply(Math.min(t, end));
    const row = (i) => frame.y0 + ROW * (i + 0.5);
    const name = (y, text, kind = "") => layer.append(s("text", { x: frame.x0 - 8, y: y + 4, "text-anchor": "end", class: kind ? `rl-lane-name ${kind}` : "rl-lane-name" }, text));

    const pixel = ((end / (frame.x1 - frame.x0)) * LEAST) / 2;
    const every = (from, gap, until) => {
      const stride = gap * Math.max(1, Math.floor(pixel / gap)); // no more ticks than the screen can show
      return Array.from({ length: Math.max(0, Math.floor((until - from) / stride + 1e-9)) }, (_, i) => from + (i + 1) * stride);
    };
    const after = [served, ...every(served, step, end)];
    const times = [0, ...every(0, step, arrives), ...every(arrives, mixed, served), ...after];
    const prompt = { x: X(arrives), width: Math.max(1, X(served) - X(arrives)) };
    layer.append(s("rect", { ...prompt, y: frame.y0, height: ROW * users.length, class: "rl-stalled" }));
    users.forEach((user, i) => {
      layer.append(s("line", { x1: frame.x0, x2: frame.x1, y1: row(i), y2: row(i), class: "rl-lane" }), ticks(times, X, row(i), 9));
      name(row(i), fill(words.user, { number: exact(user) }));
    });
    const y = row(users.length) + GAP;
    name(y, words.newcomer, "rl-strong");
    layer.append(s("line", { x1: prompt.x, x2: frame.x1, y1: y, y2: y, class: "rl-lane" }), s("rect", { ...prompt, y: y - 10, height: 20, class: "rl-prompt" }));
    if (prompt.width / chunks > 4)
      for (let i = 1; i < chunks; i++) layer.append(s("line", { x1: X(arrives + i * mixed), x2: X(arrives + i * mixed), y1: y - 10, y2: y + 10, class: "rl-cut" }));
    layer.append(ticks(after, X, y, 9));

    const place = labelLayer(svg, { ...frame, y0: 0 });
    const right = prompt.x + prompt.width;
    place(fill(words[chunks > 1 ? "waits_each" : "waits_once"], { wait: seconds(mixed) }), [{ x: prompt.x + prompt.width / 2, y: frame.y0 - 9, anchor: "middle" }, { x: right, y: frame.y0 - 9, anchor: "end" }], { required: true, kind: "rl-loudly" });
    place(seconds(step), [{ x: frame.x0 + 2, y: frame.y0 - 9 }], { kind: "rl-strong" });
    place(fill(words.first_token, { time: seconds(served - arrives) }), [{ x: right + 8, y: y - 15 }, { x: right, y: y - 15, anchor: "end" }], { required: true, kind: "rl-strong" });
    say(saying, fill(words[chunks > 1 ? "timeline_chunks" : "timeline_whole"], {
      step: seconds(step), pace: pace(words, paces, step), mixed: seconds(mixed), pace_mixed: pace(words, paces, mixed),
      times: digits(mixed / step), chunks: exact(chunks), tokens: exact(now.values[view.tokens]), served: seconds(served - arrives),
    }));
  }

  return {
    el: h("div", { class: "rl-panels" }, box),
    below: [saying],
    label() {}, // labels follow the sliders too
    move(now, text, { summary }) {
      show(now);
      svg.setAttribute("aria-label", fill(words.alt_timeline, { summary: summary() }));
    },
  };
}
