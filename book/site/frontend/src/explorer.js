// The explorer: dropdowns, sliders and a picture that follow one model. The model is an anywidget
// model in a notebook, and a PageModel on a page without a kernel; nothing here can tell.
import * as controls from "./controls.js";
import { h, say, serial } from "./dom.js";
import { differences } from "./evidence.js";
import { digits, fill, percent, quantity, sentence, shortly, si } from "./format.js";
import { frame } from "./frame.js";
import { hand } from "./hand.js";
import { legend } from "./legend.js";
import { measured } from "./measured.js";
import { presetNames, presetSizes } from "./physics.js";
import { draw } from "./pictures.js";
import { position } from "./position.js";
import { sceneOf } from "./scene.js";
import { slider } from "./slider.js";

const SPEAK_AFTER = 600; // milliseconds without a move before the position is spoken
const PREFERRED = ["bf16", "fp16", "fp32"];

/**
 * widths: for a still picture, drawn at each of these (pixels) instead of the width that there is.
 * opening(): the state that this explorer opens in, where it goes along with what a reader serves.
 */
function render({ model, el, page = false, widths = null, opening = null }) {
  const payload = model.get("payload");
  const { formula, words, accelerators, readouts } = payload;
  const kinds = payload.views.map((v) => v.kind);
  const id = page ? el.id : `${payload.id}-view-${serial()}`;
  const scene = sceneOf(payload);
  const { movable, names, card } = scene;
  const read = () => Object.fromEntries(names.map((n) => [n, model.get(n)]));
  const first = read();

  // ------------------------------------------------------------------------------ changing state

  const decided = formula.parameters.filter((p) => p.source === "model" && !p.quiet);

  /** The sliders that a preset sets; undefined if there is no such preset. */
  function slidersOf(preset) {
    const sizes = presetSizes(payload, preset);
    return sizes && Object.fromEntries(Object.entries(sizes).filter(([n]) => movable.some((p) => p.symbol === n)));
  }

  /** Sliders and model as a series has them: of the model's numbers it knows some, and they name it. */
  function useShape(shape) {
    const model = Object.entries(shape).filter(([n]) => formula.parameters.some((p) => p.source === "model" && p.symbol === n));
    const fits = (name) => { const sizes = presetSizes(payload, name); return model.every(([n, v]) => sizes[n] === v); };
    const preset = model.length ? presetNames(payload).find(fits) : undefined;
    change({ ...shape, ...(preset && { preset }) });
  }

  /** All changes pass here: a format that the card lacks and a preset that no longer fits are mended. */
  function change(changes) {
    const before = read();
    const next = { ...before, ...changes };
    const chosen = card(next.accelerator);
    let remark = "";
    if (chosen && !chosen.peaks[next.dtype]) {
      const dtype = PREFERRED.find((d) => chosen.peaks[d]) ?? Object.keys(chosen.peaks)[0];
      remark = fill(words.switched, { accelerator: chosen.name, wanted: next.dtype, dtype });
      next.dtype = dtype;
    }
    // A format chosen for the arithmetic stores no weight: a reader who chose it for that is told where to look.
    const stored = movable.find((p) => p.symbol === "weight_itemsize");
    if (!remark && next.dtype !== before.dtype && stored) remark = fill(words.arithmetic_only, { dtype: next.dtype, stored: shortly(stored, next.weight_itemsize) });
    if (next.preset) {
      const sizes = slidersOf(next.preset);
      if (!sizes || Object.entries(sizes).some(([n, v]) => next[n] !== v)) next.preset = "";
    }
    if (decided.length && !next.preset) next.preset = first.preset; // sliders can't take a model's place
    for (const name of names) model.set(name, next[name]);
    model.save_changes();
    remarkOn(remark);
  }

  function remarkOn(remark) { say(note, remark); note.hidden = !remark; }

  const opens = () => ({ ...first, ...opening?.() });
  const kept = page && !widths ? position({ el, id, payload, read, opening: opens, change }) : null;

  // ---------------------------------------------------------------------------------- the parts

  const part = {
    view: controls.segments(`${id}-view`, words.view, kinds.map((v) => [v, words[`view_${v}`]]), (view) => change({ view })),
    card: controls.cards(`${id}-accelerator`, words, accelerators, (accelerator) => change({ accelerator })),
    dtype: controls.dtypes(`${id}-dtype`, words, payload, (dtype) => change({ dtype })),
    preset: controls.presets(`${id}-preset`, words, payload, (preset) => change({ preset, ...(preset && slidersOf(preset)) })),
    facts: controls.facts(words, decided),
    against: controls.against(`${id}-against`, words, movable, (against) => change({ against })),
    compare: controls.compare(`${id}-compare`, words, payload, (shown) => change({ shown })),
    sliders: movable.map((p) => [p, slider(`${id}-${p.symbol}`, p, words, (value) => change({ [p.symbol]: value }), remarkOn)]),
  };
  const onRoof = kinds.includes("roofline");
  const { others = [] } = readouts;
  const timed = [formula.unit, ...others.map((one) => one.unit)].some((unit) => ["s", "token/s"].includes(unit));
  const reads = {
    value: controls.readout(readouts.value),
    ...(onRoof && !timed && formula.value !== "attainable" && { attainable: controls.readout(words.attainable) }),
    ...(onRoof && !timed && formula.code.flops && { time: controls.readout(words.time) }),
    ...(onRoof && !timed && !formula.code.flops && !others.length && { peak: controls.readout(words.peak) }),
    ...(onRoof && { bound: controls.readout(words.bound) }),
  };
  const more = others.map((one) => [one, controls.readout(one.label)]);
  const formatted = onRoof || formula.parameters.some((p) => p.source === "dtype" || p.fact === "peak");
  const { stage, picture, below, numbers, fit, note, spoken, copy, reset, key, showFolded, unfold } = frame({
    el, page, payload, part,
    reads: [reads.value, ...more.map(([, r]) => r), ...Object.values(reads).slice(1)].map((r) => r.el),
    choices: {
      ...(accelerators.length && { accelerator: part.card.el }),
      ...(formatted && { dtype: part.dtype.el }),
      ...(Object.keys(payload.presets).length && { preset: part.preset.el }),
      ...(movable.length > 1 && { against: part.against.el }),
      ...(accelerators.length > 1 && onRoof && { shown: part.compare.el }),
    },
    facts: decided.length ? part.facts.el : null,
  });
  copy.addEventListener("click", copyLink);
  reset.addEventListener("click", () => change(opens()));

  // -------------------------------------------------------------------------------- what they show

  function showReadouts(now) {
    reads.value.show(quantity(now.value, formula.unit), now.share !== undefined && !reads.attainable ? fill(words.of_peak, { percent: percent(now.share) }) : "");
    for (const [one, read] of more) read.show(quantity(now.at(one.output), one.unit));
    if (!now.roof) return;
    reads.attainable?.show(si(now.attainable, "FLOP/s"), fill(words.of_peak, { percent: percent(now.share) }));
    reads.time?.show(si(now.time, "s"), words.time_note);
    reads.peak?.show(si(now.roof.peak, "FLOP/s"), fill(words.peak_note, { bandwidth: sentence(si(now.roof.bandwidth, "byte/s")) }));
    reads.bound?.show({ number: words[now.bound] }, fill(words.ridge_note, { ridge: digits(now.ridge) }));
  }

  let drawn = { key: "" };
  function showPicture(looked, state, width, where) {
    if (looked.lacking) {
      where.replaceChildren(h("p", { class: "rl-lacking" }, looked.lacking));
      below.replaceChildren();
      drawn = { key: "" };
      return;
    }
    if (!width) return;
    const ctx = { ...scene, ...looked, state, width, accelerators, picture: where, below, summary: () => scene.summary(looked, state) };
    drawn = draw(drawn, ctx);
    for (const one of touched) one.dress(drawn, ctx);
  }

  /** One of a still's pictures, of which the page's style shows the one that fits. */
  function drawAt(width, looked, state) {
    const where = h("div", { class: width === widths[0] ? "rl-at-wide" : "rl-at-narrow" });
    drawn = { key: "" };
    showPicture(looked, state, width, where);
    picture.append(where);
  }

  /** What memory says of the position; a point that can't be is drawn as such. */
  function showFit({ held }) {
    say(fit, held.sentence);
    fit.hidden = !held.sentence;
    const can = !["lacks", "broken"].includes(held.state);
    fit.classList.toggle("rl-cannot", !can);
    for (const part of [picture, ...numbers]) part.classList.toggle("rl-impossible", !can);
  }

  // What can be touched in the picture; a still one has nothing to touch.
  const touched = widths ? [] : [hand(picture, words, change, remarkOn), measured(stage, picture, payload)];

  let legendKey = "";
  function showLegend(now, state, series) {
    const off = series.map((one) => differences(one.fixed, now.values));
    const wanted = JSON.stringify([state.view, state.accelerator, state.evidence.length, state.rungs, off]);
    if (wanted === legendKey) return;
    legendKey = wanted;
    key.replaceChildren(legend({ words, formula, series, rungs: state.rungs, elsewhere: state.evidence.map((one) => one.rung), values: now.values, dtype: state.dtype, view: state.view, name: now.roof?.name ?? "", useShape }));
  }

  let speaking;
  function speak(text) {
    clearTimeout(speaking);
    speaking = setTimeout(() => say(spoken, text), SPEAK_AFTER);
  }

  function update(quiet = false) {
    const state = read();
    const looked = scene.look(state);
    const { now, series, card: chosen } = looked;
    part.view.show(state.view);
    part.card.show(state.accelerator);
    part.dtype.show(state.dtype, chosen ?? { id: "none", name: "", peaks: payload.dtypes });
    part.preset.show(state.preset);
    part.against.show(state.against, state.view === "formula" || payload.views.some((v) => v.kind === state.view && v.balance));
    if (decided.length) part.facts.show(now.values);
    part.compare.show(state.shown, state.accelerator, state.dtype, state.view === "roofline");
    for (const [p, one] of part.sliders) one.show(now.values[p.symbol]);
    showFolded(now.values);
    showReadouts(now);
    if (widths) for (const width of widths) drawAt(width, looked, state);
    else showPicture(looked, state, width, picture);
    showFit(looked);
    showLegend(now, state, series);
    if (!quiet) speak(scene.summary(looked, state));
  }

  async function copyLink() {
    const address = kept.address();
    history.replaceState(history.state, "", address);
    let done = words.copied;
    try { await navigator.clipboard.writeText(address); } catch { done = words.copy_by_hand; }
    say(copy, done);
    setTimeout(() => say(copy, words.copy), 2500);
  }

  // --------------------------------------------------------------------------------- following it

  let drawing = 0;
  let width = 0; // of the picture, asked for when it changes: an answer makes the browser lay out the page
  let moved = false; // a new width is drawn, but not worth a word
  const soon = () => {
    cancelAnimationFrame(drawing);
    drawing = requestAnimationFrame(() => { update(!moved); moved = false; });
  };
  const schedule = () => {
    moved = true;
    kept?.moved();
    soon();
  };
  if (widths) return update(true);
  for (const name of names) model.on(`change:${name}`, schedule);
  const resized = () => {
    if (width === Math.round(picture.clientWidth)) return;
    width = Math.round(picture.clientWidth);
    soon();
  };
  const resize = new ResizeObserver(resized);
  resize.observe(picture);
  kept?.restore(true);
  unfold(read(), opens());
  resized();
  update(true);
  const restore = () => kept?.restore();
  addEventListener("hashchange", restore);
  return () => {
    cancelAnimationFrame(drawing);
    clearTimeout(speaking);
    kept?.end();
    resize.disconnect();
    removeEventListener("hashchange", restore);
    for (const name of names) model.off(`change:${name}`, schedule);
  };
}

export default { render };
