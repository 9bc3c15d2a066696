"""Chapter 04: the decode floor."""

from __future__ import annotations

from book.cost import Cost
from book.formulas import models
from book.formulas import parameters as p
from book.formulas.formula import Formula, Output


def _floor(name: str, value: str, unit: str, value_label: str) -> Formula:
    step = Cost(p.WEIGHTS.flops, {"weights": p.WEIGHT_BYTES.sympy})
    time = p.step_time(step, p.GPUS.sympy)
    return Formula(
        name=name,
        title="The decode floor",
        value=value,
        unit=unit,
        value_label=value_label,
        parameters=(p.BATCH, p.WEIGHT_ITEMSIZE, p.GPUS, p.PARAMETERS, p.PEAK, p.BANDWIDTH),
        outputs={
            "time": time,
            "throughput": p.BATCH.sympy / time,
            "per_user": 1 / time,
            "per_card": p.WEIGHT_BYTES.sympy / p.GPUS.sympy,
            "intensity": step.intensity,
        },
        aliases=(p.WEIGHT_BYTES,),
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
