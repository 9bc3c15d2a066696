"""Questions with options: what is said to each, what can't be made, what a reader without scripts sees."""

import pytest

from book.messages.in_code import of_cells
from book.widgets.choice import choice, judge, problems

OPTIONS = {
    "It halves.": "That is what happens to a step that waits for weights. Here it waits for the cache.",
    "It stays the same.": "",
    "It doubles.": "You let each user read the others' caches.",
}


def bits(name="ex-bits", **changes):
    settings = {
        "question": "Twice the users, long contexts. What happens to the rate per user?",
        "options": OPTIONS,
        "answer": "It stays the same.",
        "right": "Every user brings a cache of their own.",
        "solution": "The cache dominates, and it grows with the batch.",
    }
    return choice(name, **{**settings, **changes})


CHECK = bits()


def test_the_answer_is_right_and_says_why():
    verdict = CHECK.judge("It stays the same.")
    assert (verdict.kind, verdict.right) == ("right", True)
    assert verdict.message == "Every user brings a cache of their own."


@pytest.mark.parametrize("wrong", ["It halves.", "It doubles."])
def test_each_wrong_option_has_its_own_hint(wrong):
    verdict = CHECK.judge(wrong)
    assert (verdict.kind, verdict.status, verdict.message) == ("mistake", "Not yet.", OPTIONS[wrong])


def test_nothing_picked_is_no_try():
    assert CHECK.judge("").kind == "unreadable"
    assert CHECK.judge("It halves").message == "Pick one of them first."


def test_what_the_answer_says_may_stand_beside_it():
    options = {**OPTIONS, "It stays the same.": "Each brings a cache."}
    assert bits(options=options, right="").judge("It stays the same.").message == "Each brings a cache."


def test_options_keep_their_order():
    assert [option["text"] for option in CHECK.payload["options"]] == list(OPTIONS)


def test_braces_are_filled_in_everywhere():
    made = bits(
        question="On an {card}?",
        options={"An {card} can": "", "An {card} can't": "An {card} has {memory} GB."},
        answer="An {card} can",
        right="Yes, {card}.",
        solution="{memory} GB.",
        values={"card": "H100", "memory": 80},
    )
    assert made.payload["question"] == "On an H100?"
    assert made.judge("An H100 can").message == "Yes, H100."
    assert made.judge("An H100 can't").message == "An H100 has 80 GB."
    assert made.payload["solution"] == "80 GB."


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"options": {"It stays the same.": ""}}, "1 option(s)"),
        ({"answer": "It triples."}, "answer = 'It triples.' is none of its options"),
        ({"options": {**OPTIONS, "It doubles.": " "}}, "the hint for 'It doubles.' is empty"),
        ({"options": {**OPTIONS, "It doubles.": OPTIONS["It halves."]}}, "two options share a hint"),
        ({"options": {**OPTIONS, " ": "No."}}, "an option is empty"),
        ({"options": {**OPTIONS, "It stays the same.": "So."}}, "keep one"),
        ({"options": {**OPTIONS, "It {how}.": "No."}, "values": {"how": "halves"}}, "read alike"),
        ({"question": ""}, "question is empty"),
        ({"name": "Which?"}, "name it in lower-case"),
    ],
)
def test_what_could_not_be_answered_cannot_be_made(changes, sentence):
    with pytest.raises(ValueError, match="check ") as refusal:
        bits(**changes)
    assert sentence in str(refusal.value)


def test_problems_names_what_is_broken_on_a_page():
    assert problems(CHECK.payload) == []
    nobody = {**CHECK.payload, "answer": "It triples."}
    assert problems(nobody)[0] == "ex-bits: 0 of its options are right; exactly one is."
    silent = {**CHECK.payload, "options": [{**o, "says": ""} for o in CHECK.payload["options"]]}
    assert problems(silent) == ["ex-bits: a wrong option has no hint of its own."]


def test_python_can_watch_and_set_the_answer():
    watched, heard = bits("ex-watch"), []
    watched.observe(lambda change: heard.append(change["new"]), "solved")
    watched.entry = "It halves."
    watched.entry = "It stays the same."
    watched.entry = ""
    assert heard == [True, False]


def test_a_reader_without_scripts_sees_the_options_and_the_answer():
    said = CHECK.summary()
    assert all(text in said for text in OPTIONS)
    assert said.endswith("Answer: It stays the same.)")


def test_judge_takes_a_payload_from_a_page():
    assert judge(CHECK.payload, "It stays the same.").right


def test_a_translator_gets_options_hints_question_and_solution():
    cell = """choice("ex-x", question="Which?", options={"One.": "No.", "Two.": ""}, answer="Two.",
        right="Yes.", solution="Because.")"""
    assert [text for _, text in of_cells([cell])] == ["Which?", "One.", "No.", "Two.", "Yes.", "Because."]
