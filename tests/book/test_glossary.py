"""The glossary: a sentence for each word, its other names, and a link to where it is explained."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "book" / "pages" / "glossary.md"
PICTURES = PAGE.with_name("ten-pictures.md")
LINK = re.compile(r" \[[^\]]+\]\(([^)]+)\)\.$")

# What somebody may look for, in the spellings of the field.
SOUGHT = """
GQA; grouped-query attention; MQA; multi-query attention; MHA; multi-head attention; MLA; latent
attention; TTFT; time to first token; TPOT; time per output token; ITL; inter-token latency; TBT;
p50; p99; goodput; SLO; HBM; KV cache; context; batch; prefill; prompt processing; decode;
generation; token; layer; gate; query head; KV head; roofline; ridge; ridge point; intensity;
arithmetic intensity; occupancy; tile; split-K; tensor parallelism; TP; continuous batching; chunked
prefill; speculative decoding; FP8; MXFP4; GB; GiB; MFU; FlashAttention; MoE; floor; quantisation;
quantization; paged attention; prefix caching; throughput; kernel; GEMM; FLOP; FMA; bandwidth
"""


@dataclass(frozen=True)
class Entry:
    """A word with its other names, what it means, and the file that explains it ("" for none)."""

    names: tuple[str, ...]
    meaning: str
    link: str


def entries() -> list[Entry]:
    blocks = re.findall(r"```\{glossary\}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    found = []
    for entry in "\n\n".join(blocks).strip().split("\n\n"):
        *names, meaning = (line for line in entry.split("\n") if line)
        assert meaning.startswith("  ")
        link = LINK.search(meaning)
        found.append(Entry(tuple(names), LINK.sub("", meaning).strip(), link[1] if link else ""))
    return found


ENTRIES = entries()


def test_every_name_stands_there_once():
    names = [name for entry in ENTRIES for name in entry.names]
    assert [name for name in names if names.count(name) > 1] == []


def test_what_people_look_for_is_there():
    names = {name for entry in ENTRIES for name in entry.names}
    assert {one.strip() for one in " ".join(SOUGHT.split()).split(";")} - names == set()


def test_each_is_explained_in_one_sentence():
    several = [e.names[0] for e in ENTRIES if not re.fullmatch(r"[^.]*(\d\.\d[^.]*)*\.", e.meaning)]
    assert several == []


def test_words_in_bold_on_the_page_of_pictures_are_in_the_glossary():
    names = {re.sub(r" \(.*", "", name).lower() for entry in ENTRIES for name in entry.names}
    bold = {word.lower() for word in re.findall(r"\*\*(.+?)\*\*", PICTURES.read_text(encoding="utf-8"))}
    assert len(bold) > 20
    assert {word for word in bold if word not in names and word.removesuffix("s") not in names} == set()


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.link], ids=lambda e: e.names[0])
def test_where_a_word_leads_it_is_spoken_of(entry):
    target = (PAGE.parent / entry.link).resolve()
    assert target.is_file(), entry.link
    if target.suffix == ".ipynb":
        text = "\n".join(cell.source for cell in nbformat.read(target, 4).cells)
    elif target == PICTURES:
        text = target.read_text(encoding="utf-8")
    else:
        return  # tables that are made when the page is built
    names = [re.sub(r" \(.*", "", name).lower() for name in entry.names]
    stems = [name.replace("-", "[- ]") for name in names]
    assert any(re.search(rf"(?<![a-z]){stem}", text.lower()) for stem in stems), (entry.names, entry.link)
