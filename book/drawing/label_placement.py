"""Direct labels that keep out of each other's way, and of the lines and points they name.

Each label comes with the places where it could go, best first. It takes the first place that hides
nothing; if there is none, the place that hides least; a caller may rather drop it than hide things.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Text
from matplotlib.transforms import Bbox


@dataclass(frozen=True)
class Place:
    """A spot for a label: the point it names (data), the offset from it (pt), and the alignment."""

    x: float
    y: float
    dx: float = 0
    dy: float = 0
    ha: str = "left"
    va: str = "center"


@dataclass
class Labels:
    """The labels placed so far on `axes`, and the pixels that they should not cover."""

    axes: Axes
    _pixels: list[np.ndarray] = field(default_factory=list)
    _weights: list[float] = field(default_factory=list)
    _taken: list[Bbox] = field(default_factory=list)

    def avoid_line(self, x: Iterable[float], y: Iterable[float], weight: float = 1) -> None:
        """Keep off the polyline through these data points, sampled every other pixel."""
        corners = self.axes.transData.transform(np.column_stack([list(x), list(y)]))
        for a, b in zip(corners[:-1], corners[1:], strict=True):
            steps = int(np.hypot(*(b - a)) / 2) + 2
            self._add(a + (b - a) * np.linspace(0, 1, steps)[:, None], weight)

    def avoid_points(self, x: Iterable[float], y: Iterable[float], weight: float = 8) -> None:
        """Keep off markers at these data points."""
        centres = self.axes.transData.transform(np.column_stack([list(x), list(y)]))
        for offset in ((0, 0), (4, 0), (-4, 0), (0, 4), (0, -4)):
            self._add(centres + np.array(offset), weight)

    def _add(self, pixels: np.ndarray, weight: float) -> None:
        self._pixels.append(pixels)
        self._weights.extend([weight] * len(pixels))

    def _cost(self, box: Bbox) -> float:
        frame = self.axes.bbox
        if not (frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1):
            return float("inf")
        if any(box.overlaps(other) for other in self._taken):
            return 1e6
        if not self._pixels:
            return 0
        x, y = np.concatenate(self._pixels).T
        inside = (x > box.x0) & (x < box.x1) & (y > box.y0) & (y < box.y1)
        return float(np.asarray(self._weights)[inside].sum())

    def place(
        self,
        words: str,
        places: Iterable[Place],
        *,
        colour: str,
        limit: float = float("inf"),
        **style: object,
    ) -> Text | None:
        """Write `words` at the best of `places`; None, and nothing drawn, if that costs over `limit`."""
        renderer = self.axes.figure.canvas.get_renderer()
        best: tuple[float, Place | None] = (float("inf"), None)
        text = self.axes.annotate(
            words, (1, 1), (0, 0), textcoords="offset points", color=colour, annotation_clip=False, **style
        )
        text.set_in_layout(False)  # it is inside the axes: no margin, which would move them
        for place in places:
            self._move(text, place)
            cost = self._cost(_room(text.get_window_extent(renderer)))
            if cost < best[0]:
                best = (cost, place)
            if cost == 0:
                break
        if best[1] is None or best[0] > limit:
            text.remove()
            return None
        self._move(text, best[1])
        self._taken.append(_room(text.get_window_extent(renderer)))
        return text

    @staticmethod
    def _move(text: Text, place: Place) -> None:
        text.xy = (place.x, place.y)
        text.set_position((place.dx, place.dy))
        text.set_ha(place.ha)
        text.set_va(place.va)


def _room(box: Bbox) -> Bbox:
    """What a label needs: other screens and fonts make it a little longer than it is here."""
    return box.padded(1.5 + 0.03 * box.width, 1.5 + 0.03 * box.height)


def around(x: float, y: float, gap: float = 7) -> list[Place]:
    """The eight places round a marker, those that a rising line leaves free coming first."""
    return [
        Place(x, y, gap, -gap, "left", "top"),
        Place(x, y, -gap, gap, "right", "bottom"),
        Place(x, y, gap, 0, "left", "center"),
        Place(x, y, 0, -gap, "center", "top"),
        Place(x, y, 0, gap, "center", "bottom"),
        Place(x, y, -gap, 0, "right", "center"),
        Place(x, y, -gap, -gap, "right", "top"),
        Place(x, y, gap, gap, "left", "bottom"),
    ]


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Positions at least `gap` apart, in the order of `wanted` (ascending), as near to it as can be.

    Least squares under an order constraint: pool adjacent violators.
    """
    pools: list[tuple[float, int]] = []  # (mean, how many), of the positions less their share of the gaps
    for i, position in enumerate(wanted):
        mean, count = position - i * gap, 1
        while pools and pools[-1][0] > mean:
            before, n = pools.pop()
            mean, count = (mean * count + before * n) / (count + n), count + n
        pools.append((mean, count))
    flat = [mean for mean, count in pools for _ in range(count)]
    return [position + i * gap for i, position in enumerate(flat)]
