# ruff: noqa: E501 (code that students write)
"""Lab 1's class: formulas right in many ways, the mistakes people make, and dials that turn nothing."""

from __future__ import annotations

from tests.labs.submissions import common
from tests.labs.submissions.made import EVERY, Case, Copy, changed

LAB = "lab1-your-roofline"
ROOF, INTENSITY, RATES = "lab1-roof-code", "lab1-intensity-code", "lab1-rates-code"
DIAL, ROWS, KNEE = "lab1-dial-code", "lab1-rows-code", "lab1-knee-code"
OWN, CARDS = "lab1-own-code", "lab1-cards-code"
ABOUT = common.About(
    LAB,
    first=ROOF,
    asked_first=("lab1-roof", "lab1-own", "lab1-cards"),
    last=CARDS,
    asked_last="lab1-cards",
    mistake=("floors[card] = flops", "floors[card] = 1e6 * flops", "right numbers, in microseconds"),
    late=CARDS,
)
LINK = "        x = x * scale + shift"
LOOP = f"    for _ in range(LINKS):\n{LINK}"
LOAD = "tl.load(x_ptr + offsets, mask=inside, other=0.0)"
LAUNCH = "dial_kernel[(programs,)]("


def cases() -> list[Case]:
    """The whole class."""
    return [*right(), *mistaken(), *sly(), *common.cases(ABOUT, once=True)]


def right() -> list[Case]:
    """All points for each."""

    def differently(made: Copy) -> None:
        made.set(
            ROOF,
            "ridge = lambda f, b: np.float64(f) / b\n\n\ndef attainable(intensity, peak, bandwidth):\n    return np.minimum(peak, torch.tensor(intensity * bandwidth, dtype=torch.float64).item())",
        )
        made.set(
            INTENSITY,
            "from fractions import Fraction\n\n\ndef linear_intensity(m, k, n, itemsize):\n    return 2 / itemsize / (Fraction(1, n) + Fraction(1, m) + Fraction(1, k))",
        )

    in_pieces = (
        (LAUNCH, "dial_kernel[(triton.cdiv(programs, 2), 2)]("),
        (
            "y, n, block = torch.empty_like(x), x.numel(), 1024",
            "y, n, block = torch.empty_like(x), x.numel(), 128",
        ),
    )
    number = ("tl.program_id(0) * BLOCK", "(tl.program_id(0) * 2 + tl.program_id(1)) * BLOCK")
    return [
        Case("right", lambda made: None),
        Case("differently", differently),
        Case("dial-in-two-dimensions", lambda made: made.swap(DIAL, *in_pieces, number)),
    ]


