"""The other sandbox: a container engine, Docker or Podman, and an image that holds the Python environment.

Written against the documentation of `docker run`; the tests replay it with a stand-in for the engine, so no
real engine has confirmed it yet. `find()` tries it out before it trusts it.

The engine enforces memory and the number of processes. It passes on three streams only, so inside the
container stderr joins stdout and the answer channel takes stderr's place.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from labs.grading import sandbox_contents
from labs.grading.running_program import RunningProgram, SandboxFailed

ENGINES = ("docker", "podman")
IMAGE = "ROOFLINE_LABS_IMAGE"
PATIENCE = 60  # s for the engine's own commands
_FOLDERS = f"mkdir -p {sandbox_contents.HOME} {sandbox_contents.WORK}; cd {sandbox_contents.WORK}"
REWIRE = f'exec 3>&2 2>&1; {_FOLDERS}; exec "$@"'
PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class Container:
    """engine: path of docker or podman. image: one with Python and requirements.txt installed."""

    engine: str
    image: str

    @property
    def name(self) -> str:
        return f"{os.path.basename(self.engine)}, image {self.image}"

    @contextmanager
    def start(self, argv, files, env, limits) -> Iterator[RunningProgram]:
        name = f"roofline-{secrets.token_hex(8)}"
        with ExitStack() as stack:
            stack.callback(self._engine, "rm", "--force", name)
            popen = stack.enter_context(
                subprocess.Popen(
                    self.command(name, argv, files, env, limits),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
            )
            stack.callback(popen.kill)

            def kill() -> None:
                self._engine("kill", name)
                popen.kill()

            def finish(stopped: bool) -> tuple[int, bool]:
                try:
                    popen.wait(PATIENCE)
                except subprocess.TimeoutExpired:
                    raise SandboxFailed(f"{self.name}: container {name} does not end.") from None
                if stopped:
                    return popen.returncode, False
                said = self._engine(
                    "inspect", "--format", "{{.State.ExitCode}} {{.State.OOMKilled}} {{.State.Error}}", name
                )
                code, _, rest = said.stdout.strip().partition(" ")
                memory, _, error = rest.partition(" ")
                if said.returncode or error or not code.isdigit():
                    raise SandboxFailed(f"{self.name}: {error or said.stderr.strip() or 'it did not start'}")
                return int(code), memory == "true"

            yield RunningProgram(popen, popen.stdout.fileno(), popen.stderr.fileno(), list, kill, finish)

    def command(self, name, argv, files, env, limits) -> list[str]:
        """`docker run`, with everything off that a program could reach out with."""
        nobody = f"{sandbox_contents.NOBODY}:{sandbox_contents.NOBODY}"
        made = [self.engine, "run", "--interactive", "--init", "--name", name, "--pull", "never"]
        made += ["--network", "none", "--read-only", "--cap-drop", "ALL", "--ipc", "private"]
        made += [
            "--security-opt",
            "no-new-privileges",
            "--user",
            nobody,
            "--hostname",
            "lab",
            "--log-driver",
            "none",
        ]
        made += ["--memory", str(limits.memory_bytes), "--memory-swap", str(limits.memory_bytes)]
        made += ["--pids-limit", str(limits.processes), "--shm-size", "16m", "--stop-timeout", "0"]
        made += ["--ulimit", f"cpu={limits.cpu}", "--ulimit", "core=0", "--ulimit", "nofile=256"]
        made += ["--ulimit", f"fsize={limits.scratch_bytes}"]
        made += ["--tmpfs", f"/tmp:rw,nosuid,nodev,exec,mode=1777,size={limits.scratch_bytes}"]
        for at, source in files.items():
            if set(f"{at}{source}") & set(',"\n'):
                raise ValueError(
                    f"files[{at!r}] is {str(source)!r}; rename it so that it has no comma or quote."
                )
            made += ["--mount", f"type=bind,source={source},target={at},readonly"]
        variables = sandbox_contents.environment(env, 3) | {"PATH": PATH}
        variables.pop("LD_LIBRARY_PATH", None)  # for our Python, not for the image's
        for key, value in variables.items():
            made += ["--env", f"{key}={value}"]
        made += ["--entrypoint", "/bin/sh", self.image, "-c", REWIRE, "sh"]
        # The image has a Python of its own, wherever ours lies.
        return [*made, "python3", *argv[1:]]

    def _engine(self, *words: str) -> subprocess.CompletedProcess:
        try:
            return subprocess.run(
                [self.engine, *words], capture_output=True, text=True, timeout=PATIENCE, encoding="utf-8"
            )
        except subprocess.TimeoutExpired:
            raise SandboxFailed(f"{self.name}: no reply to `{words[0]}` within {PATIENCE} s.") from None


def candidates(image: str | None, reasons: list[str]) -> Iterator[Container]:
    """The engines that answer and have the image; what is missing is added to reasons."""
    image = image or os.environ.get(IMAGE)
    for engine in filter(None, map(shutil.which, ENGINES)):
        if not image:
            reasons.append(f"{engine}: no image is named; set {IMAGE} to one that holds the environment")
            continue
        sandbox = Container(engine, image)
        said = sandbox._engine("image", "inspect", image)
        if said.returncode:
            reasons.append(f"{engine}: {said.stderr.strip()[:300]}")
            continue
        yield sandbox
