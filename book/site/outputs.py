"""Strips notebooks; or first runs them, and keeps what cells tagged keep_output printed.

    python book/site/outputs.py NOTEBOOK...          # strip
    python book/site/outputs.py --run NOTEBOOK...    # run, then strip

The tests compare the outputs of the tagged cells, and take only cells with an execution count for
run; so those keep one, always 1, whatever else ran before.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbstripout import strip_output

EXTRA_KEYS = ["metadata.widgets", "cell.metadata.execution", "cell.metadata.collapsed"]


def stripped(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook without outputs (tagged cells keep theirs) and without traces of a machine."""
    notebook = strip_output(
        notebook, keep_output=False, keep_count=False, keep_id=True, extra_keys=EXTRA_KEYS
    )
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        **{key: value for key, value in notebook.metadata.items() if key == "myst"},
    }
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.outputs:
            cell.execution_count = 1
    return notebook


def main(arguments: list[str]) -> None:
    """Rewrites each notebook that differs."""
    run = "--run" in arguments
    for path in (Path(a) for a in arguments if a != "--run"):
        text = path.read_text(encoding="utf-8")
        notebook = nbformat.reads(text, as_version=4)
        if run:
            print(f"running {path} ...", flush=True)
            NotebookClient(
                notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}
            ).execute()
        new = nbformat.writes(stripped(notebook)) + "\n"
        if new != text:
            temporary = path.with_suffix(".new")
            temporary.write_text(new, encoding="utf-8")
            temporary.replace(path)
            print(f"rewrote {path}")


if __name__ == "__main__":
    main(sys.argv[1:])
