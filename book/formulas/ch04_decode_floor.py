"""Chapter 04: the decode floor."""

from __future__ import annotations

from book import serving
from book.cost import Cost
from book.formulas import memory, models
from book.formulas import parameters as p
from book.formulas.formula import Formula
from book.formulas.views import Curve, Readouts, Roofline, Shown, Turn
from book.say import say

_READOUTS = (
    Shown("time", say("time per token"), "s"),
    Shown("throughput", say("all users"), "token/s"),
    Shown("per_user", say("each user"), "token/s"),
    Shown("per_card", say("weights on a card"), "byte"),
)


def _floor(name: str, value: str, unit: str, label: str) -> Formula:
    step = Cost(p.WEIGHTS.flops, {"weights": p.WEIGHT_BYTES.sympy})
    time = p.step_time(step, p.GPUS.sympy)
    return Formula(
        name=name,
        title=say("The decode floor"),
        value=value,
        unit=unit,
        parameters=(p.BATCH, p.WEIGHT_ITEMSIZE, p.GPUS, p.PARAMETERS, p.PEAK, p.BANDWIDTH),
        outputs={
            "time": time,
            "throughput": p.BATCH.sympy / time,
            "per_user": 1 / time,
            "per_card": p.WEIGHT_BYTES.sympy / p.GPUS.sympy,
            "critical": serving.critical_rows(p.PEAK.sympy, p.BANDWIDTH.sympy, p.WEIGHT_ITEMSIZE.sympy),
            "intensity": step.intensity,
        },
        aliases=(p.WEIGHT_BYTES,),
        presets=models.weights_only,
        preset=f"{models.START} / {models.READ}",
        preset_kind="model",
        capacity=memory.of_weights(p.GPUS),
        views=(
            Roofline(),
            Curve(turn=Turn("batch", "critical", "M*∞")),
            Readouts(label, tuple(s for s in _READOUTS if s.output != value)),
        ),
    )


decode_floor = _floor("decode_floor", "time", "s", say("time per token"))
decode_rate = _floor("decode_rate", "throughput", "token/s", say("tokens per second"))
