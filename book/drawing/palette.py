"""The one palette. A colour always means the same thing; each has a light and a dark value.

Chosen to stay apart for the common colour deficiencies and to keep 4.5:1 against the page.
Figures read it from here, and the stylesheet's `--rl-*` variables are generated from it.
"""

from __future__ import annotations

PALETTE: dict[str, tuple[str, str]] = {
    # role: (light, dark)
    "background": ("#ffffff", "#14181d"),
    "card": ("#f7f8fa", "#1b2026"),
    "text": ("#1b1f24", "#e8ebee"),
    "dim": ("#55606b", "#a3adb7"),
    "line": ("#d9dee3", "#2d343b"),
    "roof": ("#4a5561", "#b4bdc6"),
    "predicted": ("#0b62c4", "#6bb0ff"),
    "counted": ("#a84c17", "#f0a06a"),
    "timed": ("#0a7350", "#4fd3a1"),
    "recorded": ("#0a7350", "#4fd3a1"),
    "published": ("#6a3fb5", "#b99bff"),
    "rehearsed": ("#55606b", "#a3adb7"),
    "mistaken": ("#a8321e", "#ff9c87"),
    "memory": ("#fdf1e3", "#2a2218"),
    "compute": ("#e8f2fb", "#172432"),
    # parts of a whole: what weights cost, and what the cache or attention costs
    "weights": ("#2c6e8f", "#7cc4e6"),
    "cache": ("#b0307a", "#f490c6"),
    "right": ("#0a7350", "#4fd3a1"),
    "wrong": ("#a8321e", "#ff9c87"),
}


def css() -> str:
    """The palette as CSS variables: light, and dark for the theme's dark mode and JupyterLab's.

    Paper is white whatever the screen was, so what is printed has the light ones.
    """

    def block(selector: str, shade: int) -> str:
        body = "".join(f"--rl-{role}:{pair[shade]};" for role, pair in PALETTE.items())
        return f"{selector}{{{body}}}"

    dark = 'html[data-theme="dark"],body[data-jp-theme-light="false"],body.vscode-dark,html[theme="dark"]'
    return f"{block(':root', 0)}\n@media not print{{{block(dark, 1)}}}\n"
