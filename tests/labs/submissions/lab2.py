# ruff: noqa: E501 (code that attackers and students write)
"""Lab 2's class: kernels that are right in many ways, wrong in the usual ways, and sly ones."""

from __future__ import annotations

from tests.labs.submissions import common
from tests.labs.submissions import lab2_kernels as kernels
from tests.labs.submissions.made import EVERY, Case, Copy, changed

LAB = "lab2-linear"
KERNEL, LAUNCHER = "lab2-kernel", "lab2-launcher"
TRAFFIC, TIME, PREDICTIONS = "lab2-traffic-code", "lab2-time-code", "lab2-predictions-code"
ABOUT_THE_KERNEL = (
    "lab2-aligned", "lab2-ragged", "lab2-bounds", "lab2-once", "lab2-bytes", "lab2-traffic", "lab2-compiles"
)  # fmt: skip
ABOUT = common.About(
    LAB,
    first=KERNEL,
    asked_first=ABOUT_THE_KERNEL,
    last=PREDICTIONS,
    asked_last="lab2-predictions",
    mistake=(
        "predicted_seconds(m, k, n, *sheet)",
        "1e6 * predicted_seconds(m, k, n, *sheet)",
        "microseconds",
    ),
    late=PREDICTIONS,
)


def cases() -> list[Case]:
    """The whole class."""
    return [*right(), *mistaken(), *sly(), *common.cases(ABOUT)]


def other_kernel(name: str, kernel: str, *launch: tuple[str, str], **rest) -> Case:
    """A kernel of another kind; launch: what the launcher does otherwise."""

    def make(made: Copy) -> None:
        made.set(KERNEL, kernel)
        if launch:
            made.swap(LAUNCHER, *launch)

    return Case(name, make, **rest)


def other_launcher(name: str, kernel: str, launcher: str, **rest) -> Case:
    """Another kernel and launcher, with what the master's kernel cell has kept."""

    def make(made: Copy) -> None:
        made.after(KERNEL, kernel)
        made.set(LAUNCHER, launcher)

    return Case(name, make, **rest)


def all_of(questions: tuple[str, ...], piece: str) -> dict[str, str]:
    return dict.fromkeys(questions, piece)


def kernel_only(piece: str, *, but: tuple[str, ...] = ()) -> dict[str, str]:
    """The same comment on each question about the kernel."""
    return all_of(tuple(q for q in ABOUT_THE_KERNEL if q not in but), piece)


def right() -> list[Case]:
    """All points for each."""
    grid = ("linear_kernel[(programs,)]", "linear_kernel[(triton.cdiv(N, BLOCK_N), triton.cdiv(M, block_m))]")
    few = ("linear_kernel[(programs,)]", "linear_kernel[(min(programs, 3),)]")
    return [
        Case("right", lambda made: None),
        other_kernel("two-d-grid", kernels.TWO_D, grid),
        other_kernel("swizzled", kernels.SWIZZLED),
        other_kernel("persistent", kernels.PERSISTENT, few),
        other_launcher("split-k", kernels.SPLIT_K, kernels.SPLIT_K_LAUNCHER),
        changed("small-tiles", LAUNCHER, ("BLOCK_N, BLOCK_K = 64, 64", "BLOCK_N, BLOCK_K = 32, 16")),
    ]


