// The reader's deployment, one for the whole book: from the address first, then from the browser's storage.
// It stays in this page and in that storage; nothing is sent.
import { pack, same, unpack } from "./deployment.js";

const KEY = "serve";
const EVENT = "rl-serve";

const data = () => globalThis.InferenceRooflineServe;
let chosen; // undefined: not looked for yet; null: the reader has chosen nothing

function stored() {
  try { return localStorage.getItem(KEY); } catch { return null; }
}

function store(text) {
  try { if (text) localStorage.setItem(KEY, text); else localStorage.removeItem(KEY); } catch { /* kept in the address alone */ }
}

const inAddress = () => new URLSearchParams(location.hash.replace(/^#/, "")).get(KEY);

/** What the reader chose, or null where nothing was chosen yet, or this page knows no deployments. */
export function choice() {
  if (!data()) return null;
  if (chosen === undefined) {
    const text = inAddress() ?? stored();
    chosen = text ? unpack(text, data()) : null; // an address that says nothing means the author's
    if (chosen && inAddress()) store(pack(chosen));
  }
  return chosen;
}

/** What is served: the reader's choice, or the author's. */
export const served = () => choice() ?? data().start;

/**
 * What a link to this page says of it: {serve: ...}, empty where nothing was chosen, so that it means the author's
 * numbers to those, too, who have chosen; nothing where the page knows no deployments.
 */
export const inLinks = () => (data() ? { [KEY]: choice() ? pack(choice()) : "" } : {});

/** The reader serves something else; null: the author's numbers again. */
export function choose(changes) {
  const next = changes && { ...served(), ...changes };
  chosen = next;
  store(next && pack(next));
  address();
  document.dispatchEvent(new CustomEvent(EVENT));
}

/** The address says it, too, so that a copied link carries it; a link to a section keeps its own. */
function address() {
  const raw = location.hash.replace(/^#/, "");
  if (raw && !raw.includes("=")) return;
  const query = new URLSearchParams(raw);
  if (chosen) query.set(KEY, pack(chosen));
  else query.delete(KEY);
  const hash = query.toString().replace(/%7E/g, "~");
  try { history.replaceState(history.state, "", hash ? `#${hash}` : location.href.replace(/#.*$/, "")); } catch { /* a page inside another */ }
}

/** Calls `hear` after each change. Returns what ends it. */
export function follow(hear) {
  document.addEventListener(EVENT, hear);
  return () => document.removeEventListener(EVENT, hear);
}

/** Links to other pages of the book carry it, for browsers that keep no storage, and for links that are copied. */
function carry(event) {
  const link = event.target.closest?.("a[href]");
  if (!link || !choice() || link.origin !== location.origin || link.hash || !/(\.html|\/)$/.test(link.pathname)) return;
  if (link.pathname !== location.pathname) link.hash = `${KEY}=${pack(choice())}`;
}

/** Follows what other tabs and the address say. */
export function listen() {
  if (!data()) return;
  for (const name of ["pointerdown", "focusin"]) document.addEventListener(name, carry, true);
  const again = () => {
    const before = served();
    chosen = undefined;
    if (!same(before, served())) document.dispatchEvent(new CustomEvent(EVENT));
  };
  addEventListener("storage", (e) => { if (e.key === KEY) again(); });
  addEventListener("hashchange", () => { if (inAddress()) again(); });
}
