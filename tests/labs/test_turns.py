"""Whose turn it is to be graded for real."""

from tests.labs import turns

DIGESTS = {"lab1": "a", "lab2": "b", "lab3": "c"}


def graded(record, *labs, digests=DIGESTS, passed=True):
    for at, lab in enumerate(labs):
        turns.note(lab, digests[lab], float(at), passed, record)


def test_a_lab_that_changed_comes_first(tmp_path):
    record = tmp_path / "graded.json"
    graded(record, "lab1", "lab2", "lab3")
    for lab in DIGESTS:
        assert turns.whose(DIGESTS | {lab: "changed"}, record) == lab


def test_where_none_changed_who_waited_longest_comes_first(tmp_path):
    record = tmp_path / "graded.json"
    graded(record, "lab2", "lab3", "lab1")
    assert turns.whose(DIGESTS, record) == "lab2"


def test_a_lab_that_failed_keeps_its_turn(tmp_path):
    record = tmp_path / "graded.json"
    graded(record, "lab1", "lab2", "lab3")
    turns.note("lab3", "c", 9.0, False, record)
    turns.note("lab3", "c", 9.0, True, record)  # another test of the same submissions
    assert turns.whose(DIGESTS, record) == "lab3"
    turns.note("lab3", "c", 10.0, True, record)
    assert turns.whose(DIGESTS, record) == "lab1"


def test_with_nothing_known_the_code_picks_and_every_lab_can_be_picked(tmp_path):
    record = tmp_path / "graded.json"
    picked = {turns.whose(DIGESTS | {"lab1": str(version)}, record) for version in range(50)}
    assert picked == set(DIGESTS)
    record.write_text("half of a rec", encoding="utf-8")
    assert turns.whose(DIGESTS, record) in DIGESTS
