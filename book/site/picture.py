"""Takes the README's picture, in light and in dark, from the built site.

python book/site/picture.py
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import browser
from PIL import Image
from playwright.sync_api import sync_playwright
from serve import ROOT, SITE

STATIC = ROOT / "book" / "site" / "static"
PAGE, WIDTH, COLOURS = "chapters/02-linear-layers.html", 1180, 96


def take(target: Path, scheme: str) -> None:
    """Writes the first explorer of PAGE, in this colour scheme, to `target`."""
    with sync_playwright() as playwright:
        sandbox = [] if os.geteuid() else ["--no-sandbox"]
        chromium = playwright.chromium.launch(executable_path=browser.find(), args=sandbox)
        context = chromium.new_context(
            color_scheme=scheme, viewport={"width": WIDTH, "height": 1000}, device_scale_factor=1.5
        )
        page = context.new_page()
        page.goto((SITE / PAGE).as_uri(), wait_until="networkidle")
        shot = page.locator(".rl-live[data-kind=explorer]").first.screenshot()
        chromium.close()
    Image.open(io.BytesIO(shot)).convert("RGB").quantize(COLOURS).save(target, optimize=True)


if __name__ == "__main__":
    if not (SITE / PAGE).exists():
        sys.exit("Build the site first: make site")
    for name in ("light", "dark"):
        take(STATIC / f"explorer-{name}.png", name)
