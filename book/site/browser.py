"""Finds a Chromium for the tests of the site, or installs one.

python book/site/browser.py --install
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

# Chromium without windows: the same engine, at a third of the CPU time for each page that a test opens.
SHELL = "chromium-headless-shell"
NAMES = (SHELL, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
MISSING = (
    "The tests of the site need a Chromium, and none was found: not in $CHROMIUM, not on the PATH "
    f"({', '.join(NAMES)}), nor Playwright's own. Install one of them (Debian: apt-get install {SHELL}; "
    "anywhere: .venv/bin/playwright install chromium), or set CHROMIUM=/path/to/chrome."
)


def find(own: str | None = None) -> str | None:
    """The path of a Chromium: $CHROMIUM, one on the PATH, or Playwright's own; None if there is none.

    own: where Playwright keeps its own, if the caller has Playwright running and so knows.
    """
    if named := os.environ.get("CHROMIUM"):
        return named
    for name in NAMES:
        if path := shutil.which(name):
            return path
    if MAC.exists():
        return str(MAC)
    if own is None:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


def _debian(package: str) -> None:
    """Debian's package, if it can be had."""
    quiet = {"env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, "stdout": subprocess.DEVNULL}
    subprocess.run(["apt-get", "update", "-qq"], **quiet)
    subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", package], **quiet)


def install() -> str | None:
    """The path of a Chromium, after an attempt to install one. None if that failed and there is none.

    On Debian as root: its package without windows, also where another Chromium is there, unless
    $CHROMIUM names that one. Elsewhere Playwright's own, if there is none.
    """
    debian = hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get")
    if debian and not os.environ.get("CHROMIUM") and not shutil.which(SHELL):
        print("Installing Chromium for the tests of the site (Debian's package) ...", flush=True)
        _debian(SHELL)
    if debian and not find():
        _debian("chromium")  # a release that has no package without windows
    if path := find():
        return path
    print("Installing Chromium for the tests of the site (Playwright's own) ...", flush=True)
    subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"])
    return find()


if __name__ == "__main__":
    found = install() if "--install" in sys.argv else find()
    # Not an error here: the tests fail with this sentence, so the rest of them still run.
    print(f"Chromium: {found}" if found else MISSING)
