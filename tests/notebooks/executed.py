"""The notebooks as they were run, once: by the build of the site, whose cache keeps what they printed.

`executed(path)` takes a chapter's run from that cache if it is fresh, by the same fingerprint that the
site goes by, and runs the notebook otherwise. `problems` holds a run against the stored notebook,
as strictly as nbval does: same outputs, same kinds of them, same order; no error, nothing on stderr.
"""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import nbformat
from jupyter_cache import get_cache
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "_build" / ".jupyter_cache"
CHECKED = "nbval-check-output"
SECONDS = 300  # for a cell

sys.path.insert(0, str(ROOT / "book" / "site" / "extensions"))

from fresh import fingerprint_of, fingerprints  # noqa: E402

# What differs from run to run and says nothing: the same list as nbval's.
SKIPPED = {
    "metadata",
    "traceback",
    "prompt_number",
    "output_type",
    "name",
    "execution_count",
    "application/vnd.jupyter.widget-view+json",
    "image/png",
    "image/jpeg",
}
_RETURN = re.compile(r"^.*\r(?=[^\n])", re.MULTILINE)
_BACKSPACE = re.compile(r"[^\n]\x08")


def cached(path: Path, root: Path = ROOT, cache: Path = CACHE) -> NotebookNode | None:
    """The notebook as the site's build ran it; None if it did not, or if something changed since."""
    notebook = nbformat.read(path, 4)
    page = path.relative_to(root).with_suffix("").as_posix()
    if not cache.is_dir() or fingerprints(cache).get(page) != fingerprint_of(notebook, root):
        return None
    store = get_cache(cache)
    try:
        return store.get_cache_bundle(store.match_cache_notebook(notebook).pk).nb
    except KeyError:
        return None


def run(path: Path, folder: Path | None = None) -> NotebookNode:
    """The notebook run now, in `folder` (None: its own), to its end even if cells fail."""
    notebook = nbformat.read(path, 4)
    # A reader has no TRITON_INTERPRET; the tests of the kernels, in the same process, set one.
    env = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    where = {"metadata": {"path": str(folder or path.parent)}}
    NotebookClient(notebook, timeout=SECONDS, allow_errors=True, resources=where).execute(env=env)
    return notebook


def executed(path: Path, root: Path = ROOT, cache: Path = CACHE) -> NotebookNode:
    """The run of record: from the site's cache if it is fresh, else of now.

    Where $SITE_IS_BUILT is 1 the build has just run every chapter, so raises AssertionError if the
    cache has it not: build and test then disagree about what is fresh, and all would run twice.
    """
    found = cached(path, root, cache)
    if found is None and os.environ.get("SITE_IS_BUILT") == "1" and path.parent.name == "chapters":
        raise AssertionError(f"{path.name}: the site was just built, and its cache has no fresh run of it.")
    return found or run(path)


def problems(stored: NotebookNode, ran: NotebookNode) -> list[str]:
    """What is wrong with a run, in sentences: errors, noise, outputs other than the stored ones."""
    found = []
    pairs = zip(_code(stored), _code(ran), strict=True)
    for number, (reference, cell) in enumerate(pairs):
        where = f"code cell {number} ({cell.source.splitlines()[0] if cell.source else 'empty'})"
        for output in cell.outputs:
            if output.output_type == "error":
                found.append(f"{where} raised {output.ename}: {output.evalue}")
            elif output.output_type == "stream" and output.name == "stderr":
                found.append(f"{where} printed to stderr: {output.text.strip()[:300]}")
        if CHECKED in reference.metadata.get("tags", ()):
            found += [f"{where} {difference}" for difference in _differences(reference, cell)]
    return found


def _code(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _differences(reference: NotebookNode, cell: NotebookNode) -> list[str]:
    if reference.execution_count is None:
        return ["is tagged to be compared but was never run: `make outputs` runs it and keeps its output."]
    wanted, got = by_kind(reference.outputs), by_kind(cell.outputs)
    missing, more = wanted.keys() - got.keys(), got.keys() - wanted.keys()
    found = [f"has no {kind}, which is stored" for kind in sorted(missing)]
    found += [f"has {kind}, which is not stored" for kind in sorted(more)]
    for kind in sorted(wanted.keys() & got.keys()):
        if wanted[kind] != got[kind]:
            found.append(f"{kind}: stored\n{_shown(wanted[kind])}\nbut printed\n{_shown(got[kind])}")
    return found


def by_kind(outputs: list[NotebookNode]) -> dict[str, list[Any]]:
    """Stream name or MIME type -> its outputs, in order; the parts of a stream as one.

    In how many parts a stream arrives is a matter of the machine's load.
    """
    kinds: dict[str, list[Any]] = defaultdict(list)
    streams: dict[str, str] = defaultdict(str)
    for output in outputs:
        if output.output_type == "stream":
            streams[output.name] += output.text
        else:
            for key, value in [*output.items(), *output.get("data", {}).items()]:
                if key not in SKIPPED and key != "data":
                    kinds[key].append(value)
    for name, text in streams.items():
        kinds[name] = [_as_on_screen(text)]
    return dict(kinds)


def _as_on_screen(text: str) -> str:
    """Without what a backspace or a carriage return wiped out."""
    shorter = _BACKSPACE.sub("", text)
    while shorter != text:
        text, shorter = shorter, _BACKSPACE.sub("", shorter)
    return _RETURN.sub("", text)


def _shown(values: list[Any]) -> str:
    return "\n".join(str(value).rstrip()[:2000] for value in values)
