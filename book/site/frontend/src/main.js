// Mounts every div.rl-live on a page, and is the front-end of the same widgets in a notebook.
import check from "./check.js";
import choice from "./choice.js";
import explorer from "./explorer.js";
import { measureBy } from "./labels.js";
import { PageModel } from "./page-model.js";
import { compileAll } from "./physics.js";
import * as deployment from "./serve/deployment.js";
import { following } from "./serve/following.js";
import * as serve from "./serve/sentence.js";
import { listen } from "./serve/store.js";
import { still } from "./still.js";

const registry = { explorer, check, choice };

function mount(el) {
  if (el.dataset.alive) return;
  el.dataset.alive = "yes";
  const kept = [...el.childNodes]; // the picture for readers without this script
  try {
    const payload = JSON.parse(el.dataset.payload);
    const state = JSON.parse(el.dataset.state ?? "{}");
    const { kind } = el.dataset;
    const { render } = registry[kind];
    el.replaceChildren();
    if (kind === "explorer") following({ el, kind, payload, state, render });
    else render({ model: new PageModel({ ...state, payload, kind }), el, page: true });
  } catch (error) {
    el.replaceChildren(...kept);
    console.error(`${el.dataset.kind} ${el.id} could not start:`, error);
  }
}

/** Ids come from Python and are stable; a second one of the same name gets a number. Who is alive keeps its own. */
function distinct(all) {
  const taken = new Set(all.filter((el) => el.dataset.alive).map((el) => el.id));
  for (const el of all.filter((other) => !other.dataset.alive)) {
    const name = el.id;
    for (let n = 2; taken.has(el.id); n++) el.id = `${name}-${n}`;
    taken.add(el.id);
  }
}

function mountAll(root = document) {
  // Only what carries its own state: in a notebook, widgets that another copy of this script drew don't.
  const all = [...root.querySelectorAll("div.rl-live[data-payload]")];
  distinct(all);
  all.forEach(mount);
}

globalThis.InferenceRoofline = { ...registry, mountAll, compileAll, still, measureBy, deployment };

function begin() {
  listen();
  document.querySelectorAll(".rl-serve").forEach(serve.mount);
  mountAll();
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
else begin();
