"""The imaginary card, in a process whose Triton compiles."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kernels import matmul
from kernels.contract import devices
from kernels.contract.errors import CardRefuses, NotExecutable
from kernels.contract.targets import TARGETS
from kernels.evidence import executed
from kernels.evidence.executed.imaginary_card import card, refuse_too_large
from tests.kernels import compiling

# A file of its own: Triton reads the source of its kernels.
LAUNCHES = """
import json
import torch, triton
import triton.language as tl
from kernels.contract.targets import target
from kernels.evidence.executed.imaginary_card import card

@triton.jit
def copy(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i))

@triton.jit
def square(x_ptr, y_ptr, N: tl.constexpr, K: tl.constexpr):
    n, k = tl.arange(0, N), tl.arange(0, K)
    x = tl.load(x_ptr + n[:, None] * K + k[None, :])
    w = tl.load(x_ptr + n[None, :] * K + k[:, None])
    tl.store(y_ptr + n[:, None] * N + n[None, :], tl.dot(x, w))

@triton.jit
def add(x_ptr, z_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i) + tl.load(z_ptr + i))

@triton.jit
def watch(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, volatile=True))

x, y = torch.arange(2048.0), torch.zeros(2048)
wide, whole, z = torch.ones(32, 64), torch.ones(32, 64), torch.zeros(2048)
halves, squares = torch.ones(128 * 256, dtype=torch.float16), torch.zeros(128 * 128)
launches = {
    "right": lambda: copy[(16,)](x, y, BLOCK=128),
    "none": lambda: copy[(0,)](x, y, BLOCK=128),
    "along x": lambda: copy[(2**31,)](x, y, BLOCK=128),
    "along y": lambda: copy[(1, 2**16)](x, y, BLOCK=128),
    "along z": lambda: copy[(1, 1, 2**16)](x, y, BLOCK=128),
    "threads": lambda: copy[(1,)](x, y, BLOCK=2048, num_warps=64),
    "shared memory": lambda: square[(1,)](halves, squares, N=128, K=256),
    "past the end": lambda: copy[(17,)](x, y, BLOCK=128),
    "a part": lambda: copy[(1,)](x[1024:], y, BLOCK=128),
    "before a part": lambda: copy[(17,)](x[:1024], z[1024:], BLOCK=128),
    "60 columns of 64": lambda: copy[(1,)](wide[:, :60], z, BLOCK=128),
    "every second column": lambda: copy[(1,)](wide[:, ::2], z, BLOCK=512),
    "written beside 60 columns": lambda: copy[(1,)](x, wide[:, :60], BLOCK=512),
    "one row of many": lambda: copy[(1,)](wide[1], z, BLOCK=128),
    "known": lambda: copy[(1,)](whole[1], z, BLOCK=128),
    "turned": lambda: copy[(16,)](wide.T, z, BLOCK=128),
    "volatile": lambda: watch[(16,)](x, z, BLOCK=128),
    "side by side": lambda: add[(1,)](wide[:, :32], wide[:, 32:], z, BLOCK=128),
}
told = {}
with card(target("sm_120")) as here:
    here.know({"whole": whole})
    for name, launch in launches.items():
        before = len(here.launched)
        try:
            launch()
            told[name] = [one.programs for one in here.launched[before:]]
        except Exception as error:
            told[name] = f"{type(error).__name__}: {error}"
told["x was copied"] = bool((y[128:] == x[128:]).all())
told["a part of x was copied"] = bool((y[:128] == x[1024:1152]).all())

