"""The two commands; see `book.messages`.

python -m book.messages extract
python -m book.messages compile
"""

from __future__ import annotations

import argparse
from pathlib import Path

from book.messages import catalogs


def main() -> None:
    """Extract the templates, or compile the catalogs, and print what was written."""
    parser = argparse.ArgumentParser(prog="python -m book.messages", description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("extract", "compile"))
    parser.add_argument("--to", type=Path, default=catalogs.TEMPLATES, help="folder of the templates")
    asked = parser.parse_args()
    if asked.what == "extract":
        for path, count in catalogs.extract(asked.to):
            print(f"{path}: {count} messages")
    else:
        for path in catalogs.compile_all():
            print(path)


if __name__ == "__main__":
    main()
