"""The loops of a kernel's machine code, and what stands inside them.

What a loop does is done thousands of times, what stands around it once. A loop is found as compilers find
it: a jump back to an instruction that every way into it passes (a natural loop: Aho, Lam, Sethi and Ullman,
"Compilers", 9.6.6), so a piece of code that was moved out of the way is not taken for one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from kernels.evidence.compiled.listing import Instruction

# What the hardware's documentation calls them, and the opcode that shows it in the listing.
MATRIX = {
    "tcgen05.mma": r"UTC\w*MMA",
    "wgmma": r"[HIQD]GMMA",
    "mma.sync": r"[HIQDO]MMA",
    "mfma": r"v_s?mfmac?_",
}
_MATRIX = "|".join(MATRIX.values())
# kind -> what opcodes of that kind begin with; a wide one is counted twice.
KINDS = {
    "cuda": {
        "barriers": r"BAR\.(?!ARV)",
        "shared_loads": r"LDSM?\b",
        "shared_stores": r"STSM?\b",
        "loads": r"LDG\b|UTMALDG",
        "wide_loads": r"LDG\.[\w.]*\b(?:128|256)\b|UTMALDG",
        "async_copies": r"LDGSTS",
        "wide_async_copies": r"LDGSTS\.[\w.]*\b128\b",
        "stores": r"STG\b|UTMASTG",
        "wide_stores": r"STG\.[\w.]*\b(?:128|256)\b|UTMASTG",
        "matrix_instructions": _MATRIX,
        "shuffles": r"SHFL|C?REDUX|MOVM",
        "exponentials": r"MUFU\.EX2",
        "spills": r"LDL\b|STL\b",
    },
    "hip": {
        "barriers": r"s_barrier\b",
        "shared_loads": r"ds_read",
        "shared_stores": r"ds_write",
        "loads": r"(?:global|buffer)_load_(?!\w+ lds)",
        "wide_loads": r"(?:global|buffer)_load_dwordx4$",
        "async_copies": r"(?:global|buffer)_load_\w+ lds",
        "wide_async_copies": r"(?:global|buffer)_load_dwordx4 lds",
        "stores": r"(?:global|buffer)_store_",
        "wide_stores": r"(?:global|buffer)_store_dwordx4",
        "matrix_instructions": _MATRIX,
        "shuffles": r"ds_(?:b?permute|swizzle)|v_permlane|v_\w+_dpp\b|v_readlane",
        "exponentials": r"v_exp_",
        "spills": r"scratch_(?:load|store)",
    },
}


@dataclass(frozen=True)
class Loop:
    """What stands once in the body of a loop, loops inside it left out; an unrolled body holds several turns.

    depth: 1 for a loop that is in no other. innermost: there is none in it. instructions: all of them.
    loads and stores: of global memory; async_copies: from there straight into shared memory; the wide ones
    of each move 16 bytes a thread. shuffles: between threads of a warp. round_trips: barriers between a
    store into shared memory and a load from it, where threads hand each other values.
    """

    depth: int
    innermost: bool
    instructions: int
    barriers: int
    shared_loads: int
    shared_stores: int
    loads: int
    wide_loads: int
    async_copies: int
    wide_async_copies: int
    stores: int
    wide_stores: int
    matrix_instructions: int
    shuffles: int
    exponentials: int
    spills: int
    round_trips: int


def kinds(code: Sequence[Instruction], backend: str) -> list[frozenset[str]]:
    """Of which of KINDS each instruction is."""
    wanted = {kind: re.compile(pattern) for kind, pattern in KINDS[backend].items()}
    known = {
        opcode: frozenset(kind for kind, pattern in wanted.items() if pattern.match(opcode))
        for opcode in {one.opcode for one in code}
    }
    return [known[one.opcode] for one in code]


def count(kinds: Iterable[frozenset[str]]) -> Counter[str]:
    """How many instructions there are of each kind."""
    return Counter(kind for each in kinds for kind in each)


def loops(code: Sequence[Instruction], backend: str) -> list[Loop]:
    """The loops of a kernel that do something, in the order of the listing.

    One that only waits (for a flag, say) is part of what is around it.
    """
    of = kinds(code, backend)
    bodies = sorted(natural_loops(code), key=len)
    bodies = [body for body in bodies if count(of[i] for i in body)]
    made = []
    for i, body in enumerate(bodies):
        inside = [other for other in bodies[:i] if other < body]
        around = [other for other in bodies[i + 1 :] if body < other]
        own = sorted(body.difference(*inside))
        counted = count(of[j] for j in own)
        facts = {f.name: counted[f.name] for f in fields(Loop)}
        facts["instructions"] = len(own)
        facts["round_trips"] = _round_trips([of[j] for j in own])
        made.append((own[0], Loop(**facts | {"depth": len(around) + 1, "innermost": not inside})))
    return [loop for _, loop in sorted(made, key=lambda pair: pair[0])]


def _round_trips(body: Sequence[frozenset[str]]) -> int:
    """Barriers of a loop with stores into shared memory before them and loads from it behind them."""
    ends = [i for i, kinds in enumerate(body) if "barriers" in kinds]
    if not ends:
        return 0
    turned = [*body[ends[0] + 1 :], *body[: ends[0] + 1]]  # from behind the first barrier, round to it
    pieces: list[set[str]] = [set()]
    for each in turned:
        pieces[-1] |= each
        if "barriers" in each:
            pieces.append(set())
    pieces.pop()
    behind = [*pieces[1:], pieces[0]]
    return sum("shared_stores" in a and "shared_loads" in b for a, b in zip(pieces, behind, strict=True))


# ---------------------------------------------------------------------------------- the flow of control


def natural_loops(code: Sequence[Instruction]) -> list[frozenset[int]]:
    """The instructions of each natural loop; two with one head are one loop."""
    successors = [
        [j for j in ((i + 1) if one.falls_through else None, one.target) if j is not None and j < len(code)]
        for i, one in enumerate(code)
    ]
    predecessors: list[list[int]] = [[] for _ in code]
    order = _depth_first(successors)
    for i in order:
        for j in successors[i]:
            predecessors[j].append(i)
    rank = {i: n for n, i in enumerate(order)}
    nearest = _dominators(order, rank, predecessors)
    found: dict[int, set[int]] = {}
    for i in order:
        for head in successors[i]:
            if rank[head] <= rank[i] and _dominates(head, i, nearest):
                body = found.setdefault(head, {head})
                waiting = [i]
                while waiting:
                    j = waiting.pop()
                    if j not in body:
                        body.add(j)
                        waiting += predecessors[j]
    return [frozenset(body) for body in found.values()]


def _depth_first(successors: Sequence[Sequence[int]]) -> list[int]:
    """What can be reached from the first, each before what follows it (reverse postorder)."""
    done: list[int] = []
    seen = {0}
    stack = [(0, iter(successors[0]))] if successors else []
    while stack:
        i, rest = stack[-1]
        following = next((j for j in rest if j not in seen), None)
        if following is None:
            done.append(i)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(successors[following])))
    return done[::-1]


def _dominators(
    order: Sequence[int], rank: dict[int, int], predecessors: Sequence[Sequence[int]]
) -> dict[int, int]:
    """The nearest that every way to each one passes (Cooper, Harvey and Kennedy 2001)."""
    nearest = {order[0]: order[0]} if order else {}
    changed = True
    while changed:
        changed = False
        for i in order[1:]:
            known = [p for p in predecessors[i] if p in nearest]
            meet = known[0]
            for other in known[1:]:
                while meet != other:
                    if rank[meet] > rank[other]:
                        meet = nearest[meet]
                    else:
                        other = nearest[other]
            if nearest.get(i) != meet:
                nearest[i] = meet
                changed = True
    return nearest


def _dominates(head: int, i: int, nearest: dict[int, int]) -> bool:
    while i != head and i != nearest[i]:
        i = nearest[i]
    return i == head
