"""What an explorer looks like before its script runs, drawn by that same script, run by node.

The pages' front-end is the only one that draws a view. For readers without scripts, for print and
for the moment before the script has loaded, the site carries what it would draw first, with colours
that are the palette's CSS variables.

Texts are measured by the widths of DejaVu Sans: wider than what most browsers show, so that labels
which find room here have room everywhere.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from book.site.node import NodeProgram

WIDTHS = (686, 356)  # pixels of a picture in the column of a page, and on a phone
_LIVE = re.compile(
    r"(<div class=\"rl-live\"[^>]* data-kind=\"explorer\" data-payload='([^']*)' data-state='([^']*)'>)"
    r"<p class=\"rl-words\">(.*?)</p></div>",
    re.S,
)


@cache
def font() -> dict[str, dict[str, float]]:
    """{weight: {character: width in em}} of DejaVu Sans, which matplotlib brings along."""
    import matplotlib
    from fontTools.ttLib import TTFont

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    found = {}
    for weight, name in (("400", "DejaVuSans.ttf"), ("650", "DejaVuSans-Bold.ttf")):
        face = TTFont(folder / name)
        em, widths = face["head"].unitsPerEm, face["hmtx"]
        found[weight] = {
            chr(point): round(widths[glyph][0] / em, 4)
            for point, glyph in face.getBestCmap().items()
            if point < 0x2300
        }
    return found


class Stills(NodeProgram):
    """The front-end as a running process: `with Stills() as stills: stills.draw(payload, state)`."""

    script = "stills.mjs"

    def __enter__(self) -> Stills:
        super().__enter__()
        self.ask({"font": font()})
        return self

    def draw(self, payload: Mapping[str, Any], state: Mapping[str, Any]) -> str:
        """The explorer in this state as HTML. Raises NodeFailed with what went wrong in node."""
        return self.ask({"payload": payload, "state": state, "widths": WIDTHS})["html"]

    def fill(self, page: str) -> str:
        """A page's HTML with a picture in each explorer; the sentence stays for those without scripts."""

        def drawn(found: re.Match[str]) -> str:
            payload, state = (json.loads(html.unescape(found[i])) for i in (2, 3))
            words = f'<noscript><p class="rl-words">{found[4]}</p></noscript>'
            return f"{found[1]}{self.draw(payload, state)}{words}</div>"

        return _LIVE.sub(drawn, page)