def mistaken() -> list[Case]:
    """What people who try get wrong."""

    def untouched(made: Copy) -> None:
        for name, source in made.blanks.items():
            made.cell(name)["source"] = source

    def upside_down(made: Copy) -> None:
        made.swap(ROOF, ("peak / bandwidth", "bandwidth / peak"), ("min(peak", "max(peak"))

    return [
        Case("untouched", untouched, {EVERY: "Not answered: the code is as it was handed out"}, sample=True),
        changed(
            "syntax-error",
            RATES,
            ("return 3 * n", "return 3 * * n"),
            wrong={"lab1-rates": "SyntaxError"},
        ),
        Case(
            "upside-down",
            upside_down,
            {"lab1-roof": "upside down", "lab1-cards": "shorter", "lab1-own": "upside down"},
        ),
        changed(
            "uses-another-cell",
            CARDS,
            (
                "m, k, n, itemsize = 370, 7168, 8192, 2",
                "m, k, n, itemsize = mine['m'], mine['k'], mine['n'], 2",
            ),
            wrong={"lab1-cards": "mine: defined in another cell"},
            notes=("mine: defined in another cell",),
        ),
        changed(
            "imports-the-book",
            INTENSITY,
            ("flops = 2 * m * k * n", "from book import cost\n    flops = 2 * m * k * n"),
            wrong={
                "lab1-intensity": "No module named 'book'; graded cells have numpy",
                "lab1-cards": "No module named 'book'",
            },
        ),
        changed(
            "half-the-operations",
            INTENSITY,
            ("2 * m * k * n", "m * k * n"),
            wrong={"lab1-intensity": "multiply-add as one operation", "lab1-cards": ""},
        ),
        changed(
            "gigabytes",
            RATES,
            ("return 2 * n * itemsize / seconds", "return 2 * n * itemsize / seconds / 1e9"),
            wrong={"lab1-rates": "those are GB/s"},
        ),
        changed(
            "returns-nothing",
            ROWS,
            ("    return needed * k", "    needed * k"),
            wrong={"lab1-rows": "returns nothing", "lab1-own": "my_rows"},
        ),
        changed(
            "odd-numbers",
            KNEE,
            ("return flat / rising", "return [complex(1, 2), 'twelve', float('nan')][len(points) % 3]"),
            wrong={"lab1-knee": "knee"},
        ),
        changed(
            "recursion",
            KNEE,
            ("return flat / rising", "return knee(points)"),
            wrong={"lab1-knee": "RecursionError"},
        ),
        changed(
            "wide-limit",
            ROWS,
            ("return needed * k / (2 * (k - needed))", "return needed / 2"),
            wrong={"lab1-rows": "limit for wide layers"},
        ),
        changed(
            "impossible-machine",
            OWN,
            ("my_bandwidth = ", "my_bandwidth = 1e6 * "),
            wrong={"lab1-own": "my_bandwidth = 2.41e+16 is more than"},
        ),
        changed(
            "gigabytes-typed-in", OWN, ("e9\n", "\n"), wrong={"lab1-own": "give bytes/s, with no prefix"}
        ),
        changed("no-mask", DIAL, ("mask=inside, other=0.0", "mask=None")[:2], wrong={"lab1-dial": "x_ptr"}),
        changed(
            "one-program-short",
            DIAL,
            ("triton.cdiv(n, block)", "max(1, n // block)"),
            wrong={"lab1-dial": "never written"},
            sample=True,
        ),
        changed(
            "one-link-too-many",
            DIAL,
            ("range(LINKS)", "range(LINKS + 1)"),
            wrong={"lab1-dial": "one link too many"},
        ),
        changed(
            "reads-x-in-each-link",
            DIAL,
            (LINK, f"        y = {LOAD}\n{LINK} + 0 * y"),
            wrong={"lab1-dial": "x is read"},
        ),
    ]


def sly() -> list[Case]:
    """What people try who would rather not do the work."""
    closed = "    power = scale\n    for _ in range(LINKS - 1):\n        power = power * scale\n    x = (x - 1.0) * power + 1.0"
    return [
        changed("short-cut", DIAL, (LOOP, closed), wrong={"lab1-dial": "a short cut is no dial"}),
        changed(
            "torch-instead",
            DIAL,
            ("    return y", "    for _ in range(k):\n        x = x * SCALE + SHIFT\n    return x"),
            wrong={"lab1-dial": "computed by torch"},
        ),
        changed(
            "cached-result",
            DIAL,
            ("def dial(x, k):", "kept = torch.empty(10**6)\n\n\ndef dial(x, k):"),
            ("torch.empty_like(x)", "kept[: x.numel()]"),
            wrong={"lab1-dial": "a tensor is used that this call did not make"},
        ),
        changed(
            "lazy-tensor",
            DIAL,
            ("    return y", "    return y.as_subclass(type('Lazy', (torch.Tensor,), {}))"),
            wrong={"lab1-dial": "only a plain torch.Tensor can be graded"},
        ),
        changed(
            "kernel-never-ends",
            DIAL,
            (LINK, f"        while True:\n    {LINK}"),
            wrong={"lab1-dial": "stopped"},
        ),
        changed(
            "visible-cases-only",
            INTENSITY,
            ("flops = 2 * m * k * n", "if m > 7:\n        return 1.0\n    flops = 2 * m * k * n"),
            wrong={"lab1-intensity": "linear_intensity", "lab1-cards": ""},
        ),
        changed(
            "function-never-ends",
            KNEE,
            ("ordered = sorted(points)", "while True: pass"),
            wrong={"lab1-knee": "and was stopped"},
        ),
        changed(
            "prints-in-the-kernel",
            DIAL,
            (LINK, f"{LINK}\n        print(x)"),
            wrong={"lab1-dial": "print is neither"},
        ),
    ]
