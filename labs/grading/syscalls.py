"""The system calls that the sandbox refuses, as a filter for the kernel (seccomp, classic BPF).

Namespaces and limits do most of the work. Refused here: memory that belongs to no process and so escapes the
count of resident memory, and doors into the kernel that no lab needs. A refused call fails with EPERM, as if
the kernel had been built without it, so libraries that only try them go on.
"""

from __future__ import annotations

import errno
import platform
import struct

# name: (x86_64, aarch64), from the kernel's arch/x86/entry/syscalls and asm-generic/unistd.h
REFUSED = {
    # memory without an owner
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    # keys, tracing, programs for the kernel, the queues that pass by this very filter
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "ptrace": (101, 117),
    "perf_event_open": (298, 241),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    # file systems and namespaces
    "mount": (165, 40),
    "unshare": (272, 97),
    "setns": (308, 268),
}
MACHINES = {
    "x86_64": (0, 0xC000003E),
    "aarch64": (1, 0xC00000B7),
}  # column above, the kernel's AUDIT_ARCH number
X32 = 0x40000000  # x86_64 only: the same calls under other numbers

LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM


def known() -> bool:
    """Whether the numbers of this machine's calls are in the table."""
    return platform.machine() in MACHINES


def program() -> bytes:
    """The filter as bubblewrap reads it: an array of struct sock_filter. Raises KeyError if not known()."""
    column, machine = MACHINES[platform.machine()]
    numbers = [row[column] for row in REFUSED.values()]
    steps = [(EQUAL, number) for number in numbers] + [(AT_LEAST, X32)]
    code = [
        struct.pack("=HBBI", LOAD, 0, 0, 4)
    ]  # seccomp_data.arch: a 32-bit call on a 64-bit machine is refused
    code.append(struct.pack("=HBBI", EQUAL, 0, len(steps) + 2 - 0, machine))
    code.append(struct.pack("=HBBI", LOAD, 0, 0, 0))  # seccomp_data.nr
    for index, (test, value) in enumerate(steps):
        code.append(struct.pack("=HBBI", test, len(steps) - index, 0, value))
    code.append(struct.pack("=HBBI", RETURN, 0, 0, ALLOW))
    code.append(struct.pack("=HBBI", RETURN, 0, 0, REFUSE))
    return b"".join(code)
