"""Lines through the times of steps (see `kernels.evidence.launch_overhead`), and how far to trust them.

A fit always gives two numbers. They are worth something only if the points lie on a line and the
numbers can be: no kernel beats the bandwidth, and no step begins before it is asked for. `doubts`
says in words where that fails, and every table shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from book.say import say
from book.serving import step_law
from kernels.evidence import alarm

OFF_LINE = 0.25  # of its own time: a point that lies further from the line spoils the fit
BELOW_NOUGHT = 0.2  # of the shortest step: an intercept this negative is more than rounding


def _doubts(fit: step_law.Fit, seconds: Sequence[float]) -> list[str]:
    """Why a line through these times should not be believed, in words; [] if it may be."""
    found = []
    off = max(abs(missed) / time for missed, time in zip(fit.residuals, seconds, strict=True))
    if off > OFF_LINE:
        found.append(say("the points are no line (one is {off:.0f} % off)", off=100 * off))
    if fit.overhead < -BELOW_NOUGHT * min(seconds):
        found.append(say("the intercept is below nought"))
    return found


@dataclass(frozen=True)
class Line:
    """Steps of n launches of one work. way: "eager" or "graph".

    seconds: the quiet runs' (20th percentile) at each count, since other programs only add time.
    """

    work: str
    way: str
    counts: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def fit(self) -> step_law.Fit:
        """The line through them; its "floor" is the number of launches, so slope is s a launch."""
        return step_law.fit(self.counts, self.seconds, relative=True)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why the slope and the intercept should not be believed; () if they may be."""
        found = _doubts(self.fit, self.seconds)
        if self.fit.slope <= 0:
            found.append(say("more launches took no longer"))
        return tuple(found)

    @property
    def per_launch(self) -> float:
        """Seconds that one more launch adds."""
        return self.fit.slope

    @property
    def per_step(self) -> float:
        """Seconds that a step costs once, however many launches it has."""
        return self.fit.overhead


@dataclass(frozen=True)
class Law:
    """Steps of `launches` linear layers, one row each, at several sizes k = n. floors, seconds: s."""

    way: str
    launches: int
    sizes: tuple[int, ...]
    floors: tuple[float, ...]
    seconds: tuple[float, ...]

    @property
    def fit(self) -> step_law.Fit:
        """time = floor / efficiency + overhead."""
        return step_law.fit(self.floors, self.seconds, relative=True)

    def alarms(self, bandwidth: float) -> tuple[alarm.Alarm, ...]:
        """Every way in which this law is impossible on a machine of that bandwidth, bytes/s.

        A slope below one reads faster than the bandwidth; so does a step that ends before its floor.
        """
        slope = self.fit.slope
        if slope <= 0:
            return ()  # no rate at all: `doubts` says so
        fitted = alarm.inspect(bytes_per_s=bandwidth / slope, measured_bandwidth=bandwidth)
        steps = [
            a
            for floor, seconds in zip(self.floors, self.seconds, strict=True)
            for a in alarm.against_floor(seconds, floor)
        ]
        return (*fitted, *steps)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why efficiency and overhead should not be believed; () if they may be."""
        found = _doubts(self.fit, self.seconds)
        if self.fit.slope <= 0:
            found.append(say("larger layers took no longer"))
        elif self.alarms(1.0):  # a matter of ratios: the bandwidth cancels
            found.append(say("impossible: it beats the bandwidth"))
        return tuple(found)
