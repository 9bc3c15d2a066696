// How each rung of evidence looks, in the picture and in the legend alike.
import { dot } from "@observablehq/plot";
import { s } from "./dom.js";

const FADED = 0.38;

/** Plot marks for points [{rung, x, y, faded, title}]. */
export function evidenceMarks(points) {
  const of = (rungs, faded) => points.filter((p) => rungs.includes(p.rung) && p.faded === faded);
  return [true, false].flatMap((faded) => {
    const shared = { x: "x", y: "y", title: "title", opacity: faded ? FADED : 1 };
    return [
      dot(of(["published"], faded), { ...shared, symbol: "diamond", r: 4.2, fill: "var(--rl-published)", className: "rl-published" }),
      dot(of(["timed", "recorded"], faded), { ...shared, r: 4.5, fill: "var(--rl-timed)" }),
      dot(of(["counted", "compiled"], faded), { ...shared, r: 4.5, fill: "var(--rl-background)", stroke: "var(--rl-counted)", strokeWidth: 2 }),
    ];
  });
}

/** The same mark, small, for the legend. */
export function swatch(rung, faded) {
  const shape = {
    predicted: () => s("circle", { cx: 9, cy: 9, r: 6, fill: "var(--rl-predicted)" }),
    published: () => s("path", { d: "M9 3L14 9L9 15L4 9Z", fill: "var(--rl-published)" }),
    timed: () => s("circle", { cx: 9, cy: 9, r: 4.5, fill: "var(--rl-timed)" }),
    counted: () => s("circle", { cx: 9, cy: 9, r: 4.5, fill: "var(--rl-background)", stroke: "var(--rl-counted)", "stroke-width": 2 }),
  };
  const draw = shape[{ recorded: "timed", compiled: "counted" }[rung] ?? rung];
  return s("svg", { class: "rl-swatch", width: 18, height: 18, viewBox: "0 0 18 18", "aria-hidden": "true", opacity: faded ? FADED : 1 }, draw());
}
