# ruff: noqa: E501 (code that attackers and students write)
"""Lab 2: other kernels than the master's. Most of them right, some of them sly."""

HEAD = """
@triton.jit
def linear_kernel(
    x_ptr, w_ptr, y_ptr, M, N, K,
    stride_xm, stride_xk, stride_wk, stride_wn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
"""
TILE = """
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for first in range(0, K, BLOCK_K):
        rk = first + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + rm[:, None] * stride_xm + rk[None, :] * stride_xk,
                    mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        w = tl.load(w_ptr + rk[:, None] * stride_wk + rn[None, :] * stride_wn,
                    mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(x, w, acc)
    tl.store(y_ptr + rm[:, None] * N + rn[None, :], acc.to(tl.float16),
             mask=(rm[:, None] < M) & (rn[None, :] < N))
"""

TWO_D = (
    HEAD
    + """
    rm = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
"""
    + TILE
)

# Tiles in groups of four rows, as the matmul tutorials do for the cache's sake.
SWIZZLED = (
    HEAD
    + """
    program = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    group = program // (4 * tiles_n)
    height = min(tiles_m - group * 4, 4)
    rm = (group * 4 + program % (4 * tiles_n) % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = (program % (4 * tiles_n) // height) * BLOCK_N + tl.arange(0, BLOCK_N)
"""
    + TILE
)

PERSISTENT = (
    HEAD
    + """
    tiles_n = tl.cdiv(N, BLOCK_N)
    for tile in range(tl.program_id(0), tl.cdiv(M, BLOCK_M) * tiles_n, tl.num_programs(0)):
        rm = tile // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
        rn = tile % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
"""
    + TILE.replace("\n    ", "\n        ")
)

SPLIT_K = """
@triton.jit
def partial_kernel(
    x_ptr, w_ptr, part_ptr, M, N, K, PIECE,
    stride_xm, stride_xk, stride_wk, stride_wn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    tiles_n = tl.cdiv(N, BLOCK_N)
    rm = tl.program_id(0) // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(0) % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    start = tl.program_id(1) * PIECE
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for first in range(start, min(start + PIECE, K), BLOCK_K):
        rk = first + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + rm[:, None] * stride_xm + rk[None, :] * stride_xk,
                    mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        w = tl.load(w_ptr + rk[:, None] * stride_wk + rn[None, :] * stride_wn,
                    mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(x, w, acc)
    inside = (rm[:, None] < M) & (rn[None, :] < N)
    tl.store(part_ptr + tl.program_id(1) * M * N + rm[:, None] * N + rn[None, :], acc, mask=inside)


@triton.jit
def add_kernel(part_ptr, y_ptr, size, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in range(SPLITS):
        total += tl.load(part_ptr + part * size + at, mask=at < size, other=0.0)
    tl.store(y_ptr + at, total.to(tl.float16), mask=at < size)
"""
SPLIT_K_LAUNCHER = """
BLOCK_N, BLOCK_K, SPLITS = 64, 32, 3


def tile_rows(m):
    return min(max(triton.next_power_of_2(m), 16), 64)


def linear(x, w):
    (M, K), N = x.shape, w.shape[1]
    y = torch.empty(M, N, dtype=x.dtype, device=x.device)
    parts = torch.empty(SPLITS, M, N, dtype=torch.float32, device=x.device)
    piece = triton.cdiv(triton.cdiv(K, SPLITS), BLOCK_K) * BLOCK_K
    tiles = triton.cdiv(M, tile_rows(M)) * triton.cdiv(N, BLOCK_N)
    partial_kernel[(tiles, SPLITS)](x, w, parts, M, N, K, piece, *x.stride(), *w.stride(), tile_rows(M), BLOCK_N, BLOCK_K)
    add_kernel[(triton.cdiv(M * N, 256),)](parts, y, M * N, SPLITS, 256)
    return y
"""

# Split-K in one launch, as one first writes it: the second program adds what the first left in scratch.
RACING = (
    SPLIT_K[: SPLIT_K.index("@triton.jit\ndef add_kernel")]
    .replace("part_ptr,", "part_ptr, y_ptr,")
    .replace(
        "    tl.store(part_ptr + tl.program_id(1) * M * N + rm[:, None] * N + rn[None, :], acc, mask=inside)",
        """    at = rm[:, None] * N + rn[None, :]
    if tl.program_id(1) == 0:
        tl.store(part_ptr + at, acc, mask=inside)
    else:
        acc += tl.load(part_ptr + at, mask=inside, other=0.0)
        tl.store(y_ptr + at, acc.to(tl.float16), mask=inside)""",
    )
)
RACING_LAUNCHER = (
    SPLIT_K_LAUNCHER.replace("SPLITS = 64, 32, 3", "SPLITS = 64, 32, 2")
    .replace("x, w, parts, M", "x, w, parts, y, M")
    .replace("    add_kernel[(triton.cdiv(M * N, 256),)](parts, y, M * N, SPLITS, 256)\n", "")
)

LAUNCH = "linear_kernel[(programs,)](\n        x, w, y,"

# Copies w once and reads the copy again and again: the traffic is there, under another name.
COPIED_WEIGHT = """
@triton.jit
def copy_kernel(w_ptr, c_ptr, N, K, stride_wk, stride_wn, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(c_ptr + at, tl.load(w_ptr + at // N * stride_wk + at % N * stride_wn, mask=at < N * K), mask=at < N * K)
"""
COPIED_WEIGHT_LAUNCHER = """
BLOCK_N, BLOCK_K = 64, 64


def tile_rows(m):
    return 16


def linear(x, w):
    (M, K), N = x.shape, w.shape[1]
    y = torch.empty(M, N, dtype=x.dtype, device=x.device)
    c = torch.empty(K, N, dtype=x.dtype, device=x.device)
    copy_kernel[(triton.cdiv(K * N, 1024),)](w, c, N, K, *w.stride(), 1024)
    programs = triton.cdiv(M, 16) * triton.cdiv(N, BLOCK_N)
    linear_kernel[(programs,)](
        x, c, y, M, N, K, *x.stride(), *c.stride(), BLOCK_M=16, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K
    )
    return y
"""

# Through numbers instead of pointers, past whatever counts pointers.
BY_ADDRESS = ("x = tl.load(x_ptrs,", "x = tl.load(x_ptrs.to(tl.int64).to(x_ptr.dtype),")
