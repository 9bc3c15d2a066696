"""Lab 2's questions: the solution gets everything, other kernels too, and each mistake its comment."""

import math

import numpy as np
import pytest

from book import cost
from labs.kit.ask_and_answer import CallsAnswer, KernelAnswer, Run, ValuesAnswer
from labs.kit.lab import find
from labs.kit.question import Draw
from labs.lab2_linear import judges, key, questions
from labs.lab2_linear import predicted_times as times
from labs.lab2_linear import wrong_products as wrong
from labs.lab2_linear.cases import GAPS, ITEMSIZE, TRANSPOSED, cancelling, case

ABOUT_THE_KERNEL = questions.about_the_kernel(questions.LAB.questions)


# ------------------------------------------------------------------------------- products, made wrong


def rng():
    return np.random.default_rng(11)


def done(one, output=None, **changed):
    """A run whose output and traffic are right, unless told otherwise; what is NaN was never written."""
    made = wrong.reference(one).astype(np.float16).astype(np.float64) if output is None else output
    formula = cost.linear(**one.sizes)
    sizes = {**formula.reads, **formula.writes}
    sizes["y"] -= ITEMSIZE * int(np.isnan(made).sum())
    verbs = {"x": "reads", "w": "reads", "y": "writes"}
    kinds = ("unique", "block", "issued", "sector")
    traffic = {name: {verb: dict.fromkeys(kinds, sizes[name])} for name, verb in verbs.items()}
    return Run(one, made, {**traffic, **changed.pop("traffic", {})}, **changed)


def said_of(judge, *runs, **more):
    answers = {"linear": KernelAnswer(tuple(runs), more.pop("compiled", {}))}
    return judge(answers | more.pop("answers", {}), more.pop("asks", {}), Draw(rng(), questions.numbers(0)))


def parts(one):
    return (one.inputs[name].astype(np.float64) for name in ("x", "w"))


def without(array, rows=None, columns=None):
    array = array.copy()
    array[rows if rows is not None else slice(None), columns if columns is not None else slice(None)] = np.nan
    return array


def in_fp16(one, piece=64):
    x, w = parts(one)
    total = np.zeros((x.shape[0], w.shape[1]), dtype=np.float16)
    for k in range(0, x.shape[1], piece):
        total = total + (x[:, k : k + piece] @ w[k : k + piece]).astype(np.float16)
    return total.astype(np.float64)


MADE_WRONG = {
    "partly filled piece of k is missing": lambda x, w, y: x[:, :64] @ w[:64],
    "only the first 32 of k": lambda x, w, y: x[:, :32] @ w[:32],
    "acc holds the last piece": lambda x, w, y: x[:, 96:] @ w[96:],
    "y is zero everywhere": lambda x, w, y: 0 * y,
    "lie transposed": lambda x, w, y: np.ascontiguousarray(y.T).reshape(y.shape),
    "shape (130, 70)": lambda x, w, y: y.T,
    "rows 64 to 69 of y: never written": lambda x, w, y: without(y, rows=slice(64, None)),
    "columns 128 to 129 of y: never written": lambda x, w, y: without(y, columns=slice(128, None)),
    "the last of the rows of y: never written": lambda x, w, y: without(y, rows=69),
    "the first at row 5, column 7": lambda x, w, y: without(y, rows=slice(5, 9), columns=slice(7, 30)),
    "was never written; does the kernel store": lambda x, w, y: without(y),
    "infinity": lambda x, w, y: y + np.inf,
    "no multiple of a tile: is the mask on k right": lambda x, w, y: y + 3 * np.roll(y, 1),
}


@pytest.mark.parametrize("words", MADE_WRONG)
def test_a_wrong_product_is_told_from_the_others(words):
    one = case(rng(), 70, 100, 130)
    x, w = parts(one)
    told = said_of(judges.product, done(one, MADE_WRONG[words](x, w, x @ w)))
    assert not told.right and words in told.comment
    assert told.comment.startswith("m = 70, k = 100, n = 130: ")


