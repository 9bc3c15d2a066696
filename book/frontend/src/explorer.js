// The explorer: dropdowns, sliders and a picture that follow one model. The model is an anywidget
// model in a notebook, and a PageModel on a page without a kernel; nothing here can tell.
import * as controls from "./controls.js";
import { drawCurve } from "./curve.js";
import { h, keepKeys, say, serial } from "./dom.js";
import { differences, onCurve, onRoofline, relevant } from "./evidence.js";
import { exact, fill, percent, quantity, sentence, si, digits } from "./format.js";
import { legend } from "./legend.js";
import { decode, encode, sanitize } from "./link.js";
import { compileAll, extremes, roofOf, situation } from "./physics.js";
import { drawRoofline } from "./roofline.js";

const SPEAK_AFTER = 600; // milliseconds without a move before the position is spoken
const PREFERRED = ["bf16", "fp16", "fp32"];

function render({ model, el, page = false }) {
  const payload = model.get("payload");
  const { formula, words, accelerators } = payload;
  const id = page ? el.id : `${payload.id}-view-${serial()}`;
  const compiled = compileAll(payload);
  const movable = formula.parameters.filter((p) => !p.source);
  const names = ["accelerator", "dtype", "shown", "view", "against", "preset", "evidence", "rungs", ...movable.map((p) => p.symbol)];
  const read = () => Object.fromEntries(names.map((n) => [n, model.get(n)]));
  const first = read();
  const card = (which) => accelerators.find((a) => a.id === which);

  // ------------------------------------------------------------------------------ changing state

  const presetSizes = (name) => {
    const cut = name.indexOf(" / ");
    const found = payload.presets[name.slice(0, cut)]?.[name.slice(cut + 3)];
    return found && Object.fromEntries(payload.preset_symbols.map((s, i) => [s, found[i]]).filter(([, v]) => v !== null));
  };

  /** All changes pass here: a format that the card lacks and a preset that no longer fits are mended. */
  function change(changes) {
    const next = { ...read(), ...changes };
    const chosen = card(next.accelerator);
    let remark = "";
    if (chosen && !chosen.peaks[next.dtype]) {
      const dtype = PREFERRED.find((d) => chosen.peaks[d]) ?? Object.keys(chosen.peaks)[0];
      remark = fill(words.switched, { accelerator: chosen.name, wanted: next.dtype, dtype });
      next.dtype = dtype;
    }
    if (next.preset) {
      const sizes = presetSizes(next.preset);
      if (!sizes || Object.entries(sizes).some(([n, v]) => next[n] !== v)) next.preset = "";
    }
    for (const name of names) model.set(name, next[name]);
    model.save_changes();
    say(note, remark);
    note.hidden = !remark;
  }

  function restore() {
    const raw = page ? decode(location.hash, id) : null;
    if (!raw) return;
    change({ ...first, preset: "", ...sanitize(raw, payload) });
    el.scrollIntoView({ block: "center" });
  }

  // ---------------------------------------------------------------------------------- the parts

  const part = {
    view: controls.segments(`${id}-view`, words.view, payload.views.map((v) => [v, words[`view_${v}`]]), (view) => change({ view })),
    card: controls.cards(`${id}-accelerator`, words, accelerators, (accelerator) => change({ accelerator })),
    dtype: controls.dtypes(`${id}-dtype`, words, payload, (dtype) => change({ dtype })),
    preset: controls.presets(`${id}-preset`, words, payload, (preset) => change({ preset, ...(preset && presetSizes(preset)) })),
    against: controls.against(`${id}-against`, words, movable, (against) => change({ against })),
    compare: controls.compare(`${id}-compare`, words, payload, (shown) => change({ shown })),
    sliders: movable.map((p) => [p, controls.slider(`${id}-${p.symbol}`, p, (value) => change({ [p.symbol]: value }))]),
  };
  const onRoof = payload.views.includes("roofline");
  const reads = {
    value: controls.readout(formula.value_label),
    ...(onRoof && formula.value !== "attainable" && { attainable: controls.readout(words.attainable) }),
    ...(onRoof && formula.code.flops && { time: controls.readout(words.time) }),
    ...(onRoof && !formula.code.flops && { peak: controls.readout(words.peak) }),
    ...(onRoof && { bound: controls.readout(words.bound) }),
  };
  const picture = h("div", { class: "rl-picture" });
  const key = h("div", { class: "rl-key" });
  const note = h("p", { class: "rl-note", role: "status", hidden: true });
  const spoken = h("output", { class: "rl-unseen", "aria-live": "polite" });
  const copy = h("button", { type: "button", hidden: !page, onclick: copyLink }, words.copy);
  const reset = h("button", { type: "button", onclick: () => change(first) }, words.reset);
  const varied = accelerators.length > 0;
  el.classList.add("rl-live", "rl-alive");
  el.replaceChildren(
    keepKeys(h("div", { class: "rl-explorer", role: "group", "aria-label": formula.title },
      h("div", { class: "rl-head" }, controls.heading(formula), payload.views.length > 1 ? part.view.el : null),
      h("div", { class: "rl-choose" },
        varied ? part.card.el : null,
        varied || formula.parameters.some((p) => p.symbol === "itemsize") ? part.dtype.el : null,
        Object.keys(payload.presets).length ? part.preset.el : null,
        movable.length > 1 ? part.against.el : null,
        accelerators.length > 1 && onRoof ? part.compare.el : null),
      note,
      h("div", { class: "rl-read" }, ...Object.values(reads).map((r) => r.el)),
      picture,
      h("div", { class: "rl-sliders", role: "group", "aria-label": words.sliders }, ...part.sliders.map(([, one]) => one.el)),
      key,
      h("div", { class: "rl-foot" }, h("span", { class: "rl-hint" }, words.keyboard), h("span", { class: "rl-acts" }, reset, copy)),
      spoken)),
  );

  // -------------------------------------------------------------------------------- what they show

  function showReadouts(now) {
    reads.value.show(quantity(now.value, formula.unit), now.share !== undefined && !reads.attainable ? fill(words.of_peak, { percent: percent(now.share) }) : "");
    if (!now.roof) return;
    reads.attainable?.show(si(now.attainable, "FLOP/s"), fill(words.of_peak, { percent: percent(now.share) }));
    reads.time?.show(si(now.time, "s"), words.time_note);
    reads.peak?.show(si(now.roof.peak, "FLOP/s"), fill(words.peak_note, { bandwidth: sentence(si(now.roof.bandwidth, "byte/s")) }));
    reads.bound.show({ number: words[now.bound] }, fill(words.ridge_note, { ridge: digits(now.ridge) }));
  }

  function describe(now, state) {
    const position = movable.map((p) => `${p.letter} = ${exact(now.values[p.symbol])}`).join(", ");
    if (!now.roof) return fill(words.summary_plain, { position, value: `${formula.value_label} ${sentence(quantity(now.value, formula.unit))}` });
    return fill(words.summary_roof, {
      position, accelerator: now.roof.name, dtype: state.dtype, intensity: digits(now.intensity),
      attainable: sentence(si(now.attainable, "FLOP/s")), percent: percent(now.share), bound: words[now.bound],
    });
  }

  let drawn = { key: "" };
  function showPicture(now, state, series) {
    const width = Math.round(picture.clientWidth);
    if (!width) return;
    const fades = series.map((one) => differences(one.fixed, now.values).length > 0);
    const still = [width, state.view, state.accelerator, state.dtype, state.shown, state.evidence.length, fades];
    const roof = now.roof;
    const about = state.view === "formula" ? { ...now.values, [state.against]: 0 } : null;
    const wanted = JSON.stringify([still, state.view === "formula" && state.against, about]);
    if (drawn.key !== wanted) {
      const summary = describe(now, state);
      const shared = { compiled, words, width, range: extremes(compiled, payload, state.view === "formula" ? formula.value : "intensity", [roof ?? { peaks: { [state.dtype]: 1 } }], [state.dtype]) };
      const made = state.view === "roofline" && roof
        ? drawRoofline({
            ...shared, chosen: roof, points: titled(onRoofline(series, now.values, roof, compiled)),
            roofs: accelerators.filter((a) => state.shown.includes(a.id) || a.id === roof.id).map((a) => roofOf(a, state.dtype)).filter(Boolean),
            alt: fill(words.alt_roofline, { summary }),
          })
        : drawCurve({
            ...shared, formula, values: now.values, against: movable.find((p) => p.symbol === state.against), name: roof?.name,
            points: titled(onCurve(series, now.values, state.against, formula.value)),
            ridge: formula.value === "intensity" ? now.ridge : undefined,
            corner: now.ridge,
            alt: fill(words.alt_formula, { value: formula.value_label, against: state.against, summary }),
          });
      picture.replaceChildren(made.svg);
      made.label();
      drawn = { key: wanted, ...made };
    }
    const p = movable.find((q) => q.symbol === state.against) ?? movable[0];
    drawn.move(now, `${p.letter} = ${exact(now.values[p.symbol])}`);
  }

  const letters = Object.fromEntries(formula.parameters.map((p) => [p.symbol, p.letter]));
  const titled = (points) => points.map((p) => ({
    ...p, title: `${words[`rung_${p.rung}`]}: ${Object.entries(p.at).filter(([n]) => n !== "itemsize").map(([n, v]) => `${letters[n]} = ${exact(v)}`).join(", ")}`,
  }));

  let legendKey = "";
  function showLegend(now, state, series) {
    const off = series.map((one) => differences(one.fixed, now.values));
    const wanted = JSON.stringify([state.view, state.accelerator, state.evidence.length, state.rungs, off]);
    if (wanted === legendKey) return;
    legendKey = wanted;
    key.replaceChildren(legend({ words, formula, series, rungs: state.rungs, elsewhere: state.evidence.map((one) => one.rung), values: now.values, dtype: state.dtype, view: state.view, name: now.roof?.name ?? "", useShape: (shape) => change(shape) }));
  }

  let speaking;
  function speak(text) {
    clearTimeout(speaking);
    speaking = setTimeout(() => say(spoken, text), SPEAK_AFTER);
  }

  function update(quiet = false) {
    const state = read();
    const values = Object.fromEntries(movable.map((p) => [p.symbol, state[p.symbol]]));
    const chosen = card(state.accelerator);
    const now = situation(compiled, payload, values, chosen, state.dtype);
    const series = relevant(state.evidence, state.accelerator);
    part.view.show(state.view);
    part.card.show(state.accelerator);
    part.dtype.show(state.dtype, chosen ?? { id: "none", name: "", peaks: payload.itemsize });
    part.preset.show(state.preset);
    part.against.show(state.against, state.view === "formula");
    part.compare.show(state.shown, state.accelerator, state.dtype, state.view === "roofline");
    for (const [p, one] of part.sliders) one.show(values[p.symbol]);
    showReadouts(now);
    showPicture(now, state, series);
    showLegend(now, state, series);
    if (!quiet) speak(describe(now, state));
  }

  async function copyLink() {
    const { evidence, rungs, ...state } = read();
    const address = `${location.href.replace(/#.*$/, "")}#${encode(id, state)}`;
    history.replaceState(null, "", address);
    let done = words.copied;
    try { await navigator.clipboard.writeText(address); } catch { done = words.copy_by_hand; }
    say(copy, done);
    setTimeout(() => say(copy, words.copy), 2500);
  }

  // --------------------------------------------------------------------------------- following it

  let frame = 0;
  let moved = false; // a new width is drawn, but not worth a word
  const draw = () => {
    update(!moved);
    moved = false;
  };
  const soon = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(draw);
  };
  const schedule = () => {
    moved = true;
    soon();
  };
  for (const name of names) model.on(`change:${name}`, schedule);
  const resize = new ResizeObserver(soon);
  resize.observe(picture);
  restore();
  update(true);
  if (page) addEventListener("hashchange", restore);
  return () => {
    cancelAnimationFrame(frame);
    clearTimeout(speaking);
    resize.disconnect();
    removeEventListener("hashchange", restore);
    for (const name of names) model.off(`change:${name}`, schedule);
  };
}

export default { render };
