"""What one rank sends in a collective, bytes: the ring algorithm, in plain arithmetic (chapter 18).

    all_reduce(size=2**20, ranks=4)        # 1.5 MiB: each rank sends 2 (n - 1) / n of the tensor

The ranks stand in a ring, each sends to its right neighbour only, and all links are busy at once. A
tensor of `size` bytes is cut into as many pieces as there are ranks. Where it can't be cut equally,
a rank sends up to a piece's difference more or less than these formulas, and all ranks together
exactly `ranks` times as much.

These are the least that ranks can send which do the adding themselves (Patarasuk and Yuan, "Bandwidth
optimal all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009; Thakur, Rabenseifner
and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005), and the
factors between "algorithm" and "bus" bandwidth in NVIDIA's nccl-tests (doc/PERFORMANCE.md). A switch
that adds (NVLink SHARP) needs less; and not everything sends so little: gloo, of torch 2.13, makes a
reduce-scatter of an all-reduce.

Only payload is counted: no headers, no waiting. What a rank receives is what it sends, but for
broadcast and point-to-point, where it is the other end's. Memory traffic of the collective itself
(each byte sent is read, each received written) is a matter of how it is made, and is not here.
"""

from __future__ import annotations

from book.cost.base import Number, positive


def all_reduce(size: Number, ranks: Number) -> Number:
    """2 (n - 1) / n * size: every rank has a tensor of `size` bytes, and gets the sum of all of them.

    A reduce-scatter, then an all-gather, of n - 1 steps each; a step sends one of n pieces.
    """
    return reduce_scatter(size, ranks) + all_gather(size, ranks)


def all_gather(size: Number, ranks: Number) -> Number:
    """(n - 1) / n * size: every rank has one of n pieces, and gets the whole of `size` bytes.

    Its own piece, then each that came from the left, goes on to the right: n - 1 pieces.
    """
    return _all_pieces_but_one(size, ranks)


def reduce_scatter(size: Number, ranks: Number) -> Number:
    """(n - 1) / n * size: every rank has a tensor of `size` bytes, and gets one of n pieces of the sum.

    A piece is sent n - 1 times, and added to on its way; each rank sends n - 1 different ones.
    """
    return _all_pieces_but_one(size, ranks)


def all_to_all(size: Number, ranks: Number) -> Number:
    """(n - 1) / n * size: every rank has a piece for each other, `size` bytes with the one for itself.

    Pieces of equal size, each sent straight to its rank: no ring here, since nothing is shared.
    """
    return _all_pieces_but_one(size, ranks)


def broadcast(size: Number) -> Number:
    """size: what the source sends, and each rank that hands it on; the last of the ring sends nothing.

    The tensor goes round in small pieces, so that all links are busy: the number of ranks only makes
    the start longer.
    """
    positive(size=size)
    return size


def point_to_point(size: Number) -> Number:
    """size: what the sender sends; the receiver sends nothing."""
    positive(size=size)
    return size


def _all_pieces_but_one(size: Number, ranks: Number) -> Number:
    positive(size=size, ranks=ranks)
    return (ranks - 1) * size / ranks
