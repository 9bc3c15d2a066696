"""Self-checks: which answers are accepted, what is said to the others, what can't be constructed."""

import pytest

from book.widgets.check_words import NUMERIC
from book.widgets.self_check import judge, numeric, problems

MISTAKES = {8192: "That is the limit I = M.", 1365.333: "You counted a multiply-add as one."}


def rows(name="ex-rows", **changes):
    settings = {
        "question": "What is the intensity at M = K = N = 8192?",
        "answer": 8192 / 3,
        "unit": "FLOP/byte",
        "mistakes": MISTAKES,
        "right": "A third of the limit.",
    }
    return numeric(name, **{**settings, **changes})


CHECK = rows()


@pytest.mark.parametrize(
    "typed",
    [
        "2730.7",
        "2,730.7",
        "2,731",
        " 2730.7 ",
        "2.73e3",
        "2.73E+3",
        "+2730",
        "2731 FLOP/byte",
        "2731flop / byte",
        "2 731",
    ],
)
def test_the_right_answer_is_accepted_however_it_is_typed(typed):
    verdict = CHECK.judge(typed)
    assert (verdict.kind, verdict.right, verdict.message) == ("right", True, "A third of the limit.")


@pytest.mark.parametrize("value", MISTAKES)
def test_every_known_mistake_is_refused_with_its_own_hint(value):
    for answer in (value, str(value), value * 1.009):
        verdict = CHECK.judge(answer)
        assert (verdict.kind, verdict.right, verdict.message) == ("mistake", False, MISTAKES[value])


@pytest.mark.parametrize(
    ("typed", "kind", "words"),
    [
        ("2650", "near", "more than 1 % off"),
        ("2.73", "scale", "1,000 times too small"),
        ("2.73e9", "scale", "1,000,000 times too large"),
        ("2.67", "scale", "about 1,000 times too small"),
        ("2.79e6", "scale", "about 1,000 times too large"),
        ("267", "generic", "None of the usual slips"),
        ("300", "generic", "None of the usual slips"),
        ("-2730.7", "generic", "None of the usual slips"),
        ("0", "generic", "None of the usual slips"),
        ("", "unreadable", "Type a number"),
        (" FLOP/byte", "unreadable", "Type a number"),
        ("2730,7", "unreadable", "“2730,7”"),
        ("2,73", "unreadable", "Decimals take a point"),
        ("2.730,7", "unreadable", "Decimals take a point"),
        ("about 2700", "unreadable", "“about 2700” is not a number"),
        ("2730 GB/s", "unreadable", "doesn't measure what is asked for, which is in FLOP/byte"),
        ("1e999", "unreadable", "is not a number"),
        ("nan", "unreadable", "is not a number"),
        (".", "unreadable", "is not a number"),
    ],
)
def test_other_answers_are_told_what_is_wrong(typed, kind, words):
    verdict = CHECK.judge(typed)
    assert verdict.kind == kind
    assert not verdict.right
    assert words in verdict.message


def test_the_border_of_the_tolerance_is_inside():
    exact = rows("ex-border", answer=100, mistakes={200: "a", 300: "b"})
    assert exact.judge(101).right
    assert exact.judge(99).right
    assert exact.judge(101.01).kind == "near"


def test_negative_answers_work():
    cold = rows("ex-cold", answer=-4, mistakes={4: "The sign.", -8: "Twice."})
    assert cold.judge("−4").right
    assert cold.judge("4").message == "The sign."
    assert cold.judge("-0.4").kind == "scale"


def test_a_hint_of_ones_own_replaces_the_general_one():
    assert rows("ex-hint", hint="Count bytes first.").judge(17).message == "Count bytes first."


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"mistakes": {8192: "a", 2740: "b"}}, "the mistake 2740 is within tolerance 0.01 of the answer"),
        (
            {"mistakes": {8192: "a", 8200: "b"}},
            "the mistake 8200 is within tolerance 0.01 of the mistake 8192",
        ),
        ({"mistakes": {8192: "a"}}, "1 known mistake"),
        ({"mistakes": {8192: "a", 1: " "}}, "the hint for 1 is empty"),
        ({"mistakes": {8192: "a", 1: "a"}}, "share a hint"),
        ({"mistakes": {8192: "a", float("nan"): "b"}}, "nan can't be answered"),
        ({"answer": float("inf")}, "inf can't be answered"),
        ({"answer": 0}, "answer = 0"),
        ({"question": " "}, "question is empty"),
        ({"tolerance": 0}, "tolerance = 0"),
        ({"tolerance": 1}, "tolerance = 1"),
        ({"name": "Ex 1"}, "'Ex 1': name it in lower-case"),
    ],
)
def test_what_could_be_taken_for_two_things_cannot_be_made(changes, sentence):
    with pytest.raises(ValueError, match="check ") as refusal:
        rows(**changes)
    assert sentence in str(refusal.value)


def test_mistakes_whose_intervals_touch_are_too_close():
    with pytest.raises(ValueError, match="within tolerance"):
        rows("ex-touch", answer=100, mistakes={101.5: "Off by a little.", 200: "Twice."})


def test_a_check_that_stands_twice_in_a_book_is_no_problem():
    mine = rows("ex-collected")
    assert problems([mine.payload, mine.payload]) == []


def test_problems_names_what_is_broken():
    other = rows("ex-collected", question="Something else?")
    broken = {**CHECK.payload, "answer": 8192.0, "id": "ex-broken"}
    found = problems([rows("ex-collected").payload, other.payload, broken])
    assert found[0] == "ex-collected: two different checks have this name."
    assert found[1] == "ex-broken: it shows '2,731 FLOP/byte' as its answer, and refuses that."
    assert found[2].startswith("ex-broken: the mistake 8192.0 gets right")


def test_python_can_watch_and_set_the_answer():
    watched, heard = rows("ex-watch"), []
    watched.observe(lambda change: heard.append(change["new"]), "solved")
    watched.entry = "8192"
    assert not watched.solved
    watched.entry = "2730.7"
    watched.entry = ""
    assert heard == [True, False]


def test_words_are_data():
    translated = rows("ex-words", words={"right": "对。", "check": "检查"})
    assert translated.judge("2730.7").status == "对。"
    assert translated.payload["words"]["check"] == "检查"
    assert set(NUMERIC) < set(translated.payload["words"])


def test_the_page_gets_state_and_nothing_executable():
    page = rows("ex-html", question="Is 1 < 2 & 'so'? </div><script>")._repr_mimebundle_()[0]["text/html"]
    assert page.startswith('<div class="rl-live" id="ex-html" data-kind="check"')
    assert "<script" not in page
    assert "2,731 FLOP/byte" in page  # for readers without scripts
    assert repr(rows("ex-html")) == "Check('ex-html')"


def test_judge_takes_a_payload_from_a_page():
    assert judge(CHECK.payload, "2731").right


@pytest.mark.parametrize(
    ("answer", "tolerance"), [(117.4767, 1e-4), (2730.67, 1e-3), (1 / 3, 1e-6), (56, 0.01)]
)
def test_the_answer_that_is_shown_is_accepted(answer, tolerance):
    check = rows("ex-shown", answer=answer, unit="MB", tolerance=tolerance, mistakes={1: "One.", 3: "Two."})
    assert check.judge(check.payload["answer_text"].removeprefix("Answer: ").removesuffix(".")).right
    assert problems([check.payload]) == []
