"""Bits by part: a checkpoint keeps its matrices in one format, and its tables and norms in another."""

import pytest

from book import catalog, serving
from book.catalog import parameters
from book.catalog.parameters import KINDS, PARTS
from book.serving import deploy

near = pytest.approx
STORAGES = {storage.id: storage for storage in catalog.storages()}
PUBLISHED = [(s.id, model, size) for s in STORAGES.values() for model, size in s.published_bytes.items()]


@pytest.mark.parametrize(("storage", "model", "size"), PUBLISHED)
def test_weights_are_as_large_as_the_published_files(storage, model, size):
    assert round(serving.weight_bytes(catalog.model(model), catalog.storage(model, storage))) == size


def test_gpt_oss_is_65_gb_and_not_4_bits_a_parameter():
    m = catalog.model("gpt-oss-120b")
    assert round(serving.weight_bytes(m, catalog.storage(m, "mxfp4"))) == 65_248_815_744
    assert serving.weight_bytes(m, catalog.effective_itemsize("mxfp4")) == near(62.07e9, rel=1e-4)
    by_hand = {"experts": catalog.storage(m, "mxfp4")["experts"], "others": 2}
    assert serving.weight_bytes(m, by_hand) == near(65_248_815_744)


def test_a_head_in_bf16_is_a_per_cent_and_a_half_of_an_fp8_step():
    m = catalog.model("llama3.1-70b")
    floor = serving.weight_bytes_read(m, weight_itemsize=catalog.storage(m, "fp8"))
    assert floor / serving.weight_bytes_read(m, weight_itemsize=1) == near(1.015, abs=5e-4)


@pytest.mark.parametrize("model", catalog.models(), ids=lambda m: m.id)
def test_parts_and_kinds_add_up_to_all_parameters(model):
    assert tuple(model.parameter_kinds) == tuple(model.parameter_parts) == PARTS
    assert {kind for kinds in model.parameter_kinds.values() for kind in kinds} <= set(KINDS)
    assert {p: sum(k.values()) for p, k in model.parameter_kinds.items()} == dict(model.parameter_parts)
    assert sum(model.parameter_parts.values()) == model.parameters


def test_parts_are_counted_once_a_model(monkeypatch):
    counted = []

    def counting(model):
        counted.append(model.id)
        return parameters.parameter_kinds(model)

    monkeypatch.setattr("book.catalog.architecture.parameter_kinds", counting)
    m = catalog.models()[0]
    for name in ("parameter_kinds", "parameter_parts", "parameters"):
        m.__dict__.pop(name, None)
    for _ in range(20):
        d = deploy(m, "h100_sxm")
        serving.decode_step(d, 4, 100), serving.prefill(d, 100), serving.fit(d, 4, 100)
    assert counted == [m.id]


@pytest.mark.parametrize("storage", STORAGES.values(), ids=lambda s: s.id)
def test_one_number_for_all_parts_is_the_mapping_with_that_number(storage):
    m = catalog.model("qwen3-30b-a3b")
    uniform = dict.fromkeys(catalog.storage(m, storage.id), 2)
    assert serving.weight_bytes(m, uniform) == serving.weight_bytes(m)
    assert serving.weight_bytes_read(m, 8, uniform) == near(serving.weight_bytes_read(m, 8))


def test_capacity_and_floors_take_the_same_bits():
    even, by_part = deploy("gpt-oss-120b", "h200_sxm"), deploy("gpt-oss-120b", "h200_sxm", checkpoint="mxfp4")
    assert serving.sequences(by_part, 8192) > serving.sequences(even, 8192) == 0
    step = serving.decode_step(by_part, 1, 8192)
    assert step.linear.bytes == serving.weight_bytes_read(by_part.model, 1, by_part.weight_itemsize)
    assert step.linear.bytes < serving.decode_step(even, 1, 8192).linear.bytes


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ({"blok": 1, "others": 2}, "names 'blok': no part of a model; use input table, blocks"),
        ({"blocks": 1}, "says nothing of 'input table', which Llama-3.1-8B has"),
    ],
)
def test_a_mapping_that_does_not_say_all_is_refused(size, message):
    with pytest.raises(ValueError, match=message):
        serving.weight_bytes(catalog.model("llama3.1-8b"), size)


def test_a_storage_that_is_not_there_or_means_nothing_here_is_refused():
    with pytest.raises(ValueError, match="storage = 'mxfp4'.*experts.*Llama-3.1-8B has none"):
        catalog.storage("llama3.1-8b", "mxfp4")
    with pytest.raises(catalog.UnknownName, match="no storage 'fp6'"):
        catalog.storage("llama3.1-8b", "fp6")
    with pytest.raises(ValueError, match="checkpoint = 'mxfp4': .*take another checkpoint or another model"):
        deploy("llama3.1-8b", "h100_sxm", checkpoint="mxfp4")
    with pytest.raises(catalog.UnknownName, match="no checkpoint 'fp6'"):
        deploy("llama3.1-8b", "h100_sxm", checkpoint="fp6")
    with pytest.raises(ValueError, match="checkpoint = 'fp8' with weight_itemsize = 1"):
        deploy("llama3.1-8b", "h100_sxm", checkpoint="fp8", weight_itemsize=1)


@pytest.mark.parametrize(("name", "id"), [("fp16", "bf16"), ("gptq", "int4_g128"), ("AWQ", "int4_g128")])
def test_other_names_of_a_storage_mean_the_same_bytes(name, id):
    assert catalog.storage("llama3.1-8b", name) == catalog.storage("llama3.1-8b", id)


# ------------------------------------------------------------------------ experts: bounds and a mean


@pytest.mark.parametrize("rows", [1, 7, 64, 5000])
def test_what_is_expected_lies_between_what_must_be_and_what_can_be(rows):
    m = catalog.model("qwen3-235b-a22b")
    together, even, apart = (
        serving.weight_bytes_read(m, rows, routing=r) for r in ("together", "even", "apart")
    )
    assert together <= even * (1 + 1e-12) and even <= apart * (1 + 1e-12)
    low, expected, high = serving.experts_touched_between(128, 8, rows)
    assert (low, high) == (8, min(8 * rows, 128)) and low <= expected * (1 + 1e-12)
    if rows == 1:
        assert together == near(even) == near(apart)
