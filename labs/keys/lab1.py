"""Lab 1 with hidden cases: more calls, other sizes of the dial, and a compiler that has to take it."""

from __future__ import annotations

from dataclasses import replace

from labs.kit import lab1

SIZES = ((1, 15), (2048, 2048), (2049, 6000))  # fewer than a block, whole blocks, ragged
QUESTIONS = lab1.questions(24, SIZES, (1, 7, 100), targets=("sm_80",))

# The variant that a copy was set up with is the key's as well.
LAB = replace(lab1.LAB, questions=QUESTIONS, _kept={})
