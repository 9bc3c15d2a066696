"""Nothing depends on what the clone's folder is called, whose home it is in, or which locale is set."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import locale
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from book.portable import bundle
from book.portable.dependencies import fingerprint
from book.site import onpath
from kernels.evidence.child_process import cache_dir

ROOT = bundle.ROOT
CELLS = [
    "from book import catalog, explore\nfrom kernels.evidence import confirm\nfrom kernels import linear"
]


@cache
def listed(*what: str) -> tuple[str, ...]:
    """Our files, as git has them."""
    asked = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *what]
    names = subprocess.run(asked, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    return tuple(name for name in names if name and (ROOT / name).is_file())


def clone(to: Path) -> Path:
    for name in listed("book", "kernels", "labs", "pyproject.toml"):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, to / name)
    return to


def python(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """`code` in a Python of its own that has nothing in its environment but this."""
    (folder / "code.py").write_text(code, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "code.py"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


# ------------------------------------------------------------------ folders

FOLDERS = ["roofline", "inference-roofline", "book", "kernels", "claims", "Grüße an İstanbul und 東京"]


@pytest.fixture(scope="module")
def packed() -> bundle.Bundle:
    return bundle.pack(CELLS)


def decided(root: Path) -> tuple[dict[str, str], str, str]:
    """All that `pack` makes its cell of, and what decides whether the cells run again."""
    return bundle.contents(CELLS, root), bundle._project_version(root), fingerprint(CELLS, root)


@pytest.fixture(scope="module")
def here() -> tuple[dict[str, str], str, str]:
    return decided(ROOT)


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_folders_name_decides_neither_what_travels_nor_what_runs_again(tmp_path, here, folder):
    root = clone(tmp_path / folder / folder)
    # What lies beside the clone is nobody's data, whatever it is called.
    for name in ("accelerators.yaml", "data", "book", "claims"):
        (tmp_path / folder / name).mkdir(exist_ok=True)
        (tmp_path / folder / name / "rows.yaml").write_text("a: 1", encoding="utf-8")
    assert decided(root) == here


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_clone_with_such_a_name_is_found_and_one_version_of_it_travels(tmp_path, packed, folder):
    root = clone(tmp_path / folder)
    packages, home = tmp_path / "packages", tmp_path / "home" / folder
    packages.mkdir()
    home.mkdir(parents=True)
    onpath.write(root, packages)
    code = f"import site; site.addsitedir({str(packages)!r})\nimport book; print(ascii(book.__file__))"
    found = python(code, tmp_path, HOME=str(home))
    assert found.stdout.strip() == ascii(str(root / "book" / "__init__.py")), found.stderr
    unpacked = python(
        packed.text + "\nfrom book import catalog; print(catalog.__file__)", tmp_path, HOME=str(home)
    )
    into = home / ".cache/inference-roofline/notebooks" / packed.version
    assert unpacked.stdout.splitlines()[1] == str(into / "book/catalog/__init__.py"), unpacked.stderr


# ------------------------------------------------------------------ homes

NOBODY = (
    "import pwd\ndef unknown(_): raise KeyError\npwd.getpwuid = unknown\n"  # as in `docker run --user 12345`
)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"HOME": "{tmp}"}, "{tmp}/.cache/inference-roofline"),
        ({"HOME": "/dev/null/x", "XDG_CACHE_HOME": "{tmp}/other"}, "{tmp}/other/inference-roofline"),
        ({"HOME": "{tmp}", "INFERENCE_ROOFLINE_CACHE": "{tmp}/mine"}, "{tmp}/mine"),
        ({"HOME": "/dev/null/x"}, "None"),
        ({}, "None"),
    ],
    ids=["home", "cache elsewhere", "chosen", "home can't be written", "no home"],
)
def test_compiled_answers_are_kept_where_that_is_possible(tmp_path, monkeypatch, environment, expected):
    for name in ("HOME", "XDG_CACHE_HOME", "INFERENCE_ROOFLINE_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value.format(tmp=tmp_path))
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])  # whose number nobody knows
    assert str(cache_dir()) == expected.format(tmp=tmp_path)


@pytest.mark.parametrize(
    ("before", "environment"),
    [("", {"HOME": "/dev/null/x"}), (NOBODY, {})],
    ids=["home can't be written", "no home"],
)
def test_a_notebook_unpacks_in_a_temporary_folder_where_there_is_no_home(tmp_path, before, environment):
    packed = bundle.pack(["from book import cost"])
    code = f"{before}{packed.text}\nfrom book import cost; print(cost.__file__)"
    found = python(code, tmp_path, TMPDIR=str(tmp_path), **environment)
    assert found.stdout.splitlines()[1].startswith(f"{tmp_path}/inference-roofline-"), found.stderr


# ------------------------------------------------------------------ locales

LOOK = """
import json, locale, sys
from pathlib import Path
locale.setlocale(locale.LC_ALL, "")
from book import catalog, claims, gibibytes, si
from book.portable import bundle
from book.portable.dependencies import fingerprint
from kernels.evidence.child_process import write_atomically
cells, out = json.loads(sys.argv[1]), Path("text.txt")
few = ["from book import cost"]  # to compress them all takes long, and no locale has a part in it
write_atomically(out, "µ İı")
print(json.dumps({
    "encoding": locale.getpreferredencoding(False),
    "bytes": out.read_bytes().hex(),
    "numbers": [si(321e-6, "s"), si(1234567, ""), gibibytes(5 * 2**30)],
    "catalog": [catalog.accelerator("T4").name, catalog.model("llama3.1-8b").name],
    "claims": claims.table().html,
    "contents": bundle.contents(cells),
    "cell": bundle.pack(few).text,
    "fingerprint": fingerprint(cells, bundle.ROOT),
}))
"""
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def look(folder: Path, **environment: str) -> dict:
    code = f"import sys; sys.argv[1:] = [{json.dumps(CELLS)!r}]\n{LOOK}"
    done = python(code, folder, PYTHONPATH=str(ROOT), HOME=str(folder), **environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def usual(tmp_path_factory) -> dict:
    """What this process sees, in the locale that the tests run in."""
    before = locale.setlocale(locale.LC_ALL)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as told:
        patch.chdir(tmp_path_factory.mktemp("usual"))
        patch.setattr(sys, "argv", ["look", json.dumps(CELLS)])
        try:
            exec(LOOK, {})
        finally:
            locale.setlocale(locale.LC_ALL, before)
    return json.loads(told.getvalue())


def test_where_the_locale_is_ascii_all_is_read_and_written_as_utf8(tmp_path, usual):
    seen = look(tmp_path, **ASCII)
    assert seen.pop("encoding") == "ANSI_X3.4-1968"
    assert seen == {key: value for key, value in usual.items() if key != "encoding"}
    assert bytes.fromhex(seen["bytes"]).decode() == "µ İı"


@pytest.mark.parametrize(("language", "charmap"), [("tr_TR", "ISO-8859-9"), ("de_DE", "UTF-8")])
def test_other_languages_change_nothing(tmp_path, usual, language, charmap):
    """Turkish has two letters i, German a decimal comma; ISO-8859-9 is what is read without `encoding`."""
    name = f"{language}.{charmap}"
    if tool := shutil.which("localedef"):
        subprocess.run([tool, "-i", language, "-f", charmap, str(tmp_path / name)], capture_output=True)
    if not (tmp_path / name).exists():
        pytest.skip(f"localedef can't make {name} here")
    seen = look(tmp_path, LC_ALL=name, LOCPATH=str(tmp_path), PYTHONUTF8="0")
    assert seen.pop("encoding") == charmap
    assert seen == {key: value for key, value in usual.items() if key != "encoding"}


# ------------------------------------------------------------------ text in files and pipes


def without_encoding(tree: ast.AST) -> list[str]:
    """Calls that read or write text and leave the encoding to the locale."""
    return [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Call) and _leaves_it(node)]


TEXT = ("read_text", "write_text", "open", "fdopen")


def _leaves_it(call: ast.Call) -> bool:
    options = {keyword.arg: keyword.value for keyword in call.keywords}
    last = getattr(call.func, "attr", None) or getattr(call.func, "id", "")
    if last not in TEXT and "text" not in options:
        return False
    name = ast.unparse(call.func)
    if "encoding" in options or None in options or name in ("os.open", "Image.open"):
        return False
    if last in ("read_text", "write_text"):
        return len(call.args) < (1 if last == "read_text" else 2)
    if last in ("open", "fdopen"):
        at = 0 if last == "open" and "." in name else 1
        mode = options.get("mode", call.args[at] if len(call.args) > at else ast.Constant("r"))
        return not (isinstance(mode, ast.Constant) and "b" in str(mode.value))
    return "text" in options and ast.unparse(options["text"]) == "True"


def test_text_is_read_and_written_as_utf8():
    found = {
        name: without_encoding(ast.parse((ROOT / name).read_text(encoding="utf-8")))
        for name in listed("*.py")
    }
    assert {name: calls for name, calls in found.items() if calls} == {}, 'add encoding="utf-8"'


@pytest.mark.parametrize(
    "code",
    ["path.read_text(", "path.write_text(x", "open(p", "open(p, 'w'", "path.open(", "run(c, text=True"],
)
def test_a_call_without_an_encoding_is_found(code):
    assert without_encoding(ast.parse(f"{code})"))
    assert not without_encoding(ast.parse(f"{code}{'' if code.endswith('(') else ', '}encoding='utf-8')"))
