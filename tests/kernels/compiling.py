"""Programs in a process whose Triton compiles: this one's interprets, and no process can do both."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from kernels.contract.processes import ROOT
from kernels.evidence import child_process


def told(*arguments: str) -> Any:
    """What Python prints when it is started with these arguments, read as JSON."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=child_process.environment(interpret=False),
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
