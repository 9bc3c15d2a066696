"""How long one step of a slider takes until the page is painted, in headless Chromium.

    python -m benchmarks.explorer

Each step sets a slider and waits for the second animation frame after it: the first one draws, and
when the second begins, the drawing has been laid out and painted. Two numbers are printed for each
slider: the work (script, style and layout of one step, with no waiting) and the time to that frame.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "book" / "site")]

import browser  # noqa: E402

from tests.site.explorer_page import linear, write  # noqa: E402

STEPS = 80

MEASURE = """async ([id, steps]) => {
    const slider = document.getElementById(id), el = slider.closest(".rl-alive");
    const frame = () => new Promise(requestAnimationFrame);
    const median = (list) => list.sort((a, b) => a - b)[Math.floor(list.length / 2)];
    const work = [], paint = [];
    let draw;
    const later = window.requestAnimationFrame;
    for (let i = 0; i < steps; i++) {
        slider.value = (Number(slider.value) + 1) % (Number(slider.max) + 1);
        await frame();
        const start = performance.now();
        window.requestAnimationFrame = (f) => { draw = f; return 0; };
        slider.dispatchEvent(new Event("input", { bubbles: true }));
        window.requestAnimationFrame = later;
        draw?.(performance.now());
        el.getBoundingClientRect();
        work.push(performance.now() - start);
        await frame();
        paint.push(performance.now() - start);
    }
    return [median(work), median(paint)];
}"""


def medians(page: Page, id: str) -> tuple[float, float]:
    """Milliseconds of work, and until the next frame begins, at the median of STEPS steps."""
    return tuple(page.evaluate(MEASURE, [id, STEPS]))


def main() -> None:
    """Print the medians for both pictures."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = write(Path(folder) / "page.html", linear(), linear(view="formula", id="curve"))
        path = browser.find(playwright.chromium.executable_path)
        if path is None:
            sys.exit(browser.MISSING)
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = running.new_page(viewport={"width": 1280, "height": 1000})
        page.goto(page_file.as_uri())
        page.wait_for_selector("#curve svg .rl-point")
        print(f"Chromium {running.version}, {STEPS} steps, medians in milliseconds")
        print(f"{'slider':<34}{'work':>8}{'to the next frame':>20}")
        for id, name in (
            ("explore-linear-m", "roofline, M (the point moves)"),
            ("explore-linear-n", "roofline, N (leaves the evidence)"),
            ("curve-m", "formula, M (the point moves)"),
            ("curve-k", "formula, K (the curve moves)"),
        ):
            work, paint = medians(page, id)
            print(f"{name:<34}{work:>8.2f}{paint:>20.2f}")
        running.close()


if __name__ == "__main__":
    main()
