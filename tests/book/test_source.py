"""Code in a chapter comes from the tested file, whatever wraps it."""

import functools
import html
from types import SimpleNamespace

import pytest

from book import cost
from book.drawing import palette
from book.notebook.source import ROOT, Source, source


def in_file(shown: Source) -> str:
    lines = (ROOT / shown.path).read_text(encoding="utf-8").splitlines()
    return "\n".join(lines[shown.first - 1 : shown.first - 1 + shown.code.count("\n") + 1])


def test_a_function_is_shown_as_its_file_has_it():
    shown = source(cost, "linear")
    assert shown == source(cost.linear)
    assert shown.path == "book/cost/matrix.py"
    assert shown.code.startswith("def linear(")
    assert shown.code == in_file(shown)
    assert shown.caption.startswith(f"book/cost/matrix.py, lines {shown.first} to ")


def test_a_class_keeps_its_decorator_and_a_module_is_whole():
    assert source(cost.Cost).code.startswith("@dataclass(frozen=True)\nclass Cost:")
    assert source(palette).code == in_file(source(palette))


@pytest.mark.parametrize("attribute", ["fn", "__wrapped__"])
def test_wrappers_are_looked_through(attribute):
    @functools.wraps(cost.copy)
    def wrapped():
        pass

    assert source(SimpleNamespace(**{attribute: cost.copy})) == source(cost.copy)
    assert source(SimpleNamespace(**{attribute: SimpleNamespace(fn=cost.copy)})) == source(cost.copy)
    assert source(wrapped) == source(cost.copy)


def test_html_is_escaped_captioned_and_scrolls_by_keyboard():
    page = Source("kernels/a.py", 7, 'if a < b:\n    c = "<b>"')._repr_html_()
    assert "<figcaption>kernels/a.py, lines 7 to 8</figcaption>" in page
    assert "<b>" not in page
    assert 'tabindex="0" role="group" aria-label="kernels/a.py, lines 7 to 8"' in page


def test_text_is_the_code_itself():
    assert repr(Source("a.py", 3, "x = 1")) == "# a.py, line 3\nx = 1"


def test_bad_input_is_refused_with_a_sentence():
    with pytest.raises(AttributeError, match=r"book.cost.matrix has no 'lineer'; it has .*linear"):
        source(cost.matrix, "lineer")
    with pytest.raises(TypeError, match=r"source: 3 \(int\) has none; give a function"):
        source(3)
    with pytest.raises(FileNotFoundError, match="not part of this book"):
        source(pytest.raises)


def test_a_triton_kernel_is_shown_with_its_decorator():
    from kernels import linear

    kernels = [v for n, v in vars(linear).items() if n.endswith("_kernel")]
    assert kernels
    for kernel in kernels:
        shown = source(kernel)
        assert shown.path == "kernels/linear.py"
        assert shown.code.startswith("@triton.jit\ndef ")


def test_without_pygments_code_is_shown_plain(monkeypatch):
    monkeypatch.setattr("book.notebook.source.highlight", None)
    shown = source(cost, "linear")
    assert html.escape(shown.code) in shown._repr_html_()
