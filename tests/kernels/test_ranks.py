"""kernels.ranks: a sharded linear equals the unsharded one, and every rank's bytes equal the formula."""

import dataclasses
import itertools

import pytest
import torch

from book import cost
from kernels import linear as unsharded
from kernels.contract import devices
from kernels.contract.errors import PhysicsDisagrees
from kernels.evidence.addresses import address
from kernels.evidence.confirm_ranks import confirm_ranks
from kernels.evidence.counted import relative_error
from kernels.ranks import collectives, launch, linear

SIZES = {"m": 5, "k": 192, "n": 96}
RANKS = 2
TOLERANCE = 1e-3  # fp16: a product rounded once on each rank, and their sum once more

pytestmark = pytest.mark.skipif(bool(launch.why_not()), reason=launch.why_not() or "ranks can be started")


@pytest.fixture(scope="module")
def together():
    """(evidence of the row-parallel one, {operation: what each of two ranks made and counted}).

    The ranks that `confirm_ranks` starts make what else is asked of two ranks when they have answered it.
    """
    start, more = launch.run, []

    def run(task, request, **options):
        then = ("tests.kernels.rank_tasks:linears", {"sizes": SIZES})
        both = {"first": (task, request), "then": then}
        answers = start("tests.kernels.rank_tasks:first_and_then", both, **options)
        more.extend(answer for _, answer in answers)
        return [answer for answer, _ in answers]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "run", run)
        evidence = confirm_ranks(linear.row, ranks=RANKS, **SIZES)
    return evidence, {name: [answer[name] for answer in more] for name in more[0]}


@pytest.fixture(scope="module")
def ran(together):
    return together[1]


def results(answers):
    return [torch.tensor(answer["y"], dtype=torch.float64) for answer in answers]


@pytest.fixture(scope="module")
def whole():
    return unsharded.linear(**unsharded.experiment.inputs(**SIZES)).double()


@pytest.fixture(scope="module")
def evidence(together):
    return together[0]


@pytest.fixture
def row(evidence):
    return evidence.counted


# ------------------------------------------------------------------------------------ the result


def test_columns_of_two_ranks_side_by_side_are_the_unsharded_result(ran, whole):
    assert relative_error(torch.cat(results(ran["column"]), 1), whole) < TOLERANCE


def test_gathered_columns_are_the_unsharded_result_on_every_rank(ran, whole):
    for y in results(ran["column_gathered"]):
        assert relative_error(y, whole) < TOLERANCE


def test_row_parallel_gives_the_unsharded_result_on_every_rank(ran, whole):
    first, second = results(ran["row"])
    assert torch.equal(first, second)
    assert relative_error(first, whole) < TOLERANCE


# ------------------------------------------------------------------------------------ the counts


@pytest.mark.parametrize("name", ["column", "column_gathered", "row"])
def test_each_rank_s_bytes_in_memory_and_on_the_link_are_those_of_the_sharded_formula(ran, name):
    formula = getattr(linear, name).cost(**SIZES, ranks=RANKS)
    for rank in ran[name]:
        assert {tensor: rank["reads"][tensor] for tensor in ("x", "w")} == dict(formula.reads)
        assert rank["writes"]["y"] == formula.writes["y"]
        assert rank["sent"] == dict(formula.sent)


