"""Kernels that are wrong in one way each, for the tests of what the count sees; right ones beside them."""

import torch

from kernels.contract.devices import tl, triton


@triton.jit
def split_sum_kernel(x_ptr, scratch_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Split-K in one launch: program (i, 1) adds what (i, 0) left in scratch."""
    row, part = tl.program_id(0), tl.program_id(1)
    lanes = part * BLOCK + tl.arange(0, BLOCK)
    mine = tl.sum(tl.load(x_ptr + row * n + lanes, mask=lanes < n, other=0.0), axis=0)
    if part == 0:
        tl.store(scratch_ptr + row, mine)
    else:
        tl.store(y_ptr + row, mine + tl.load(scratch_ptr + row))


def split_sum(x):
    rows, n = x.shape
    scratch, y = torch.empty(rows), torch.empty(rows)
    split_sum_kernel[(rows, 2)](x, scratch, y, n, BLOCK=triton.next_power_of_2(triton.cdiv(n, 2)))
    return y


@triton.jit
def shift_in_place_kernel(x_ptr):
    """x[i] = x[i + 1]: right only if nobody wrote x[i + 1] yet, as in program order."""
    i = tl.program_id(0)
    tl.store(x_ptr + i, tl.load(x_ptr + i + 1))


@triton.jit
def last_one_stays_kernel(y_ptr):
    """Every program writes y[0]."""
    tl.store(y_ptr, tl.program_id(0).to(tl.float32))


@triton.jit
def ticket_kernel(
    x_ptr, parts_ptr, ticket_ptr, y_ptr, SEM: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr
):
    """The last program to arrive adds up what all of them left."""
    i = tl.program_id(0)
    tl.store(parts_ptr + i, tl.sum(tl.load(x_ptr + i * BLOCK + tl.arange(0, BLOCK)), axis=0))
    if tl.atomic_add(ticket_ptr, 1, sem=SEM) == PARTS - 1:
        tl.store(y_ptr, tl.sum(tl.load(parts_ptr + tl.arange(0, PARTS)), axis=0))


@triton.jit
def first_one_stays_kernel(ticket_ptr, y_ptr):
    """The first program to arrive writes its number: no race, and another result in another order."""
    if tl.atomic_add(ticket_ptr, 1) == 0:
        tl.store(y_ptr, tl.program_id(0).to(tl.float32) + 1)


@triton.jit
def greedy_kernel(x_ptr, ticket_ptr, y_ptr, BLOCK: tl.constexpr):
    """Program 0 reads all of x if it comes first, and else one number of it."""
    first = tl.atomic_add(ticket_ptr, 1) == 0
    lanes = tl.arange(0, BLOCK)
    seen = tl.load(x_ptr + lanes, mask=(lanes < 1) | (first & (tl.program_id(0) == 0)), other=0.0)
    tl.store(y_ptr + tl.program_id(0), tl.max(seen, axis=0))


@triton.jit
def atomic_sum_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr, SEM: tl.constexpr):
    """Every program adds its part of x to y."""
    lanes = tl.arange(0, BLOCK)
    tl.atomic_add(y_ptr + lanes, tl.load(x_ptr + tl.program_id(0) * BLOCK + lanes), sem=SEM)


@triton.jit
def half_atomic_kernel(y_ptr):
    """Two programs change y[0], one of them without an atomic."""
    if tl.program_id(0) == 0:
        tl.store(y_ptr, 1.0)
    else:
        tl.atomic_add(y_ptr, 1.0)


@triton.jit
def waiting_kernel(flag_ptr, y_ptr):
    """Program 1 waits until program 0 has raised the flag."""
    if tl.program_id(0) == 0:
        tl.atomic_xchg(flag_ptr, 1)
    else:
        while tl.atomic_cas(flag_ptr, 1, 1) == 0:
            pass
        tl.store(y_ptr, 1.0)


@triton.jit
def sum_without_other_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Forgets what lanes past the end should hold."""
    lanes = tl.arange(0, BLOCK)
    tl.store(y_ptr, tl.sum(tl.load(x_ptr + lanes, mask=lanes < n), axis=0).to(y_ptr.dtype.element_ty))


@triton.jit
def wrapping_product_kernel(
    x_ptr, w_ptr, y_ptr, m, k, n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """Triton's tutorial: rows and columns past the edge wrap around with %."""
    rm = (tl.program_id(0) * BM + tl.arange(0, BM)) % m
    rn = (tl.program_id(1) * BN + tl.arange(0, BN)) % n
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, k, BK):
        rk = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + rm[:, None] * k + rk[None, :], mask=rk[None, :] < k, other=0.0)
        w = tl.load(w_ptr + rk[:, None] * n + rn[None, :], mask=rk[:, None] < k, other=0.0)
        acc = tl.dot(x, w, acc)
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    tl.store(y_ptr + rm[:, None] * n + rn[None, :], acc, mask=(rm[:, None] < m) & (rn[None, :] < n))


def wrapping_product(x, w, *, tile):
    (m, k), n = x.shape, w.shape[1]
    y = torch.empty(m, n)
    grid = (triton.cdiv(m, tile), triton.cdiv(n, tile))
    wrapping_product_kernel[grid](x, w, y, m, k, n, BM=tile, BN=tile, BK=16)
    return y


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, AGAIN: tl.constexpr, OVERLAP: tl.constexpr, BLOCK: tl.constexpr):
    """Copies BLOCK numbers, AGAIN times; its neighbour's first OVERLAP too."""
    start = tl.program_id(0) * (BLOCK - OVERLAP)
    lanes = start + tl.arange(0, BLOCK)
    for _ in range(AGAIN):
        tl.store(y_ptr + lanes, tl.load(x_ptr + lanes, mask=lanes < n, other=0.0), mask=lanes < n)


@triton.jit
def lopsided_kernel(x_ptr, y_ptr, OF: tl.constexpr, BLOCK: tl.constexpr):
    """Each program copies its block of numbers, but those of the first OF are all copied by program 0."""
    program = tl.program_id(0)
    first, end = program, program + 1
    if program < OF:
        first, end = program * OF, OF
    for block in range(first, end):
        lanes = block * BLOCK + tl.arange(0, BLOCK)
        tl.store(y_ptr + lanes, tl.load(x_ptr + lanes))
