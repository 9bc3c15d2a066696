"""Run the kernel tests on every supported Triton: `make test-triton-matrix`.

    python tests/triton_matrix.py                 # all versions
    python tests/triton_matrix.py 3.6.0 -k linear # one version, some tests

Each version is installed alone into _build/triton-<version>, a folder that goes before this
environment on the path. So all versions are tested with the same torch, and nothing is downloaded but
Triton itself (torch pins one Triton, and pip would refuse the others). The exit status is 1 unless
every required version was installed and passed; a version that could not be tested is said loudly.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "_build"


@dataclass(frozen=True)
class Version:
    """One Triton to test. also: what else it needs; required: whether its absence is a failure."""

    name: str
    required: bool = True
    also: tuple[str, ...] = ()


VERSIONS = (
    Version("3.6.0", also=("numpy<2.4",)),  # its interpreter calls what NumPy 2.4 took out
    Version("3.7.1"),
    Version("3.8.0"),
    Version("3.9.0", required=False),
)


@dataclass(frozen=True)
class Outcome:
    """What became of one version."""

    version: Version
    status: str  # "passed", "FAILED", "NOT TESTED"
    detail: str
    seconds: float

    @property
    def is_failure(self) -> bool:
        return self.status == "FAILED" or (self.status == "NOT TESTED" and self.version.required)


def install(version: Version) -> str:
    """Put this Triton under _build, once. Returns "" or the reason why it can't be had."""
    folder = BUILD / f"triton-{version.name}"
    if (folder / "triton").is_dir():
        return ""
    fresh = folder.with_name(folder.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(fresh)]
    done = subprocess.run(
        [*command, f"triton=={version.name}", *version.also], capture_output=True, text=True, encoding="utf-8"
    )
    if done.returncode:
        shutil.rmtree(fresh, ignore_errors=True)
        return (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
    fresh.rename(folder)
    return ""


def test(version: Version, arguments: list[str]) -> tuple[str, str]:
    """Run the tests on one version. Returns its status and a line of detail."""
    folder = BUILD / f"triton-{version.name}"
    path = os.pathsep.join([str(folder), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    seen = subprocess.run(
        [sys.executable, "-c", "import triton; print(triton.__version__)"],
        capture_output=True,
        text=True,
        env=environment,
        cwd=ROOT,
        encoding="utf-8",
    )
    if seen.stdout.strip() != version.name:
        reason = seen.stdout.strip() or seen.stderr.strip().splitlines()[-1]
        return "FAILED", f"`import triton` gave {reason}, not {version.name}"
    report = BUILD / f"triton-{version.name}.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "tests/kernels", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, f"--junitxml={report}", *arguments], env=environment, cwd=ROOT)
    if not report.exists():
        return "FAILED", f"pytest ended with code {done.returncode} and no report"
    suite = ElementTree.parse(report).getroot().find("testsuite")
    count = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    detail = ", ".join(f"{number} {name}" for name, number in count.items() if number or name == "tests")
    good = done.returncode == 0 and count["tests"] > count["skipped"]
    return ("passed" if good else "FAILED"), detail


def main() -> int:
    """Install, test, and print the table. The exit status is 1 if any version failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = [v.name for v in VERSIONS]
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"of {', '.join(known)}; default: all")
    chosen, arguments = parser.parse_known_args()
    unknown = [name for name in chosen.versions if name not in known]
    if unknown:
        parser.error(f"version = {unknown[0]!r}: not in the matrix; choose from {', '.join(known)}")
    versions = [v for v in VERSIONS if not chosen.versions or v.name in chosen.versions]
    outcomes = []
    for number, version in enumerate(versions, 1):
        start = time.monotonic()
        print(f"\n=== [{number}/{len(versions)}] Triton {version.name}: installing", flush=True)
        reason = install(version)
        if reason:
            status, detail = "NOT TESTED", f"could not be installed: {reason}"
        else:
            print(f"=== [{number}/{len(versions)}] Triton {version.name}: testing", flush=True)
            status, detail = test(version, arguments)
        outcomes.append(Outcome(version, status, detail, time.monotonic() - start))
        print(f"=== Triton {version.name}: {status} ({detail})", flush=True)
    print("\nTriton   status      seconds  detail")
    for o in outcomes:
        print(f"{o.version.name:<8} {o.status:<11} {o.seconds:>7.0f}  {o.detail}")
    for o in outcomes:
        if o.status == "NOT TESTED":
            weight = "which is required" if o.version.required else "which is optional"
            print(f"\n!!! Triton {o.version.name}, {weight}, was NOT TESTED: {o.detail}", file=sys.stderr)
    return 1 if any(o.is_failure for o in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
