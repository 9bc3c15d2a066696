"""`python -m kernels.measure`: see the package."""

import os
import sys
import time
from pathlib import Path

from kernels.measure.command import main


def age() -> float:
    """Seconds since the system started this process, most of them of importing torch; 0 if it doesn't say."""
    try:
        ticks = int(
            Path("/proc/self/stat")
            .read_text(encoding="ascii", errors="replace")
            .rpartition(")")[2]
            .split()[19]
        )
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0


if __name__ == "__main__":
    sys.exit(main(began=time.monotonic() - age()))