@pytest.mark.parametrize("which", ["x", "w"])
@pytest.mark.parametrize("stored", [TRANSPOSED, GAPS])
def test_unused_strides_are_told(which, stored):
    one = case(rng(), 40, 72, 50, **{which: stored})
    x, w = parts(one)
    shape = one.inputs[which].shape
    flat = one.memory()[which].astype(np.float64)[: math.prod(shape)].reshape(shape)
    told = said_of(judges.product, done(one, flat @ w if which == "x" else x @ flat))
    assert f"the strides of {which} are not used" in told.comment


def test_sums_in_fp16_lose_the_digits_and_sums_in_fp32_do_not():
    one = cancelling(rng(), 20, 270, 33)
    x, w = (one.inputs[name].astype(np.float32) for name in ("x", "w"))
    assert said_of(judges.product, done(one, (x @ w).astype(np.float16).astype(np.float64))).right
    assert "keep acc in float32" in said_of(judges.product, done(one, in_fp16(one))).comment


def test_nan_in_what_was_written_is_blamed_on_lanes_without_other():
    one = case(rng(), 70, 100, 130)
    run = done(one)
    run.output[3, 4] = np.nan
    told = said_of(judges.product, run)
    assert "1 of 9,100 numbers of y are NaN, though each was written" in told.comment
    assert "other=0.0" in told.comment


@pytest.mark.parametrize("judge", [judges.product, judges.once, judges.distinct])
def test_a_race_is_refused_with_its_sentence_though_the_product_is_right(judge):
    race = "program (3, 1) reads scratch[17], which (3, 0) of the same launch writes."
    told = said_of(judge, done(case(rng(), 17, 100, 130), race=race))
    assert not told.right and told.comment == f"m = 17, k = 100, n = 130: {race}"


# ------------------------------------------------------------------------------------ bounds and bytes

OUTSIDE = (
    "OutOfBounds: {}: program (0, 0, 0) {} element 1700, which is none of the tensor's (shape (17, 100), "
    "1700 elements from first to last); mask that lane off. (in `x = tl.load(x_ptrs)`)"
)


@pytest.mark.parametrize(
    ("name", "words"), [("x", "rm < M and rk < K"), ("w", "rk < K and rn < N"), ("y", "the store")]
)
def test_an_access_outside_names_the_mask(name, words):
    runs = done(case(rng(), 1, 1, 1)), done(case(rng(), 17, 100, 130), error=OUTSIDE.format(name, "reads"))
    told = said_of(judges.bounds, *runs)
    assert not told.right and words in told.comment and "element 1700" in told.comment
    assert [row["touched outside"] for row in told.table] == ["nothing", f"{name}, element 1,700"]


def test_an_access_to_a_gap_asks_for_the_strides():
    error = OUTSIDE.format("w", "reads").replace("element 1700", "element 1")
    told = said_of(judges.bounds, done(case(rng(), 17, 100, 130), error=error))
    assert "between two numbers of w" in told.comment and "both strides" in told.comment


def test_what_is_never_touched_does_not_count_as_inside():
    run = done(case(rng(), 17, 100, 130))
    run.traffic["w"]["reads"]["unique"] -= 40
    assert "w: 20 of its 13,000 numbers are never read" in said_of(judges.bounds, run).comment


def test_columns_that_are_read_again_are_told_beside_how_often():
    again = "w, columns 0 to 27: read again by the last tile (program 1)"
    run = done(case(rng(), 17, 100, 100), extra=("x: read 2 times, by 2 programs.", again))
    run.traffic["w"]["reads"]["block"] += 28 * 100 * 2
    said = said_of(judges.once, run).comment
    assert "w was read 1.3 times" in said and said.endswith(again)


def test_a_weight_that_is_read_twice_says_so():
    run = done(case(rng(), 40, 100, 130))
    run.traffic["w"]["reads"]["block"] *= 3
    told = said_of(judges.once, run)
    assert not told.right and "m = 40, k = 100, n = 130: w was read 3.0 times" in told.comment
    assert told.table[0]["difference"] == "+52,000 B" and told.table[0]["times"] == "3.00"


def scratch(written, read):
    return {
        "scratch": {
            "writes": {"unique": written, "block": written},
            "reads": {"unique": written, "block": read},
        }
    }


