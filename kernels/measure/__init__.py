"""Time every kernel on the GPU of this machine and keep the result as a record.

    python -m kernels.measure --out kernels/records/h100.json
    python -m kernels.measure --out h100.json --minutes 8    # the most telling first, then stop
    python -m kernels.measure --out h100.json --resume       # what is missing in it, and nothing else

Needs a checkout, torch, Triton, a C compiler (gcc or clang) and Python's headers (Python.h), with
which Triton builds its driver at the first launch; nothing of the book's other packages.

This process never touches the card. It orders the work, and a child process for each kernel does it:
an illegal access, a launch that is refused, a process that is killed or hangs cost one point, and the
next one is measured by another child. First every kernel is checked against float64; then the
ceilings are measured; then the sweeps, each size with the vendor's own kernel beside it; then what a
launch costs, and at last DRAM bytes by hardware counters. The record is written anew after each
point, so a run that is cut short keeps what it had. What is missing at the end is listed, with the
command that measures only that.

Exit codes: 0 done; 1 a kernel was wrong or a result impossible; 2 nothing to measure on, or nowhere to
write; 3 something failed and is missing; 130 stopped by Ctrl-C, what was measured is kept.
"""
