"""Questions of understanding: pick one of a few sentences, and each wrong one has a hint of its own.

Predict before you drag; which of four changes helps; which benchmark can't be; which of two offers.
`judge` is the rule; `book/site/frontend/src/choice.js` follows the same one, and a test in a real
browser compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import traitlets

from book.say import translated
from book.widgets.check_words import CHOICE, Verdict, fill, refuse_bad_name, said_without_script
from book.widgets.dual_widget import Live


def judge(payload: Mapping[str, Any], picked: str) -> Verdict:
    """The verdict on the option that was picked, given as its text; `payload` is a choice's."""
    words = payload["words"]
    for option in payload["options"]:
        if option["text"] == picked:
            right = picked == payload["answer"]
            return Verdict(
                "right" if right else "mistake", words["right" if right else "wrong"], option["says"]
            )
    return Verdict("unreadable", "", words["pick"])


class Choice(Live):
    """One question. `entry` is the text of the option picked, `solved` whether it is right."""

    entry = traitlets.Unicode("").tag(sync=True)
    solved = traitlets.Bool(False).tag(sync=True)

    def judge(self, picked: str) -> Verdict:
        """The verdict on an option, given as its text."""
        return judge(self.payload, picked)

    @traitlets.observe("entry")
    def _judge_entry(self, change: Any) -> None:
        self.solved = self.judge(change["new"]).right

    def summary(self) -> str:
        """The question, its options and its answer, for a page without scripts."""
        options = " ".join(f"({i}) {o['text']}" for i, o in enumerate(self.payload["options"], 1))
        return said_without_script(self.payload, options=options)


def choice(
    name: str,
    *,
    question: str,
    options: Mapping[str, str],
    answer: str,
    right: str = "",
    solution: str = "",
    words: Mapping[str, str] | None = None,
    values: Mapping[str, Any] | None = None,
) -> Choice:
    """A question that is answered by picking one of a few options.

    name: lower-case, unique in the book, as "ex-02-which"; it becomes the element's id. options:
    {option: what to say to who picks it}, shown in this order; a wrong one's hint names the mistake
    behind it and doesn't give the answer away. answer: the right option, as it stands in `options`;
    what stands there beside it, or `right`, is said to who picks it. solution: why, shown on demand
    after one try. words: replacements for the check's own words. values: what stands for the names in
    braces of all these texts, options too. The texts are looked up in the reader's language here, so
    they are plain literals, not f-strings, with Unicode for the mathematics. Raises ValueError if there
    are fewer than two options, if two read alike or have the same hint, if the answer is none of them,
    or if something is missing.
    """
    refuse_bad_name(name, question)
    _refuse_bad_options(name, options, answer, right)
    filled = dict(values or {})
    question, right, solution = (translated(text, **filled) for text in (question, right, solution))
    shown = [
        {"text": translated(text, **filled), "says": (text == answer and right) or translated(says, **filled)}
        for text, says in options.items()
    ]
    texts = [option["text"] for option in shown]
    if len(set(texts)) < len(texts):
        raise ValueError(f"check {name}: two options read alike once filled in; each says something else.")
    answer = translated(answer, **filled)
    all_words = {**CHOICE, **(words or {})}
    return Choice(
        kind="choice",
        payload={
            "id": name,
            "question": question,
            "options": shown,
            "answer": answer,
            "answer_text": fill(all_words["answer"], answer=answer),
            "solution": solution,
            "words": all_words,
        },
    )


def _refuse_bad_options(name: str, options: Mapping[str, str], answer: str, right: str) -> None:
    if len(options) < 2:
        raise ValueError(f"check {name}: {len(options)} option(s); give at least two to choose from.")
    if answer not in options:
        raise ValueError(
            f"check {name}: answer = {answer!r} is none of its options; it is one of {list(options)}."
        )
    if right and options[answer]:
        raise ValueError(
            f"check {name}: right = {right!r}, and the answer's option says {options[answer]!r}; keep one."
        )
    hints = [says.strip() for text, says in options.items() if text != answer]
    for text, says in options.items():
        if not text.strip():
            raise ValueError(f"check {name}: an option is empty; write what it says.")
        if text != answer and not says.strip():
            raise ValueError(f"check {name}: the hint for {text!r} is empty; name the mistake behind it.")
    if len(set(hints)) < len(hints):
        raise ValueError(f"check {name}: two options share a hint; each has its own cause, so say which.")


def problems(payload: Mapping[str, Any]) -> list[str]:
    """What is wrong with a choice as it stands on a page, a sentence each."""
    found = []
    rights = [o["text"] for o in payload["options"] if judge(payload, o["text"]).right]
    if len(rights) != 1:
        found.append(f"{payload['id']}: {len(rights)} of its options are right; exactly one is.")
    hints = [o["says"] for o in payload["options"] if o["text"] not in rights]
    if not all(hints) or len(set(hints)) < len(hints):
        found.append(f"{payload['id']}: a wrong option has no hint of its own.")
    return found
