"""Machine code as instructions that know where they may go on: NVIDIA's taken apart, AMD's read.

The disassembler of Triton's own wheel spends a fifth of a second on learning an architecture and next to none
on a kernel. So the code of all kernels for one architecture is laid side by side and read in one go.
"""

from __future__ import annotations

import re
import struct
import subprocess
import tempfile
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

Span = tuple[int, int]  # first byte, and the one after the last


@dataclass(frozen=True)
class Instruction:
    """One instruction. opcode: "LDG.E.128", with " lds" behind it where AMD loads into shared memory.

    target: position in the listing of the instruction that it may jump to; None if it never jumps, or out of
    the kernel. falls_through: whether the one behind it may follow.
    """

    opcode: str
    target: int | None = None
    falls_through: bool = True


# ------------------------------------------------------------------------------------------- NVIDIA


def tool(name: str) -> str:
    """Where Triton's wheel keeps one of NVIDIA's programs, "nvdisasm"."""
    import triton.backends.nvidia as nvidia

    return str(Path(nvidia.__file__).parent / "bin" / name)


def call(*command: str) -> str:
    """What a program prints; raises CalledProcessError if it fails."""
    return subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8").stdout


def disassemble(cubins: Sequence[bytes], arch: int) -> list[list[Instruction]]:
    """The instructions of each cubin, all compiled for `arch` (80 for sm_80), in one call of nvdisasm."""
    spans, code = [], b""
    for cubin in cubins:
        body = code_of(cubin)
        spans.append((len(code), len(code) + len(body)))
        code += body
    if not code:
        return []
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(code)
        file.flush()
        # From sm_90 on Triton compiles for the architecture's own features, which an "a" stands for.
        name = f"SM{arch}{'a' if arch >= 90 else ''}"
        return read_sass(call(tool("nvdisasm"), "--binary", name, file.name), spans)


def code_of(cubin: bytes) -> bytes:
    """The machine code in a cubin with one kernel: its section .text.NAME (ELF-64, little endian).

    Raises ValueError if there is another number of these.
    """
    (table,) = struct.unpack_from("<Q", cubin, 0x28)  # e_shoff
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)  # e_shentsize, e_shnum, e_shstrndx
    sections = [struct.unpack_from("<IIQQQQ", cubin, table + i * size) for i in range(count)]
    strings = sections[names][4]
    found = []
    for name, _, _, _, offset, length in sections:
        first = strings + name
        if cubin.startswith(b".text.", first):
            found.append(cubin[offset : offset + length])
    if len(found) != 1:
        raise ValueError(
            f"cubin: it holds {len(found)} functions, not one; ask for one kernel without calls at a time."
        )
    return found[0]


_SASS = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*([^;]*?)\s*;")
_JUMPS = re.compile(r"BRA|JMP|CALL")
_ENDS = re.compile(r"EXIT|RET|BRX|JMX|BRA|JMP")


def read_sass(text: str, spans: Sequence[Span] | None = None) -> list[list[Instruction]]:
    """What nvdisasm lists, cut into kernels at these bytes (by default all is one kernel)."""
    lines = [(int(at, 16), guard, *rest) for at, guard, *rest in _SASS.findall(text)]
    addresses = [line[0] for line in lines]
    kernels = []
    for first, end in spans or [(0, addresses[-1] + 1)]:
        mine = lines[bisect_left(addresses, first) : bisect_left(addresses, end)]
        position = {line[0]: i for i, line in enumerate(mine)}
        kernels.append([_sass(*line[1:], position) for line in mine])
    return kernels


def _sass(guard: str, opcode: str, operands: str, position: dict[int, int]) -> Instruction:
    if guard in ("!PT", "!UPT"):  # never: ptxas pads some waits with loads that don't happen
        return Instruction("NOP")
    target = None
    if _JUMPS.match(opcode) and (found := re.search(r"0x[0-9a-f]+$", operands)):
        target = position.get(int(found.group(), 16))
    # "BRA UP0, 0x120" has its condition among the operands
    always = not guard and bool(_ENDS.match(opcode)) and "," not in operands
    return Instruction(opcode, target, not always)


# ---------------------------------------------------------------------------------------------- AMD

_LABEL = re.compile(r"^(\.?\w+):")
_AMD = re.compile(r"^\s+([a-z]\w+)\s*([^;]*?)\s*(?:;.*)?$")


def read_amd(assembly: str) -> list[Instruction]:
    """The instructions of an AMD kernel's assembly text."""
    labels: dict[str, int] = {}
    found: list[tuple[str, str]] = []
    for line in assembly.splitlines():
        if label := _LABEL.match(line):
            labels[label.group(1)] = len(found)
        elif instruction := _AMD.match(line):
            found.append((instruction.group(1), instruction.group(2)))
        elif line.lstrip().startswith(".section") and found:
            break  # behind the code stands its metadata
    return [
        Instruction(
            f"{opcode} lds" if operands.endswith(" lds") else opcode,
            labels.get(operands) if opcode.startswith(("s_cbranch", "s_branch")) else None,
            opcode not in ("s_branch", "s_endpgm"),
        )
        for opcode, operands in found
    ]
