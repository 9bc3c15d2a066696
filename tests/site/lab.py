"""A real JupyterLab on loopback for the tests: folders of its own, no news, nothing left behind."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page

PATIENCE = 90  # seconds to wait for a server or a cell; on an idle machine both take three
FOLDERS = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
# Unasked, JupyterLab looks for newer extensions, for news and for a newer JupyterLab.
SERVER = {
    "LabApp": {
        "extension_manager": "readonly",
        "news_url": None,
        "check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        "expose_app_in_browser": True,
    },
    "ServerApp": {"ip": "127.0.0.1", "port": 0, "open_browser": False, "allow_root": True},
}
NO_NEWS = {"fetchNews": "false", "checkForUpdates": False}


def _write(file: Path, values: dict) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(values), encoding="utf-8")


def _address(folder: Path) -> str | None:
    """The server's address once it has written it down."""
    try:
        return json.loads(next(folder.glob("jpserver-*.json")).read_text(encoding="utf-8"))["url"].rstrip("/")
    except (StopIteration, json.JSONDecodeError):  # not there yet, or half written
        return None


@contextmanager
def running(notebooks: Path, own: Path, *, pythonpath: Path) -> Iterator[tuple[str, str]]:
    """JupyterLab on the folder `notebooks`, its own files in `own`. Yields (address, token)."""
    folders = {name: own / name.lower() for name in FOLDERS}
    for folder in folders.values():
        folder.mkdir(parents=True)
    _write(folders["JUPYTER_CONFIG_DIR"] / "jupyter_server_config.json", SERVER)
    settings = folders["JUPYTER_CONFIG_DIR"] / "lab/user-settings/@jupyterlab"
    _write(settings / "apputils-extension/notification.jupyterlab-settings", NO_NEWS)
    token = secrets.token_hex(16)
    named = {name: str(folder) for name, folder in folders.items()}
    environment = {**os.environ, **named, "JUPYTER_TOKEN": token, "PYTHONPATH": str(pythonpath)}
    log = own / "log.txt"
    with log.open("w", encoding="utf-8") as out:
        command = [sys.executable, "-m", "jupyter", "lab", f"--notebook-dir={notebooks}"]
        server = subprocess.Popen(command, cwd=notebooks, env=environment, stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + PATIENCE
        while (address := _address(folders["JUPYTER_RUNTIME_DIR"])) is None:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8')[-3000:]}")
            time.sleep(0.1)
        yield address, token
    finally:
        server.terminate()  # it ends its kernels too
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()


def open_notebook(page: Page, address: str, token: str, name: str) -> None:
    """Open a notebook of that server, kernel started, nothing run yet."""
    page.goto(f"{address}/lab/tree/{name}?token={token}")
    page.wait_for_function("globalThis.jupyterapp !== undefined", timeout=1000 * PATIENCE)
    page.evaluate(
        """async () => {
            const app = globalThis.jupyterapp;
            await app.restored;
            const context = () => app.shell.currentWidget?.context?.sessionContext;
            while (!context()?.session?.kernel) await new Promise((done) => setTimeout(done, 50));
            await context().ready;
            await app.commands.execute("application:toggle-left-area");
        }"""
    )


def choose_theme(page: Page, dark: bool) -> None:
    """Settings > Theme."""
    theme = "JupyterLab Dark" if dark else "JupyterLab Light"
    page.evaluate(
        "(theme) => globalThis.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme
    )
    page.wait_for_selector(f'body[data-jp-theme-name="{theme}"]', state="attached")


def run_all(page: Page) -> list[str]:
    """Run > Run All Cells. What went wrong or was said on stderr, with the cell's number."""
    return page.evaluate(
        """async () => {
            const app = globalThis.jupyterapp, cells = app.shell.currentWidget.content.widgets;
            await app.commands.execute("notebook:run-all-cells");
            return cells.flatMap((cell, i) => (cell.model.outputs?.toJSON() ?? [])
                .filter((o) => o.output_type === "error" || o.name === "stderr")
                .map((o) => `cell ${i}: ${o.evalue ?? [o.text].flat().join("")}`));
        }"""
    )


def run(page: Page, code: str) -> str:
    """Write `code` into the notebook's last cell and run that cell; what it printed."""
    return page.evaluate(
        """async (code) => {
            const app = globalThis.jupyterapp, notebook = app.shell.currentWidget.content;
            notebook.activeCellIndex = notebook.widgets.length - 1;
            notebook.activeCell.model.sharedModel.setSource(code);
            await app.commands.execute("notebook:run-cell");
            const outputs = notebook.activeCell.model.outputs.toJSON();
            return outputs.map((o) => [o.text ?? o.evalue ?? ""].flat().join("")).join("");
        }""",
        code,
    ).strip()
