"""Fixtures for tests that run a program in the sandbox. They need bubblewrap, and fail without it."""

import sys
import time

import pytest

from labs.grading import sandbox
from labs.grading.sandbox import Limits
from tests.labs.boxed import ANSWER, alive, soon


@pytest.fixture(scope="module")
def box():
    return sandbox.find()


@pytest.fixture
def go(box):
    """Runs Python source in the sandbox; afterwards nothing of it may be alive."""
    mark = f"mark{time.monotonic_ns()}"

    def run(source, *, question=b"", seconds=10, **rest):
        limits = Limits(seconds=seconds, **{k: rest.pop(k) for k in list(rest) if k in vars(Limits())})
        argv = [sys.executable, "-c", ANSWER + source, mark]
        return sandbox.run(argv, question=question, sandbox=box, limits=limits, **rest)

    yield run
    assert soon(lambda: not alive(mark))
