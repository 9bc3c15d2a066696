// Which evidence points belong in the picture, and whether they are of the sliders' own shape.

const ON_A_CARD = ["timed", "recorded", "published"];

/**
 * Series of the highlighted card, and counts, which belong to no card. Another machine's times don't.
 * Each says in which format it was computed as one of its sizes, and those of several sources have marks of their own.
 */
export function relevant(series, accelerator) {
  const here = series.filter((one) => (ON_A_CARD.includes(one.rung) ? one.accelerator === accelerator : true));
  const labels = [...new Set(here.filter((one) => one.rung === "published").map((one) => one.label))];
  return here.map((one) => ({
    ...one,
    variant: one.rung === "published" ? labels.indexOf(one.label) % 3 : 0,
    fixed: one.dtype && ON_A_CARD.includes(one.rung) ? { ...one.fixed, dtype: one.dtype } : one.fixed,
  }));
}

/** The sizes in which a series (or one point of it) differs from the sliders: [[symbol, theirs, mine]]. */
export function differences(fixed, values) {
  return Object.entries(fixed).filter(([name, v]) => values[name] !== undefined && values[name] !== v).map(([name, v]) => [name, v, values[name]]);
}

/** What a card tells of a point: its series, its time and its share of the roof, where those are known. */
function about(one, p, at, { formula, compiled, roof }) {
  const known = formula.parameters.every((q) => q.source === "accelerator" || q.quiet || q.symbol in at);
  const seconds = formula.unit === "s" && p.value ? p.value : p.rate && known ? compiled.outputs.flops?.(at) / p.rate : undefined;
  const share = p.rate && p.intensity > 0 && roof ? p.rate / compiled.attainable(p.intensity, roof.peak, roof.bandwidth) : undefined;
  return { of: one, seconds, share };
}

/** Where the points lie on the roofline. A count has no time: it sits on the roof it predicts. */
export function onRoofline(list, values, roof, compiled, formula) {
  return list.flatMap((one) => {
    const faded = differences(one.fixed, values).length > 0;
    return one.points.filter((p) => p.intensity > 0).map((p) => ({
      ...about(one, p, { ...one.fixed, ...p.at }, { formula, compiled, roof }),
      rung: one.rung,
      variant: one.variant,
      x: p.intensity,
      y: p.rate ?? compiled.attainable(p.intensity, roof.peak, roof.bandwidth),
      faded,
      at: { ...one.fixed, ...p.at },
    }));
  });
}

/** What a series says about the formula's own value; times say nothing about an intensity. */
function valueOf(one, point, name) {
  if (name === "intensity") return one.rung === "counted" ? point.intensity : undefined;
  return name === "attainable" ? point.rate : point.value;
}

/** Has the view something to draw of this series? Bars and the line of time show the formula alone. */
export function drawnIn(view, one, name) {
  if (view === "roofline") return one.points.some((p) => p.intensity > 0);
  return view === "formula" && one.points.some((p) => valueOf(one, p, name) > 0);
}

/** Where the points lie on the formula's curve. */
export function onCurve(list, values, against, name, known) {
  return list.flatMap((one) =>
    one.points.flatMap((p) => {
      const at = { ...one.fixed, ...p.at };
      const y = valueOf(one, p, name);
      if (!(y > 0) || at[against] === undefined) return [];
      const { [against]: x, ...rest } = at;
      return [{ ...about(one, p, at, known), rung: one.rung, variant: one.variant, x, y, faded: differences(rest, values).length > 0, at }];
    }),
  );
}
