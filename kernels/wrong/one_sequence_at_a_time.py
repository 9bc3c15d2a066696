"""The mistake: the sequences of a batch are served one after the other, and each reads all the weights.

The right one is `kernels.decode_layer`, which reads them once for the whole batch. Chapter 07.
"""

from dataclasses import replace

import torch

from book.say import say
from kernels import decode_layer
from kernels.contract import devices
from kernels.contract.launch import Launch
from kernels.contract.wrong import Wrong


def one_sequence_at_a_time(x: torch.Tensor, *others: torch.Tensor, **named: torch.Tensor) -> torch.Tensor:
    """What `decode_layer` gives; it takes what that takes, without `lengths`, and raises as it does."""
    names = [name for name, tensor in experiment.tensors.items() if not tensor.out]
    given = dict(zip(names, (x, *others), strict=False)) | named
    sizes, dtype = experiment.check(**given)
    y = x.new_empty(x.shape)
    devices.launch(launches(plan(**sizes, dtype=dtype), **given, y=y), x.device)
    return y


def plan(batch: int, **others) -> decode_layer.Plan:
    """That of one sequence."""
    return decode_layer.plan(1, **others)


def launches(plan: decode_layer.Plan, x, k_cache, v_cache, positions, y, lengths=None, **weights):
    """Those of `kernels.decode_layer`, sequence by sequence."""
    made: list[Launch] = []
    for i in range(len(x)):
        own = {"k_cache": k_cache, "v_cache": v_cache, "positions": positions, "y": y}
        mine = {name: tensor[i : i + 1] for name, tensor in own.items()}
        made += decode_layer.launches(plan, x[i : i + 1], **weights, **mine)
    return made


experiment = replace(
    decode_layer.experiment,
    variant="one_at_a_time",
    run=one_sequence_at_a_time,
    plan=plan,
    launches=launches,
    issued=lambda plan, *, batch, **others: decode_layer.issued(plan, batch=1, **others),
)
wrong = Wrong(
    experiment,
    say("It serves the sequences one after the other, and reads all weights for each."),
)
