"""Mistakes that any question invites: told by their class, with no word about what isn't at fault."""

import pytest

from book import catalog
from book.widgets.self_check import numeric
from book.widgets.usual_slips import CARDS, card_in

H200 = catalog.accelerator("h200_sxm")


def asks(answer, unit, question="How much?", **more):
    given = more if "mistakes" in more else {"mistakes": {answer * 17: "One.", answer * 19: "Two."}, **more}
    return numeric("ex-asked", question=question, answer=answer, unit=unit, **given)


@pytest.mark.parametrize(
    ("unit", "answer", "typed", "words"),
    [
        ("MB", 117.5, 235, "K and V are two tensors"),
        ("MB", 117.5, 58.75, "K and V are two tensors"),
        ("GFLOP", 3.2, 6.4, "A multiply and an add are two operations"),
        ("ms", 4.79, 9.58, "A multiply-add is two operations"),
        ("TFLOP/s", 167.5, 335, "sparsity is twice the dense one"),
        ("FLOP/byte", 295.3, 147.65, "K and V are two tensors"),
        ("%", 14.9, 29.8, "factor of two"),
        ("rows", 345, 690, "factor of two"),
        ("ms", 4.79, 4.79 * 4, "the bytes of a number"),
        ("MB", 117.5, 117.5 / 4, "the bytes of a number"),
        ("GB", 17.18, 17.18 / 8, "A byte has eight bits"),
        ("ms", 4.79, 4.79 * 8, "A byte has eight bits"),
        ("GB/s", 450, 3600, "A byte has eight bits"),
        ("heads", 295, 2360, "something that there are eight of"),
        ("sequences", 56.3, 450.4, "something that there are eight of"),
        ("tokens/s", 2209, 276.1, "something that there are eight of"),
        ("GB", 17.18, 16.0, "GiB"),
        ("ms", 4.79, 5.143, "GiB"),
        ("MB", 117.477, 112.03, "GiB"),
        ("TB", 3.3, 3.0013, "GiB"),
        ("FLOP/byte", 295.3, 1 / 295.3, "Upside down"),
        ("tokens/s", 209, 4.785, "Upside down"),
        ("%", 29.8, 70.2, "what is left of the whole"),
        ("%", 29.8, 0.298, "asks for percent"),
        ("times", 1.36, 0.36, "how much is added"),
    ],
)
def test_a_slip_is_told_by_its_class(unit, answer, typed, words):
    verdict = asks(answer, unit).judge(str(typed))
    assert verdict.kind in ("slip", "scale")
    assert words in verdict.message


@pytest.mark.parametrize(
    ("question", "unit", "answer", "typed", "card"),
    [
        ("On an H100 SXM?", "TFLOP/s", lambda card: card.bandwidth / 2e10, 100, "H100 PCIe"),
        ("On an H100?", "ms", lambda card: 16.06e12 / card.bandwidth, 16.06 / 4.8, "H200 SXM"),
        ("On an H200?", "FLOP/byte", lambda card: card.ridge("bf16"), 295.3, "H100 SXM"),
        ("On an H200?", "rows", lambda card: card.ridge("fp8") / 2, 295.3, "H100 SXM"),
        ("On a B200?", "TFLOP/s", lambda card: 0.9e-12 * card.peak("bf16"), 890.5, "H100 SXM"),
    ],
)
def test_another_card_is_named(question, unit, answer, typed, card):
    verdict = asks(answer, unit, question, mistakes={1e7: "One.", 3e7: "Two."}).judge(typed)
    assert verdict.kind == "slip"
    assert verdict.message.startswith(f"On the {card} this would be right.")


@pytest.mark.parametrize("unit", ["ms", "%", "TFLOP/s", "FLOP/byte", "rows", "GB"])
def test_no_card_is_named_where_the_question_does_not_say_how_its_answer_follows_from_one(unit):
    check = asks(100.0, unit, "On an H100?")
    assert not [slip for slip in check.payload["slips"] if "names" in slip]


def test_only_the_wall_that_the_answer_leans_on_names_a_card():
    read = asks(lambda card: 16.06e12 / card.bandwidth, "ms", "On an L4?", mistakes={1: "One.", 3: "Two."})
    l4, a100 = catalog.accelerator("l4"), catalog.accelerator("a100_80gb_sxm")
    of_a100 = read.payload["answer"] * l4.bandwidth / a100.bandwidth
    assert read.judge(of_a100).message.startswith("On the A100 SXM this")
    assert read.judge(of_a100 * l4.ridge("bf16") / a100.ridge("bf16")).kind != "slip"


def test_a_card_without_the_format_is_not_named():
    check = asks(lambda card: card.ridge("fp8"), "FLOP/byte", "On a B200?", mistakes={1: "One.", 3: "Two."})
    named = {slip["names"]["card"] for slip in check.payload["slips"] if "names" in slip}
    assert {"H100 PCIe", "L4", "MI300X"} <= named
    lacking = {catalog.accelerator(id).short_name for id in ("a100_80gb_sxm", "a100_40gb_sxm", "t4")}
    assert not lacking & named


