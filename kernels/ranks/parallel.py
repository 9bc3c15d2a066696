"""What is asked of an operation that several ranks share: how it is cut, and what one rank costs.

On a machine with a GPU for each rank, run one and see that its result is right (in one line):

    torchrun --standalone --nproc-per-node 2 -m kernels.ranks.rank kernels.ranks.parallel:answer
        '{"parallel": "kernels.ranks.linear:row", "sizes": {"m": 16, "k": 8192, "n": 8192}}'
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from book.cost import Cost
from book.cost.parallel import shard
from kernels.contract import devices
from kernels.contract.experiment import Experiment
from kernels.ranks import collectives, wire


@dataclass(frozen=True)
class Parallel:
    """One operation on n ranks, beside the `experiment` that is the same operation on one.

    cut: the size of the problem that the ranks share out, each an equal part.
    shard(rank, ranks, **inputs) -> {argument: tensor}: what one rank holds of the whole inputs.
    run(**shard) -> tensor: what one rank does, its collectives included.
    part(rank, ranks, y) -> tensor: what it must then have of the unsharded result y.
    cost(**sizes, ranks, itemsize) -> Cost: of one rank, with what it sends by the tensor's name.
    """

    name: str
    experiment: Experiment
    cut: str
    shard: Callable[..., dict[str, torch.Tensor]]
    run: Callable[..., torch.Tensor]
    part: Callable[..., torch.Tensor]
    cost: Callable[..., Cost]

    def local(self, ranks: int, **sizes: int) -> dict[str, int]:
        """The sizes of the problem that one rank's kernel sees. Raises ValueError if it can't be cut."""
        return {**sizes, self.cut: shard(sizes[self.cut], ranks, self.cut)}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """One rank's side of a run, on the device that is here, as JSON can hold it.

    request: {"parallel": "kernels.ranks.linear:row" or another, "sizes", and "dtype", by default the
    device's}. All ranks make the same random inputs, and each keeps its part. Returned: "rank",
    "device", bytes "sent" and "payload" by tensor (`collectives`), bytes that really left by sockets
    ("wire", or None), and the "relative_error" of this rank's part of the result against float64.
    """
    this: Parallel = pkgutil.resolve_name(request["parallel"])
    rank, ranks = dist.get_rank(), dist.get_world_size()
    dtype, device = request.get("dtype") or devices.default_dtype(), devices.device()
    this.local(ranks, **request["sizes"])  # says so if it can't be cut
    whole = this.experiment.inputs(**request["sizes"], dtype=dtype, device=device, seed=0)
    mine = this.shard(rank, ranks, **whole)
    dist.barrier()
    before = wire.sent()
    with collectives.count() as link:
        y = this.run(**mine)
    dist.barrier()  # now the others have received everything
    after = wire.sent()
    wanted = this.part(rank, ranks, this.experiment.reference(**whole)).double()
    return {
        "rank": rank,
        "device": str(y.device),
        "sent": link.sent(),
        "payload": link.payload(),
        "wire": None if before is None or after is None or device == "cuda" else after - before,
        "relative_error": ((y.double() - wanted).norm() / wanted.norm()).item(),
    }


def piece(x: torch.Tensor, dim: int, rank: int, ranks: int) -> torch.Tensor:
    """The equal part number `rank` of x along `dim`, in memory of its own."""
    return x.chunk(ranks, dim)[rank].contiguous()
