"""The house: what may import what, and what a test may not take for granted."""

import ast
import copy
import re
import tomllib
from pathlib import Path

import grimp
import pytest
from importlinter import configuration
from importlinter.contracts.layers import LayersContract
from importlinter.contracts.protected import ProtectedContract

ROOT = Path(__file__).resolve().parents[1]
HOUSES = ("book", "kernels", "labs", "tests")
KINDS = {"layers": LayersContract, "protected": ProtectedContract}
RULES = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
    "contracts"
]

configuration.configure()


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph(*HOUSES, cache_dir=None)


def kept(rule, graph):
    # Import-linter's fields are read from text.
    rule = {key: str(value) if isinstance(value, bool) else value for key, value in rule.items()}
    contract = KINDS[rule["type"]](rule["name"], {"root_packages": HOUSES}, rule)
    return contract.check(graph, verbose=False).kept


def with_import(graph, importer, imported):
    changed = copy.deepcopy(graph)
    changed.add_import(importer=importer, imported=imported)
    return changed


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["id"])
def test_imports_run_one_way(rule, graph):
    # `lint-imports` names each import that is in the way
    assert kept(rule, copy.deepcopy(graph)), f"{rule['name']}: run lint-imports"


# For each rule an import that breaks it.
BREAKS = {
    "houses": ("kernels.linear", "labs.assignments"),
    "book": ("book.cost.base", "book.serving.weights"),
    "kernels": ("kernels.contract.checks", "kernels.tiling.products"),
    "kernel-files": ("kernels.linear", "kernels.evidence.alarm"),
    "evidence": ("kernels.evidence.timed.clocks", "kernels.evidence.tables"),
    "drawing": ("kernels.evidence.timed.cpu", "book.drawing.number_text"),
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["id"])
def test_an_import_that_runs_up_is_found(rule, graph):
    assert not kept(rule, with_import(graph, *BREAKS[rule["id"]]))


def upward(graph):
    """Imports of a kernel's file from the layers below the kernels' files."""
    low = ("kernels.contract", "kernels.tiling")
    below = [m for m in graph.modules if m.startswith(low)]
    return [
        (m, other)
        for m in below
        for other in graph.find_modules_directly_imported_by(m)
        if other.startswith("kernels.") and not other.startswith(low)
    ]


def test_tensors_and_tiles_know_of_no_kernel(graph):
    assert upward(graph) == []
    assert upward(with_import(graph, "kernels.tiling.products", "kernels.linear"))


def test_every_exception_to_a_rule_has_its_reason_beside_it():
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    for i, line in enumerate(lines):
        if re.search(r'"[\w.]+ -> [\w.]+"', line):
            assert "#" in line or lines[i - 1].lstrip().startswith("#"), line


# ------------------------------------------------------------------------- tests that grow


# As a number of chapters is written: a range over them, a pattern that fits the first nine.
TYPED = re.compile(r"chapters/(0\*|0\[|\[0\])|\b(nine|eight|seven|ten) chapters\b", re.IGNORECASE)


def typed_counts(path):
    """Places where a test has the number of chapters in it."""
    text = path.read_text(encoding="utf-8")
    found = [f"{path.name}: {match[0]}" for match in TYPED.finditer(text)]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare) and "chapters" in ast.unparse(node.left):
            sides = [side for side in node.comparators if isinstance(side, ast.Constant)]
            found += [f"{path.name}: {ast.unparse(node)}" for s in sides if isinstance(s.value, int)]
        if isinstance(node, ast.For | ast.comprehension) and "chapter" in ast.unparse(node.target):
            found += [
                f"{path.name}: {count}" for count in re.findall(r"range\(1, \d+\)", ast.unparse(node.iter))
            ]
    return found


TESTS = [path for path in sorted((ROOT / "tests").rglob("*.py")) if path != Path(__file__).resolve()]


def test_no_test_has_a_number_of_chapters_typed_in_it():
    assert [words for path in TESTS for words in typed_counts(path)] == []


@pytest.mark.parametrize(
    "source",
    [
        'ROOT.glob("chapters/0*.ipynb")',
        "for chapter in range(1, 10): pass",
        "assert {c for chapter in range(1, 10)}",
        "assert len(contents.chapters()) == 9",
        'TEXT = "all nine chapters"',
    ],
)
def test_a_typed_count_is_found(tmp_path, source):
    (tmp_path / "test_x.py").write_text(source, encoding="utf-8")
    assert typed_counts(tmp_path / "test_x.py")


@pytest.mark.parametrize(
    "source", ["assert len(contents.chapters()) >= len(found)", "for chapter in contents.chapters(): pass"]
)
def test_asking_the_contents_is_fine(tmp_path, source):
    (tmp_path / "test_x.py").write_text(source, encoding="utf-8")
    assert typed_counts(tmp_path / "test_x.py") == []


# ---------------------------------------------------------------------------- the type checker


@pytest.mark.parametrize(
    ("size", "good"), [("4", True), ("numpy.arange(4)", True), ('"4"', False), ("None", False)]
)
def test_the_type_checker_knows_a_size_from_what_is_none(size, good, tmp_path, monkeypatch):
    from mypy import api

    monkeypatch.chdir(ROOT)
    asked = tmp_path / "asked.py"
    asked.write_text(f"import numpy\nfrom book import cost\ncost.linear({size}, 4, 4, 2)\n", encoding="utf-8")
    said, error, failed = api.run([str(asked)])
    assert (failed == 0) == good, said + error
    assert good or "Number" in said


# --------------------------------------------------------------------- tests that can't fail

REFUSE = {"raises", "warns", "expect", "fail", "check", "raise_if", "wait_for", "wait_for_function"}


def without_a_claim(tree):
    """Names of tests in which nothing is asserted: by themselves, or by a function of the same file."""
    functions = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}

    def claims(node, asked=()):
        for inner in ast.walk(node):
            if isinstance(inner, ast.Assert):
                return True
            if isinstance(inner, ast.Call):
                name = inner.func.attr if isinstance(inner.func, ast.Attribute) else ast.unparse(inner.func)
                if name in REFUSE or name.startswith("assert_"):
                    return True
                if name in functions and name not in asked and claims(functions[name], (*asked, name)):
                    return True
        return False

    return [name for name, node in functions.items() if name.startswith("test_") and not claims(node)]


def test_every_test_claims_something():
    found = {path.name: without_a_claim(ast.parse(path.read_text(encoding="utf-8"))) for path in TESTS}
    assert {name: tests for name, tests in found.items() if tests} == {}


def test_a_test_without_a_claim_is_found():
    tree = ast.parse(
        "def helper(x): assert x\n"
        "def test_one(): helper(1)\n"
        "def test_two(): print(helper)\n"
        "def test_three():\n    with pytest.raises(ValueError): run()\n"
    )
    assert without_a_claim(tree) == ["test_two"]
