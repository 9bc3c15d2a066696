// What every self-check has round its answer: the verdict, announced as it comes, and the solution after one try.

export function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

/** "{a} of {b}" with its names filled in. */
export const fill = (template, names) => template.replace(/\{(\w+)\}/g, (_, name) => names[name] ?? "");

export const verdict = (kind, status, message) => ({ kind, status, message, right: kind === "right" });

const MARKS = { right: "✓", wrong: "✗", unreadable: "" };

/** The parts that stand below an answer, and `show` and `clear` for what is said to it. */
export function frame(payload, id) {
  const { words } = payload;
  const feedback = make("p", { className: "rl-check-feedback", id: `${id}-feedback` });
  feedback.setAttribute("role", "status");
  feedback.setAttribute("aria-live", "polite");

  const solution = make("div", { className: "rl-check-solution", id: `${id}-solution`, hidden: true });
  solution.append(make("p", {}, payload.answer_text));
  if (payload.solution) solution.append(make("p", {}, payload.solution));
  const reveal = make("button", { type: "button", className: "rl-check-reveal", hidden: true }, words.show);
  reveal.setAttribute("aria-controls", solution.id);
  reveal.setAttribute("aria-expanded", "false");
  reveal.addEventListener("click", () => {
    solution.hidden = !solution.hidden;
    reveal.textContent = solution.hidden ? words.show : words.hide;
    reveal.setAttribute("aria-expanded", String(!solution.hidden));
  });

  /** Say a verdict, and give `root` its colour. What can't be read is no try. */
  function show(said, root) {
    const tone = said.right ? "right" : said.kind === "unreadable" ? "unreadable" : "wrong";
    root.dataset.verdict = tone;
    feedback.replaceChildren();
    if (MARKS[tone]) {
      const icon = make("span", { className: "rl-check-mark" }, `${MARKS[tone]} `);
      icon.setAttribute("aria-hidden", "true");
      feedback.append(icon);
    }
    if (said.status) feedback.append(make("strong", {}, said.status), " ");
    feedback.append(said.message);
    if (tone !== "unreadable") reveal.hidden = false;
  }

  /** An old verdict must not stand beside a new answer. */
  function clear(root) {
    delete root.dataset.verdict;
    feedback.replaceChildren();
  }

  return { feedback, reveal, solution, show, clear };
}
