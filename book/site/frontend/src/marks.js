// How each rung of evidence looks, in the picture and in the legend alike.
import { dot } from "@observablehq/plot";
import { s } from "./dom.js";

const FADED = 0.38;

// Published points of several sources on one card: full, hollow, and a triangle.
const PUBLISHED = [
  { symbol: "diamond", r: 4.2, fill: "var(--rl-published)" },
  { symbol: "diamond", r: 4.4, fill: "var(--rl-background)", stroke: "var(--rl-published)", strokeWidth: 1.8 },
  { symbol: "triangle", r: 4.2, fill: "var(--rl-published)" },
];

/** Plot marks for points [{rung, x, y, faded}]. */
export function evidenceMarks(points) {
  const of = (rungs, faded) => points.filter((p) => rungs.includes(p.rung) && p.faded === faded);
  return [true, false].flatMap((faded) => {
    const shared = { x: "x", y: "y", opacity: faded ? FADED : 1 };
    return [
      ...PUBLISHED.map((look, variant) => dot(of(["published"], faded).filter((p) => (p.variant ?? 0) === variant), { ...shared, ...look, className: "rl-published" })),
      dot(of(["timed", "recorded"], faded), { ...shared, r: 4.5, fill: "var(--rl-timed)" }),
      dot(of(["counted", "compiled"], faded), { ...shared, r: 4.5, fill: "var(--rl-background)", stroke: "var(--rl-counted)", strokeWidth: 2 }),
    ];
  });
}

/** The same mark, small, for the legend. */
export function swatch(rung, faded, variant = 0) {
  const shape = {
    predicted: () => s("circle", { cx: 9, cy: 9, r: 6, fill: "var(--rl-predicted)" }),
    published: () => s("path", [
      { d: "M9 3L14 9L9 15L4 9Z", fill: "var(--rl-published)" },
      { d: "M9 3L14 9L9 15L4 9Z", fill: "var(--rl-background)", stroke: "var(--rl-published)", "stroke-width": 1.8 },
      { d: "M9 3L14.5 14H3.5Z", fill: "var(--rl-published)" },
    ][variant]),
    timed: () => s("circle", { cx: 9, cy: 9, r: 4.5, fill: "var(--rl-timed)" }),
    counted: () => s("circle", { cx: 9, cy: 9, r: 4.5, fill: "var(--rl-background)", stroke: "var(--rl-counted)", "stroke-width": 2 }),
  };
  const draw = shape[{ recorded: "timed", compiled: "counted" }[rung] ?? rung];
  return s("svg", { class: "rl-swatch", width: 18, height: 18, viewBox: "0 0 18 18", "aria-hidden": "true", opacity: faded ? FADED : 1 }, draw());
}