@pytest.mark.parametrize(
    ("m", "written", "read", "right"),
    [
        (1, 1560, 1560, True),
        (64, 99840, 99840, True),
        (1, 26000, 26000, False),  # as large as w
        (40, 26000, 26000, False),
        (40, 15600, 31200, False),  # read twice
    ],
)
def test_scratch_holds_partial_sums_and_no_copy_of_the_weight(m, written, read, right):
    told = said_of(judges.once, done(case(rng(), m, 100, 130), traffic=scratch(written, read)))
    assert told.right is right and ("scratch" in told.comment) is not right


def test_right_bytes_stand_beside_theirs_and_scratch_is_named_but_not_judged():
    told = said_of(judges.distinct, done(case(rng(), 16, 96, 128), traffic=scratch(8192, 8192)))
    assert told.right
    rows = {row["tensor"]: row for row in told.table}
    assert rows.keys() == {"x", "w", "y", "scratch (yours to use)"}
    assert all(
        rows[n]["yours"] == rows[n]["theirs"] and rows[n]["difference"] == "+0 B" for n in ("x", "w", "y")
    )


def test_bytes_are_exact_and_y_is_written_once_in_its_own_dtype():
    def changed(name, verb, factor, kinds=("unique", "block")):
        run = done(case(rng(), 16, 96, 128))
        for kind in kinds:
            run.traffic[name][verb][kind] = int(factor * run.traffic[name][verb][kind])
        return said_of(judges.distinct, run)

    assert changed("w", "reads", 1).right
    assert "x: 768 of its 1,536 numbers are never read" in changed("x", "reads", 0.5).comment
    assert "y was written 2.0 times" in changed("y", "writes", 2, ["block"]).comment
    assert "float32" in changed("y", "writes", 2).comment
    told = said_of(judges.distinct, done(case(rng(), 4, 8, 8), np.zeros((4, 8))))
    assert not told.right and "y is zero everywhere" in told.comment


# -------------------------------------------------------------------------------------- their formula


def formula_said(value, one=None, columns=3, rows=2):
    run = done(one or case(rng(), 100, 40, 130))
    run.traffic["x"]["reads"]["block"] *= columns
    run.traffic["w"]["reads"]["block"] *= rows
    size = cost.linear(**run.case.sizes)
    value = value(size.reads["x"], size.reads["w"], size.writes["y"]) if callable(value) else value
    told = CallsAnswer(((value, ""),))
    return said_of(judges.own_traffic, run, answers={"traffic": told})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (lambda x, w, y: {"x": x, "w": w, "y": y}, "distinct bytes"),
        (lambda x, w, y: {"x": 3 * x / 2, "w": w, "y": y / 2}, "each has two bytes"),
        (lambda x, w, y: {"x": 2 * x, "w": 3 * w, "y": y}, "the wrong way round"),
        (lambda x, w, y: {"x": 130 / 64 * x, "w": 2 * w, "y": y}, "round up"),
        (lambda x, w, y: {"x": 3 * x, "w": 2 * w * 192 / 130, "y": y}, "masked off"),
        (lambda x, w, y: {"x": 3 * x, "w": 4 * w, "y": y}, "how many programs load each byte of w"),
        ({"x": 1, "w": 2}, "give bytes for x, w and y"),
        ({"x": "1", "w": True, "y": float("nan")}, "give bytes for x, w and y"),
        (12, "give bytes for x, w and y"),
    ],
)
def test_a_wrong_formula_is_told_why(value, words):
    told = formula_said(value)
    assert not told.right and words in told.comment


def test_a_right_formula_is_right():
    assert formula_said(lambda x, w, y: {"x": 3 * x, "w": 2 * w, "y": y}).right


# --------------------------------------------------------------------------------------- the compiler

FACT = {"kernel": "k", "instruction": "mma.sync", "registers": 100, "spill_bytes": 0}


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ([FACT], ""),
        ([FACT, {**FACT, "instruction": "none"}], ""),  # a second kernel may add up
        ([{**FACT, "instruction": "none"}], "tl.dot"),
        ([{**FACT, "spill_bytes": 64}], "spills 64 bytes"),
        ("CompilationError: no", "CompilationError: no"),
    ],
)
def test_what_the_compiler_made_of_it(facts, words):
    asks = questions.LAB.questions[6].asks(Draw(rng(), {}))
    compiled = {"sm_80": [FACT], "sm_90": facts}
    told = said_of(judges.compiles, done(asks["linear"].cases[0]), asks=asks, compiled=compiled)
    assert told.right is not bool(words) and words in told.comment


