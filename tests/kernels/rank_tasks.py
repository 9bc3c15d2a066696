"""What the ranks of tests/kernels/test_ranks*.py do: each function is called on every rank."""

from __future__ import annotations

import os
import pkgutil
import signal
import subprocess
import sys
import time
from typing import Any

import torch
import torch.distributed as dist

from kernels import linear as unsharded
from kernels.evidence.addresses import address
from kernels.evidence.counted import per_rank
from kernels.ranks import collectives, linear, wire


def first_and_then(request: dict[str, Any]) -> list[Any]:
    """The answers of two functions on the same rank, one after the other: [first, then]."""
    return [pkgutil.resolve_name(task)(asked) for task, asked in (request["first"], request["then"])]


def linears(request: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Of each operation of `kernels.ranks.linear`: the part of the result that is here, and the counts."""
    rank, ranks, sizes = dist.get_rank(), dist.get_world_size(), request["sizes"]
    whole = unsharded.experiment.inputs(**sizes)
    made = {}
    for name in ("column", "column_gathered", "row"):
        one = getattr(linear, name)
        counts = per_rank.count_request({"parallel": address(one), "sizes": sizes, "dtype": "fp16"})
        made[name] = {"y": one.run(**one.shard(rank, ranks, **whole)).tolist(), **counts}
    return made


def every_collective(request: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Each collective once, of fp32 that say who they are from: the result, the counts, the sockets."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x = torch.full((request["numbers"],), float(rank + 1))
    piece = x.chunk(ranks)[rank]
    steps = {
        "all_reduce": lambda: collectives.all_reduce(t=x.clone()),
        "all_gather": lambda: collectives.all_gather(t=piece),
        "reduce_scatter": lambda: collectives.reduce_scatter(t=x),
        "all_to_all": lambda: collectives.all_to_all(t=x),
        "broadcast": lambda: collectives.broadcast(1, t=x.clone()),
        "point_to_point": lambda: _from_first_to_last(x.clone(), rank, ranks),
    }
    made = {}
    for name, step in steps.items():
        dist.barrier()
        before = wire.sent()
        with collectives.count() as link:
            result = step()
        dist.barrier()
        after = wire.sent()
        made[name] = {
            "values": result.unique_consecutive().tolist(),
            "calls": [[c.collective, c.tensor, c.payload, c.sent] for c in link.calls],
            "wire": None if before is None else after - before,
        }
    return made


def _from_first_to_last(x: torch.Tensor, rank: int, ranks: int) -> torch.Tensor:
    if rank == 0:
        collectives.send(ranks - 1, t=x)
    elif rank == ranks - 1:
        collectives.receive(0, t=x)
    return x


def goes_wrong(request: dict[str, Any]) -> None:
    """The last rank goes wrong in the middle, the others wait for it in a collective."""
    dist.all_reduce(torch.ones(8))
    if dist.get_rank() == dist.get_world_size() - 1:
        # with a child of its own, which has to go too
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", request["mark"]])
        print("the last thing I said", file=sys.stderr, flush=True)
        {"is killed": _is_killed, "raises": _raises, "hangs": _hangs}[request["how"]]()
    dist.all_reduce(torch.ones(8))


def _is_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _raises() -> None:
    raise ValueError("k = 3: two ranks can't share it; make k even.")


def _hangs() -> None:
    time.sleep(600)
