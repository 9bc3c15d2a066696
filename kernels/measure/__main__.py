"""`python -m kernels.measure`: see the package."""

import sys

from kernels.measure.command import main

if __name__ == "__main__":
    sys.exit(main())
