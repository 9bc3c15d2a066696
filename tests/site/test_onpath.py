"""The environment's own interpreter finds the book from any folder, as the kernel of an editor needs."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.site.built import ROOT

sys.path.insert(0, str(ROOT / "book" / "site"))

import onpath  # noqa: E402


def python(code: str, folder: Path, packages: Path) -> str:
    """Runs `code` as an interpreter whose site-packages are `packages`, with nothing on PYTHONPATH."""
    bare = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    run = f"import site; site.addsitedir({str(packages)!r})\n{code}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", run],
        cwd=folder,
        env=bare,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_root_comes_first_from_any_folder(tmp_path):
    root, packages = tmp_path / "it's a root", tmp_path / "packages"
    (root / "kernels").mkdir(parents=True)
    (root / "kernels/__init__.py").write_text("whose = 'ours'", encoding="utf-8")
    (packages / "kernels").mkdir(parents=True)  # a distribution of the same name
    (packages / "kernels/__init__.py").write_text("whose = 'theirs'", encoding="utf-8")
    see = "import kernels; print(kernels.whose)"
    assert python(see, tmp_path, packages) == "theirs"
    assert onpath.write(root, packages).read_text(encoding="utf-8").count("\n") == 1
    assert python(see, tmp_path, packages) == "ours"
    assert [file.name for file in packages.iterdir() if file.suffix == ".tmp"] == []


def test_making_the_environment_writes_it():
    """`make` ran venv.sh for the interpreter that runs this test, if that is the book's own."""
    assert "book/site/onpath.py" in (ROOT / "book/site/venv.sh").read_text(encoding="utf-8")
    own = Path(sysconfig.get_paths()["purelib"])
    if own.is_relative_to(ROOT):
        assert str(ROOT) in (own / onpath.NAME).read_text(encoding="utf-8")
