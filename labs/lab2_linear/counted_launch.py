"""Lab 2: one launch of the student's kernel, and what it asked memory for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from book import cost
from book.drawing.tables import Table, table
from book.say import say
from kernels.contract import devices
from kernels.evidence.counted.interpreter import count as tallied
from labs.kit import unsandboxed
from labs.kit.ask_and_answer import Case, Run
from labs.kit.ask_in_processes import answer
from labs.kit.question import NotYet, cells_of
from labs.lab2_linear.cases import ITEMSIZE, case, kernel
from labs.lab2_linear.wrong_products import relative_error, said

Launcher = Callable[..., torch.Tensor]


def count(launcher: Launcher, m: int, k: int, n: int) -> Table:
    """Run `launcher` once on random fp16 matrices in Triton's interpreter: what it asked memory for.

    "asked for": each address once in every load; "least": the formula, each address once in all.
    """
    run = _counted(launcher, case(np.random.default_rng(), m, k, n))
    formula = cost.linear(m, k, n, ITEMSIZE)
    rows = []
    for name, size in {**formula.reads, **formula.writes}.items():
        verb = "writes" if name == "y" else "reads"
        asked = run.bytes(name, verb, "block")
        rows.append([name, verb, f"{asked:,} B", f"{size:,} B", f"{asked / size:.2f}"])
    error = relative_error(run)
    words = say(
        "m = {m:,}, k = {k:,}, n = {n:,}: {programs:,} programs, relative error {error:.1e}",
        m=m,
        k=k,
        n=n,
        programs=run.programs,
        error=error,
    )
    if run.race:
        words = say("{counted}. A data race: {race}", counted=words, race=run.race)
    return table(rows, [say("tensor"), "", say("asked for"), say("least"), say("times")], words)


def _counted(launcher: Launcher, one: Case) -> Run:
    """In this process where kernels are interpreted anyway, else in children, as the checks do."""
    if devices.MODE == "interpreted":
        inputs = {name: torch.from_numpy(a) for name, a in one.inputs.items()}
        with tallied() as tally:
            y = launcher(**inputs)
        names = {t.data_ptr(): name for name, t in {**inputs, "y": y}.items()}
        traffic: dict[str, dict[str, dict[str, int]]] = {}
        for verb in ("reads", "writes"):
            for address, counted in tally.traffic_by_address(verb):
                traffic.setdefault(names.get(address, "scratch"), {})[verb] = vars(counted)
        return Run(one, y.double().numpy(), traffic, programs=tally.programs, race=tally.race)
    asked = answer(cells_of(launcher), kernel([one]), unsandboxed.run)
    told = asked.answers["linear"]
    error = next(iter(asked.cell_errors.values()), "") or told.error or told.runs[0].error
    if error:
        raise NotYet(said(error))
    return told.runs[0]
