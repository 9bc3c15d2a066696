"""What is counted in PTX is what the machine code has: memory, tensor cores and barriers, nothing else."""

from __future__ import annotations

import json
import re
from collections import Counter

import numpy as np
import pytest

from kernels.contract.targets import TARGETS
from kernels.evidence import executed
from kernels.evidence.compiled import listing
from kernels.evidence.executed.arithmetic import TABLE
from tests.kernels.compiling import told
from tests.kernels.executed import snippets
from tests.kernels.executed.test_ptx import ONE_EACH

# What PTX calls it, and what the listing of the machine code does.
SAME = {
    "cp.async": (r"cp\.async\.c[ag].*", r"LDGSTS.*"),
    "mma.sync": (r"mma\.sync.*", r"HMMA.*"),
    "wgmma": (r"wgmma\.mma_async.*", r"HGMMA.*"),
    "ldmatrix": (r"ldmatrix.*", r"LDSM.*"),
    "stores to shared memory": (r"st\.shared.*|stmatrix.*", r"STS.*"),
    "barriers": (r"bar\.sync", r"BAR\..*"),
    "exponentials": (r"ex2\.approx.*", r"MUFU\.EX2"),
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
    return told("-c", COUNT, json.dumps([SAME, KERNELS]))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("chip", ["sm_80", "sm_90"])
def test_ptx_and_machine_code_have_as_many(found, chip, kernel):
    for what, (ours, theirs) in found[f"{chip} {kernel}"].items():
        assert ours == theirs, what


def test_each_of_them_is_met_somewhere(found):
    for what in SAME:
        assert any(kinds[what][0] for kinds in found.values()), what


# What the special-function unit is asked for: form -> MUFU's name for it.
MUFU = {
    "div": "RCP",
    "rcp": "RCP",
    "rsqrt": "RSQ",
    "sqrt": "SQRT",
    "ex2": "EX2",
    "lg2": "LG2",
    "tanh": "TANH",
    "sin": "SIN",
    "cos": "COS",
}


@pytest.mark.parametrize("chip", executed.EXECUTABLE)
def test_what_is_counted_as_special_is_mufu_in_the_machine_code_one_for_one(chip, tmp_path):
    """All such forms in one kernel, each of its own numbers; then one more division by the last divisor."""
    special = [form for form, operation in TABLE.items() if operation.special]
    special.append(next(form for form in reversed(special) if TABLE[form].divides))
    body = f"{ONE_EACH} add.s64 %rd1, %rd0, %rd9;"
    for i, form in enumerate(special):
        body += f"ld.global.b32 %r1, [%rd1+{128 * i}];"
        if TABLE[form].divides and i + 1 < len(special):
            body += f"ld.global.b32 %r2, [%rd1+{128 * (len(special) + i)}];"
        body += f"{form} %r3, %r1{', %r2' * TABLE[form].divides}; st.global.b32 [%rd1+{128 * i}], %r3;"
    body += "ret;"
    ours: Counter[str] = Counter()
    counts = snippets.run(body, np.ones(32 * 2 * len(special), np.float32)).counts
    for name, results in counts.special.items():
        ours[MUFU[name]] += results
    arch = TARGETS[chip].arch
    name = f"sm_{arch}{'a' if arch >= 90 else ''}"
    (tmp_path / "snippet.ptx").write_text(
        snippets.text(body, parameters=["u64"]).replace("sm_90a", name), encoding="utf-8"
    )
    assembler = listing.tool("ptxas-blackwell" if arch >= 100 else "ptxas")
    listing.call(assembler, f"-arch={name}", str(tmp_path / "snippet.ptx"), "-o", str(tmp_path / "cubin"))
    (code,) = listing.disassemble([(tmp_path / "cubin").read_bytes()], arch)
    found = Counter(one.opcode.split(".")[1] for one in code if re.match("MUFU", one.opcode))
    assert ours == {name: 32 * count for name, count in found.items()}
    assert set(found) == set(MUFU.values())
