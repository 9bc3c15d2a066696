// Where an explorer was left: the address says it of the one that was moved last, for links and for other people;
// the tab's history of all of them, so that Back and a reload find them as they were.
import { decode, encode, sanitize } from "./link.js";
import { inLinks } from "./serve/store.js";

const RESTS = 400; // milliseconds without a move before it is written down

/** opening(): the state in which a fresh page has it. Returns {restore(), moved(), address(), end()}. */
export function position({ el, id, payload, read, opening, change }) {
  let waiting;

  function fragment(also) {
    const { evidence, rungs, ...state } = read();
    return encode(id, state, opening(), also);
  }

  /** What was written down, as changes of the state that it opens in; null where nothing was. */
  function written() {
    const inAddress = decode(location.hash, id);
    const raw = inAddress ?? decode(history.state?.explorers?.[id], id);
    return raw && { ...opening(), ...sanitize(raw, payload), inAddress: Boolean(inAddress) };
  }

  function note() {
    const own = fragment({});
    const plain = encode(id, {}); // the same with nothing that differs
    const kept = { ...history.state?.explorers, [id]: own === plain ? undefined : own };
    const raw = location.hash.replace(/^#/, "");
    const query = new URLSearchParams(raw);
    const ours = query.get("rl") === id;
    const serve = query.get("serve");
    const bare = serve === null || serve === "" ? "" : `#serve=${serve}`;
    const hash = own !== plain ? `#${fragment(inLinks())}` : ours ? bare : location.hash;
    try {
      history.replaceState({ ...history.state, explorers: kept }, "", location.href.replace(/#.*$/, "") + hash);
    } catch { /* a page inside another may not */ }
  }

  return {
    restore(arriving) {
      const found = written();
      if (!found) return;
      const { inAddress, ...state } = found;
      change(state);
      const back = performance.getEntriesByType?.("navigation")[0]?.type !== "navigate";
      if (inAddress && !(arriving && back)) el.scrollIntoView({ block: "center" }); // Back knows where the page stood
    },
    moved() {
      clearTimeout(waiting);
      waiting = setTimeout(note, RESTS);
    },
    address: () => `${location.href.replace(/#.*$/, "")}#${fragment(inLinks())}`,
    end: () => clearTimeout(waiting),
  };
}
