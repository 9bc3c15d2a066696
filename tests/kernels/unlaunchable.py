"""The toy experiment in versions that no card can launch, or that spill, each at one of its timed sizes."""

from dataclasses import replace

from kernels.contract.launch import Launch
from tests.kernels import toy as right
from tests.kernels.toy import toy_kernel

FITS = {"BM": 64, "BN": 64, "BK": 64, "num_warps": 4, "num_stages": 3}
WRONG = 256  # rows of its timed sweep, and of no other


def toy(x, w):
    return right.toy(x, w)


def _launches(plan, x, w, y):
    (m, k), n = x.shape, w.shape[1]
    return [Launch(toy_kernel, (-(-m // plan["BM"]), -(-n // plan["BN"])), (x, w, y, m, k, n), plan)]


def _planted(**wrong):
    return replace(
        right.experiment,
        run=toy,
        plan=lambda *, m, k, n, dtype, target: {**FITS, **(wrong if m == WRONG else {})},
        launches=_launches,
        sweep={
            "counted": {"m": 64, "k": 128, "n": 128},
            "timed": {"m": [16, WRONG], "k": 256, "n": 256},
            "compiled": {"m": 64, "k": 1024, "n": 1024},
        },
        dtypes=("bf16",),
    )


too_many_stages = _planted(BM=128, BN=256, num_stages=8, num_warps=8)
too_many_registers = _planted(BM=256, BN=256, BK=32, num_stages=2, num_warps=16, maxnreg=255)
too_many_threads = _planted(BM=128, BN=64, BK=32, num_stages=2, num_warps=64)
too_few_warps = _planted(BM=128, BN=64, BK=16, num_warps=1)
