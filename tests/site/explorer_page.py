"""A page of explorers as it would stand on the site, opened from disk."""

from __future__ import annotations

from pathlib import Path

from book import formulas, palette
from book.explorer import Explorer, explore
from book.live import STATIC

CARDS = ["h100_sxm", "h200_sxm", "b200", "a100_80gb_sxm", "l4", "t4"]
COUNTED = {
    "rung": "counted",
    "label": "counted, k = 4,096, n = 14,336",
    "accelerator": None,
    "points": [
        {"m": m, "k": 4096, "n": 14336, "intensity": m / (1 + m / 4096 + m / 14336)}
        for m in (1, 16, 32, 128, 1024)
    ],
}


def linear(**more) -> Explorer:
    """The explorer of chapter 02, with evidence of two shapes."""
    return explore(
        formulas.linear,
        CARDS,
        model="llama3-8b",
        layer="gate",
        evidence=[COUNTED],
        published="linear",
        m=32,
        **more,
    )


def write(path: Path, *explorers: Explorer, theme: str = "light") -> Path:
    """A standalone page at `path`, with the bundle beside it."""
    (path.parent / "explorer.js").write_bytes((STATIC / "explorer.js").read_bytes())
    styles = palette.css() + (STATIC / "explorer.css").read_text(encoding="utf-8")
    look = (
        "body{margin:16px auto;max-width:780px;padding:0 14px;"
        "background:var(--rl-background);color:var(--rl-text)}"
    )
    divs = "\n".join(e.static_html() for e in explorers)
    path.write_text(
        f'<!doctype html><html lang="en" data-theme="{theme}"><head><meta charset="utf-8">'
        "<title>Explorers</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<style>{styles}{look}</style><script defer src="explorer.js"></script></head>'
        f"<body><main><h1>Explorers</h1>{divs}</main></body></html>",
        encoding="utf-8",
    )
    return path
