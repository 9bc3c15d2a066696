"""The mistake: attention's matrix of scores is written to memory and read back, L * L numbers a head.

The right one is `kernels.flash_attention`; what it costs not to fuse is `kernels.unfused_attention`,
which here is held to the fused formula. Chapter 08.
"""

from dataclasses import replace

import torch

from book.say import say
from kernels import flash_attention, unfused_attention
from kernels.contract.wrong import Wrong


def scores_in_memory(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """o[B, L, H, d] as `flash_attention` gives it; it raises as `unfused_attention` does."""
    return unfused_attention.unfused_attention(q, k, v)


experiment = replace(
    unfused_attention.experiment,
    name=flash_attention.experiment.name,
    variant="scores_in_memory",
    run=scores_in_memory,
    cost=flash_attention.experiment.cost,
    issued=lambda plan, **sizes: flash_attention.experiment.cost(**sizes),  # no workspace is forgiven
)
wrong = Wrong(
    experiment, say("It writes the scores to memory, reads them, and does the same with the probabilities.")
)
