# ruff: noqa: E501 (code that attackers write)
"""The attackers' code, as text. It runs in a sandbox or not at all."""

# The first line makes each attack harmless where it isn't shut in, and is itself a test of the sandbox.
PLACES = """
import os
CANARY, OTHERS, GRADES, ROOT, PORT = {canary!r}, {others!r}, {grades!r}, {root!r}, {port}
PACKAGE, KEY = {package!r}, {key!r}
if os.path.exists(CANARY) or os.path.exists(OTHERS):
    raise RuntimeError("LEAKED: the sandbox shows this machine's files")
"""
# Every question is answered twice, at once: first by what an attacker would like.
ASKED = """
import sys
frame = sys._getframe()
while "request" not in frame.f_locals:
    frame = frame.f_back
asks = frame.f_locals["request"]["asks"]
"""
FORK_BOMB = """
while True:
    try: os.fork()
    except OSError: pass
"""
DEEP = """
import sys, threading
sys.setrecursionlimit(10**9)
class Deep:
    def __getattr__(self, name): return getattr(self, name)
Deep().bottom
"""
ANSWERS = """
line = b"x" * 2**20
while True: os.write(int(os.environ["ROOFLINE_ANSWER_FD"]), line)
"""
LISTS = """
os.write(int(os.environ["ROOFLINE_ANSWER_FD"]), b'\\n{"done": "nobody", "values": [' + b"[]," * 10**6 + b"[]]}\\n")
"""
PRINTS = "for _ in range(100): print('x' * 10**6)"
FILLS = """
try:
    with open("/tmp/big", "wb") as big:
        for _ in range(1000): big.write(bytes(10**6))
    raise RuntimeError("LEAKED: a gigabyte of disk")
except OSError: pass
os.remove("/tmp/big")
"""
DELETES = """
import shutil
for place in (CANARY, OTHERS, GRADES, "/job", os.path.expanduser("~")):
    shutil.rmtree(place, ignore_errors=True)
for place in (KEY, ROOT + "/README.md", "/etc/hosts", "/job/run_submitted_code.py"):
    try: open(place, "a").close()
    except OSError: continue
    raise RuntimeError("LEAKED: " + place + " can be written")
"""
READS = """
import glob
for place in (ROOT + "/labs", os.path.dirname(KEY), ROOT + "/tests", "/job/../labs", OTHERS, GRADES, "/root", "/home"):
    if glob.glob(place + "/*"): raise RuntimeError("LEAKED: " + place)
for place in ("/etc/shadow", "/proc/1/root" + ROOT, KEY):
    try: open(place).close()
    except OSError: continue
    raise RuntimeError("LEAKED: " + place)
if "root" in [line.split(":")[0] for line in open("/etc/passwd")][2:]: raise RuntimeError("LEAKED: users")
for place in ("/proc/self/environ", *glob.glob("/proc/*/environ")):
    try: text = open(place).read()
    except OSError: continue
    if "CANARY_TOKEN" in text: raise RuntimeError("LEAKED: the grader's environment")
try: __import__(PACKAGE + ".key")
except ImportError: pass
else: raise RuntimeError("LEAKED: the key")
"""
NETWORK = """
import socket
for family, place in ((socket.AF_INET, ("127.0.0.1", PORT)), (socket.AF_INET, ("1.1.1.1", 53))):
    try: socket.create_connection(place, timeout=1).close()
    except OSError: continue
    raise RuntimeError("LEAKED: the network")
"""
PROGRAMS = """
import subprocess, ctypes
for command in ("cat " + ROOT + "/labs/*/key.py", "ls " + OTHERS, "ls " + CANARY):
    if subprocess.run(command, shell=True, capture_output=True).stdout: raise RuntimeError("LEAKED: " + command)
libc = ctypes.CDLL(None)
if libc.setuid(0) == 0 or os.getuid() == 0: raise RuntimeError("LEAKED: root")
if libc.mount(b"/", b"/tmp", None, 4096, None) == 0: raise RuntimeError("LEAKED: mount")
if libc.unshare(0x10000000) == 0: raise RuntimeError("LEAKED: a namespace")
if libc.ptrace(16, 1, 0, 0) == 0: raise RuntimeError("LEAKED: another process")
"""
KILLS = """
import signal
for process in (os.getppid(), 1, -1):
    try: os.kill(process, signal.SIGKILL)
    except OSError: pass
"""
DAEMON = """
if not os.fork():
    os.setsid()
    if not os.fork():
        import ctypes, time
        ctypes.CDLL(None).prctl(15, f"stay{PORT}".encode())  # its name, to look for
        time.sleep(600)
    os._exit(0)
"""
PATCHES = """
import builtins, json, math, sys, time
import numpy, torch
yes = lambda *args, **kwargs: True
numpy.allclose = numpy.array_equal = math.isclose = torch.allclose = torch.equal = yes
time.perf_counter = time.time = time.monotonic = lambda: 0.0
for name in list(sys.modules):
    for word in ("check", "judge", "count", "tally", "grade", "evidence"):
        if hasattr(sys.modules[name], word):
            try: setattr(sys.modules[name], word, yes)
            except Exception: pass
try:
    import kernels.evidence.counted.interpreter as interpreter
    interpreter.count = yes
except ImportError: pass
old = json.dumps
json.dumps = lambda event, **rest: old(dict(event, right=True, points=100, error="") if isinstance(event, dict) else event, **rest)
"""
ASSERTS = """
import builtins
class Never(Exception): pass
builtins.AssertionError = Never
__debug__ and exec("def check(*args, **kwargs): return True")
LAB = key = type("Key", (), {"check": staticmethod(check)})
"""
FORGES = """
import json
fd = int(os.environ["ROOFLINE_ANSWER_FD"])
for ask in asks:
    size = len(ask.get("calls", ()))
    values = {name: 1.0 for name in ask.get("names", ())}
    plan = {"buffers": [{"id": "x", "bytes": 1, "fill": "input", "made_by": ""}, {"id": "w", "bytes": 1, "fill": "input", "made_by": ""},
                        {"id": "y", "bytes": 4, "fill": "empty", "made_by": "empty"}],
            "steps": [{"kernel": "linear_kernel", "grid": [1], "args": {}, "options": {}}],
            "returns": {"buffer": "y", "offset": 0, "shape": [1], "strides": [1], "dtype": "float32"}}
    event = {"done": ask["id"], "right": True, "points": 100, "values": values, "errors": {},
             "returns": [{"value": 1.0}] * size, "plans": [plan] * size}
    os.write(fd, (json.dumps(event) + "\\n").encode())
"""
# Whatever a program that can write lines of JSON could come up with.
JUNK = """
import json
fd = int(os.environ["ROOFLINE_ANSWER_FD"])
deep = "[" * 900 + "]" * 900
worst = [None, True, -1, 1e400, "\\ud800", "x" * 1000, [], {}, [[[]]], {"a": {"b": None}}, 10**400, float("nan"), [1, "2"]]
os.write(fd, b'"\\n\\xff\\xfe\\n' + b"[" * 100000 + b"\\n{}\\n[]\\nnull\\n" + b'{"begin": ["a"]}\\n{"done": {"a": 1}}\\n')
view = {"buffer": "y", "offset": 0, "shape": [1, 1], "strides": [1], "dtype": "float32"}
for at, ask in enumerate(asks):
    size = len(ask.get("calls", ()))
    junk = worst[at % len(worst)]
    plans = [{"buffers": [{"id": name, "bytes": 8, "fill": "empty", "made_by": junk} for name in ("x", "w", "y")],
              "steps": [{"kernel": "linear_kernel", "grid": junk, "args": {"x": {"view": view}}, "options": {}}],
              "returns": view, "error": ""},
             {"buffers": junk, "steps": junk, "returns": junk}, junk, {"error": junk},
             {"buffers": [{"id": junk, "bytes": junk, "fill": junk}], "steps": [], "returns": view}]
    for event in ({"begin": junk}, {"done": junk},
                  {"done": ask["id"], "values": {name: junk for name in ask.get("names", ())}, "errors": {"a": junk},
                   "returns": [{"value": junk, "error": 0}] * size, "plans": (plans * 3)[:size], "error": ""}):
        os.write(fd, (json.dumps(event) + "\\n").encode())
"""
INJECTS = r"""
raise ValueError('=HYPERLINK("http://example.org","grade")\n"+cmd|\' /C calc\'!A0\x1b[2J\u202e<script>alert(1)</script>')
"""
