"""The built site in a real browser. Whatever goes wrong on a page fails the test that opened it.

`site` is the folder of the built site, `server` its address on loopback (gzip, as on a real server).
`page` and `context` are Playwright's; they fail the test on a console error, an uncaught exception,
a failed request, or a request that leaves the site, over http and from disk alike.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright

from tests.site.built import HTML, ROOT

sys.path.insert(0, str(ROOT / "book" / "site"))

import browser as chromium  # noqa: E402
import serve  # noqa: E402


def watch(context: BrowserContext, address: str) -> list[str]:
    """A list that fills with everything that goes wrong in `context`, in words."""
    problems: list[str] = []
    inside = (address, "data:", "blob:", "about:")

    def on_console(message) -> None:
        if message.type == "error":
            problems.append(f"console: {message.text} ({message.location.get('url', '')})")

    def on_request(request) -> None:
        if not request.url.startswith(inside):
            problems.append(f"request leaves the site: {request.url}")

    context.on("console", on_console)
    context.on("weberror", lambda error: problems.append(f"exception: {error.error}"))
    context.on("request", on_request)
    context.on("requestfailed", lambda r: problems.append(f"request failed: {r.url} ({r.failure})"))
    context.on("response", lambda r: r.status >= 400 and problems.append(f"HTTP {r.status}: {r.url}"))
    return problems


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the built site, brought up to date once for a run of the tests."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
    marker = ROOT / "_build" / "tested"
    (ROOT / "_build").mkdir(exist_ok=True)
    with FileLock(ROOT / "_build" / "tested.lock"):
        # `make test` has just built it and says so
        if os.environ.get("SITE_IS_BUILT") != "1" and not (
            marker.exists() and marker.read_text(encoding="utf-8") == run
        ):
            built = subprocess.run(
                ["make", "--no-print-directory", "site"],
                cwd=ROOT,
                capture_output=True,
                text=True,
                encoding="utf-8",
            )
            assert built.returncode == 0, f"make site failed:\n{built.stdout[-3000:]}\n{built.stderr[-6000:]}"
            marker.write_text(run, encoding="utf-8")
    return HTML


@pytest.fixture(scope="session")
def server(site: Path) -> Iterator[str]:
    """The site's address, without a slash at its end."""
    running = serve.open_server(site)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}"
    running.shutdown()


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    """Playwright itself, started once."""
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """A headless Chromium. With none to be had the tests fail and say so; they are never skipped."""
    own = playwright.chromium.executable_path
    path = chromium.find(own)
    if path is None:
        pytest.fail(chromium.MISSING, pytrace=False)
    sandbox = [] if os.geteuid() else ["--no-sandbox"]
    running = playwright.chromium.launch(executable_path=path, args=[*sandbox, "--disable-dev-shm-usage"])
    yield running
    running.close()


@contextmanager
def watched(browser: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """A function that opens a context; at the end whatever went wrong in any of them is an error."""
    made: list[tuple[BrowserContext, list[str]]] = []

    def make(address: str, **options) -> BrowserContext:
        context = browser.new_context(**options)
        made.append((context, watch(context, address)))
        return context

    yield make
    problems = []
    for context, found in made:
        context.close()
        problems += found
    assert not problems, "\n".join(dict.fromkeys(problems))


@pytest.fixture
def new_context(browser: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """A function of an address (and Playwright's options) that opens a watched browser context."""
    with watched(browser) as make:
        yield make


@pytest.fixture(scope="module")
def lasting_context(browser: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """`new_context` for the tests of a file together: what goes wrong fails the last of them."""
    with watched(browser) as make:
        yield make


@pytest.fixture
def context(new_context, server: str) -> BrowserContext:
    """A watched context for pages over http."""
    return new_context(server)


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """A watched page; open `server + "/index.html"` in it."""
    return context.new_page()


@pytest.fixture
def disk_page(new_context, site: Path) -> Page:
    """A watched page for the site opened from disk: open `(site / "index.html").as_uri()`."""
    return new_context(site.as_uri()).new_page()
