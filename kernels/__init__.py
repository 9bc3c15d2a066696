"""Real Triton kernels, one a file: the code, its launcher, its reference, the cost it must show.

Triton decides when it is first imported whether it compiles kernels or interprets them, so this
package decides just before: where torch sees no GPU, and TRITON_INTERPRET was not set by hand,
kernels run in Triton's interpreter on the CPU. Where there is no Triton at all (it has wheels for
Linux only) everything imports, costs and plans work, and launching a kernel says what is missing.
"""

import gc

from kernels.contract.devices import MODE, NoTriton, default_dtype, device

__all__ = ["MODE", "NoTriton", "default_dtype", "device"]

# What importing torch and Triton has made stays to the end. Left out of every collection from here on,
# and of the last one: a process that does little else ends sooner.
gc.freeze()