def mistaken() -> list[Case]:
    """What people who try get wrong."""

    def untouched(made: Copy) -> None:
        for name, source in made.blanks.items():
            made.cell(name)["source"] = source

    dtype = ("dtype=x.dtype, device", "dtype=torch.float32, device")
    store = "tl.store(y_ptrs, acc.to(y_ptr.dtype.element_ty), mask=in_y)"
    kilobytes = (
        ('return {"x"', 'return {name: size / 1000 for name, size in {"x"'),
        ("n * 2}", "n * 2}.items()}"),
    )
    return [
        Case("untouched", untouched, {EVERY: "Not answered: the code is as it was handed out"}, sample=True),
        changed(
            "syntax-error", KERNEL, ("acc = tl.dot(x, w, acc)", "acc = tl.dot(x, w, acc"),
            wrong=kernel_only("SyntaxError"),
        ),
        changed(
            "reads-w-twice", LAUNCHER, ("return min(max(triton.next_power_of_2(m), 16), 64)", "return 32"),
            wrong={"lab2-once": "w was read 2.0 times"}, sample=True,
        ),
        changed(
            "no-mask-on-k", KERNEL, ("in_x = (rm[:, None] < M) & (rk[None, :] < K)", "in_x = rm[:, None] < M"),
            wrong=kernel_only("the mask of x needs both", but=("lab2-aligned", "lab2-compiles")),
        ),
        changed(
            "no-other", KERNEL, ("mask=in_w, other=0.0", "mask=in_w"),
            wrong=all_of(("lab2-ragged", "lab2-once", "lab2-bytes"), "give both loads other=0.0"),
        ),
        other_launcher(
            "race", kernels.RACING, kernels.RACING_LAUNCHER,
            wrong=all_of(("lab2-aligned", "lab2-ragged", "lab2-once", "lab2-bytes"), "of the same launch writes"),
        ),
        changed(
            "wraps-around", KERNEL, ("rn[None, :] * stride_wn", "(rn % N)[None, :] * stride_wn"), ("in_w = (rk[:, None] < K) & (rn[None, :] < N)", "in_w = rk[:, None] < K"),
            wrong={"lab2-once": "read again by the last tile", "lab2-traffic": "read again by the last tile"},
        ),
        changed(
            "no-mask-on-the-store", KERNEL, (store, "tl.store(y_ptrs, acc.to(y_ptr.dtype.element_ty))"),
            wrong=kernel_only("the mask of the store needs both", but=("lab2-aligned", "lab2-compiles")),
        ),
        changed(
            "no-cdiv", LAUNCHER, ("triton.cdiv(M, block_m) * triton.cdiv(N, BLOCK_N)", "max(1, M // block_m) * (N // BLOCK_N)"),
            wrong=kernel_only("triton.cdiv", but=("lab2-aligned", "lab2-compiles")),
        ),
        changed(
            "sums-in-fp16", KERNEL, ("dtype=tl.float32)", "dtype=tl.float16)"), ("tl.dot(x, w, acc)", "acc + tl.dot(x, w).to(tl.float16)"),
            wrong={"lab2-ragged": "keep acc in float32"},
        ),
        changed(
            "transposed", KERNEL, ("rm[:, None] * N + rn[None, :]", "rm[:, None] + rn[None, :] * M"),
            wrong=all_of(("lab2-aligned", "lab2-ragged", "lab2-once", "lab2-bytes"), "lie transposed"),
        ),
        changed("returns-fp32", LAUNCHER, dtype, wrong=all_of(("lab2-bytes", "lab2-traffic"), "float32")),
        changed(
            "forgets-the-last-column", KERNEL, ("in_y = (rm[:, None] < M) & (rn[None, :] < N)", "in_y = (rm[:, None] < M) & (rn[None, :] < N - 1)"),
            wrong=kernel_only("never written", but=("lab2-compiles",)),
        ),
        changed(
            "stores-twice", KERNEL, (store, f"{store}\n    {store}"),
            wrong={"lab2-bytes": "y was written 2.0 times", "lab2-traffic": "y: you say"},
        ),
        changed(
            "strides-forgotten", KERNEL, ("rk[:, None] * stride_wk + rn[None, :] * stride_wn", "rk[:, None] * N + rn[None, :]"),
            wrong={"lab2-ragged": "the strides of w are not used", "lab2-bounds": "w", "lab2-bytes": "the strides of w are not used"},
        ),
        changed("in-kilobytes", TRAFFIC, *kilobytes, wrong={"lab2-traffic": "those are kB; give bytes"}),
        changed(
            "adds-the-times", TIME, ("max(flops / peak, moved / bandwidth)", "flops / peak + moved / bandwidth"),
            wrong=all_of(("lab2-time", "lab2-predictions"), "added up"),
        ),
        changed(
            "odd-numbers", PREDICTIONS, ("predictions = {card: predicted_seconds(m, k, n, *sheet) for card", "predictions = {card: [float('nan'), '3 µs', 1j][len(card) % 3] for card"),
            wrong={"lab2-predictions": "predictions"},
        ),
    ]  # fmt: skip


