// The hand in the picture: a point is pulled along its axis with a pointer, or stepped with the keyboard, and the
// slider goes along. The picture stays while what is in it is drawn anew, so it is what listens.
import { group } from "./dom.js";
import { fill, fully } from "./format.js";
import { nearest, stepped, stops } from "./physics.js";

const STILL = 3; // pixels that a pointer may tremble before it pulls

/** onmove({symbol: value}), onremark(sentence). Returns {dress(drawn, ctx)}, to be called once something is drawn. */
export function hand(picture, words, onmove, onremark) {
  let shown = { grips: [] };
  let held = null;
  let focused = -1;

  /** The slider that moves this grip's point along the axis; undefined where none does. */
  function sliderOf({ symbol, output }) {
    const { movable, state, now, compiled } = shown.ctx;
    const against = movable.find((p) => p.symbol === (symbol ?? state.against));
    if (symbol) return against;
    const at = (p, value) => compiled.outputs[output]({ ...now.values, [p.symbol]: value });
    return [against, ...movable].find((p) => p && at(p, p.low) !== at(p, p.high));
  }

  /** The stop of a slider that brings the point nearest to this place of the axis. */
  function stopAt(grip, p, wanted) {
    const list = stops(p);
    if (grip.symbol) return list[nearest(list, wanted, p.scale)];
    const { now, compiled } = shown.ctx;
    const far = (value) => Math.abs(Math.log(compiled.outputs[grip.output]({ ...now.values, [p.symbol]: value }) / wanted));
    return list.reduce((best, value) => (far(value) < far(best) ? value : best));
  }

  function pull({ index, offset, from, clientX }) {
    const grip = shown.grips[index];
    const svg = grip?.el.ownerSVGElement;
    if (!svg || Math.abs(clientX - from) < STILL) return;
    const box = svg.getBoundingClientRect();
    const p = sliderOf(grip);
    if (!p) return onremark(fill(words.stuck, { name: grip.name }));
    held.from = Infinity; // from here on every pixel counts
    const value = stopAt(grip, p, grip.x(((clientX - offset - box.left) * svg.getAttribute("width")) / box.width));
    if (value !== shown.ctx.now.values[p.symbol]) onmove({ [p.symbol]: value });
  }

  const indexOf = (target) => shown.grips.findIndex((grip) => grip.el === target.closest?.(".rl-grip"));
  picture.addEventListener("pointerdown", (event) => {
    const index = indexOf(event.target);
    if (index < 0 || event.button) return;
    const mark = shown.grips[index].el.lastChild.getBoundingClientRect();
    held = { index, offset: event.clientX - (mark.left + mark.right) / 2, from: event.clientX };
    picture.setPointerCapture(event.pointerId);
    picture.classList.add("rl-pulling");
    shown.grips[index].el.focus({ preventScroll: true });
    event.preventDefault();
  });
  picture.addEventListener("pointermove", (event) => held && pull(Object.assign(held, { clientX: event.clientX })));
  for (const end of ["pointerup", "pointercancel"])
    picture.addEventListener(end, () => {
      held = null;
      picture.classList.remove("rl-pulling");
    });
  picture.addEventListener("focusin", (event) => { focused = indexOf(event.target); });
  picture.addEventListener("focusout", (event) => { if (event.target.isConnected) focused = -1; });
  picture.addEventListener("keydown", (event) => {
    const grip = shown.grips[indexOf(event.target)];
    const p = grip && sliderOf(grip);
    if (!p) return;
    const list = stops(p);
    const page = Math.ceil(list.length / 10);
    const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: page, PageDown: -page, Home: -list.length, End: list.length }[event.key];
    if (!by) return;
    event.preventDefault();
    onmove({ [p.symbol]: stepped(list, shown.ctx.now.values[p.symbol], by) });
  });

  return {
    /** Makes the points of what was drawn something to take hold of, and says where they stand. */
    dress({ grips = [] }, ctx) {
      shown = { grips, ctx };
      grips.forEach((grip, i) => {
        const p = sliderOf(grip);
        const name = grip.name ? `${grip.name}: ${p ? p.label : ""}` : p?.label;
        const told = p
          ? { role: "slider", tabindex: 0, "aria-label": name, "aria-valuemin": p.low, "aria-valuemax": p.high, "aria-valuenow": ctx.now.values[p.symbol], "aria-valuetext": fully(p, ctx.now.values[p.symbol]) }
          : { role: "img", "aria-label": grip.name };
        group(grip.el.ownerSVGElement);
        for (const [attribute, value] of Object.entries(told)) grip.el.setAttribute(attribute, value);
        if (i === focused && document.activeElement !== grip.el && !picture.contains(document.activeElement)) grip.el.focus({ preventScroll: true });
      });
    },
  };
}
