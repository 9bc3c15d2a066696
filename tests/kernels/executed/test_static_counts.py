"""What is counted in PTX is what the machine code has: memory, tensor cores and barriers, nothing else."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from kernels.contract.processes import ROOT
from kernels.evidence import child_process

# What PTX calls it, and what the listing of the machine code does.
SAME = {
    "cp.async": (r"cp\.async\.c[ag].*", r"LDGSTS.*"),
    "mma.sync": (r"mma\.sync.*", r"HMMA.*"),
    "wgmma": (r"wgmma\.mma_async.*", r"HGMMA.*"),
    "ldmatrix": (r"ldmatrix.*", r"LDSM.*"),
    "stores to shared memory": (r"st\.shared.*|stmatrix.*", r"STS.*"),
    "barriers": (r"bar\.sync", r"BAR\..*"),
    "exponentials": (r"ex2\.approx.*", r"MUFU\.EX2"),
    "logarithms": (r"lg2\.approx.*", r"MUFU\.LG2"),
    "reciprocals": (r"div\.full\.f32|(div|rem)\.[su](32|64)", r"MUFU\.RCP"),
}
KERNELS = ("matmul", "flash_attention", "gemv", "decode_attention")
COUNT = """
import json, re, sys
from kernels.contract.targets import target
from kernels.evidence.compiled import listing
from kernels.evidence.executed import ptx
from kernels.evidence.experiments import all_experiments
from kernels.evidence.stand_in import activate
same, kernels = json.loads(sys.argv[1])
found = {}

def new(one, divisors):
    # whether ptxas has to make the reciprocal: once for each divisor that is a register
    if not re.match("(div|rem)[.]", one.form):
        return True
    divisor = one.operands[2]
    known = divisor in divisors or not divisor.startswith("%")
    divisors.add(divisor)
    return not known

for chip in ("sm_80", "sm_90"):
    here = target(chip)
    activate(here)
    for name in kernels:
        one = all_experiments()[name]
        sizes = {k: v[-1] if isinstance(v, (list, tuple)) else v for k, v in one.sweep["compiled"].items()}
        dtype = one.best_dtype(here)
        launch = one.meta_launches(one.plan(**sizes, dtype=dtype, target=here), dtype, **sizes)[0]
        compiled = launch.kernel.warmup(*launch.args, grid=launch.grid, **launch.options)
        divisors = set()
        forms = [i.form for i in ptx.read(compiled.asm["ptx"]).code if new(i, divisors)]
        opcodes = [i.opcode for i in listing.disassemble([compiled.asm["cubin"]], here.arch)[0]]
        found[f"{chip} {name}"] = {
            what: [sum(bool(re.fullmatch(p, x)) for x in where) for p, where in zip(pair, (forms, opcodes))]
            for what, pair in same.items()
        }
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    """Of "sm_90 matmul" and each kind: how many in PTX and in machine code."""
    done = subprocess.run(
        [sys.executable, "-c", COUNT, json.dumps([SAME, KERNELS])],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=child_process.environment(interpret=False),
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("chip", ["sm_80", "sm_90"])
def test_ptx_and_machine_code_have_as_many(found, chip, kernel):
    for what, (ours, theirs) in found[f"{chip} {kernel}"].items():
        assert ours == theirs, what


def test_each_of_them_is_met_somewhere(found):
    for what in SAME:
        assert any(kinds[what][0] for kinds in found.values()), what
