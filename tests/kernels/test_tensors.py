"""A table of tensors: shapes in axis names, storage apart from arithmetic, and what follows from both."""

import dataclasses

import pytest
import torch

from book import catalog, cost
from kernels import decode_attention, flash_attention, gemv, linear, mlp, stream
from kernels.contract import axes, tensors
from kernels.contract.errors import PhysicsDisagrees, Unsupported
from kernels.contract.experiment import Experiment
from kernels.contract.targets import target
from kernels.contract.tensors import Tensor
from kernels.evidence import confirm, counted
from tests.kernels import quantised
from tests.kernels.toy import experiment as toy

# ------------------------------------------------------------------------------ the language of shapes


@pytest.mark.parametrize(
    ("shape", "lengths"),
    [
        ("m k", (3, 130)),
        ("k/128 n", (2, 7)),  # the last group is a group, too
        ("(heads+2*kv_heads)*head_dim", (12 * 16,)),
        ("2 m", (2, 3)),
        ("", ()),
    ],
)
def test_a_shape_has_lengths(shape, lengths):
    sizes = {"m": 3, "k": 130, "n": 7, "heads": 8, "kv_heads": 2, "head_dim": 16}
    assert axes.shape_of(shape, sizes) == lengths


def test_an_axis_is_solved_for_the_one_size_that_it_shows():
    assert axes.solved("m", 5, {}) == ("m", 5)
    known = {"kv_heads": 2, "head_dim": 16}
    assert axes.solved("(heads+2*kv_heads)*head_dim", 192, known) == ("heads", 8)
    assert axes.solved("(heads+2*kv_heads)*head_dim", 193, known) is None, "no whole number of heads"
    assert axes.solved("k/128", 2, {}) is None, "a rounded quotient decides nothing"
    assert axes.solved("a*b", 6, {}) is None and axes.solved("m", 5, {"m": 4}) is None


@pytest.mark.parametrize("axis", ["m+", "f(m)", "m**2", "m.n", "m if n else k", "__import__('os')"])
def test_what_is_no_arithmetic_on_names_is_refused(axis):
    with pytest.raises(ValueError, match="write a size's name, or"):
        axes.names(axis)


def test_a_table_with_an_axis_that_is_no_size_is_refused_by_name():
    with pytest.raises(ValueError, match="toy: x has the axis q, which is none of its sizes m, k, n"):
        dataclasses.replace(toy, tensors={**toy.tensors, "x": Tensor("m q")})


# ------------------------------------------------------------------------------------ storage and bytes


@pytest.mark.parametrize(
    ("storage", "lengths", "nbytes"),
    [("bf16", (130, 7), 130 * 7 * 2), ("fp8", (130, 7), 130 * 7), ("int4", (65, 7), 65 * 7)],
)
def test_a_tensor_is_as_long_as_its_storage_makes_it(storage, lengths, nbytes):
    tensor = Tensor("k n", packed="k")
    sizes = {"k": 130, "n": 7}
    assert tensor.lengths(sizes, storage) == lengths
    assert tensors.nbytes(tensor.shape, tensor.packed, storage, sizes) == nbytes


def test_an_odd_number_of_half_bytes_takes_a_whole_one():
    assert tensors.nbytes("k n", "k", "int4", {"k": 129, "n": 7}) == 65 * 7
    assert tensors.nbytes("k n", "", "int4", {"k": 129, "n": 7}) == 129 * 4


def test_weights_of_four_bits_with_scales_are_counted_to_the_byte_and_take_4_5_bits():
    one, sizes = quantised.experiment, {"m": 3, "k": 256, "n": 40}
    row = counted.run(one, **sizes)
    row.check(one)
    assert row.reads["w"].unique == 256 * 40 // 2 and row.reads["scales"].unique == 8 * 40 * 2
    bits = 8 * (row.reads["w"].unique + row.reads["scales"].unique) / (256 * 40)
    assert bits == 4 + 16 / 32
    whole = cost.linear(**sizes, weight_itemsize=bits / 8)
    assert one.formula("w4a16", **sizes).bytes == whole.bytes


