"""How tests talk with a program in the sandbox, and look for what it left behind."""

import json
import os
import time

import psutil

ANSWER = """
import json, os, sys
answer = lambda x: os.write(int(os.environ["ROOFLINE_ANSWER_FD"]), json.dumps(x).encode())
"""


def alive(mark):
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if process.pid != os.getpid() and any(mark in word for word in process.info["cmdline"] or ()):
            found.append(process)
    return found


def soon(true, seconds=8):
    """Whether it becomes true: what was sent a signal ends a moment later."""
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(true())


def told(outcome):
    """What the program answered, once it ended well."""
    assert outcome.status == "ok", outcome
    return json.loads(outcome.answer)
