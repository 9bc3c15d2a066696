"""Serves a built site on loopback, with gzip, as a web server would.

python book/site/serve.py            # _build/html, on port 8000 or the next free one
"""

from __future__ import annotations

import argparse
import gzip
import sys
from functools import lru_cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
COMPRESSIBLE = {".html", ".css", ".js", ".json", ".svg", ".ttf", ".txt", ".ipynb", ".xml"}


@lru_cache(maxsize=512)
def _compressed(path: str, mtime: float) -> bytes:
    return gzip.compress(Path(path).read_bytes(), 6)


class Handler(SimpleHTTPRequestHandler):
    """Static files, compressed where that helps, without a line of log per request."""

    extensions_map = {**SimpleHTTPRequestHandler.extensions_map, ".js": "text/javascript"}

    def do_GET(self) -> None:
        """Answers with the file, gzipped if it is text and the browser takes that."""
        path = Path(self.translate_path(self.path))
        if path.is_dir():
            path = path / "index.html"
        accepts = "gzip" in self.headers.get("Accept-Encoding", "")
        if not (accepts and path.suffix in COMPRESSIBLE and path.is_file()):
            super().do_GET()
            return
        body = _compressed(str(path), path.stat().st_mtime)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Silent."""


def open_server(folder: Path, port: int = 0, tries: int = 1) -> ThreadingHTTPServer:
    """A server on 127.0.0.1 at `port` or, while that is taken, the next ones.

    Raises OSError if all `tries` ports are taken. Port 0 is any free one.
    """
    for offset in range(tries):
        try:
            return ThreadingHTTPServer(("127.0.0.1", port + offset), partial(Handler, directory=str(folder)))
        except OSError:
            if offset == tries - 1:
                raise
    raise AssertionError("unreachable")


def main() -> None:
    """Serves until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8000, help="first port to try")
    port = parser.parse_args().port
    if not (SITE / "index.html").exists():
        sys.exit(f"No site in {SITE}: run `make site` first.")
    try:
        server = open_server(SITE, port, tries=50)
    except OSError:
        sys.exit(f"Ports {port} to {port + 49} are all taken. Choose another: make book PORT=9000")
    print(f"\nThe book is at http://127.0.0.1:{server.server_port}/ (Ctrl+C stops it).")
    print(f"It also opens from disk: {SITE / 'index.html'}\n", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print("\nStopped.")


if __name__ == "__main__":
    main()
