"""Cards and models by the names that people give them."""

import pytest

from book import catalog
from book.catalog.names import by_plain_name, plain


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("llama3.1-8b", "llama3.1-8b"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama3.1-8b"),
        ("META-LLAMA/meta-llama-3.1-8b", "llama3.1-8b"),
        ("unsloth/Llama-3.1-8B-Instruct", "llama3.1-8b"),
        ("Llama 3.1 8B", "llama3.1-8b"),
        ("llama-3-8b", "llama3-8b"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama3.1-70b"),
        ("deepseek-r1", "deepseek-v3"),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek-v3"),
        ("gpt-oss-120b", "gpt-oss-120b"),
        ("openai/GPT-OSS-120B", "gpt-oss-120b"),
        ("google/gemma-3-27b-it", "gemma3-27b"),
        ("qwen3 0.6b", "qwen3-0.6b"),
    ],
)
def test_models(name, id):
    assert catalog.model(name).id == id


@pytest.mark.parametrize("size", ["7b", "32b", "72b"])
def test_qwen_s_instruct_models_take_a_quarter_of_the_base_s_context(size):
    base, instruct = (catalog.model(f"Qwen/Qwen2.5-{size}{kind}") for kind in ("", "-Instruct"))
    assert (base.max_context, instruct.max_context) == (131_072, 32_768)
    assert base.parameters == instruct.parameters


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("H100 SXM", "h100_sxm"),
        ("h100-sxm", "h100_sxm"),
        ("NVIDIA H100 80GB HBM3", "h100_sxm"),
        ("Tesla T4", "t4"),
        ("AMD Instinct MI300X", "mi300x"),
        ("RTX4090", "rtx4090"),
    ],
)
def test_cards(name, id):
    assert catalog.accelerator(name).id == id


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("H100", ["h100_sxm", "h100_pcie", "h100_nvl"]),
        ("A100", ["a100_80gb_sxm"]),
        ("NVIDIA H100", ["h100_sxm"]),
        ("GH200", ["gh200_96gb", "gh200_144gb"]),
    ],
)
def test_a_name_that_means_several_cards_lists_them(name, near):
    with pytest.raises(catalog.UnknownName) as caught:
        catalog.accelerator(name)
    assert all(id in str(caught.value) for id in near)


def test_every_row_answers_to_each_of_its_names():
    for rows, find in ((catalog.accelerators(), catalog.accelerator), (catalog.models(), catalog.model)):
        for row in rows:
            names = [row.id, row.name, *row.aliases, getattr(row, "hf_id", row.id)]
            assert {find(n).id for name in names for n in (name, name.upper(), name.lower())} == {row.id}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", "linear attention"),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct-FP8", "linear attention"),
        ("tiiuae/falcon-7b-instruct", "MLP of two matrices"),
        ("mamba-2.8b", "state-space"),
        ("deepseek-ai/DeepSeek-V3.2", "sparse indexer"),
        ("gpt2", "MLP of two matrices"),
    ],
)
def test_a_known_model_that_can_not_be_held_is_refused_with_what_it_is_built_of(name, reason):
    with pytest.raises(catalog.UnknownName, match=f"it has .*{reason}.*a Model can't hold"):
        catalog.model(name)


def test_one_name_can_not_mean_two_rows():
    with pytest.raises(ValueError, match="'Llama 3' already means 'a'"):
        by_plain_name("model", {"llama-3": "a", "Llama 3": "b"})
    assert plain("meta-llama/Llama-3.1 8B") == "llama3.18b"
