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

# clone starts processes and threads: fine, unless in a new namespace. clone3 has its flags behind a pointer,
# so it is reported missing, and the C library takes clone instead.
CLONE, CLONE3 = (56, 220), (435, 435)
NEW_NAMESPACE = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCH, FIRST = (
    0,
    4,
    16,
)  # where seccomp_data has the call, the architecture, the first argument's low half
ALLOW, FAIL = 0x7FFF0000, 0x00050000


def known() -> bool:
    """Whether the numbers of this machine's calls are in the table."""
    return platform.machine() in MACHINES


def program() -> bytes:
    """The filter as bubblewrap reads it: an array of struct sock_filter. Raises KeyError if not known()."""
    column, machine = MACHINES[platform.machine()]
    numbers = [row[column] for row in REFUSED.values()]
    # (operation, value, where to go if true, if false); None is the next step.
    steps = [(LOAD, ARCH, None, None), (EQUAL, machine, None, "refuse"), (LOAD, NUMBER, None, None)]
    steps += [(EQUAL, number, "refuse", None) for number in numbers]
    steps += [(AT_LEAST, X32, "refuse", None), (EQUAL, CLONE3[column], "missing", None)]
    steps += [(EQUAL, CLONE[column], None, "allow"), (LOAD, FIRST, None, None)]
    steps += [(ANY_BIT, NEW_NAMESPACE, "refuse", "allow")]
    ends = {"allow": ALLOW, "refuse": FAIL | errno.EPERM, "missing": FAIL | errno.ENOSYS}
    place = {name: len(steps) + index for index, name in enumerate(ends)}

    def jump(target: str | None, here: int) -> int:
        return place[target] - here - 1 if target else 0

    code = [(op, jump(yes, here), jump(no, here), value) for here, (op, value, yes, no) in enumerate(steps)]
    code += [(RETURN, 0, 0, value) for value in ends.values()]
    return b"".join(struct.pack("=HBBI", *step) for step in code)
