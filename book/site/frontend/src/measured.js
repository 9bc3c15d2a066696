// Measured points of the picture, one by one: a card says what each is where a pointer rests, a finger taps or the
// keyboard stops. Points that lie on one another share a card.
import { h, s } from "./dom.js";
import { exact, fill, nameOf, percent, quantity, sentence } from "./format.js";

const NEAR = 14; // pixels from a pointer to a point that it means
const SAME = 4; // pixels between points that can't be told apart
const MOST = 3; // of those that lie on one another, told on one card; where there is little room, one
const LOW = 300; // pixels of a picture, below which there is little

/** stage holds the picture in its corner. Returns {dress(drawn, ctx)}, to be called once something is drawn. */
export function measured(stage, picture, { words, formula, accelerators }) {
  const card = h("div", { class: "rl-card", hidden: true });
  const cursor = s("g", { class: "rl-evidence", role: "slider", tabindex: 0, "aria-valuemin": 1 }, s("circle", { r: 11 }));
  let [points, at, focused, hovered, pinned] = [[], 0, false, false, false];
  stage.append(card);
  const letters = Object.fromEntries(formula.parameters.filter((p) => p.source !== "dtype").map((p) => [p.symbol, nameOf(p)]));

  /** What is known of a point, in lines: the number, its sizes, where it ran. */
  function told({ rung, seconds, share, at: sizes, of }) {
    const time = seconds ? sentence(quantity(seconds, "s")) : "";
    return {
      title: [time || words[`rung_${rung}`], share ? fill(words.of_roof, { percent: percent(share) }) : ""],
      sizes: Object.entries(sizes).filter(([n]) => letters[n]).map(([n, v]) => `${letters[n]} = ${exact(v)}`).join(", "),
      where: [time ? words[`rung_${rung}`] : "", accelerators.find((a) => a.id === of.accelerator)?.name, of.dtype, of.engine].filter(Boolean).join(", "),
    };
  }

  const together = (index) => points.filter((p) => Math.hypot(p.px - points[index].px, p.py - points[index].py) <= SAME);

  function show(index) {
    at = index;
    const mine = [points[index], ...together(index).filter((p) => p !== points[index])];
    const [first] = mine;
    const entry = (point) => {
      const { title: [head, share], sizes } = told(point);
      return h("p", {}, h("b", {}, head), " ", h("span", { class: "rl-of-roof" }, share), h("br"), sizes);
    };
    const { where } = told(first);
    const source = first.of.link ? h("a", { href: first.of.link }, first.of.label || first.of.source) : first.of.label;
    const room = { width: picture.clientWidth, height: picture.clientHeight };
    const most = room.height < LOW ? 1 : MOST;
    card.replaceChildren(
      ...mine.slice(0, most).map(entry),
      ...(mine.length > most ? [h("p", {}, fill(words.more_here, { count: exact(mine.length - most) }))] : []),
      h("p", { class: "rl-quiet" }, where, ...(source ? [h("br"), source] : [])),
    );
    card.hidden = false;
    const [width, height] = [card.offsetWidth, card.offsetHeight];
    const into = (v, size, whole) => Math.max(4, Math.min(whole - size - 4, v));
    const beside = first.px + 16 + width <= room.width - 4 ? first.px + 16 : first.px - 16 - width;
    const fits = first.py + 14 + height <= room.height || first.py - 14 - height < 4 ? first.py + 14 : first.py - 14 - height;
    card.style.left = `${into(beside, width, room.width)}px`;
    card.style.top = `${into(fits, height, beside < 4 ? Infinity : room.height)}px`; // not over its point
    cursor.setAttribute("transform", `translate(${first.px} ${first.py})`);
    cursor.classList.add("rl-on");
    speak();
  }

  function hide() {
    card.hidden = true;
    hovered = pinned = false;
    cursor.classList.remove("rl-on");
  }

  function speak() {
    const { title, sizes, where } = told(points[at]);
    cursor.setAttribute("aria-label", words.measured_points);
    cursor.setAttribute("aria-valuemax", points.length);
    cursor.setAttribute("aria-valuenow", at + 1);
    cursor.setAttribute("aria-valuetext", [title.filter(Boolean).join(", "), sizes, where, points[at].of.label].filter(Boolean).join("; "));
    cursor.setAttribute("transform", `translate(${points[at].px} ${points[at].py})`);
  }

  function under(event) {
    const svg = picture.querySelector("svg");
    if (!svg || !points.length || event.target.closest?.(".rl-grip")) return -1;
    const box = svg.getBoundingClientRect();
    const scale = svg.getAttribute("width") / box.width;
    const far = points.map((p) => Math.hypot((event.clientX - box.left) * scale - p.px, (event.clientY - box.top) * scale - p.py));
    const least = Math.min(...far);
    return least <= NEAR ? far.indexOf(least) : -1;
  }

  picture.addEventListener("pointermove", (event) => {
    if (event.pointerType !== "mouse" || event.buttons || pinned) return;
    const index = under(event);
    if (index >= 0) show(index);
    else if (hovered) hide();
    hovered = index >= 0;
    picture.classList.toggle("rl-over-point", index >= 0);
  });
  picture.addEventListener("click", (event) => {
    const index = under(event);
    if (index < 0) return hide();
    show(index);
    pinned = true;
  });
  stage.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse" && hovered && !pinned) hide(); });
  document.addEventListener("pointerdown", (event) => { if (!card.hidden && !stage.contains(event.target)) hide(); });
  cursor.addEventListener("focus", () => { focused = true; show(at); });
  cursor.addEventListener("blur", (event) => {
    if (!cursor.isConnected || card.contains(event.relatedTarget)) return;
    focused = false;
    hide();
  });
  stage.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !card.hidden) hide();
    if (event.target !== cursor) return;
    const last = points.length - 1;
    const to = { ArrowRight: at + 1, ArrowUp: at + 1, ArrowLeft: at - 1, ArrowDown: at - 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    show(Math.min(last, Math.max(0, to)));
  });

  let drawn;
  return {
    dress(now) {
      if (now.svg === drawn) return;
      drawn = now.svg;
      const had = focused;
      hide();
      points = [...(now.points ?? [])].sort((a, b) => a.px - b.px || b.py - a.py);
      at = Math.min(at, Math.max(0, points.length - 1));
      cursor.remove();
      if (!points.length) return;
      speak();
      drawn.append(cursor);
      if (had) cursor.focus({ preventScroll: true });
    },
  };
}
