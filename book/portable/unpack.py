"""The code of a self-contained notebook's first cell. `book.portable.bundle` copies it there word for word.

It may use nothing but the standard library, and must parse in every Python 3, to say which one it needs.
"""


def _set_up(version, packed):
    import sys

    if sys.version_info < (3, 11):  # noqa: UP036
        here = ".".join(map(str, sys.version_info[:2]))
        raise RuntimeError(
            f"This is Python {here}, and this notebook needs 3.11 or newer. Open it on Colab, or choose "
            "a kernel with a newer Python."
        )
    import base64
    import importlib
    import json
    import lzma
    import os
    import tempfile
    from pathlib import Path

    text = lzma.decompress(base64.b85decode("".join(packed.split())))
    files = {name: content.encode() for name, content in json.loads(text).items()}

    def has(path, content):
        return path.is_file() and path.read_bytes() == content

    def unpack(folder):
        """Write what is missing or damaged, each file in one step; how many that were."""
        wanted = {folder / name: content for name, content in files.items()}
        missing = {path: content for path, content in wanted.items() if not has(path, content)}
        for path, content in missing.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, new = tempfile.mkstemp(dir=path.parent, prefix=path.name)
            with os.fdopen(handle, "wb") as out:
                out.write(content)
            os.replace(new, path)
        return len(missing)

    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = cache / "inference-roofline" / "notebooks" / version
        written = unpack(folder)
    except (OSError, RuntimeError):  # no home, or nothing can be written there
        folder = Path(tempfile.mkdtemp(prefix="inference-roofline-"))
        written = unpack(folder)

    sys.path[:] = [str(folder)] + [entry for entry in sys.path if entry != str(folder)]
    importlib.invalidate_caches()
    # Another package of such a name, or another version of ours, may have been imported before.
    ours = {name.split("/")[0] for name in files}
    for name, module in list(sys.modules.items()):
        origin = getattr(module, "__file__", None) or ""
        if name.split(".")[0] in ours and not origin.startswith(str(folder) + os.sep):
            del sys.modules[name]
    done = "unpacked to" if written else "were already in"
    print(f"The Inference Roofline, version {version}: {len(files)} files {done} {folder}")