def test_storage_arithmetic_and_units_are_three_facts():
    one = quantised.experiment
    assert one.itemsizes("w4a16") == {"itemsize": 2, "weight_itemsize": 0.5}
    assert one.arithmetic("w4a16") == "fp16"  # in this process: no bf16 in the interpreter
    assert one.storage("w4a16")(one.tensors["w"]) == "int4"
    h100 = catalog.accelerator("h100_sxm")
    assert h100.peak(one.arithmetic("w4a16"), one.unit) == h100.peak("fp16")
    assert gemv.experiment.arithmetic("bf16") == "fp32" and gemv.experiment.unit == "vector"
    assert h100.peak(gemv.experiment.arithmetic("bf16"), gemv.experiment.unit) == h100.peak("fp32")


def test_a_weight_of_another_storage_is_refused_by_name():
    inputs = quantised.experiment.inputs(m=2, k=64, n=32)
    with pytest.raises(TypeError, match=r"w\.dtype = fp16: w4a16 runs in int4; use"):
        quantised.w4a16(**{**inputs, "w": inputs["w"].half()})
    with pytest.raises(ValueError, match=r"scales\.shape = \(1, 32\): .* scales\[k/32, n\], with k = 64"):
        quantised.w4a16(**{**inputs, "scales": inputs["scales"][:1]})
    with pytest.raises(ValueError, match=r"w\.shape = \(31, 32\): .* \[32, 32\]"):
        quantised.w4a16(**{**inputs, "w": inputs["w"][:31]})


def test_a_table_that_disagrees_with_the_formula_is_caught():
    wrong = dataclasses.replace(toy, tensors={**toy.tensors, "w": Tensor("k n", reads="k k")})
    with pytest.raises(PhysicsDisagrees, match="reads of w, bytes by the table of tensors: expected"):
        counted.run(wrong, m=1, k=128, n=64).check(wrong)


def test_a_formula_that_forgets_the_scales_is_caught():
    forgets = dataclasses.replace(
        quantised.experiment, cost=lambda **s: cost.linear(s["m"], s["k"], s["n"], s["itemsize"], 0.5)
    )
    with pytest.raises(PhysicsDisagrees, match="reads of scales, bytes: expected 0"):
        counted.run(forgets, m=1, k=64, n=32).check(forgets)


# ------------------------------------------------------------------------------ remedies that really help

Q, K = torch.ones(2, 40, 32).half(), torch.ones(2, 2, 20, 32).half()


def test_where_two_tensors_contradict_each_other_both_are_named():
    with pytest.raises(ValueError, match=r"pass v\.transpose\(1, 2\); or k, with .* is the one to"):
        decode_attention.decode_attention(Q, K.transpose(1, 2), K)


def test_the_one_that_most_others_contradict_is_named():
    x, up, down = torch.ones(4, 8).half(), torch.ones(8, 6).half(), torch.ones(6, 8).half()
    with pytest.raises(ValueError, match=r"x\.shape = \(4, 9\): mlp needs x\[m, d_model\], with d_model = 8"):
        mlp.mlp(torch.ones(4, 9).half(), up, up, down)
    with pytest.raises(ValueError, match=r"w_gate\.shape = \(6, 8\): .*; pass w_gate\.T\.$"):
        mlp.mlp(x, up.T, up, down)
    assert mlp.mlp(x, up.T.contiguous().T, up, down).shape == (4, 8)


def test_an_axis_of_its_own_is_no_reason_against_a_transposition():
    x, w = torch.ones(4, 64).half(), torch.ones(32, 64).half()  # stored as [n, k], and n is anything
    with pytest.raises(ValueError, match=r"w\.shape = \(32, 64\): .*; pass w\.T\.$"):
        linear.linear(x, w)
    assert linear.linear(x, w.T).shape == (4, 32)


def test_bytes_are_not_converted_but_seen_as_what_they_are():
    bytes_ = K.to(torch.float8_e4m3fn).view(torch.uint8)
    with pytest.raises(TypeError, match=r"k\.dtype = uint8: .*; use k\.view\(torch\.float8_e4m3fn\)"):
        decode_attention.decode_attention(Q, bytes_, bytes_)
    inputs = quantised.experiment.inputs(m=2, k=64, n=32)
    with pytest.raises(TypeError, match="use it packed, 2 numbers of int4 in each torch.uint8"):
        quantised.w4a16(**{**inputs, "w": torch.ones(32, 32).half()})


