"""What pages tell a reader to type is there: each command parses, each option exists."""

import contextlib
import io
import re
import shlex

import pytest

from kernels.evidence import record_tables
from kernels.evidence.recorded import __main__ as records
from kernels.evidence.recorded.write import ROOT
from kernels.measure import command

PARSERS = {"kernels.measure": command.arguments, "kernels.evidence.recorded": records.arguments}
PAGES = sorted([*(ROOT / "book/pages").glob("*.md"), ROOT / "README.md"])
COMMAND = re.compile(r"python3? -m (kernels[\w.]*)([^\n`#]*)")


def commands(text):
    return [(module, shlex.split(rest.replace("\\\n", " "))) for module, rest in COMMAND.findall(text)]


def parse(module, words):
    try:
        return PARSERS[module](words)
    except SystemExit:
        raise AssertionError(f"{module} does not take {words}") from None


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_each_command_on_a_page_parses(page):
    typed = [one for one in commands(page.read_text(encoding="utf-8")) if one[1]]  # else it is mentioned
    assert all(parse(*one) for one in typed)


def test_an_option_that_is_none_is_found():
    with pytest.raises(AssertionError, match="does not take"):
        parse("kernels.measure", ["--out", "x.json", "--minuets", "8"])


def test_the_line_of_a_page_without_records_parses():
    ((module, words),) = commands(record_tables.COMMAND)
    assert parse(module, words).out.name == "my-card.json"


def test_the_guide_measures_checks_and_names_one_file():
    page = (ROOT / "book/pages/first-hour.md").read_text(encoding="utf-8")
    tried, measured, checked = (parse(*one) for one in commands(page) if one[1])
    assert measured.out == checked.file and checked.what == "check"
    assert tried.rehearse and not measured.rehearse and tried.out != measured.out


def test_each_option_that_a_page_names_by_itself_exists():
    known = set()
    for module, words in (("kernels.measure", []), ("kernels.evidence.recorded", ["add"])):
        known |= options(module, words)
    for name in ("first-hour.md", "records.md"):
        text = (ROOT / "book/pages" / name).read_text(encoding="utf-8")
        named = set(re.findall(r"`(--[\w-]+)`", text))
        assert named <= known, named - known


def options(module, words):
    """The options that a command's help lists."""
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
        PARSERS[module]([*words, "--help"])
    return set(re.findall(r"--[\w-]+", said.getvalue()))
