"""PTX text as a kernel that can be executed: its instructions in order, its labels and its registers.

PTX is what Triton hands to NVIDIA's assembler; "Parallel Thread Execution ISA" (NVIDIA) defines it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kernels.contract.errors import NotExecutable

WARP = 32  # threads
WIDTH = {f"{kind}{bits}": bits for kind in "bus" for bits in (8, 16, 32, 64)}
WIDTH |= {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "f16x2": 32, "bf16x2": 32, "f32x2": 64, "pred": 1}
# What the scheduler carries out itself: it decides which threads go on where.
BARRIERS = ("bar.sync", "barrier.sync")  # of all threads of a program
CONTROL = ("bra", "bra.uni", "ret", "exit", "bar.warp.sync", *BARRIERS)

_STATEMENT = re.compile(r"\s*([{}]|[\w$]+:(?!:)|\.loc[^\n]*|[^;]*?;)")
_INSTRUCTION = re.compile(r"(?:@(!?)([%\w#]+)\s+)?([a-z][\w.:]*)\s*(.*)", re.S)
_NAME = re.compile(r"[%$\w]+")
_LOOKS = re.compile(r"atom\.|ld\.(?:\w+\.)*?(?:volatile|relaxed|acquire)\b")
_LIBRARY = "/triton/language/"  # whose lines nobody looks for; those that call them are the kernel's


@dataclass
class Instruction:
    """One instruction. form: its name with all suffixes, "ld.global.v4.b32"; where: "linear.py:61".

    predicate: (register, negated) that it is executed under. registers: places of all that it names.
    run(machine, on): does it for the threads in `on`, None for all; None for what is CONTROL.
    """

    form: str
    operands: tuple[str, ...]
    predicate: tuple[str, bool] | None = None
    where: str = ""
    registers: frozenset[int] = frozenset()
    run: Callable[[Any, Any], None] | None = None

    def __str__(self) -> str:
        return f"{self.where}: {self.form}"


class Registers(dict):
    """register -> a fact about it. Asking for a name that none has raises NotExecutable."""

    def __missing__(self, name: str) -> int:
        raise NotExecutable(f"{name!r} is no register")


@dataclass
class Kernel:
    """A parsed entry. parameters: (type, name) in order; threads: of a program.

    width: register -> its bits, in the order of a machine's registers; index: register -> its place
    there; labels: label -> place in `code`; leaders: places where a basic block begins; watching: places in
    loops that look, with an atomic or a strong load, at what others write.
    """

    name: str
    parameters: tuple[tuple[str, str], ...]
    threads: int
    code: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    width: Registers = field(default_factory=Registers)
    index: Registers = field(default_factory=Registers)
    leaders: set[int] = field(default_factory=set)
    watching: set[int] = field(default_factory=set)


def read(text: str) -> Kernel:
    """The one kernel of a PTX text, not decoded yet. Raises NotExecutable for a text without one."""
    entry = re.search(r"\.entry\s+(\w+)", text)
    if entry is None:
        raise NotExecutable("this text has no .entry: give the PTX of one kernel.")
    brace = text.index("{", entry.start())
    head = text[entry.start() : brace]
    threads = re.search(r"\.reqntid\s+(\d+)", head)
    if threads is None:
        raise NotExecutable(f"{entry[1]}: no .reqntid says how many threads a program has.")
    parameters = re.findall(r"\.param\s+\.(\w+)\s.*?(\w+_param_\d+)", head)
    kernel = Kernel(entry[1], tuple(parameters), int(threads[1]))
    files = dict(re.findall(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', text, re.M))
    _fill(kernel, list(_statements(text[brace + 1 :])), files)
    kernel.index = Registers((name, i) for i, name in enumerate(kernel.width))
    kernel.leaders = set(kernel.labels.values())
    for i, one in enumerate(kernel.code):
        if one.form in CONTROL:
            kernel.leaders.add(i + 1)
        named = _NAME_OR_SCOPED.findall(" ".join([*one.operands, *(one.predicate or ("",))[:1]]))
        one.registers = frozenset(kernel.index[n] for n in named if n in kernel.index)
    kernel.watching = _watching(kernel)
    return kernel


def _watching(kernel: Kernel) -> set[int]:
    """From where a branch leads back to, up to the branch, where there is something to wait with between."""
    found: set[int] = set()
    looks = [bool(_LOOKS.match(one.form)) for one in kernel.code]
    for i, one in enumerate(kernel.code):
        back = kernel.labels.get(one.operands[0], i + 1) if one.form in ("bra", "bra.uni") else i + 1
        if back <= i and any(looks[back : i + 1]):
            found.update(range(back, i + 1))
    return found


_NAME_OR_SCOPED = re.compile(r"[%\w#$]+")


def split(text: str) -> tuple[str, ...]:
    """Operands: split at the commas that lie outside braces and brackets."""
    found, depth, current = [], 0, ""
    for letter in text:
        depth += (letter in "{[") - (letter in "}]")
        if letter == "," and not depth:
            found.append(current.strip())
            current = ""
        else:
            current += letter
    return tuple([*found, current.strip()] if current.strip() else found)


def vector(text: str) -> list[str]:
    """The parts of "{%r1, %r2}", or the one there is."""
    return [part.strip() for part in text.strip("{} ").split(",")]


def _statements(body: str) -> Iterator[str]:
    """Up to the closing brace: "{", "}", "label:", or a statement without its semicolon."""
    body = re.sub(r"^(\s*\.loc[^\n]*?)//", r"\1", body, flags=re.M)  # what it says of inlined calls
    body = re.sub(r"//[^\n]*", "", body)
    at, depth = 0, 1
    while depth:
        found = _STATEMENT.match(body, at)
        if found is None:
            raise NotExecutable(f"PTX that can't be read: {body[at : at + 60].strip()!r}.")
        at = found.end()
        depth += (found[1] == "{") - (found[1] == "}")
        yield found[1].rstrip(";").strip()


def _fill(kernel: Kernel, lines: list[str], files: dict[str, str]) -> None:
    """Code, labels and registers. Inline assembly opens scopes: their names get the scope's number."""
    scopes: list[dict[str, str]] = []
    number, where = 0, ""
    library = {path.rsplit("/", 1)[-1] for path in files.values() if _LIBRARY in path}
    for i, text in enumerate(lines):
        if text == "{":
            number += 1
            scopes.append(_names_of_scope(lines[i:], number))
        elif text == "}":
            del scopes[-1:]
        elif place := re.match(r"\.loc\s+(\d+)\s+(\d+)", text):
            called = re.findall(r"([\w.]+):(\d+):\d+", text)  # "standard.py:191:40 @[ kernel.py:53:49 ]"
            own = (f"{name}:{line}" for name, line in called if name not in library)
            where = next(own, f"{files.get(place[1], '?').rsplit('/', 1)[-1]}:{place[2]}")
        elif text.startswith(".reg"):
            for name, bits in _declared(text):
                kernel.width[_scoped(name, scopes)] = bits
        elif text and not text.startswith("."):
            text = _NAME.sub(lambda name: _scoped(name[0], scopes), text)
            if text.endswith(":"):
                kernel.labels[text[:-1]] = len(kernel.code)
                continue
            found = _INSTRUCTION.fullmatch(text)
            if found is None:
                raise NotExecutable(f"PTX that can't be read: {text[:60]!r} at {where or 'no line'}.")
            negated, register, form, operands = found.groups()
            predicate = (register, bool(negated)) if register else None
            kernel.code.append(Instruction(form, split(operands), predicate, where))
    kernel.code.append(Instruction("ret", (), None, where))  # a kernel may end without one


def _scoped(name: str, scopes: list[dict[str, str]]) -> str:
    return next((names[name] for names in reversed(scopes) if name in names), name)


def _names_of_scope(lines: list[str], number: int) -> dict[str, str]:
    """Registers and labels that a scope declares, all before its body: a branch may go forward."""
    names, depth = {}, 0
    for text in lines:
        depth += (text == "{") - (text == "}")
        if depth == 0:
            break
        if depth == 1 and text.endswith(":"):
            names[text[:-1]] = f"{text[:-1]}#{number}"
        elif depth == 1 and text.startswith(".reg"):
            names |= {name: f"{name}#{number}" for name, _ in _declared(text)}
    return names


def _declared(text: str) -> Iterator[tuple[str, int]]:
    """(register, bits) of a ".reg .b32 %r<7>" or ".reg .pred p, q"."""
    kind, names = re.match(r"\.reg\s+\.(\w+)\s+(.*)", text, re.S).groups()
    for name in names.split(","):
        base, count = re.match(r"\s*([%\w]+)(?:<(\d+)>)?", name).groups()
        yield from ((base if count is None else f"{base}{i}", WIDTH[kind]) for i in range(int(count or 1)))
