"""A card's memory is three numbers: the label, what the driver's tool prints, what a program gets."""

import re
from pathlib import Path

import pytest
import yaml

from book import catalog, serving
from book.catalog.facts import ACCELERATOR_FACTS
from book.catalog.hardware import PATH, load_accelerators
from book.catalog.rows import CatalogError

CARDS = catalog.accelerators()
PAGE = Path(__file__).parents[2] / "book" / "pages" / "accelerators.md"


def ids(card):
    return card.id


@pytest.mark.parametrize("card", CARDS, ids=ids)
def test_what_is_used_is_the_framework_s_else_the_driver_s_else_the_label(card):
    in_order = [("framework", card.framework_bytes), ("driver", card.smi_bytes), ("label", card.capacity)]
    assert (card.usable_is, card.usable) == next((name, size) for name, size in in_order if size)


@pytest.mark.parametrize("card", CARDS, ids=ids)
def test_the_bounds_that_the_docstring_of_usable_gives(card):
    if card.smi_bytes and card.framework_bytes:
        assert card.framework_bytes <= card.smi_bytes <= 1.03 * card.framework_bytes
    hbm = card.memory_type.startswith("HBM")
    if card.usable_is == "label":
        assert hbm
    elif hbm and "memory" not in card.unverified:
        assert card.usable >= card.capacity


def test_labels_that_promise_more_than_there_is():
    """So the label is no safe side of its own, as the page says."""
    less = {card.id for card in CARDS if card.usable < card.capacity}
    assert less >= {"t4", "l4", "m4_max_40c"}
    assert f"{catalog.accelerator('m4_max_40c').usable / 1e9:.1f} GB" in PAGE.read_text(encoding="utf-8")


def test_one_rule_for_every_taker():
    for card in CARDS:
        assert ACCELERATOR_FACTS["capacity"](card, "bf16") == card.usable
        if card.usable > 20e9:
            d = serving.deploy("llama3.1-8b", card, dtype=card.default_dtype)
            assert serving.cache_bytes(d) == serving.cache_bytes(d, memory=card.usable)


@pytest.mark.parametrize(
    ("id", "smi", "framework"),
    [
        ("h100_sxm", 81559, 81089),
        ("a100_80gb_sxm", 81920, 81049),  # 79.15 GiB in out-of-memory messages
        ("l40s", 46068, 45589),
        ("t4", 15360, 15102),
    ],
)
def test_the_two_numbers_are_not_taken_for_each_other(id, smi, framework):
    card = catalog.accelerator(id)
    assert (card.smi_bytes, card.framework_bytes) == (smi * 2**20, framework * 2**20)


def test_labels_of_hbm_are_near_gib_and_round_both_ways():
    h100, h200 = (catalog.accelerator(id) for id in ("h100_sxm", "h200_sxm"))
    assert h100.capacity / 1e9 > h100.usable / 2**30 > 79
    assert h200.capacity / 1e9 > h200.usable / 2**30 > 139.5
    assert h200.usable > h200.capacity  # so the label doesn't "round down" by six per cent


@pytest.mark.parametrize("id", ["t4", "l4", "l40s", "a10", "a10g"])
def test_error_correction_in_gddr_takes_a_sixteenth_as_the_page_says(id):
    card = catalog.accelerator(id)
    assert card.smi_bytes == pytest.approx(15 / 16 * card.capacity / 1e9 * 2**30, rel=1e-3)


def test_the_page_tells_the_catalog_s_numbers():
    text, h100 = PAGE.read_text(encoding="utf-8"), catalog.accelerator("h100_sxm")
    section = re.search(r"## Three sizes of one memory\n(.*?)\n## ", text, re.DOTALL)[1]
    for size in (h100.smi_bytes, h100.framework_bytes):
        assert f"{size / 2**20:,.0f} MiB" in section and f"{size / 1e9:.1f} GB" in section
    assert f"{catalog.accelerator('t4').smi_bytes / 2**20:,.0f} MiB" in section


def test_a_memory_that_can_not_be_is_refused(tmp_path):
    document = yaml.safe_load(PATH.read_text(encoding="utf-8"))
    (row,) = (r for r in document["accelerators"] if r["id"] == "h100_sxm")
    for memory, message in [
        ({"smi_mib": 81089, "framework_mib": 81559}, r"memory\.framework_mib = 81559.*more than smi_mib"),
        ({"framework_mib": 40000}, r"memory\.framework_mib = 40000.*no 80 GB card's"),
        ({"smi_mib": 85520}, r"memory\.smi_mib = 85520.*MiB"),
    ]:
        wrong = {**row, "memory": {"capacity_gb": 80, "type": "HBM3", **memory}}
        file = tmp_path / "cards.yaml"
        file.write_text(yaml.safe_dump({**document, "accelerators": [wrong]}), encoding="utf-8")
        with pytest.raises(CatalogError, match=message):
            load_accelerators(file)
