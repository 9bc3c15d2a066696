"""What a fresh machine meets: the environment's script and the server, and the sentences when they can't."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

from tests.site.built import ROOT

sys.path.insert(0, str(ROOT / "book" / "site"))

import browser as chromium  # noqa: E402
import serve  # noqa: E402


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository that has nothing but the script."""
    (tmp_path / "book" / "site").mkdir(parents=True)
    shutil.copy(ROOT / "book" / "site" / "venv.sh", tmp_path / "book" / "site")
    (tmp_path / "requirements.txt").write_text("", encoding="utf-8")
    return tmp_path


def make_environment(clone: Path, python: str) -> subprocess.CompletedProcess[str]:
    """Runs venv.sh with a stand-in for Python, a shell script."""
    fake = clone / "python"
    fake.write_text(f"#!/bin/sh\n{python}\n", encoding="utf-8")
    fake.chmod(0o755)
    return subprocess.run(
        ["sh", "book/site/venv.sh"],
        cwd=clone,
        env={**os.environ, "PYTHON": str(fake)},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


def test_an_old_python_gets_a_sentence(clone):
    made = make_environment(clone, 'case $1 in --version) echo "Python 3.8.1";; *) exit 1;; esac')
    assert made.returncode == 1
    assert "needs Python 3.11 or newer" in made.stderr and "Python 3.8.1" in made.stderr
    assert "make book PYTHON=" in made.stderr
    assert not (clone / ".venv").exists()


def test_a_python_without_venv_gets_a_sentence(clone):
    made = make_environment(clone, "case $1 in -m) exit 1;; --version) echo Python 3.11.2;; esac")
    assert made.returncode == 1
    assert "apt-get install python3-venv" in made.stderr
    assert not (clone / ".venv").exists(), "a half-made environment would look finished"


def test_a_failed_installation_is_a_failure(clone):
    (clone / "requirements.txt").write_text("--no-index\nno-such-package-of-this-book==1\n", encoding="utf-8")
    made = make_environment(clone, f'exec {sys.executable} "$@"')
    assert made.returncode != 0
    assert "no-such-package-of-this-book" in made.stderr


def test_a_busy_port_gives_way_to_the_next(tmp_path):
    first = serve.open_server(tmp_path)
    second = serve.open_server(tmp_path, first.server_port, tries=20)
    assert first.server_port < second.server_port <= first.server_port + 19
    with pytest.raises(OSError):
        serve.open_server(tmp_path, first.server_port, tries=1)
    first.server_close()
    second.server_close()


def test_the_server_stays_on_this_machine_and_compresses(tmp_path):
    (tmp_path / "index.html").write_text("roofline " * 1000, encoding="utf-8")
    server = serve.open_server(tmp_path)
    assert server.server_address[0] == "127.0.0.1"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.server_port}/", headers={"Accept-Encoding": "gzip"}
    )
    with urllib.request.urlopen(request) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert len(answer.read()) < 500
    server.shutdown()


def test_a_browser_is_found_by_its_variable_first(monkeypatch):
    monkeypatch.setenv("CHROMIUM", "/somewhere/chrome")
    assert chromium.find() == "/somewhere/chrome"


def test_without_any_browser_none_is_found(monkeypatch, tmp_path):
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(chromium, "MAC", tmp_path / "none")
    assert chromium.find(own=str(tmp_path / "none")) is None
    assert "CHROMIUM=" in chromium.MISSING


@pytest.fixture
def debian(monkeypatch, tmp_path):
    """A Debian where we are root, with these programs on the PATH and no other; what apt-get is asked for."""
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(chromium.os, "geteuid", lambda: 0, raising=False)
    asked = []

    def have(*programs, packages=()):
        for program in programs:
            (tmp_path / program).touch(0o755)

        def apt(command, **_):
            asked.append(command[-1])
            if command[-1] in packages:
                (tmp_path / command[-1]).touch(0o755)

        monkeypatch.setattr(chromium.subprocess, "run", apt)
        return asked

    return have


def test_the_tests_open_a_chromium_without_windows_though_another_is_there(debian, tmp_path):
    asked = debian("apt-get", "chromium", packages=[chromium.SHELL])
    assert chromium.install() == str(tmp_path / chromium.SHELL)
    assert chromium.SHELL in asked
    asked.clear()
    assert chromium.install() == str(tmp_path / chromium.SHELL) and asked == []


def test_where_it_can_not_be_had_the_other_does(debian, tmp_path):
    debian("apt-get", "chromium")
    assert chromium.install() == str(tmp_path / "chromium")


def test_a_browser_that_is_named_is_all_that_is_asked_for(debian, monkeypatch):
    asked = debian("apt-get")
    monkeypatch.setenv("CHROMIUM", "/somewhere/chrome")
    assert chromium.install() == "/somewhere/chrome" and asked == []