def test_a_blank_is_called_a_blank():
    error = "kernel linear_kernel, line 12: `raise NotImplementedError` is no statement of Triton's language."
    told = judges.product({"linear": KernelAnswer(error=error)}, {}, Draw(rng(), {}))
    assert not told.right and told.comment.startswith("a blank is not filled in yet")


# ----------------------------------------------------------------------------------------- the time


@pytest.mark.parametrize("seed", range(4))
def test_each_mistake_in_the_time_gets_its_sentence(seed):
    """The key draws problems on both sides of every mistake: none of them makes no difference."""
    asks = find(key.LAB.questions, "lab2-time").asks(Draw(np.random.default_rng(seed), {}))
    for words, mistaken in times.MISTAKES:
        told = CallsAnswer(tuple((mistaken(call), "") for call in asks["predicted_seconds"].calls))
        verdict = times.function({"predicted_seconds": told}, asks, Draw(rng(), {}))
        assert not verdict.right and words in verdict.comment


def test_the_time_itself_is_right_and_nonsense_is_not():
    asks = find(questions.LAB.questions, "lab2-time").asks(Draw(rng(), {}))
    calls = asks["predicted_seconds"].calls
    for returns, right in (
        ([times.floor(*c) for c in calls], True),
        (["3 s"] * 4, False),
        ([None] * 4, False),
    ):
        told = CallsAnswer(tuple((value, "") for value in returns))
        assert times.function({"predicted_seconds": told}, asks, Draw(rng(), {})).right is right


def predicted(values, variant=0):
    draw = Draw(rng(), questions.numbers(variant))
    return times.predictions({"predictions": ValuesAnswer({"predictions": values})}, {}, draw)


def test_every_copy_can_be_solved_and_its_predictions_differ():
    for variant in range(8):
        right = key.answers(variant)
        assert predicted(right, variant).right and len(right) == 5
        assert predicted({card: 1.005 * seconds for card, seconds in right.items()}, variant).right
        assert questions.numbers(variant) == questions.numbers(variant) != questions.numbers(variant + 1)


def test_in_every_copy_some_cards_wait_and_some_compute():
    for variant in range(8):
        mine = questions.numbers(variant)
        intensity = cost.linear(mine["m"], mine["k"], mine["n"]).intensity
        waits = {f["peak"] / f["bandwidth"] > intensity for f in mine["cards"].values()}
        assert waits == {True, False} and {"h100_sxm", "h200_sxm"} <= set(mine["cards"])


def test_wrong_predictions_are_told_and_the_answer_is_not():
    right = key.answers(0)
    late = predicted({card: 1e6 * seconds for card, seconds in right.items()})
    assert not late.right and "microseconds" in late.comment
    assert not any(f"{seconds * 1e6:,.1f}" in str(late.table) for seconds in right.values())
    lacking = predicted({card: right[card] for card in list(right)[:4]})
    assert "lacks b200" in lacking.comment
    assert "b200" in predicted({**right, "b200": 1.3 * right["b200"]}).comment
    assert not predicted([1, 2]).right and not predicted({card: "fast" for card in right}).right


def test_hidden_sizes_are_never_the_visible_ones():
    """So a kernel that only works at sizes it has seen gets nothing for it."""
    for name in ABOUT_THE_KERNEL:
        seen, hidden = set(), set()
        for lab, sizes in ((questions.LAB, seen), (key.LAB, hidden)):
            for seed in range(30):
                asks = find(lab.questions, name).asks(Draw(np.random.default_rng(seed), {}))
                sizes |= {tuple(c.sizes.values()) for c in asks["linear"].cases}
        common = (seen & hidden) - {(1, 1, 1)}
        assert not common or name == "lab2-bounds"  # there the edges are few, and five cases a time
