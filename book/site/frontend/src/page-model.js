// On a page without a kernel: the part of anywidget's model that a widget uses.

export class PageModel {
  #state;
  #listeners = new Map();
  #changed = new Set();

  constructor(state) { this.#state = { ...state }; }
  get(name) { return this.#state[name]; }
  set(name, value) {
    if (JSON.stringify(this.#state[name]) === JSON.stringify(value)) return;
    this.#state[name] = value;
    this.#changed.add(name);
    for (const hear of this.#listeners.get(`change:${name}`) ?? []) hear();
  }
  save_changes() { this.#changed.clear(); }
  on(event, hear) { this.#listeners.set(event, [...(this.#listeners.get(event) ?? []), hear]); }
  off(event, hear) {
    const kept = (this.#listeners.get(event) ?? []).filter((h) => hear && h !== hear);
    this.#listeners.set(event, kept);
  }
  send() {} // no kernel to hear it
}
