"""What is wrong with a product, in a sentence: the mistakes that people make in this kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from book.say import say
from labs.kit import launch_plan
from labs.kit.ask_and_answer import Case, Run
from labs.lab2_linear.cases import ITEMSIZE

TOLERANCE = 2e-3  # ||y - reference|| / ||reference||: rounding the result to fp16 costs about 2e-4
_PIECES = (16, 32, 64, 128, 256)  # of k that a program may load at once
_OUTSIDE = re.compile(
    r"OutOfBounds: (?P<name>\w+)'*: .*element (?P<element>-?\d+)"
    r".*?(?P<extent>\d+) elements from first to last"
)
_MASKS = {
    "x": say("the mask of x needs both rm < M and rk < K"),
    "w": say("the mask of w needs both rk < K and rn < N"),
    "y": say("the mask of the store needs both rm < M and rn < N"),
}


def reference(case: Case) -> np.ndarray:
    """x @ w in float64."""
    return case.inputs["x"].astype(np.float64) @ case.inputs["w"].astype(np.float64)


def relative_error(run: Run) -> float:
    """||y - reference|| / ||reference||; NaN where y holds NaN or has another shape."""
    want = reference(run.case)
    if run.output is None or run.output.shape != want.shape:
        return float("nan")
    return _distance(run.output, want)


def outside(error: str) -> tuple[str, int, int] | None:
    """(tensor, element, elements from first to last) of an access outside it, if `error` says that."""
    found = _OUTSIDE.search(error)
    return (found["name"], int(found["element"]), int(found["extent"])) if found else None


def said(error: str) -> str:
    """An error for the author of the kernel: what a blank is, and which mask an access outside needs."""
    if "NotImplementedError" in error:
        return say("a blank is not filled in yet: write your code in place of `raise NotImplementedError`.")
    if launch_plan.GRID in error:
        return say(
            "{error}: a partly filled tile is a tile, so round up with triton.cdiv.",
            error=error.removesuffix("."),
        )
    if found := outside(error):
        name = found[0].removesuffix("_ptr")
        hint = f" ({_MASKS[name]})" if name in _MASKS else ""
        if name in _MASKS and 0 <= found[1] < found[2]:  # a gap of a strided matrix
            hint = say(
                " (it lies between two numbers of {name}: {mask}, and its address both strides)",
                name=name,
                mask=_MASKS[name],
            )
        lane = "; mask that lane off"  # the interpreter's own words
        return error.removeprefix("OutOfBounds: ").replace(f"{lane}.", f"{lane}{hint}.")
    return error


def why(run: Run) -> str:
    """Why this run is wrong, beginning with its sizes; "" if it is right."""
    if run.error:
        return f"{run.case}: {said(run.error)}"
    if run.race:
        return f"{run.case}: {run.race}"
    reason = _wrong(run)
    return f"{run.case}: {reason}" if reason else ""


def _wrong(run: Run) -> str:
    want, out = reference(run.case), run.output
    m, n = want.shape
    if out.shape != want.shape:
        hint = say("; it lies transposed") if out.shape == (n, m) else ""
        return say(
            "y has the shape {shape}, and {wanted} is asked for{hint}.",
            shape=tuple(out.shape),
            wanted=want.shape,
            hint=hint,
        )
    if np.isnan(out).any():
        nan = np.isnan(out)
        return _missing(nan) if run.bytes("y", "writes") < out.size * ITEMSIZE else _poisoned(nan)
    if np.isinf(out).any():
        return say("y holds infinity: the sum overflowed; keep acc in float32 until it is stored.")
    error = _distance(out, want)
    if error <= TOLERANCE:
        return ""
    if not out.any():
        return say("y is zero everywhere: add every product to acc, and store acc.")
    for mistake, made in _mistakes(run.case, want):
        if _distance(out, made) < 5e-3:
            return mistake
    size = say(
        "the relative error is {error:.2g}, and {tolerance:g} is allowed",
        error=error,
        tolerance=TOLERANCE,
    )
    if error < 0.5:
        return say(
            "{size}: the sum loses digits; keep acc in float32 and convert it once, at the store.",
            size=size,
        )
    k = run.case.sizes["k"]
    if k % 16:
        where = say("k = {k} is no multiple of a tile: is the mask on k right in both loads?", k=k)
    else:
        where = say("Which rows of x and columns of w does a program multiply?")
    return f"{size}. {where}"


def _poisoned(nan: np.ndarray) -> str:
    """All of y was written, some of it NaN: lanes that a mask leaves out hold NaN in the checks."""
    return say(
        "{count:,} of {all:,} numbers of y are NaN, though each was written: a lane that a mask leaves out "
        "of tl.load may hold anything, and here holds NaN; give both loads other=0.0.",
        count=int(nan.sum()),
        all=nan.size,
    )


def _missing(nan: np.ndarray) -> str:
    """Where y was never written (or where NaN was computed: the inputs hold none)."""
    m, n = nan.shape
    if nan.all():
        return say("y holds NaN everywhere: it was never written; does the kernel store its tile?")
    rows, columns = nan.all(axis=1), nan.all(axis=0)
    for kind, whole, size in (("rows", rows, m), ("columns", columns, n)):
        first = int(np.argmax(whole))
        if whole[first:].all() and nan.sum() == (size - first) * nan.size // size:
            which = (
                say("{kind} {first:,} to {last:,}", kind=kind, first=first, last=size - 1)
                if first < size - 1
                else say(
                    "the last of the {kind}",
                    kind=kind,
                )
            )
            return say(
                "{which} of y: never written (NaN). The grid lacks the last, partly filled tile of "
                "{kind}, or the mask of the store is too strict; count tiles with triton.cdiv, in "
                "the grid and in the kernel.",
                which=which,
                kind=kind,
            )
    i, j = np.argwhere(nan)[0]
    return say(
        "{missing:,} of {all:,} numbers of y were never written (NaN), the first at row {i:,}, column "
        "{j:,}: look at the number of programs, the tile's position and the mask of the store.",
        missing=int(nan.sum()),
        all=nan.size,
        i=i,
        j=j,
    )


def _mistakes(case: Case, want: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """(sentence, the y that this mistake gives)."""
    x, w = (case.inputs[name].astype(np.float64) for name in ("x", "w"))
    (m, k), n = x.shape, w.shape[1]
    yield (
        say("the numbers of y are right and lie transposed: y[i, j] belongs at y_ptr + i * N + j."),
        np.ascontiguousarray(want.T).reshape(m, n),
    )
    memory = {name: flat.astype(np.float64) for name, flat in case.memory().items()}
    flat = {"x": memory["x"][: m * k], "w": memory["w"][: k * n]}
    if flat["x"].size == m * k and flat["w"].size == k * n:
        by_rows = {"x": flat["x"].reshape(m, k), "w": flat["w"].reshape(k, n)}
        for name, axes, product in (("w", "kn", x @ by_rows["w"]), ("x", "mk", by_rows["x"] @ w)):
            yield (
                say(
                    "the strides of {x} are not used: element [i, j] lies "
                    "i * stride_{x}{m} + j * stride_{x}{k} elements from the first.",
                    x=name,
                    m=axes[0],
                    k=axes[1],
                ),
                product,
            )
        yield say("the strides of x and w are not used."), by_rows["x"] @ by_rows["w"]
    for piece in (p for p in _PIECES if p < k):
        whole, last = k // piece * piece, (k - 1) // piece * piece
        if whole < k:
            yield (
                say(
                    "inputs {first:,} to {last:,} are left out: the last, partly filled piece of k is "
                    "missing; loop up to K, not to a whole number of pieces.",
                    first=whole,
                    last=k - 1,
                ),
                x[:, :whole] @ w[:whole],
            )
        yield (
            say(
                "only the first {piece} of k = {k:,} inputs are added up: move both pointers along k.",
                piece=piece,
                k=k,
            ),
            x[:, :piece] @ w[:piece],
        )
        yield (
            say("acc holds the last piece of k only: add every product to it, with +=."),
            x[:, last:] @ w[last:],
        )


def _distance(out: np.ndarray, want: np.ndarray) -> float:
    size = float(np.linalg.norm(want))
    return float(np.linalg.norm(out - want)) / size if size else float(np.linalg.norm(out))