def test_by_hand_two_ranks_send_their_half_of_y_or_the_whole_of_it(ran):
    y = 5 * 96 * 2
    assert [rank["sent"] for rank in ran["column"]] == [{}, {}]
    assert [rank["sent"] for rank in ran["column_gathered"]] == [{"y": y // 2}] * 2
    assert [rank["sent"] for rank in ran["row"]] == [{"y": y}] * 2  # half out to be added, half back


def test_the_wire_carries_the_ring_s_bytes_and_a_few_headers(row):
    if row.rows[0].wire is None:
        pytest.skip("this system does not say what its sockets sent")
    for one in row.rows:
        assert 0 <= one.wire - sum(one.sent.values()) < 2000  # 48 bytes a message of gloo's


def test_the_table_has_a_row_a_rank_in_text_and_in_html(evidence):
    text, html = repr(evidence), evidence._repr_html_()
    sent = f"{5 * 96 * 2:,}"
    assert text.splitlines()[0].startswith("counted: linear, row-parallel, m = 5, k = 192, n = 96, fp16")
    assert [line.split()[0] for line in text.splitlines()[3:]] == ["0", "1"]
    assert text.count(sent) == html.count(f">{sent}<") == 2 * 2  # formula and count, for each rank
    assert html.count('scope="row"') == RANKS


@pytest.mark.parametrize("what", ["reads", "writes", "sent", "flops", "relative_error"])
def test_a_byte_off_on_one_rank_is_a_disagreement_that_names_the_rank(row, what):
    have = getattr(row.rows[1], what)
    wrong = {name: size + 1 for name, size in have.items()} if isinstance(have, dict) else have + 1
    rows = (row.rows[0], dataclasses.replace(row.rows[1], **{what: wrong}))
    with pytest.raises(PhysicsDisagrees, match=r"row-parallel \(m = 5, k = 192, n = 96, fp16, rank 1 of 2\)"):
        dataclasses.replace(row, rows=rows).check()


# ------------------------------------------------------------------------------- the collectives


@pytest.fixture(scope="module")
def every():
    return launch.run("tests.kernels.rank_tasks:every_collective", {"numbers": 3 * 4096}, ranks=3)


RESULTS = {  # of ranks 0, 1 and 2, who bring ones, twos and threes
    "all_reduce": [[6], [6], [6]],
    "all_gather": [[1, 2, 3], [1, 2, 3], [1, 2, 3]],
    "reduce_scatter": [[6], [6], [6]],
    "all_to_all": [[1, 2, 3], [1, 2, 3], [1, 2, 3]],
    "broadcast": [[2], [2], [2]],
    "point_to_point": [[1], [2], [1]],
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_collective_by_name_does_what_it_is_called(every, name):
    assert [answer[name]["values"] for answer in every] == RESULTS[name]


@pytest.mark.parametrize("name", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"])
def test_each_rank_sends_what_the_closed_form_says(every, name):
    size = 4 * 3 * 4096
    for answer in every:
        assert answer[name]["calls"] == [[name, "t", size, getattr(cost, name)(size, 3)]]


def test_a_broadcast_goes_from_the_source_round_to_the_rank_before_it(every):
    size = cost.broadcast(4 * 3 * 4096)
    assert [answer["broadcast"]["calls"][0][3] for answer in every] == [0, size, size]


def test_point_to_point_the_sender_sends(every):
    size = cost.point_to_point(4 * 3 * 4096)
    calls = [answer["point_to_point"]["calls"] for answer in every]
    assert calls == [[["send", "t", size, size]], [], [["receive", "t", size, 0]]]


@pytest.mark.parametrize("name", RESULTS)
def test_gloo_sends_no_less_than_the_formulas_which_are_floors(every, name):
    if every[0][name]["wire"] is None:
        pytest.skip("this system does not say what its sockets sent")
    counted = sum(call[3] for answer in every for call in answer[name]["calls"])
    measured = sum(answer[name]["wire"] for answer in every)
    assert measured >= counted
    if name != "reduce_scatter":  # which gloo makes of an all-reduce
        assert measured < 1.1 * counted


@pytest.mark.parametrize(("numbers", "ranks"), list(itertools.product([1, 7, 12, 1001], [1, 2, 3, 5, 8])))
def test_ragged_pieces_all_ranks_together_send_what_the_closed_form_says(numbers, ranks):
    x = torch.empty(numbers, dtype=torch.float16)
    sent = [collectives._all_reduce({"tensors": [x]}, rank, ranks)[1] for rank in range(ranks)]
    assert sum(sent) == pytest.approx(ranks * cost.all_reduce(2 * numbers, ranks))


# ----------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"k": 191}, r"k = 191, ranks = 2: every rank needs an equal part; pad k"),
        ({"ranks": 0}, r"ranks = 0: a size must be a whole number of at least 1"),
        ({"m": 1.5}, r"m = 1\.5: a size must be a whole number"),
        ({"batch": 3}, r"linear, row-parallel needs exactly m, k, n; give each"),
    ],
)
def test_what_cannot_be_shared_out_is_refused_before_a_process_starts(monkeypatch, changed, sentence):
    monkeypatch.setattr(launch, "run", lambda *a, **k: pytest.fail("a process was started"))
    with pytest.raises(ValueError, match=sentence):
        confirm_ranks(linear.row, **{"ranks": RANKS, **SIZES, **changed})


def test_an_operation_that_no_module_holds_is_refused():
    with pytest.raises(ValueError, match="no name in kernels.ranks.linear holds it, so a child process"):
        address(dataclasses.replace(linear.row, name="another"))


def test_without_triton_the_sentence_is_that_of_the_kernels(monkeypatch):
    monkeypatch.setattr(devices, "MODE", "missing")
    with pytest.raises(devices.NoTriton, match="triton = not installed: this platform"):
        confirm_ranks(linear.row, ranks=RANKS, **SIZES)


def test_a_collective_takes_one_tensor_under_its_name():
    with pytest.raises(TypeError, match=r"named = \['x', 'y'\]: a collective takes one tensor"):
        collectives.all_reduce(x=torch.ones(1), y=torch.ones(1))
