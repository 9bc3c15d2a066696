"""Times the built pages in a headless Chromium: bytes, the first slider, and a slider's step.

    make benchmark

Prints a table; asserts nothing. What the book aims at: under 750 kB a page with gzip, the first
slider usable within 2 s, a slider's step repainted within 16 ms at the median.
"""

from __future__ import annotations

import os
import statistics
import sys
import threading
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "book" / "site")]

import browser as chromium  # noqa: E402
import serve  # noqa: E402

from tests.site.built import HTML, pages  # noqa: E402

SLIDER = ".rl-alive input[type=range]"
STEPS = 60

# What a step costs: the input event, then the frame's callbacks and its layout, without the wait
# between them. The first callback stands before the page's own in the frame, the last after it.
STEP = """async ([selector, steps]) => {
  const slider = document.querySelector(selector), times = [];
  for (let i = 0; i < steps; i++) {
    let begin, end, spent;
    const first = new Promise(done => requestAnimationFrame(() => { begin = performance.now(); done(); }));
    slider.value = +slider.min + (+slider.max - +slider.min) * i / steps;
    const event = performance.now();
    slider.dispatchEvent(new Event("input", {bubbles: true}));
    document.body.getBoundingClientRect();
    spent = performance.now() - event;
    const last = new Promise(done => requestAnimationFrame(() => {
      document.body.getBoundingClientRect(); end = performance.now(); done();
    }));
    await Promise.all([first, last]);
    times.push(spent + end - begin);
  }
  return times;
}"""


def measure(running: Browser, address: str) -> tuple[float, float | None, float | None]:
    """Bytes transferred, seconds to the first usable slider, and milliseconds a step, at the median."""
    context = running.new_context()
    page = context.new_page()
    network = context.new_cdp_session(page)
    network.send("Network.enable")
    sizes: list[float] = []
    network.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    begin = time.perf_counter()
    page.goto(address, wait_until="commit")
    first = step = None
    page.wait_for_load_state("domcontentloaded")
    if page.locator("div.rl-live[data-kind=explorer]").count():
        page.locator(SLIDER).first.wait_for()
        first = time.perf_counter() - begin
    page.wait_for_load_state("networkidle")
    if first is not None:
        step = statistics.median(page.evaluate(STEP, [SLIDER, STEPS]))
    context.close()
    return sum(sizes), first, step


def main() -> None:
    """Prints a row for each page."""
    path = chromium.find()
    if path is None:
        sys.exit(chromium.MISSING)
    server = serve.open_server(HTML)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"{'page':36} {'gzip':>10} {'first slider':>13} {'slider step':>12}")
    with sync_playwright() as playwright:
        sandbox = [] if os.geteuid() else ["--no-sandbox"]
        running = playwright.chromium.launch(executable_path=path, args=sandbox)
        for name in pages():
            size, first, step = measure(running, f"http://127.0.0.1:{server.server_port}/{name}")
            told = (
                (f"{first:10.2f} s ", f"{step:9.1f} ms")
                if first is not None and step is not None
                else ("", "")
            )
            print(f"{name:36} {size / 1e3:7.0f} kB {told[0]:>13} {told[1]:>12}")
        running.close()


if __name__ == "__main__":
    main()
