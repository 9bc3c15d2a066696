"""What a program finds inside its sandbox: its environment variables, and which folders of this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
# A Debian keeps /lib and so on as links into /usr; an older one has folders there.
TOP = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Not all of /usr: a repository at /usr/src/app would come along.
USR = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "libexec", "include", "share", "local")
# The loader's cache, and where /usr/bin/cc leads; /sys for torch's look at the processor.
OTHER = ("/etc/ld.so.cache", "/etc/alternatives", "/sys/devices/system/cpu")
NOBODY = 65534

SCRATCH = "/tmp"  # inside: all that a program may write to, and in it its home and where it starts
HOME, WORK = f"{SCRATCH}/home", f"{SCRATCH}/work"


def environment(extra: Mapping[str, str], answer_fd: int, scratch: str = SCRATCH) -> dict[str, str]:
    """The whole environment of the program. Nothing of the grader's: no tokens, no proxies."""
    made = {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": f"{scratch}/home",
        "TMPDIR": scratch,
        "USER": "student",
        "LOGNAME": "student",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "TRITON_CACHE_DIR": f"{scratch}/triton",
        "TORCHINDUCTOR_CACHE_DIR": f"{scratch}/inductor",
        "MPLCONFIGDIR": f"{scratch}/matplotlib",
        **dict.fromkeys(ONE_THREAD, "1"),
    }
    # A Python built as a shared library may need its folder named (GitHub's setup-python does).
    near = tuple(f"{folder}/" for folder in python_folders())
    libraries = [p for p in os.environ.get("LD_LIBRARY_PATH", "").split(":") if f"{p}/".startswith(near)]
    if libraries:
        made["LD_LIBRARY_PATH"] = ":".join(libraries)
    return made | dict(extra) | {"ROOFLINE_ANSWER_FD": str(answer_fd)}


def accounts(user: int) -> dict[str, bytes]:
    """The files that name the users: root, and the one that the program runs as."""
    return {
        "/etc/passwd": f"root:x:0:0::/:/bin/false\nstudent:x:{user}:{user}::{HOME}:/bin/sh\n".encode(),
        "/etc/group": f"root:x:0:\nstudent:x:{user}:\n".encode(),
    }


def python_folders() -> list[Path]:
    """The folders that this Python lives in: the environment, its base, and where links lead on the way.

    .venv/bin/python is a link to another Python, perhaps through more links (pyenv, uv, conda, Debian).
    """
    folders = {Path(p) for p in (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)}
    hop = Path(sys.executable)
    for _ in range(40):
        if not any(hop.is_relative_to(folder) for folder in folders):
            folders.add(hop.parent.parent if hop.parent.name == "bin" else hop.parent)
        if not hop.is_symlink():
            break
        hop = Path(os.path.realpath(hop.parent)) / os.readlink(hop)
        hop = Path(os.path.normpath(hop))
    return sorted(folders)


def mounts(files: Mapping[str, Path]) -> list[tuple[str, str, str]]:
    """What to mount, parents first: ("bind", from, to), ("link", target, at) or ("empty", "", at).

    Raises ValueError when the environment is the repository's own folder, which can't be shown in part.
    """
    binds = {f"/usr/{name}": f"/usr/{name}" for name in USR} | {path: path for path in (*TOP, *OTHER)}
    system = set(binds)
    folders = python_folders()
    for folder in folders:
        if folder == ROOT or folder == Path("/"):
            raise ValueError(
                f"The Python environment is {folder} itself, so the repository can't be hidden. "
                "Make one in a folder of its own, such as .venv."
            )
        if not any(folder.is_relative_to(path) for path in binds):
            binds[str(folder)] = str(folder)
    made = []
    for at, source in binds.items():
        if at in system and os.path.islink(source):
            made.append(("link", os.readlink(source), at))
        elif os.path.exists(source):
            made.append(("bind", source, at))
    if any(ROOT.is_relative_to(at) for kind, _, at in made if kind == "bind"):
        made.append(("empty", "", str(ROOT)))
        made += [("bind", str(f), str(f)) for f in folders if f.is_relative_to(ROOT) and str(f) not in binds]
    made += [("bind", str(outside), at) for at, outside in files.items()]
    return sorted(made, key=lambda mount: len(Path(mount[2]).parts))


def parents(paths: list[str]) -> list[str]:
    """Every folder above the paths, outermost first, without the root."""
    above = {str(parent) for path in paths for parent in Path(path).parents}
    return sorted(above - {"/"}, key=lambda path: len(Path(path).parts))
