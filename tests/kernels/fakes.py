"""A pretended card and pretended clocks. They exist in tests only: evidence is never made of them."""

from kernels.evidence.timed.clocks import Timing
from kernels.evidence.timed.machine import Device
from kernels.measure.bench import Bench

CARD = Device("gpu", "Pretended H100", "cpu", "h100_sxm", "sm_90", 10**9, 5 * 10**8, 50 * 2**20, 132)


class Says:
    """A clock that says what it was told, in order, and the last thing for ever after."""

    def __init__(self, *seconds):
        self.seconds = list(seconds)
        self.budgets = []

    def time(self, work, budget=0.3):
        self.budgets.append(budget)
        value = self.seconds.pop(0) if len(self.seconds) > 1 else self.seconds[0]
        return Timing(value, 0.98 * value, 1.03 * value, 11)


class Runs:
    """A clock that runs the work once, and says that it took a tenth of a millisecond."""

    def time(self, work, budget=0.3):
        work()
        return Timing(1e-4, 1e-4, 1e-4, 1)


class Memory:
    """What a bench asks of its card beside the time; its context may be lost, as after an illegal access."""

    lost = ""

    def synchronize(self):
        if Memory.lost:
            raise RuntimeError(f"{Memory.lost}\nCUDA kernel errors might be asynchronously reported")

    def release(self):
        pass


def bench(cold=None):
    """The pretended card on a bench, for a child process or in this one."""
    return Bench(CARD, lambda: (Says(1e-3), {"kept": "pretended"}), Memory())


def describe():
    """The pretended card as a child describes it."""
    return CARD, ""
