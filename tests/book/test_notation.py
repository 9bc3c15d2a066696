"""The notation page: each letter of the formulas and of the chapters' mathematics stands on it, once."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from book.formulas.symbols import plain_letter
from tests import formulas

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "book" / "pages" / "notation.md"
CHAPTERS = sorted((ROOT / "chapters").glob("[0-9]*.ipynb"))

GREEK = "alpha|beta|gamma|delta|epsilon|eta|theta|kappa|lambda|mu|rho|sigma|tau|phi|omega"
# A letter or a Greek one, its star, its index: M, \beta, I^*, d_\text{model}, M^*_\infty, L_c.
SYMBOL = re.compile(
    rf"\\(?!(?:{GREEK})(?![A-Za-z]))[A-Za-z]+"  # any other command is none
    rf"|(?P<base>\\(?:{GREEK})|[A-Za-z])"
    r"(?P<star>\^\*|\^\{\*\})?(?P<index>_(?:\{[^{}]*\}|\\[a-z]+(?:\{[^{}]*\})?|\w))?"
)
MATH = re.compile(r"\$\$(.+?)\$\$|\$(.+?)\$", re.DOTALL)
# Words, units, names of functions, and bold letters, which are tensors: none of them is a symbol.
WORDS = re.compile(r"(?<!_)\\(?:text|mathrm|operatorname|mathbf)\{[^{}]*\}|\\(?:begin|end)\{[^{}]*\}")


def symbols(mathematics: str) -> set[str]:
    """The symbols in LaTeX, each as the notation page writes it: base, star and index.

    An index in words is left off: what is explained is the letter, I of the fused kernel's I.
    """
    plain = re.sub(r"_\{\s*\}", "", WORDS.sub(" ", mathematics))
    return {
        one["base"] + ("^*" if one["star"] else "") + (one["index"] or "")
        for one in SYMBOL.finditer(plain)
        if one["base"]
    }


def listed(page: str) -> list[str]:
    """What stands in the first column of the page's tables."""
    return re.findall(r"^\| \$(.+?)\$ \|", page, re.MULTILINE)


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_each_symbol_stands_on_the_page_once(page):
    there = listed(page)
    assert len(there) > 40
    assert [one for one in there if there.count(one) > 1] == []


@pytest.mark.parametrize("formula", formulas.ALL, ids=lambda f: f.name)
def test_each_letter_of_a_formula_stands_on_the_page(page, formula):
    letters = {p.latex or p.symbol for p in (*formula.arguments, *formula.aliases)}
    assert letters - set(listed(page)) == set()


def test_no_two_things_of_one_formula_share_a_letter():
    for formula in formulas.ALL:
        letters = [p.latex or p.symbol for p in (*formula.arguments, *formula.aliases)]
        assert sorted(set(letters)) == sorted(letters), formula.name


def test_a_thing_has_one_letter_in_all_formulas():
    """And a letter one thing: a slider of chapter 02 and one of chapter 07 don't share N."""
    meaning: dict[str, set[str]] = {}
    for formula in formulas.ALL:
        for p in (*formula.arguments, *formula.aliases):
            meaning.setdefault(p.latex or p.symbol, set()).add(p.symbol)
    # s is the size of any stored number, where nothing is stored in another size.
    meaning["s"] -= {"itemsize"}
    assert {letter: things for letter, things in meaning.items() if len(things) > 1} == {}


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_each_letter_of_a_chapters_mathematics_stands_on_the_page(page, path):
    known = set(listed(page))
    cells = nbformat.read(path, 4).cells
    said = "\n".join(c.source for c in cells if c.cell_type == "markdown")
    used = set().union(*(symbols(a or b) for a, b in MATH.findall(said)))
    assert used - known == set()


def test_each_bold_letter_of_the_chapters_is_named_on_the_page(page):
    """They are tensors, which the page lists in a sentence."""
    bold = re.compile(r"\\mathbf\{(\w)\}")
    used = {
        letter for path in CHAPTERS for c in nbformat.read(path, 4).cells for letter in bold.findall(c.source)
    }
    assert len(used) > 5
    assert used - set(bold.findall(page)) == set()


@pytest.mark.parametrize(
    ("mathematics", "found"),
    [
        (r"I = \frac{2MKN}{s\,(KN + MK)}", set("IMKNs")),
        (r"I_{\mathrm{fused}} = \frac{H L}{s}", set("IHLs")),
        (r"M^*_\infty = \frac{F w}{2 \beta}", {r"M^*_\infty", "F", "w", r"\beta"}),
        (r"\mathbf{y} = \mathbf{x}\,\mathbf{W}", set()),
        (r"\text{tokens/s} = B / t_0", {"B", "t_0"}),
        (r"d_\text{model}", {r"d_\text{model}"}),
    ],
)
def test_symbols_are_read_out_of_latex(mathematics, found):
    assert symbols(mathematics) == found


# ------------------------------------------------------------- factors of a summary, as in the box

LATIN_FIRST = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" + "αβγδηκμτ"
# A rule is told the way in which it is known: 2 P L for a prompt's products, and attention's like it.
KNOWN_AS = {"PL", "DHdL"}


def products(mathematics: str) -> list[str]:
    """The letters of each product in LaTeX, without numbers, powers and indices."""
    plain = WORDS.sub("=", mathematics)
    plain = re.sub(r"[_^](?:\{[^{}]*\}|\\[a-z]+|.)", "", plain).replace(r"\,", " ")
    plain = re.sub(rf"\\(?:{GREEK})(?![A-Za-z])", lambda m: plain_letter("", m[0]), plain)
    plain = re.sub(r"\\[A-Za-z]+|\\.", "=", plain)
    return re.findall(r"[^\W\d_]{2,}", re.sub(r"[\s\d]", "", plain))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_summary_has_its_factors_in_the_order_of_the_box(path):
    summary = nbformat.read(path, as_version=4).cells[-1].source
    found = [p for display, _ in MATH.findall(summary) for p in products(display)]
    assert [p for p in found if p not in KNOWN_AS and p != "".join(sorted(p, key=LATIN_FIRST.index))] == []


def test_products_are_read_out_of_a_summary():
    assert products(r"\min(F,\; I\,\beta) = \frac{\mu\,C\,n - W}{S\,\kappa}, 2SH") == [
        "Iβ",
        "μCn",
        "Sκ",
        "SH",
    ]
