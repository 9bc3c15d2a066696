"""Code that `labs.releasing.copies` puts, word for word, into a hidden test: it brings the key along."""


def _unpack_key(packed):
    import base64
    import importlib
    import json
    import lzma
    from pathlib import Path

    import labs

    # Beside the modules that the set-up cell unpacked, so that child processes find them as well.
    folder = Path(labs.__file__).resolve().parents[1]
    if (folder / "pyproject.toml").exists():
        return  # a clone, which has the key already
    for name, text in json.loads(lzma.decompress(base64.b85decode("".join(packed.split())))).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    importlib.invalidate_caches()
