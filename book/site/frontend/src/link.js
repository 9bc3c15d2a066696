// A position of the sliders, written into the page's address: #rl=linear&m=64&dtype=bf16

import { allowed } from "./physics.js";

const KEY = "rl";

/**
 * The address fragment of this state, without its leading "#": of the explorer only what differs from where it
 * opens. also: what else the address says.
 */
export function encode(id, state, opening = {}, also = {}) {
  const query = new URLSearchParams({ ...also, [KEY]: id });
  for (const [name, value] of Object.entries(state))
    if (String(value) !== String(opening[name] ?? "")) query.set(name, String(value));
  return query.toString().replace(/%7E/g, "~").replace(/%2C/g, ",");
}

/** The raw strings of a fragment that belongs to this id, else null. Never throws. */
export function decode(fragment, id) {
  try {
    const query = new URLSearchParams(String(fragment).replace(/^#/, ""));
    return query.get(KEY) === id ? Object.fromEntries(query) : null;
  } catch {
    return null;
  }
}

/** Only what this explorer has: known names, finite numbers pulled into range, the rest dropped. */
export function sanitize(raw, payload) {
  const state = {};
  const ids = payload.accelerators.map((a) => a.id);
  for (const p of payload.formula.parameters.filter((q) => !q.source)) {
    const value = raw[p.symbol] === undefined || raw[p.symbol] === "" ? NaN : Number(raw[p.symbol]);
    if (!Number.isFinite(value)) continue;
    state[p.symbol] = allowed(p, value);
  }
  if (ids.includes(raw.accelerator)) state.accelerator = raw.accelerator;
  if (Object.hasOwn(payload.dtypes, raw.dtype ?? "")) state.dtype = raw.dtype;
  if (payload.views.some((v) => v.kind === raw.view)) state.view = raw.view;
  if (payload.formula.parameters.some((p) => !p.source && p.symbol === raw.against)) state.against = raw.against;
  const shown = (raw.shown ?? "").split(",").filter((id) => ids.includes(id));
  if (shown.length) state.shown = [...new Set(shown)];
  if (typeof raw.preset === "string") state.preset = raw.preset; // "" for sizes of the reader's own
  return state;
}
