"""Chapter 09: the terms of a measured step, four of them fitted and three from other people's tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import sympy

from book import catalog
from book.formulas.formula import Alias, Formula, Parameter, Presets
from book.formulas.tables import interpolated, looked_up
from book.formulas.views import Curve, Readouts, Shown, Stack
from book.roofline import least
from book.say import say
from book.serving import Deployment, kv_bytes_per_token, kv_capacity, served, weight_bytes_read
from book.serving.kernel_times import plain, tables
from book.serving.served import GROUPS, Group
from book.serving.step_terms import (
    ACTIVATION,
    FIRST_ROWS,
    MEETINGS,
    ROUNDS,
    products_of,
    prompt_beside,
    prompts_beside,
)

GPUS, USERS = (1, 2, 4, 8), (4, 8, 16, 32, 64, 128)
LENGTHS = (1024, 8192)
_BETWEEN = USERS  # rows between which the browser interpolates, all of them measured
_MEAN = (1 + served.SHORTEST) / 2

GROUP = Parameter(
    "group",
    say("rows: 1 H100 vLLM, 2 H200 vLLM, 3 H200 TensorRT-LLM"),
    1,
    latex="g",
    steps=tuple(range(1, len(GROUPS) + 1)),
)
USER = Parameter("users", say("users"), 4, latex="U", steps=USERS)
CARDS = Parameter("gpus", say("cards"), 8, latex="n", steps=GPUS)
LENGTH = Parameter("prompt", say("prompt, at most"), 1024, unit="tokens", latex="L_1", steps=LENGTHS)
OUTPUT = Parameter("answer", say("answer, at most"), 1024, unit="tokens", latex="O_1", steps=LENGTHS)


def _slider(
    name: str, label: str, default: float, low: float, high: float, latex: str, unit: str = ""
) -> Parameter:
    return Parameter(name, label, default, low, high, unit, latex, scale="linear", integer=False)


ETA_W = _slider("eta_w", say("share of the bandwidth, weights"), 0.96, 0.4, 1, r"\eta_w")
ETA_KV = _slider("eta_kv", say("share of the bandwidth, cache"), 0.71, 0.2, 1, r"\eta_{kv}")
SEQUENCE = _slider("sequence", say("cost of a sequence"), 25e-6, 0, 100e-6, "c", "s")
OVERHEAD = _slider("overhead", say("the rest of a step"), 5e-3, 0, 10e-3, r"\tau", "s")


@cache
def _deployed(of: Group, gpus: int) -> Deployment:
    row = {"accelerator": of.accelerator, "engine": of.engine, "weights": "fp8", "gpus": gpus}
    return served.deployed(row)


def _of_each(value: Callable[[Group, int], sympy.Expr | float]) -> sympy.Expr:
    """`value(group, cards)` by the two sliders; NaN for cards that nobody measured."""
    return _chosen(
        GROUP,
        {
            number: _chosen(CARDS, {gpus: value(of, gpus) for gpus in GPUS if _measured(of, gpus)})
            for number, of in enumerate(GROUPS, start=1)
        },
    )


def _chosen(by: Parameter, values: Mapping[int, sympy.Expr | float]) -> sympy.Expr:
    branches = [(sympy.sympify(value), sympy.Eq(by.sympy, at)) for at, value in values.items()]
    return sympy.Piecewise(*branches, (sympy.nan, True))


def _of_a_group(value: Callable[[Group], Any]) -> sympy.Expr:
    branches = [
        (sympy.sympify(int(value(of))), sympy.Eq(GROUP.sympy, i)) for i, of in enumerate(GROUPS, start=1)
    ]
    return sympy.Piecewise(*branches[:-1], (branches[-1][0], True))


def _measured(of: Group, gpus: int) -> bool:
    return any(r["gpus"] == gpus for r in served.rows(of))


_prompt, _output = _MEAN * LENGTH.sympy, _MEAN * OUTPUT.sympy
_context = _prompt + _output / 2


@cache
def _reached_by(of: Group, gpus: int) -> sympy.Expr:
    """min(users, what fits): tokens that fit over those that a sequence holds, or that are kept for it."""
    held = _prompt + (_output if of.reserves else _output / 2)
    return least(USER.sympy, round(plain(kv_capacity(_deployed(of, gpus)))) / held)


def _at(of: Group, gpus: int, seconds: Callable[[float], float], name: str) -> sympy.Expr:
    told = {rows: float(f"{seconds(rows):.5g}") for rows in _BETWEEN}
    return interpolated(_reached_by(of, gpus), told, name=name)


def _rows_of(of: Group, gpus: int) -> sympy.Expr:
    d = _deployed(of, gpus)
    first = float(f"{products_of(d, FIRST_ROWS, of.engine):.5g}")
    return _at(of, gpus, lambda rows: products_of(d, rows, of.engine), "GEMM") - first


def _all_reduces_of(of: Group, gpus: int) -> sympy.Expr | float:
    if gpus == 1:
        return 0
    d = _deployed(of, gpus)
    table, both = tables(of.accelerator, of.engine), MEETINGS * d.model.layers
    size = d.model.d_model * ACTIVATION
    return _at(of, gpus, lambda rows: both * plain(table.all_reduce(gpus, rows * size)), "AR")


def _prompt_of(of: Group, gpus: int) -> sympy.Expr:
    d = _deployed(of, gpus)

    def told(length: float) -> sympy.Expr:
        seconds = partial(prompt_beside, d, _MEAN * length, engine=of.engine, chunk=of.chunk)
        return _at(of, gpus, lambda rows: seconds(rows), "prompt")

    return _chosen(LENGTH, {length: told(length) for length in LENGTHS})


_W = served.deployed({"accelerator": "h100_sxm", "engine": "vLLM", "weights": "fp8", "gpus": 1})
_weight_bytes = sympy.sympify(int(weight_bytes_read(_W.model, 1, 1)))
BYTES = Alias("weight_bytes", say("weights"), "W", _weight_bytes, unit="byte")
KAPPA = Alias(
    "kv_per_token",
    say("cache per token"),
    r"\kappa",
    _of_a_group(lambda g: kv_bytes_per_token(_W.model, g.kv_itemsize)),
)
BETA = Alias(
    "bandwidth",
    say("memory bandwidth"),
    r"\beta",
    _of_a_group(lambda g: catalog.accelerator(g.accelerator).bandwidth),
)
REACHED = Alias("batch", say("sequences that run"), "B", _of_each(_reached_by))
CONTEXT = Alias("context", say("mean context"), "S", _context)
ROWS = Alias("rows_time", say("products of more rows"), "t_m", _of_each(_rows_of))
MEETING = Alias("meetings", say("all-reduces"), "t_a", _of_each(_all_reduces_of))
PROMPT = Alias("prompt_time", say("one prompt"), "t_p", _of_each(_prompt_of))
ANSWER = Alias("outputs", say("mean answer"), "O", _output)

_weights = BYTES.sympy / (CARDS.sympy * BETA.sympy * ETA_W.sympy)
_cache = REACHED.sympy * CONTEXT.sympy * KAPPA.sympy / (CARDS.sympy * BETA.sympy * ETA_KV.sympy)
_others = prompts_beside(REACHED.sympy, ANSWER.sympy, sympy.Integer(ROUNDS)) * PROMPT.sympy
_sequences = SEQUENCE.sympy * REACHED.sympy


@cache
def groups() -> Presets:
    """The four fitted numbers of each group of rows, as far as the sliders resolve them."""
    made = {}
    for number, of in enumerate(GROUPS, start=1):
        law = served.fitted(of).law
        made[of.name] = {
            "": {
                "group": number,
                "eta_w": round(1 / law.weights, 2),
                "eta_kv": round(1 / law.cache, 2),
                "sequence": round(law.sequence, 6),
                "overhead": round(law.overhead, 4),
            }
        }
    return made


def _rows() -> dict[tuple[int, ...], float]:
    return {
        (number, r["gpus"], r["concurrency"], r["input_tokens"], r["output_tokens"]): r["tpot_s"]
        for number, of in enumerate(GROUPS, start=1)
        for r in served.rows(of)
    }


step_terms = Formula(
    name="step_terms",
    title=say("A step taken apart"),
    value="tpot",
    unit="s",
    parameters=(GROUP, CARDS, USER, LENGTH, OUTPUT, ETA_W, ETA_KV, SEQUENCE, OVERHEAD),
    outputs={
        "tpot": _weights + _cache + ROWS.sympy + MEETING.sympy + _others + _sequences + OVERHEAD.sympy,
        "weights": _weights,
        "cache": _cache,
        "rows": ROWS.sympy,
        "all_reduces": MEETING.sympy,
        "prompts": _others,
        "sequences": _sequences,
        "constant": OVERHEAD.sympy,
        "running": REACHED.sympy,
        "measured": looked_up((GROUP.sympy, CARDS.sympy, USER.sympy, LENGTH.sympy, OUTPUT.sympy), _rows()),
    },
    aliases=(BYTES, KAPPA, BETA, REACHED, CONTEXT, ROWS, MEETING, PROMPT, ANSWER),
    presets=groups,
    preset=GROUPS[0].name,
    preset_kind="engine",
    views=(
        Stack(
            parts=(
                Shown("weights", say("weights"), "s"),
                Shown("cache", say("cache"), "s"),
                Shown("rows", say("more rows"), "s"),
                Shown("all_reduces", say("all-reduces"), "s"),
                Shown("prompts", say("others' prompts"), "s"),
                Shown("sequences", say("sequences"), "s"),
                Shown("constant", say("the rest, fitted"), "s"),
            ),
            measured="measured",
            running="running",
            asked=USER.symbol,
            unknown=say("No measured row is of this engine on so many of these cards."),
        ),
        Curve(),
        Readouts(say("time per output token"), (Shown("running", say("sequences that run")),)),
    ),
)
