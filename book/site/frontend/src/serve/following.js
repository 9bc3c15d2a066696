// An explorer on a page stands where the reader's deployment is, and goes along when that changes.
import { PageModel } from "../page-model.js";
import { positionIn, withCard } from "./deployment.js";
import { choice, follow } from "./store.js";

/** Renders an explorer; state: the author's, which it has until a reader says what is served. */
export function following({ el, kind, payload, state, render }) {
  const data = globalThis.InferenceRooflineServe;
  let model, dispose, cards;

  function start() {
    const own = choice();
    const mine = own ? withCard(payload, own, data) : payload;
    cards = mine.accelerators;
    model = new PageModel({ ...state, ...(own && positionIn(mine, state.preset, own, data)), payload: mine, kind });
    dispose?.();
    dispose = render({ model, el, page: true });
  }

  function again() {
    const own = choice();
    if (!own || !cards.some((a) => a.id === own.card)) return start();
    for (const [name, value] of Object.entries(positionIn(model.get("payload"), model.get("preset"), own, data))) model.set(name, value);
    model.save_changes();
  }

  start();
  if (data && payload.serves) follow(again);
}
