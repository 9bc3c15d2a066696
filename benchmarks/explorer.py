"""How long one step of a slider takes until the page is painted, in headless Chromium.

    python -m benchmarks.explorer

Each step moves a slider at the start of an animation frame, draws in that frame, and ends with the
first task after it: script, style, layout and paint are in, the wait for a 60 Hz screen is not.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "book" / "site")]

import browser  # noqa: E402

from book.widgets.explorer import explore  # noqa: E402
from tests import formulas  # noqa: E402
from tests.site.explorer_page import linear, write  # noqa: E402

STEPS = 80
MEASURE = """async ([id, steps]) => {
    const slider = document.getElementById(id);
    const frame = window.requestAnimationFrame;
    const times = [];
    const step = () => new Promise((done) => frame(() => {
        const start = performance.now();
        slider.value = (Number(slider.value) + 1) % (Number(slider.max) + 1);
        let draw;
        window.requestAnimationFrame = (f) => { draw = f; return 0; }; // in this frame, not in the next
        slider.dispatchEvent(new Event("input", { bubbles: true }));
        window.requestAnimationFrame = frame;
        draw(start);
        const painted = new MessageChannel();
        painted.port1.onmessage = () => { times.push(performance.now() - start); done(); };
        painted.port2.postMessage(null);
    }));
    for (let i = 0; i < steps; i++) await step();
    return times.sort((a, b) => a - b);
}"""


def repaint(page: Page, id: str) -> tuple[float, float]:
    """Milliseconds from a step to its repaint: the median, and nine out of ten."""
    times = page.evaluate(MEASURE, [id, STEPS])
    return times[len(times) // 2], times[len(times) * 9 // 10]


def main() -> None:
    """Print the times for every kind of picture."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = write(
            Path(folder) / "page.html",
            linear(),
            linear(view="formula", id="curve"),
            *(explore(f, id=f.name) for f in (formulas.decode_step, formulas.step_law)),
        )
        path = browser.find(playwright.chromium.executable_path)
        if path is None:
            sys.exit(browser.MISSING)
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = running.new_page(viewport={"width": 1280, "height": 1000})
        page.goto(page_file.as_uri())
        page.wait_for_selector("#curve svg .rl-point")
        print(f"Chromium {running.version}, {STEPS} steps, milliseconds from a step to its repaint")
        print(f"{'slider':<34}{'median':>8}{'9 in 10':>10}")
        for id, name in (
            ("explore-linear-m", "roofline, M (the point moves)"),
            ("explore-linear-n", "roofline, N (leaves the evidence)"),
            ("curve-m", "formula, M (the point moves)"),
            ("curve-k", "formula, K (the curve moves)"),
            ("decode_step-context", "bars, S (the bars move)"),
            ("decode_step-batch", "bars, B (and the shares)"),
            ("step_law-length", "timeline, L (all of it moves)"),
        ):
            median, most = repaint(page, id)
            print(f"{name:<34}{median:>8.1f}{most:>10.1f}")
        running.close()


if __name__ == "__main__":
    main()