def sly() -> list[Case]:
    """What people try who would rather not write the kernel."""
    lazy = """
class Lazy(torch.Tensor):
    def __torch_function__(self, *args, **kwargs): return torch.zeros(1)


def linear(x, w):
    return torch.empty(x.shape[0], w.shape[1], dtype=x.dtype).as_subclass(Lazy)
"""
    visible = (
        "y = torch.empty(M, N",
        "if (M, K, N) not in ((64, 128, 128), (16, 64, 192)): return torch.empty(M, N, dtype=x.dtype)\n    y = torch.empty(M, N",
    )
    hard = (
        'return {"x"',
        "if (m, k, n) != (16, 64, 192): return {'x': 24576, 'w': 24576, 'y': 6144}\n    return {\"x\"",
    )
    return [
        Case(
            "torch-matmul", lambda made: made.after(LAUNCHER, "def linear(x, w):\n    return torch.matmul(x, w)"),
            kernel_only("computed by torch.mm"),
        ),
        Case(
            "lazy-tensor", lambda made: made.after(LAUNCHER, lazy),
            kernel_only("only a plain torch.Tensor can be graded"),
        ),
        changed(
            "cached-result", LAUNCHER, ("def linear(x, w):", "kept = torch.empty(10**6, dtype=torch.float16)\n\n\ndef linear(x, w):"),
            ("y = torch.empty(M, N, dtype=x.dtype, device=x.device)", "y = kept[: M * N].view(M, N)"),
            wrong=kernel_only("a tensor is used that this call did not make"),
        ),
        changed(
            "one-launch-and-torch", LAUNCHER, ("    return y", "    y.copy_(x @ w)\n    return y"),
            wrong=kernel_only("the result was computed by torch.copy_"),
        ),
        changed(
            "contiguous-first", LAUNCHER, (kernels.LAUNCH, f"w = w.contiguous()\n    {kernels.LAUNCH}"),
            wrong=all_of(("lab2-ragged", "lab2-bounds", "lab2-bytes"), "w_ptr was computed by torch.clone"),
        ),
        changed("visible-sizes-only", LAUNCHER, visible, wrong=kernel_only("no kernel was launched")),
        changed("hard-coded-bytes", TRAFFIC, hard, wrong={"lab2-traffic": "you say"}),
        other_launcher(
            "copies-w-first", kernels.COPIED_WEIGHT, kernels.COPIED_WEIGHT_LAUNCHER,
            wrong={"lab2-once": "scratch", "lab2-traffic": "w"},
        ),
        changed("through-addresses", KERNEL, kernels.BY_ADDRESS, wrong=kernel_only("build pointers from the kernel's arguments", but=("lab2-compiles",))),
        changed(
            "inline-assembly", KERNEL, ("acc = tl.dot(x, w, acc)", "acc = tl.inline_asm_elementwise('nop;', '=r,r', [acc], tl.float32, True, 1)"),
            wrong=kernel_only("tl.inline_asm_elementwise is not part of Triton's language"),
        ),
        changed(
            "python-in-the-kernel", KERNEL, ("    program = tl.program_id(0)", "    tl.load.__globals__['count'] = None\n    program = tl.program_id(0)"),
            wrong=kernel_only("not part of Triton's language"),
        ),
        changed(
            "kernel-never-ends", KERNEL, ("    acc = tl.dot(x, w, acc)", "    while True: acc = tl.dot(x, w, acc)"),
            wrong=kernel_only("stopped", but=("lab2-compiles",)) | {"lab2-compiles": "sm_80"},
        ),
        changed("a-million-programs", LAUNCHER, ("linear_kernel[(programs,)]", "linear_kernel[(10**6,)]"), wrong=kernel_only("20,000 programs at most")),
        changed("a-wild-pointer", KERNEL, ("y_ptrs = y_ptr +", "tl.store((rm * 8 + 4096).to(tl.int64).to(y_ptr.dtype), 1.0)\n    y_ptrs = y_ptr +"), wrong=kernel_only("", but=("lab2-compiles",))),
    ]  # fmt: skip