from kernels.evidence.executed.execution import execute
from kernels.linear import experiment
sizes = {"m": 16, "k": 1024, "n": 64}
both = ({}, {"count": False})
cards = [execute(experiment, target("sm_90"), "bf16", sizes, **options)[0] for options in both]
told["two cards"] = [[(one.label, one.outcome.counts is None) for one in card.launched] for card in cards]
from triton.runtime import driver
assert driver._active is None, "what was there before is there again: nothing"
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What came of each of LAUNCHES: the programs of what ran, or the error."""
    file = tmp_path_factory.mktemp("compiling") / "program.py"
    file.write_text(LAUNCHES, encoding="utf-8")
    return compiling.told(str(file))


def test_a_kernel_that_was_compiled_for_one_card_reports_to_the_card_that_it_runs_on(told):
    first, second = told["two cards"]
    assert [label for label, _ in first] == [label for label, _ in second] and len(first) == 2
    assert [silent for _, silent in first] == [False, False]
    assert [silent for _, silent in second] == [True, True], "each card has its own options"


def test_it_refuses_what_a_card_refuses_and_says_why(told):
    assert told["right"] == [16] and told["x was copied"]
    assert told["a part"] == [1] and told["a part of x was copied"], "a view begins where it begins"
    assert told["volatile"] == [16]
    assert told["none"] == [], "Triton launches nothing"
    assert (
        told["along x"]
        == "CardRefuses: copy: 2,147,483,648 programs along x; a card takes 2,147,483,647 at most."
    )
    assert told["along y"] == "CardRefuses: copy: 65,536 programs along y; a card takes 65,535 at most."
    assert told["along z"] == "CardRefuses: copy: 65,536 programs along z; a card takes 65,535 at most."
    assert told["threads"] == (
        "CardRefuses: copy: threads = 2,048 a block; sm_120 has 1,024 at most; take fewer warps (num_warps)."
    )
    shared = TARGETS["sm_120"].max_shared_per_block
    assert told["shared memory"] == (
        f"CardRefuses: square: shared memory = {2**17:,} bytes a block; sm_120 has {shared:,} at most; take "
        "smaller tiles, or fewer stages (num_stages)."
    )
    assert "program.py:11: ld.global" in told["past the end"]
    assert "of program 16 is outside every tensor; x is the nearest" in told["past the end"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            {"shared": 232_449},
            "shared memory = 232,449 bytes a block; sm_100 has 232,448 at most; take smaller",
        ),
        (
            {"tmem_size": 513},
            "tensor memory = 513 columns a block; sm_100 has 512 at most; take smaller tiles",
        ),
        ({"num_warps": 33}, "threads = 1,056 a block; sm_100 has 1,024 at most; take fewer warps"),
    ],
)
def test_each_limit_of_a_block_is_named_with_what_was_asked_and_the_remedy(asked, words):
    fits = {"name": "k", "shared": 232_448, "tmem_size": 512, "num_warps": 32}
    refuse_too_large(SimpleNamespace(**fits), TARGETS["sm_100"])
    with pytest.raises(CardRefuses, match=f"k: {words}"):
        refuse_too_large(SimpleNamespace(**fits | asked), TARGETS["sm_100"])


def test_a_launch_may_touch_the_elements_of_its_views_and_nothing_beside_them(told):
    for name, tensor, byte in (
        ("before a part", "x", 4096),
        ("60 columns of 64", "x", 240),
        ("every second column", "x", 0),  # four at once, of which the second is nobody's
        ("written beside 60 columns", "x", 240),
        ("one row of many", "x", 512),
    ):
        assert f"touches byte {byte} of the memory that {tensor} is a view of" in told[name], name
    for name in ("turned", "side by side"):
        assert told[name] != [] and isinstance(told[name], list), "every byte is an element of some view"
    assert told["known"] == [1], "the caller of the launcher holds all of it"


@pytest.mark.parametrize("name", [name for name in TARGETS if name not in executed.EXECUTABLE])
def test_a_chip_whose_instructions_are_not_known_is_no_card(name):
    with (
        pytest.raises(NotExecutable, match=f"target = '{name}': its compiled code .* choose sm_80, sm_90, "),
        card(TARGETS[name]),
    ):
        pass


def test_where_kernels_are_interpreted_there_is_no_card():
    with pytest.raises(RuntimeError, match="mode = interpreted: compiled code is"), card(TARGETS["sm_90"]):
        pass


def test_plans_are_those_of_the_chip_that_is_imagined_now():
    sizes = {"m": 256, "k": 1024, "n": 512, "dtype": "bf16"}
    for chip in ("sm_80", "sm_90", "sm_80", "sm_100"):
        with devices.imagined(TARGETS[chip]):
            assert matmul.experiment.plan(**sizes) == matmul.experiment.plan(**sizes, target=TARGETS[chip])
    assert len({matmul.experiment.plan(**sizes, target=TARGETS[chip]) for chip in ("sm_80", "sm_90")}) == 2


@pytest.mark.parametrize("triton", [None, "/dev/null/triton"])
def test_where_no_cache_can_be_written_it_compiles_and_runs_all_the_same(monkeypatch, triton):
    for name in ("XDG_CACHE_HOME", "INFERENCE_ROOFLINE_CACHE", "TRITON_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "TRITON_HOME"):
        monkeypatch.setenv(name, "/dev/null/home")
    if triton:
        monkeypatch.setenv("TRITON_CACHE_DIR", triton)
    (row,) = executed.run(matmul.experiment, targets=["sm_80"], m=16, k=64, n=64)
    row.check()