def test_a_head_of_one_token_may_lie_anywhere():
    q = torch.empty(2**24 + 512, dtype=torch.half).as_strided((1, 1, 4, 64), (2**24, 2**24, 64, 1)).zero_()
    assert flash_attention.flash_attention(q, q[:, :, :2], q[:, :, :2]).shape == q.shape


def test_a_tensor_may_have_a_dtype_of_its_own():
    table = {**toy.tensors, "bias": Tensor("n", "fp32")}
    one = dataclasses.replace(toy, tensors=table)
    x, w = torch.ones(2, 64).half(), torch.ones(64, 32).half()
    assert one.check(x=x, w=w, bias=torch.ones(32)) == ({"m": 2, "k": 64, "n": 32}, "fp16")
    with pytest.raises(TypeError, match=r"bias\.dtype = fp16: .* use bias\.to\(torch\.float32\)"):
        one.check(x=x, w=w, bias=torch.ones(32).half())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"axis": "q"}, "axis = 'q': a sweep varies one of its sizes, m, k, n"),
        ({"sweep": {"timed": {"m": 1, "k": 2}}}, r"sweep\['timed'\] = m, k: give each of its sizes m, k, n"),
        (
            {"conditions": {"heads == 1": "so"}},
            "'heads == 1' names heads; it is none of its sizes",
        ),
    ],
)
def test_an_experiment_that_contradicts_itself_is_refused_when_it_is_made(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        dataclasses.replace(toy, **change)


# ----------------------------------------------------------------- a card without the dtype: a sentence


FP8_ONLY = dataclasses.replace(toy, dtypes=("fp8",))


def test_an_experiment_in_fp8_alone_gets_a_sentence_in_every_rung_of_a_card_without_fp8():
    made = confirm(
        FP8_ONLY, rungs=("timed", "recorded", "published"), accelerator="a100_80gb_sxm", published="linear"
    )
    for rung, said in made.status.items():
        assert "dtype = 'fp8': toy runs in nothing else, and A100" in said and "has no fp8" in said, rung
    assert made.figure() is not None and "fp8" in str(made.sections()[-1])


def test_it_is_counted_in_fp8_all_the_same_and_compiled_for_cards_that_have_it():
    assert counted.interpretable(FP8_ONLY) == "fp8"
    assert FP8_ONLY.why_not(target("sm_80")).endswith("choose another card.")
    assert FP8_ONLY.why_not(target("sm_90")) == ""
    with pytest.raises(Unsupported, match="toy runs in nothing else, and sm_80"):
        FP8_ONLY.best_dtype(target("sm_80"))
    assert FP8_ONLY.tolerance("fp8") > 0


def test_an_experiment_in_bf16_alone_is_not_counted_and_says_why():
    only = dataclasses.replace(toy, dtypes=("bf16",))
    with pytest.raises(Unsupported, match="toy runs in bf16: Triton's interpreter multiplies bf16 wrongly"):
        counted.run(only, m=1, k=64, n=64)


# ------------------------------------------------------------------------------ names without wrappers


def test_inputs_keep_their_names_and_a_launch_names_what_it_makes():
    x, w = torch.ones(2, 64).half(), torch.ones(64, 32).half()
    other = linear.linear
    with counted.count({"activations": x, "weights": w}) as tally:
        other(x, w)
    assert {"activations", "weights"} <= set(tally.reads())


def test_counting_inside_counting_is_refused():
    with counted.count(), pytest.raises(RuntimeError, match="counting is under way"), counted.count():
        pass
    with counted.count() as tally:  # and it is over afterwards
        stream.copy(torch.ones(8))
    assert tally.reads()["x"].unique == 32


def test_a_part_of_a_tensor_that_was_met_first_grows():
    whole = torch.ones(100)
    with counted.count() as tally:
        stream.copy(whole[:50])
        stream.copy(whole)
    assert tally.reads()["x"].unique == 400


def test_an_experiment_says_what_it_was_called():
    assert isinstance(toy, Experiment) and toy.key == "toy"
    assert dataclasses.replace(toy, variant="twin").key == "toy.twin"
