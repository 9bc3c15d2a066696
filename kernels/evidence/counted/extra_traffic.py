"""Why a kernel asks for more than each byte once, read off the trace: who took which elements again.

Nothing here knows a kernel. Of each tensor the tally keeps how often every element was taken, by how
many programs, and which program took it last; the sentences follow from these numbers.
"""

from __future__ import annotations

import numpy as np

from book.say import say
from kernels.evidence.counted.tally import Tally, TensorTally, Touched


def sentences(tally: Tally) -> tuple[str, ...]:
    """A sentence for each tensor that was read, or stored, more often than once; most bytes first."""
    found: list[tuple[int, str]] = []
    for tensor in tally.tensors():
        for verb, touched in tensor.touched.items():
            again = touched.block - tensor.traffic(verb).unique
            if again and not tensor.atomics:
                words = _read(tensor, touched, tally) if verb == "reads" else _stored(tensor, touched)
                found.append((again, words))
        if tensor.atomics:
            words = say(
                "{tensor}: changed by {atomics:,} atomics, each of which reads and writes it.",
                tensor=tensor.name,
                atomics=tensor.atomics,
            )
            found.append((tensor.atomics * tensor.itemsize, words))
    return tuple(words for _, words in sorted(found, key=lambda one: -one[0]))


def _read(tensor: TensorTally, touched: Touched, tally: Tally) -> str:
    taken = touched.times > 0
    times, programs = touched.times[taken], touched.programs[taken]
    least, most = int(times.min()), int(times.max())
    if least < most and (run := _run(_shaped(tensor, touched.times) > least)):
        return _again(tensor, run, least, most, tally)
    if least < most:
        return say(
            "{tensor}: read {mean:.3g} times on average, {least:,} to {most:,} times an element, by up to "
            "{programs:,} programs.",
            tensor=tensor.name,
            mean=float(times.mean()),
            least=least,
            most=most,
            programs=int(programs.max()),
        )
    if (programs == most).all():
        return say(
            "{tensor}: read {times:,} times, by {times:,} programs, since the grid has that many that need "
            "the same part.",
            tensor=tensor.name,
            times=most,
        )
    if programs.max() == 1:
        return say(
            "{tensor}: read {times:,} times by the same program, which loads the same part again and again.",
            tensor=tensor.name,
            times=most,
        )
    return say(
        "{tensor}: read {times:,} times, by {programs:,} programs: some load the same part again and again.",
        tensor=tensor.name,
        times=most,
        programs=int(programs.max()),
    )


def _again(tensor: TensorTally, run: tuple[int, int, int], least: int, most: int, tally: Tally) -> str:
    """Part of it is read more often than the rest: an index that wraps around, if its trace looks so."""
    axis, first, last = run
    where, end = _words(tensor, axis, first, last), tensor.shape[axis] - 1
    readers = np.moveaxis(_shaped(tensor, tensor.last_readers()), axis, 0)
    again, at_end = (tally.order.programs(x) for x in (readers[first : last + 1], readers[end]))
    if first == 0 and last < end and again == at_end:
        return say(
            "{tensor}, {where}: read again by the last tile (program {program}), which reads as far as "
            "{end}; an index that wraps around with % starts over at the other end: mask those lanes off.",
            tensor=tensor.name,
            where=where,
            program=again[-1],
            end=_words(tensor, axis, end, end),
        )
    return say(
        "{tensor}, {where}: read up to {most:,}×, the rest {least:,}×.",
        tensor=tensor.name,
        where=where,
        most=most,
        least=least,
    )


def _stored(tensor: TensorTally, touched: Touched) -> str:
    over = touched.times > 1
    run = _run(_shaped(tensor, over))
    where = _words(tensor, *run) if run else tensor.element(int(np.argmax(over)))
    if touched.programs[over].max() > 1:
        return say(
            "{tensor}: {count:,} of its {all:,} elements are stored more than once, by {programs:,} programs "
            "({where}): give each element one.",
            tensor=tensor.name,
            count=int(np.count_nonzero(over)),
            all=int(np.prod(tensor.shape)),
            programs=int(touched.programs.max()),
            where=where,
        )
    return say(
        "{tensor}: {count:,} of its {all:,} elements are stored {times:,} times by the same program "
        "({where}): keep them in registers, and store them once.",
        tensor=tensor.name,
        count=int(np.count_nonzero(over)),
        all=int(np.prod(tensor.shape)),
        times=int(touched.times.max()),
        where=where,
    )


def _shaped(tensor: TensorTally, of_elements: np.ndarray) -> np.ndarray:
    """Numbers for each element of its memory, in the tensor's shape."""
    strides = tuple(stride * of_elements.itemsize for stride in tensor.strides)
    return np.lib.stride_tricks.as_strided(of_elements, tensor.shape, strides, writeable=False)


def _run(over: np.ndarray) -> tuple[int, int, int] | None:
    """(axis, first, last) if these elements are a run of indices along one axis, whole across the others."""
    for axis in range(over.ndim):
        across = tuple(i for i in range(over.ndim) if i != axis)
        some, every = over.any(axis=across), over.all(axis=across)
        indices = np.flatnonzero(some)
        first, last = int(indices[0]), int(indices[-1])
        if (some == every).all() and indices.size == last - first + 1:
            return axis, first, last
    return None


def _words(tensor: TensorTally, axis: int, first: int, last: int) -> str:
    """A run of indices, as in "columns 0 to 27"."""
    if len(tensor.shape) == 2 and first == last:
        if axis:
            return say("column {index:,}", index=first)
        return say("row {index:,}", index=first)
    if len(tensor.shape) == 2:
        if axis:
            return say("columns {first:,} to {last:,}", first=first, last=last)
        return say("rows {first:,} to {last:,}", first=first, last=last)
    if len(tensor.shape) == 1:
        return say("elements {first:,} to {last:,}", first=first, last=last)
    return say("indices {first:,} to {last:,} along axis {axis}", first=first, last=last, axis=axis)
