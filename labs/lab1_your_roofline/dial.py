"""Lab 1: the kernel with a dial, x -> x * scale + shift, k times in registers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from book.say import say
from labs.kit.ask_and_answer import Ask, Case, Kernel, KernelAnswer, Run
from labs.kit.question import Draw, Verdict
from labs.lab1_your_roofline.bench import SCALE, SHIFT
from labs.lab1_your_roofline.judges import row, sentence

ITEMSIZE = np.dtype(np.float32).itemsize
CLOSE = 1e-4  # relative to 1: rounding in fp32 leaves 1e-6


def asks(
    sizes: Sequence[tuple[int, int]], links: Sequence[int], targets: tuple[str, ...] = ()
) -> Callable[[Draw], Mapping]:
    """A number of elements from each range, with every number of links; at least two of those."""

    def made(draw: Draw) -> Mapping[str, Ask]:
        drawn = [int(draw.rng.integers(low, high + 1)) for low, high in sizes]
        cases = tuple(_case(draw, n, k) for n in drawn for k in links)
        return {"dial": Kernel("dial", cases, targets=targets)}

    return made


def _case(draw: Draw, n: int, k: int) -> Case:
    return Case({"n": n, "k": k}, {"x": draw.rng.standard_normal(n).astype(np.float32)}, {"k": k})


def reference(x: np.ndarray, k: int) -> np.ndarray:
    """The chain in float64."""
    x = x.astype(np.float64)
    for _ in range(k):
        x = x * SCALE + SHIFT
    return x


def judge(answers: Mapping[str, KernelAnswer], asked: Mapping[str, Ask], draw: Draw) -> Verdict:
    """Right at every size; 4n bytes read, 4n written; 2k FLOPs for each lane that ran."""
    answer = answers["dial"]
    if answer.error:
        return Verdict(False, sentence(answer.error))
    rows, comments = [], []
    lanes = _lanes(answer.runs)
    for run in answer.runs:
        comment, table = _look(run, lanes.get(run.case.sizes["n"]))
        rows += table
        if comment:
            comments.append(f"At {run.case}: {comment}")
    comments += [
        f"Compiling for {t}: {sentence(f)}" for t, f in answer.compiled.items() if isinstance(f, str)
    ]
    return Verdict(not comments, comments[0] if comments else "", tuple(rows))


def _lanes(runs: Iterable[Run]) -> dict[int, float]:
    """Lanes that ran, by n: how fast the FLOPs grow with k, over two."""
    by_size: dict[int, list[tuple[int, int]]] = {}
    for run in runs:
        if not run.error:
            by_size.setdefault(run.case.sizes["n"], []).append((run.case.sizes["k"], run.alu_flops))
    found = {}
    for n, counted in by_size.items():
        (k0, least), (k1, most) = min(counted), max(counted)
        if k1 > k0:
            found[n] = (most - least) / (k1 - k0) / 2
    return found


def _look(run: Run, lanes: float | None) -> tuple[str, list[Mapping]]:
    n, k = run.case.sizes["n"], run.case.sizes["k"]
    if run.error or run.race:
        return sentence(run.error) if run.error else run.race, []
    flops = 2 * k * (lanes if lanes is not None and lanes >= n else n)
    table = [
        row(
            say("{case}: bytes read", case=run.case),
            run.bytes("x", "reads", "issued"),
            ITEMSIZE * n,
        ),
        row(
            say("{case}: bytes written", case=run.case),
            run.bytes("y", "writes", "issued"),
            ITEMSIZE * n,
        ),
        row(
            say("{case}: FLOPs, {flops:,.0f} lanes", case=run.case, flops=flops // (2 * k)),
            run.alu_flops,
            flops,
        ),
    ]
    return _values(run, n, k) or _bytes(run, n) or _flops(run, n, k, lanes), table


def _values(run: Run, n: int, k: int) -> str:
    x = run.case.inputs["x"]
    got, want = run.output, reference(x, k)
    if got is None or got.shape != want.shape:
        return say(
            "the result has the shape {got}; x has {want}.",
            got=getattr(got, "shape", None),
            want=want.shape,
        )
    if np.isnan(got).any() and run.bytes("y", "writes") == ITEMSIZE * n:
        return say(
            "{count:,} of {all:,} elements are NaN, though each was written: a lane that a mask leaves out "
            "of tl.load may hold anything; is the mask of the load that of the store?",
            count=int(np.isnan(got).sum()),
            all=n,
        )
    if np.isnan(got).any():
        return say(
            "{missing:,} of {all:,} elements were never written: count the programs.",
            missing=int(np.isnan(got).sum()),
            all=n,
        )
    off = np.abs(got - want)
    if off.max() <= CLOSE * (1 + np.abs(want).max()):
        return ""
    others = {
        say("the chain has one link too many."): reference(x, k + 1),
        say("the chain has one link too few."): reference(x, k - 1),
        say("the chain has one link, whatever k is."): reference(x, 1),
        say("the sum comes after the product: x * scale + shift, not (x + shift) * scale."): _added_first(
            x, k
        ),
        say("scale and shift are swapped."): _swapped(x, k),
        say("nothing was done to x."): x.astype(np.float64),
    }
    for words, other in others.items():
        if np.abs(got - other).max() <= CLOSE * (1 + np.abs(other).max()):
            return words
    worst = int(off.argmax())
    return say(
        "element {worst:,} should be {want:.6g}, and yours is {got:.6g}.",
        worst=worst,
        want=want[worst],
        got=got[worst],
    )


def _added_first(x: np.ndarray, k: int) -> np.ndarray:
    x = x.astype(np.float64)
    for _ in range(k):
        x = (x + SHIFT) * SCALE
    return x


def _swapped(x: np.ndarray, k: int) -> np.ndarray:
    x = x.astype(np.float64)
    for _ in range(k):
        x = x * SHIFT + SCALE
    return x


def _bytes(run: Run, n: int) -> str:
    for buffer, verb, word in (("x", "reads", "read"), ("y", "writes", "written")):
        issued = run.bytes(buffer, verb, "issued")
        if issued > ITEMSIZE * n:
            times = issued / (ITEMSIZE * n)
            return say(
                "{buffer} is {word} {times:.3g} times: keep the number in a register between the links.",
                buffer=buffer,
                word=word,
                times=times,
            )
        if run.bytes(buffer, verb) != ITEMSIZE * n:
            return say(
                "{bytes:,} bytes of {buffer} are {word}; {itemsize:,} are needed.",
                bytes=run.bytes(buffer, verb),
                buffer=buffer,
                word=word,
                itemsize=ITEMSIZE * n,
            )
    allowed = {("x", "reads"), ("y", "writes")}
    for buffer, verbs in run.traffic.items():
        for verb in verbs:
            if (buffer, verb) not in allowed and run.bytes(buffer, verb, "issued"):
                return say(
                    "{buffer} has {verb} it doesn't need: read x, write y, nothing else.",
                    buffer=buffer,
                    verb=verb,
                )
    return ""


def _flops(run: Run, n: int, k: int, lanes: float | None) -> str:
    if lanes is None:
        return ""
    if lanes < n:
        return say(
            "the result is right, but the operations don't grow as 2k: a short cut is no dial. Do "
            "every link, one multiply and one add each."
        )
    if run.alu_flops != 2 * k * lanes:
        more = (run.alu_flops - 2 * k * lanes) / lanes
        return say(
            "{more:+.3g} FLOPs a lane beside the 2k of the chain: nothing else should compute.",
            more=more,
        )
    return ""
