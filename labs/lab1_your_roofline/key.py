"""Lab 1 with hidden cases: more calls, other sizes of the dial, and a compiler that has to take it."""

from __future__ import annotations

from dataclasses import replace

from labs.lab1_your_roofline import questions
from labs.lab1_your_roofline.questions import Cases

HIDDEN = Cases(
    calls=24,
    sizes=((1, 15), (2048, 2048), (2049, 6000)),  # fewer than a block, whole blocks, ragged
    links=(1, 7, 100),
    targets=("sm_80",),
)

LAB = replace(questions.LAB, questions=questions.questions(HIDDEN))
