"""What one rank runs: join the others, call one function, hand back its answer, leave.

`kernels.ranks.launch` starts it with a folder. Under torchrun, on one machine or several, it takes
the function and its request, and prints the answer:

    torchrun --standalone --nproc-per-node 2 -m kernels.ranks.rank MODULE:FUNCTION '{"m": 16}'
"""

from __future__ import annotations

import argparse
import datetime
import faulthandler
import json
import os
import pkgutil
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

RAISED = 1  # the exit code of a rank that raised
LOST = 75  # of one whose launcher is gone: nobody reads it


def main() -> None:
    """Run as a module, see above."""
    parser = argparse.ArgumentParser(prog="kernels.ranks.rank", description=__doc__)
    parser.add_argument("task", nargs="?", help='"module:function"')
    parser.add_argument("request", nargs="?", default="null", help="JSON")
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    rank, ranks = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE"))
    if given.folder:
        order = json.loads((given.folder / "order.json").read_text(encoding="utf-8"))
        _watch_over(order)
    else:
        order = {"task": given.task, "request": json.loads(given.request), "backend": None}
    try:
        join(rank, ranks, order["backend"], given.folder)
        answer = json.dumps(pkgutil.resolve_name(order["task"])(order["request"]))
        dist.barrier()  # nobody leaves while another still waits for what this one has sent
    except Exception as error:  # noqa: BLE001 - told to the launcher, which says it in a sentence
        _tell(given.folder, rank, error)
    if given.folder:
        (given.folder / f"answer-{rank}.json").write_text(answer, encoding="utf-8")
    else:
        # The ranks share one pipe, and `print` may write the end of the line apart from the line.
        sys.stdout.flush()
        os.write(sys.stdout.fileno(), f"rank {rank}: {answer}\n".encode())
    dist.destroy_process_group()


def join(rank: int, ranks: int, backend: str | None, folder: Path | None) -> None:
    """Make the process group: through a file in `folder`, or as torchrun's environment says."""
    enough = torch.cuda.is_available() and torch.cuda.device_count() >= int(
        os.environ.get("LOCAL_WORLD_SIZE", ranks)
    )
    backend = backend or ("nccl" if enough and dist.is_nccl_available() else "gloo")
    if backend == "nccl":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    if folder is None:
        dist.init_process_group(backend)
        return
    store = dist.FileStore(str(folder / "store"), ranks)
    hour = datetime.timedelta(hours=1)  # the launcher's bound is the shorter one
    dist.init_process_group(backend, store=store, rank=rank, world_size=ranks, timeout=hour)
    (folder / f"joined-{rank}").touch()


def _watch_over(order: dict[str, Any]) -> None:
    """See to it that this process ends, and can say where it is, whatever the function does."""
    faulthandler.enable()
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1, all_threads=False)  # "where are you?"
    # Should the launcher be gone and this process stuck, a watchdog outside of Python ends it.
    faulthandler.dump_traceback_later(order["seconds"] + 30, exit=True)

    def end_with(launcher: int) -> None:
        while os.getppid() == launcher:
            time.sleep(0.5)
        os._exit(LOST)

    threading.Thread(target=end_with, args=(order["launcher"],), daemon=True).start()


def _tell(folder: Path | None, rank: int, error: Exception) -> None:
    """Say what was raised, where and when, and leave at once: others may be waiting for this one."""
    traceback.print_exc()
    sys.stderr.flush()
    if folder:
        last = traceback.extract_tb(error.__traceback__)[-1]
        words = {"kind": type(error).__name__, "message": str(error), "when": time.time_ns()}
        words["where"] = f"{Path(last.filename).name}, line {last.lineno}"
        (folder / f"error-{rank}.json").write_text(json.dumps(words), encoding="utf-8")
    os._exit(RAISED)


if __name__ == "__main__":
    main()