def test_an_answer_that_follows_from_a_card_needs_one():
    with pytest.raises(ValueError, match="the question names none; give card="):
        asks(lambda card: card.bandwidth, "GB/s", mistakes={1: "One.", 3: "Two."})
    given = asks(lambda card: card.bandwidth, "B/s", card="h200_sxm", mistakes={1: "One.", 3: "Two."})
    assert given.payload["answer"] == H200.bandwidth


@pytest.mark.parametrize(
    ("question", "card"),
    [
        ("An A100 with 40 GB does 312 TFLOP/s.", "a100_40gb_sxm"),
        ("What share of the A100's bandwidth is that?", "a100_80gb_sxm"),
        ("Eight H100s share the model.", "h100_sxm"),
        ("On an H100 PCIe?", "h100_pcie"),
        ("On an H200, in TRT?", "h200_sxm"),
        ("From an H100 to an H200", None),
        ("On a card", None),
        ("On an L40", None),
    ],
)
def test_a_question_tells_which_card_it_is_about(question, card):
    assert card_in(question) == card


@pytest.mark.parametrize("card", CARDS)
def test_no_card_s_slip_can_be_taken_for_the_answer(card):
    check = asks(lambda c: c.bandwidth / 1e9, "GB/s", card=card, mistakes={1: "One.", 3: "Two."})
    right = check.payload["answer"]
    assert all(abs(slip["value"] / right - 1) > 0.02 for slip in check.payload["slips"])


@pytest.mark.parametrize(
    ("rounding", "answer", "typed", "verdict"),
    [
        ("down", 52, "53", "Round down"),
        ("down", 52, "52.7", "Round down"),
        ("down", 52, "52", "right"),
        ("down", 150, "151", "Round down"),
        ("down", 150, "149.9", "right"),
        ("up", 3, "2", "Round up"),
        ("up", 3, "2.2", "Round up"),
        ("up", 3, "4", "generic"),
        (None, 52, "52.7", "The answer is a whole number"),
        (None, 52.7, "53", "right"),
    ],
)
def test_a_whole_number_is_rounded_as_the_question_asks(rounding, answer, typed, verdict):
    said = asks(answer, "sequences", rounding=rounding).judge(typed)
    assert verdict in (said.kind, said.message) or said.message.startswith(verdict)


def test_what_is_rounded_is_whole():
    with pytest.raises(ValueError, match="answer = 52.7 isn't whole; round it"):
        asks(52.7, "sequences", rounding="down")


def test_a_kind_that_is_none_is_refused():
    with pytest.raises(ValueError, match="kind = 'size'; it is one of bytes,"):
        asks(52, "sequences", kind="size")


def test_a_prefix_typed_in_full_meets_no_hint_about_another_one():
    time = asks(391.6, "µs", mistakes={0.3916: "Right number, in milliseconds.", 35: "That is an H100."})
    assert time.judge("0.3916").message == "Right number, in milliseconds."
    assert time.judge("391.6 ns").kind == "scale"
    assert time.judge("0.3916 ms").right
    assert time.judge("35 µs").message == "That is an H100."
    assert time.judge("35 ms").kind == "generic"


def test_a_listed_mistake_goes_before_a_slip():
    check = asks(100, "ms", mistakes={200: "One operation, not two.", 37: "The other."})
    assert check.judge("200").message == "One operation, not two."
    assert check.judge("0.2").message == "One operation, not two.", "a mistake with another prefix"


@pytest.mark.parametrize("unit", ["ms", "GB", "FLOP/byte", "%", "times", "rows", "tokens/s", "GFLOP"])
def test_no_hint_blames_the_units_where_nothing_is_known(unit):
    verdict = asks(100, unit).judge(1357)
    assert verdict.kind == "generic"
    assert "unit" not in verdict.message


# ------------------------------------- wrong answers that were typed into the book's own questions


def test_bytes_that_are_right_in_gigabytes_are_not_called_operations():
    moved = asks(117.477, "MB", tolerance=0.002, mistakes={0.11744: "Those are GFLOP.", 234.9: "fp32."})
    assert moved.judge("0.1175").kind == "scale"
    assert moved.judge("0.1175 GB").right
    assert moved.judge("0.11744").message == "Those are GFLOP."


def test_a_sequence_too_many_is_told_to_round_down():
    fits = asks(52, "sequences", mistakes={67: "All of it.", 416: "Shared."}, rounding="down")
    assert fits.judge("53").message == "Round down: a part of one doesn't fit."


def test_seven_percent_off_is_not_close():
    audit = asks(29.79, "%", tolerance=0.02)
    assert audit.judge("26.1").kind == "generic"
    assert audit.judge("28.5").kind == "near"
    assert "unit" not in audit.judge("28.5").message


def test_two_mistakes_that_are_equal_by_algebra_are_refused():
    # 4 times the prompt, and a group of 4 heads: the same time to the first token
    alone, length, group = 150.8, 32768 / 8192, 32 / 8
    pairs = [(alone * length, "TTFT doesn't grow in proportion."), (alone * group, "Those are the KV heads.")]
    with pytest.raises(ValueError, match="within tolerance 0.01 of the mistake 603.2"):
        asks(939.0, "ms", mistakes=pairs)
