"""What really left this process over its sockets: bytes, as Linux's TCP counts them.

gloo talks over TCP, on the loopback interface too, and the kernel counts what each connection has
sent. So the ring formulas can be measured on any Linux machine, with no GPU and no rights. NCCL's
ranks on one machine use no sockets for their tensors: there it says nothing of them.
"""

from __future__ import annotations

import os
import socket
import struct
import sys

# struct tcp_info of linux/tcp.h: tcpi_bytes_sent and tcpi_bytes_retrans, both u64, since Linux 4.19
_SENT = struct.Struct("=200xQQ")


def sent() -> int | None:
    """Bytes of payload that the open TCP connections of this process have sent so far, each byte once.

    Headers of the program's own messages count, those of TCP and IP don't. None where the system
    doesn't say.
    """
    if not sys.platform.startswith("linux") or not hasattr(socket, "TCP_INFO"):
        return None
    total = 0
    for number in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink(f"/proc/self/fd/{number}").startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(number))) as one:
                if one.type != socket.SOCK_STREAM or one.family not in (socket.AF_INET, socket.AF_INET6):
                    continue
                info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        except OSError:  # closed meanwhile
            continue
        if len(info) < _SENT.size:
            return None
        first, again = _SENT.unpack_from(info)
        total += first - again
    return total
