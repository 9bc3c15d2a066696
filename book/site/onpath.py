"""Makes `book` and `kernels` importable in this environment, from any folder. Called by venv.sh.

A .pth file in site-packages holds the repository's root. Python appends such paths to the end; the
one line of code puts ours in front, because other packages are called `kernels`, too.
"""

from __future__ import annotations

import sysconfig
from pathlib import Path

NAME = "inference_roofline.pth"


def write(root: Path, packages: Path) -> Path:
    """Write the file into the folder `packages`, in one step. Returns its path.

    All in ASCII: Python 3.11 reads such a file in the encoding of the locale.
    """
    file = packages / NAME
    unfinished = file.with_suffix(".tmp")
    unfinished.write_text(f"import sys; sys.path.insert(0, {ascii(str(root))})\n", encoding="utf-8")
    unfinished.replace(file)
    return file


if __name__ == "__main__":
    write(Path(__file__).resolve().parents[2], Path(sysconfig.get_paths()["purelib"]))
