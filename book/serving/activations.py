"""What passes between the linear layers of a model: the x and y of chapter 02, of all layers together."""

from __future__ import annotations

from book import cost
from book.catalog import Model


def linear_numbers(model: Model) -> int:
    """Numbers that one token's linear layers read and write: k + n of each, in all blocks.

    The head is left out: a prompt needs it once. Of a mixture of experts, the top_k that a token visits.
    Counted by `cost.linear`, layer by layer: a kernel that keeps what passes between two of them on the
    chip moves less, and attention, norms and residual sums come on top.
    """
    return sum(times * _numbers(k, n) for times, (k, n) in _layers(model))


def _numbers(k: int, n: int) -> int:
    one = cost.linear(1, k, n, itemsize=1)
    return int(one.reads["x"] + one.writes["y"])


def _layers(model: Model) -> list[tuple[int, tuple[int, int]]]:
    """(how often a token passes it, its k and n) of each distinct linear layer but the head."""
    moe = model.experts
    dense = model.layers if moe is None else moe.n_dense_layers
    sparse = model.layers - dense

    def times(label: str) -> int:
        if label == "head":
            return 0
        if label in ("gate", "up", "down"):
            return dense
        if moe is not None and label.startswith("expert "):
            return sparse * moe.top_k
        if label == "router" or label.startswith("shared expert "):
            return sparse
        return model.layers

    return [(times(label), shape) for label, shape in model.linear_layers().items()]
