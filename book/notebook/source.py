"""Shows code from the file that the tests run, so that a chapter never holds a copy of it."""

from __future__ import annotations

import html
import inspect
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from book.drawing.palette import css
from book.say import say

try:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer
except ModuleNotFoundError:  # then code has no colours
    highlight = None

ROOT = Path(__file__).resolve().parents[2]

# Pygments' short class names. Few colours, all the palette's, so that light and dark both work
# without a style sheet of the page's.
_COLOURS = {
    "dim": ".c,.c1,.cm,.sd",
    "predicted": ".k,.kn,.kc,.ow,.nb",
    "recorded": ".s,.s1,.s2,.sa,.si,.se",
    "counted": ".nf,.fm,.nd,.nc",
    "published": ".mi,.mf,.mh,.mb,.mo",
}
_CSS = (
    ".rl-source{margin:1em 0;border:1px solid var(--rl-line);border-radius:6px;overflow:hidden;"
    "background:var(--rl-card);color:var(--rl-text)}"
    ".rl-source figcaption{margin:0;padding:.4em .9em;font:.85em var(--book-sans,system-ui);"
    "color:var(--rl-dim);text-align:left;border-bottom:1px solid var(--rl-line)}"
    # twice, to outweigh JupyterLab's rules for outputs
    ".rl-source.rl-source pre.rl-listing{margin:0;padding:.8em .9em;overflow-x:auto;border:0;background:none;"
    "color:inherit;font-size:12.3px;line-height:1.5;white-space:pre;tab-size:4}"
    ".rl-source pre:focus-visible{outline:2px solid var(--rl-predicted);outline-offset:-2px}"
) + "".join(
    ",".join(f".rl-source {name}" for name in names.split(",")) + f"{{color:var(--rl-{role})}}"
    for role, names in _COLOURS.items()
)


@dataclass(frozen=True)
class Source:
    """A piece of a file. path: from the repository's root. first: the number of its first line."""

    path: str
    first: int
    code: str

    @property
    def caption(self) -> str:
        """File and lines, as in "kernels/linear.py, lines 20 to 58"."""
        last = self.first + self.code.count("\n")
        return (
            say("{path}, line {first}", path=self.path, first=self.first)
            if last == self.first
            else say("{path}, lines {first} to {last}", path=self.path, first=self.first, last=last)
        )

    def _repr_html_(self) -> str:
        body = _coloured(self.code)
        caption = html.escape(self.caption)
        # Focusable, so that a keyboard can scroll long lines.
        return (
            f'<figure class="rl-source"><style>{css()}{_CSS}</style><figcaption>{caption}</figcaption>'
            f'<pre class="rl-listing" tabindex="0" role="group" aria-label="{caption}">{body}</pre></figure>'
        )

    def __repr__(self) -> str:
        return f"# {self.caption}\n{self.code}"


def _coloured(code: str) -> str:
    """Code as HTML; plain where there is no Pygments."""
    if highlight is None:
        return html.escape(code)
    return highlight(code, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True)).rstrip("\n")


def _undecorated(obj: Any) -> Any:
    """The Python function inside @triton.jit, @triton.heuristics, @triton.autotune and functools.wraps."""
    while not (inspect.isfunction(obj) or inspect.isclass(obj) or inspect.ismodule(obj)):
        inner = (
            getattr(obj, "fn", None) or getattr(obj, "__wrapped__", None) or getattr(obj, "__func__", None)
        )
        if inner is None:
            raise TypeError(
                f"source: {obj!r} ({type(obj).__name__}) has none; give a function, class, kernel or module."
            )
        obj = inner
    return inspect.unwrap(obj) if inspect.isfunction(obj) else obj


def source(obj: Any, name: str = "") -> Source:
    """The source of a function, class, Triton kernel or module, decorators included.

    name: with a module, what to show of it; left out, the whole file. Raises AttributeError with the
    names that the module does have, TypeError for a thing without source, FileNotFoundError if its
    file is not one of this book's.
    """
    if name:
        if not hasattr(obj, name):
            own = [n for n, v in vars(obj).items() if getattr(v, "__module__", None) == obj.__name__]
            raise AttributeError(f"{obj.__name__} has no {name!r}; it has {', '.join(own)}.")
        obj = getattr(obj, name)
    obj = _undecorated(obj)
    file = Path(inspect.getsourcefile(obj) or "")
    inside = file.is_relative_to(ROOT) and not file.relative_to(ROOT).parts[0].startswith(".")  # not .venv
    if not inside:
        raise FileNotFoundError(f"source: {file} is not part of this book; show code of its own files only.")
    lines, first = inspect.getsourcelines(obj)
    path = file.relative_to(ROOT).as_posix()
    code = inspect.cleandoc("\n" + "".join(lines)) if not isinstance(obj, ModuleType) else "".join(lines)
    return Source(path, max(first, 1), code.rstrip("\n"))
