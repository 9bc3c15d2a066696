// Small helpers for making elements. Text always goes in as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fillIn(el, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) el.addEventListener(name.slice(2), value);
    else el.setAttribute(name, value === true ? "" : value);
  }
  el.append(...children.flat().filter((c) => c !== null && c !== undefined));
  return el;
}

export const h = (tag, attributes, ...children) => fillIn(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => fillIn(document.createElementNS(SVG, tag), attributes, children);

/** Set text only where it differs, so that nothing is repainted or announced for nothing. */
export function say(el, text) {
  if (el.textContent !== text) el.textContent = text;
}

/** A plot's picture as one image: its parts keep their names as data, where a screen reader won't stumble on them. */
export function image(svg) {
  svg.setAttribute("role", "img");
  for (const part of svg.querySelectorAll("[aria-label]")) {
    part.dataset.mark = part.getAttribute("aria-label");
    part.removeAttribute("aria-label");
  }
  return svg;
}

/** Where a picture holds something to take hold of it is a group of that; all else in it stays a picture's. */
export function group(svg) {
  if (svg.getAttribute("role") === "group") return;
  svg.setAttribute("role", "group");
  for (const part of svg.children) if (!part.matches(".rl-grip, .rl-evidence")) part.setAttribute("aria-hidden", "true");
}

/** Generated MathML, parsed; the string comes from Python's printer, not from a reader. */
export function math(text) {
  const host = h("span", { class: "rl-math" });
  host.innerHTML = `<math displaystyle="true">${text}</math>`;
  return host;
}

/** The same sum in pieces, so that a line may end before each + or −. */
export function mathTerms(text) {
  const whole = math(text);
  const row = whole.firstChild.firstElementChild;
  const pieces = [[]];
  for (const child of row?.localName === "mrow" ? [...row.childNodes] : []) {
    if (pieces.at(-1).length && child.localName === "mo" && ["+", "-", "−"].includes(child.textContent)) pieces.push([]);
    pieces.at(-1).push(child);
  }
  if (pieces.length < 2) return [whole];
  return pieces.flatMap((piece, i) => {
    const part = math("");
    part.firstChild.append(...piece);
    if (piece[0].localName === "mo") piece[0].setAttribute("form", "infix");
    return i ? [" ", part] : [part];
  });
}

/** A parameter's letter after its label; an index is set low, and not spoken: the label says it all. */
export function letter(p, before) {
  const [base, index] = p.letter.split("_");
  return index ? h("span", { "aria-hidden": "true" }, before, h("i", {}, base, h("sub", {}, index))) : h("span", {}, before, h("i", {}, base));
}

/** A number that no other widget on the page has. A notebook loads this script once for each widget. */
export function serial() {
  globalThis.inferenceRooflineWidgets = (globalThis.inferenceRooflineWidgets ?? 0) + 1;
  return globalThis.inferenceRooflineWidgets;
}

/** Plain keys stay with a widget: a notebook in command mode takes the arrows, Enter and letters for itself. */
export function keepKeys(el) {
  el.addEventListener("keydown", (e) => {
    const notebooks = e.ctrlKey || e.metaKey || e.altKey || (e.shiftKey && e.key === "Enter");
    if (!notebooks) e.stopPropagation();
  });
  return el;
}
