"""A widget that lives twice: in a notebook with a kernel, and on a page without one.

`Live` is an anywidget: its traits can be observed and linked from Python. Its mime bundle also
holds a `<div class="rl-live">` with the same state as JSON, which `book/site/static/explorer.js`
brings to life on the static site, over http or from disk, and a sentence for readers without
scripts. Where the site is built, that sentence gets the script's own picture (`book.site.stills`).

Where anywidget is not installed (a hosted notebook, say), the output is that element together with
the script. It moves just the same, but Python doesn't hear it; `Live.why` says so and what to do.
"""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import traitlets

from book.drawing import palette
from book.say import say

try:
    import anywidget
except ModuleNotFoundError:
    anywidget = None

STATIC = Path(__file__).parents[1] / "site" / "static"

# The site loads the bundle as a classic script. anywidget wants a module with a default export.
_EXPORT = "\nexport default { render: (x) => globalThis.InferenceRoofline[x.model.get('kind')].render(x) };\n"


_LINK = say(" (pip install anywidget links it to Python)")
_WHY = say("it moves, but Python doesn't hear it; to link the two: pip install anywidget, restart, run again")
_BUNDLE = (STATIC / "explorer.js").read_text(encoding="utf-8")
# A hosted notebook may show each output in a frame of its own, so each brings the script along;
# where outputs share a page, the first one's script does.
_SCRIPT = f"""<script>
if (globalThis.InferenceRoofline) {{ InferenceRoofline.mountAll(); }} else {{
{_BUNDLE}
}}</script>"""


class Live(anywidget.AnyWidget if anywidget else traitlets.HasTraits):
    """Base of the explorer and of the self-checks.

    kind: which part of the front-end draws it, "explorer", "check" or "choice".
    payload: everything that does not change (JSON-safe). State that changes lives in traits of the
    subclass that are tagged `sync=True`; they become `data-state` on the page.
    """

    kind = traitlets.Unicode().tag(sync=True)
    payload = traitlets.Dict().tag(sync=True)

    _esm = _BUNDLE + _EXPORT
    _css = palette.css() + "".join(
        path.read_text(encoding="utf-8")
        for path in (STATIC / "explorer.css", STATIC / "check.css")
        if path.exists()
    )

    @property
    def id(self) -> str:
        """The element's id on a page: the same at every build, so that links to it last."""
        return str(self.payload.get("id", self.kind))

    def state(self) -> dict[str, Any]:
        """The synced traits of this widget's own, by name, in alphabetical order."""
        inherited = set(Live.class_trait_names())
        names = sorted(n for n in self.trait_names(sync=True) if n not in inherited and not n.startswith("_"))
        return {name: getattr(self, name) for name in names}

    def summary(self) -> str:
        """What a reader without scripts should know: the picture's finding in a sentence."""
        return ""

    def without_script(self) -> str:
        """HTML that shows until a script takes over, and where none does."""
        return f"<noscript><p>{html.escape(self.summary())}</p></noscript>"

    def static_html(self) -> str:
        """The page's element: state as JSON in attributes, and the sentence until a script takes over."""
        return (
            f'<div class="rl-live" id="{html.escape(self.id)}" data-kind="{html.escape(self.kind)}" '
            f"data-payload='{_attribute(self.payload)}' data-state='{_attribute(self.state())}'>"
            f"{self.without_script()}</div>"
        )

    @property
    def why(self) -> str:
        """Why what the reader moves doesn't reach Python, and the remedy; "" where it does."""
        return "" if anywidget else _WHY

    def __repr__(self) -> str:
        """Short and the same at every run: it lands in the page's source."""
        return f"{type(self).__name__}({self.id!r})" + ("" if anywidget else _LINK)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        element = self.static_html()
        if not anywidget:
            alive = f"<style>{self._css}</style>{element}{_SCRIPT}"
            return {"text/html": alive, "text/plain": repr(self)}, {}
        bundle = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        data = {**data, "text/html": element, "text/plain": repr(self)}
        return data, metadata


def _attribute(value: Any) -> str:
    """JSON for a single-quoted attribute. NaN and infinity are refused: they are not JSON."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "&amp;").replace("'", "&#39;").replace("<", "&lt;").replace(">", "&gt;")
