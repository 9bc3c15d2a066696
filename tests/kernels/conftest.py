"""Kernels are tested in Triton's interpreter, GPU or no GPU; TRITON_INTERPRET=0 tests them on one."""

import os

# Before NumPy and Triton are imported. The matrices here are small: a BLAS thread for each core only
# makes tests that run beside each other wait.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("TRITON_INTERPRET", "1")

import kernels  # noqa: E402, F401 - decides Triton's mode
