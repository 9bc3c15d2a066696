"""Chapter 04: the decode floor."""

from __future__ import annotations

from book.cost import Cost
from book.formulas import models
from book.formulas.formula import Formula, Output
from book.formulas.parameters import BANDWIDTH, GPUS, PEAK, W_SIZE, WEIGHTS, B, P, W, step_time, w


def _floor(name: str, value: str, unit: str, value_label: str) -> Formula:
    step = Cost(WEIGHTS.flops, {"weights": w})
    time = step_time(step, GPUS.sympy)
    return Formula(
        name=name,
        title="The decode floor",
        value=value,
        unit=unit,
        value_label=value_label,
        parameters=(B, W_SIZE, GPUS, P, PEAK, BANDWIDTH),
        outputs={
            "time": time,
            "throughput": B.sympy / time,
            "per_user": 1 / time,
            "per_card": w / GPUS.sympy,
            "intensity": step.intensity,
        },
        aliases=(W,),
        described={
            "time": Output("time per token", "s"),
            "throughput": Output("all users", "token/s"),
            "per_user": Output("each user", "token/s"),
            "per_card": Output("weights on a card", "byte"),
        },
        readouts=tuple(n for n in ("time", "throughput", "per_user", "per_card") if n != value),
        presets=models.weights_only,
        preset=f"{models.START} / all parameters",
        preset_kind="model",
    )


decode_floor = _floor("decode_floor", "time", "s", "time per token")
decode_rate = _floor("decode_rate", "throughput", "token/s", "tokens per second")
