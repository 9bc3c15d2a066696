"""A page that holds self-checks and little else, and a notebook's part in one, for both kinds' tests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Page

from book.drawing import palette
from book.widgets.dual_widget import STATIC, Live
from tests.site.built import AXE


def write(folder: Path, checks: Iterable[Live], more: str = "") -> Path:
    """The page of these checks, and of more HTML, with its script beside it, to be opened from disk."""
    body = "".join(check.static_html() for check in checks) + more
    styles = palette.css() + (STATIC / "check.css").read_text(encoding="utf-8")
    (folder / "explorer.js").write_bytes((STATIC / "explorer.js").read_bytes())
    look = "body{margin:16px;font-family:sans-serif;background:var(--rl-background);color:var(--rl-text)}"
    (folder / "page.html").write_text(
        '<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8"><title>Checks</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{styles}{look}</style></head><body><main><h1>Exercises</h1>{body}</main>"
        '<script src="explorer.js"></script></body></html>',
        encoding="utf-8",
    )
    return folder / "page.html"


def on_a_phone(new_context: Any, file: Path) -> Page:
    """The page opened from disk on a phone; an error in it, or a request that leaves it, fails the test."""
    context: BrowserContext = new_context(file.parent.as_uri(), viewport={"width": 360, "height": 640})
    page = context.new_page()
    page.goto(file.as_uri())
    return page


def judged(page: Page, kind: str, payload: dict[str, Any], answers: list[str]) -> list[dict[str, Any]]:
    """What the page's own judge says to each of these answers."""
    return page.evaluate(
        """([kind, payload, answers]) =>
            answers.map((answer) => globalThis.InferenceRoofline[kind].judge(payload, answer))""",
        [kind, json.loads(json.dumps(payload)), answers],
    )


def violations(page: Page) -> list[Any]:
    """What axe finds on the page."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    return page.evaluate("axe.run().then((r) => r.violations.map((v) => [v.id, v.nodes.map((n) => n.html)]))")


def in_a_notebook(page: Page, check: Live, answer: str) -> tuple[str, bool]:
    """(entry, solved) as the kernel hears them. answer: JavaScript that answers in the element `el`.

    anywidget imports `_esm` as a module and hands `render` a model whose changes go to Python.
    """
    entry, solved = page.evaluate(
        """async ([esm, kind, payload, answer]) => {
            const address = URL.createObjectURL(new Blob([esm], { type: "text/javascript" }));
            const widget = (await import(address)).default;
            const state = { kind, payload, entry: "", solved: false };
            let saved = null;
            const model = {
                get: (name) => state[name], set: (name, value) => { state[name] = value; }, on() {}, off() {},
                save_changes: () => { saved = [state.entry, state.solved]; },
            };
            const el = document.createElement("div");
            document.body.append(el);
            widget.render({ model, el });
            new Function("el", answer)(el);
            el.querySelector("form").requestSubmit();
            return saved;
        }""",
        [check._esm, check.kind, json.loads(json.dumps(check.payload)), answer],
    )
    return entry, solved
