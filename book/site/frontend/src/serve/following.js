// An explorer on a page stands where the reader's deployment is, and goes along when that changes. One that
// belongs to the sentence changes it, too.
import { PageModel } from "../page-model.js";
import { h, say } from "../dom.js";
import { apart, positionIn, withCard } from "./deployment.js";
import { choice, choose, follow, served } from "./store.js";

/** Renders an explorer; state: the author's, which it has until a reader says what is served. */
export function following({ el, kind, payload, state, render }) {
  const data = globalThis.InferenceRooflineServe;
  const remark = h("p", { class: "rl-apart", hidden: true });
  let model, dispose, cards;
  let obeying = false;

  /** A sentence above it, where it can't stand at the reader's deployment. */
  function told(own) {
    const text = own ? apart(payload, own, data) : "";
    if (text && !remark.isConnected) el.before(remark);
    say(remark, text);
    remark.hidden = !text;
  }

  function start() {
    const own = choice();
    told(own);
    const mine = own ? withCard(payload, own, data) : payload;
    cards = mine.accelerators;
    const opening = () => ({ ...state, ...(choice() && positionIn(mine, state.preset, choice(), data)) });
    model = new PageModel({ ...opening(), payload: mine, kind });
    dispose?.();
    dispose = render({ model, el, page: true, opening });
    if (mine.of_sentence) for (const [slider, what] of Object.entries(mine.serves)) model.on(`change:${slider}`, () => tell(slider, what));
  }

  /** A slider that was moved says something else in the sentence. */
  function tell(slider, what) {
    if (!obeying && what in served() && model.get(slider) !== served()[what]) choose({ [what]: model.get(slider) });
  }

  function again() {
    const own = choice();
    const changes = own ? positionIn(model.get("payload"), model.get("preset"), own, data) : {};
    if (!Object.keys(changes).length || !cards.some((a) => a.id === own.card)) return start();
    told(own);
    obeying = true;
    for (const [name, value] of Object.entries(changes)) model.set(name, value);
    obeying = false;
    model.save_changes();
  }

  start();
  if (data && payload.serves) follow(again);
}
