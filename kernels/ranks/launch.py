"""Several processes, one a rank: start them, collect an answer from each, and leave none behind.

    request = {"parallel": "kernels.ranks.linear:row", "sizes": {"m": 16, "k": 1024, "n": 1024}}
    answers = launch.run("kernels.ranks.parallel:answer", request, ranks=2)

torch's own supervisor, which torchrun is made of, starts the ranks, watches them, and ends all when
one fails. Each runs `kernels.ranks.rank`, which joins the others and calls the function. The ranks
find each other through a file and talk over the loopback interface: no network is needed, no port
is chosen here, and any number of runs can go on at once.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import torch
import torch.distributed as dist

from book.say import say
from kernels.contract import checks, devices, processes
from kernels.ranks import failures
from kernels.ranks.failures import NoRanks, RankFailed

__all__ = ["NoRanks", "RankFailed", "backend_here", "run", "why_not"]

Backend = Literal["gloo", "nccl"]

STARTING = 120  # seconds in which all ranks have to have joined; importing torch takes each a few
_LOOK = 0.05  # seconds between two looks at the ranks
_LOOPBACK = ("lo", "lo0")  # of Linux, of macOS
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has no SIGKILL
_ONE_AT_A_TIME = threading.Lock()


def run(
    task: str,
    request: Any = None,
    *,
    ranks: int,
    timeout: float = 120,
    backend: Backend | None = None,
    environment: Mapping[str, str] | None = None,
) -> list[Any]:
    """Call `task` on every rank of a group of `ranks` processes, and return their answers in order.

    task: "module:function"; the function takes `request` and returns what JSON can hold; inside it
    torch.distributed is ready. request: what JSON can hold, the same for all.
    timeout: seconds from when all have joined; for that they get STARTING.
    backend: by default what `backend_here` says. "gloo": on the CPU, kernels interpreted. "nccl": one
    GPU a rank, kernels compiled. environment: of the ranks, if not this process's own.

    Raises RankFailed with a sentence when a rank raises, exits, is killed or gives no answer in time;
    then, as always, no process of the run is left. Raises NoRanks where this platform has none.
    """
    checks.sizes(ranks=ranks)
    backend = backend or backend_here(ranks)
    if reason := why_not(ranks, backend):
        raise NoRanks(reason)
    told = processes.environment(interpret=backend == "gloo") if environment is None else environment
    with tempfile.TemporaryDirectory(prefix="ranks-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        order = {"task": task, "request": request, "backend": backend, "launcher": os.getpid()}
        order["seconds"] = STARTING + timeout
        (folder / "order.json").write_text(json.dumps(order), encoding="utf-8")
        this = failures.Run(folder, ranks, timeout)
        with _started(folder, ranks, {**told, **_defaults(told)}) as supervisor:
            this.logs = {rank: Path(path) for rank, path in supervisor.stderrs.items()}
            exits = _watch(supervisor, this)
        if exits is None:
            raise failures.late(this, STARTING)
        if any(exits.values()) or len(this.answered()) < ranks:
            raise failures.first(this, exits)
        return [json.loads(path.read_text(encoding="utf-8")) for path in this.answered()]


def backend_here(ranks: int) -> Backend:
    """What ranks talk through here: "nccl" if kernels are compiled and each has a GPU, else "gloo"."""
    enough = devices.device() == "cuda" and torch.cuda.device_count() >= ranks
    return "nccl" if enough and dist.is_available() and dist.is_nccl_available() else "gloo"


def why_not(ranks: int = 2, backend: Backend = "gloo") -> str:
    """Why no ranks can be started on this machine: a sentence, or "" if they can."""
    if not dist.is_available():
        return say(
            "torch.distributed = missing: this build of torch {torch} for {platform} has none, "
            "so there is one rank only; use torch of PyPI on Linux, Colab or a Linux container.",
            torch=torch.__version__,
            platform=sys.platform,
        )
    if not getattr(dist, f"is_{backend}_available")():
        return say(
            "backend = {backend!r}: this build of torch {torch} for {platform} has none; use "
            "torch of PyPI on Linux, Colab or a Linux container.",
            backend=backend,
            torch=torch.__version__,
            platform=sys.platform,
        )
    if backend == "nccl" and torch.cuda.device_count() < ranks:
        return say(
            "ranks = {ranks}: NCCL needs a GPU for each, and here are {gpus}; use "
            "backend='gloo', which needs none.",
            ranks=ranks,
            gpus=torch.cuda.device_count(),
        )
    return ""


def _defaults(told: Mapping[str, str]) -> dict[str, str]:
    """What ranks on one machine need, unless the caller says otherwise."""
    names = {name for _, name in socket.if_nameindex()} if hasattr(socket, "if_nameindex") else set()
    loopback = next((name for name in _LOOPBACK if name in names), None)
    wanted = {"OMP_NUM_THREADS": "1"}  # as torchrun does: a rank for each core is threads enough
    if loopback:
        wanted |= {"GLOO_SOCKET_IFNAME": loopback, "NCCL_SOCKET_IFNAME": loopback}
    return {name: value for name, value in wanted.items() if name not in told}


@contextlib.contextmanager
def _started(folder: Path, ranks: int, environment: dict[str, str]) -> Iterator[Any]:
    """The ranks under torch's supervisor; none of them, nor what they started, is left afterwards."""
    from torch.distributed.elastic import multiprocessing as elastic

    places = {r: {"RANK": str(r), "LOCAL_RANK": str(r), "WORLD_SIZE": str(ranks)} for r in range(ranks)}
    # What it would log is in our own sentence, or in the way.
    logging.getLogger("torch.distributed.elastic.multiprocessing").setLevel(logging.CRITICAL)
    with _hands_off_signals():
        supervisor = elastic.start_processes(
            name="ranks",
            entrypoint=sys.executable,
            args={rank: ("-m", "kernels.ranks.rank", "--folder", str(folder)) for rank in places},
            envs={rank: {**environment, **place} for rank, place in places.items()},
            logs_specs=elastic.DefaultLogsSpecs(str(folder / "logs"), redirects=elastic.Std.ALL),
        )
    try:
        yield supervisor
    finally:
        supervisor.close(death_sig=_KILL, timeout=10)
        for pid in supervisor.pids().values():  # each leads a group, its own children are in it
            with contextlib.suppress(OSError, AttributeError):
                os.killpg(pid, _KILL)
        for handler in supervisor.subprocess_handlers.values():  # it closes the logs of those it ended only
            for log in (handler._stdout, handler._stderr):
                log.close()


@contextlib.contextmanager
def _hands_off_signals() -> Iterator[None]:
    """Inside, the supervisor leaves this process's signal handlers alone: they are a notebook's."""
    name = "TORCHELASTIC_SIGNALS_TO_HANDLE"
    with _ONE_AT_A_TIME:
        before = os.environ.get(name)
        os.environ[name] = ""
        try:
            yield
        finally:
            os.environ.pop(name) if before is None else os.environ.update({name: before})


def _watch(supervisor: Any, run: failures.Run) -> dict[int, int] | None:
    """The exit codes by rank once all have ended or one has failed; None if the time is up."""
    limit, joined = time.monotonic() + STARTING, False
    while time.monotonic() < limit:
        if not joined and len(run.joined()) == run.ranks:
            limit, joined = time.monotonic() + run.timeout, True
        if ended := supervisor.wait(0):  # it ends the others if one has failed
            return {r: ended.failures[r].exitcode if r in ended.failures else 0 for r in range(run.ranks)}
        time.sleep(_LOOK)
    failures.ask_where(supervisor.pids())
    return None
