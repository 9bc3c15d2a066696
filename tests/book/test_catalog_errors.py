"""Each way a catalog row can be wrong is refused, with file, row, field, value and remedy."""

import copy
import json
import shutil
import sys
from functools import cache
from pathlib import Path

import pytest
import yaml

from book import catalog
from book.catalog.architecture import load_models
from book.catalog.hardware import load_accelerators
from book.catalog.measurements import load_published
from book.catalog.rows import CatalogError, read

FOLDER = Path(catalog.__file__).parent


@cache
def _whole(file):
    return yaml.load(
        (FOLDER / file).read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )


def _one_row(file, key, id):
    """The file cut down to one good row."""
    document = dict(copy.deepcopy(_whole(file)))
    document[key] = [row for row in document[key] if row["id"] == id]
    return document


def _write(tmp_path, file, document):
    path = tmp_path / file
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def _put(document, path, value):
    *way, last = path
    for step in way:
        document = document[step]
    if value is DROP:
        del document[last]
    else:
        document[last] = value


DROP = object()


def _refused(load, words):
    with pytest.raises(catalog.CatalogError) as caught:
        load()
    for word in words:
        assert word in str(caught.value), str(caught.value)


ROW = ("accelerators", 0)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ((*ROW, "bandwidth_tbs"), DROP, ["bandwidth_tbs is missing", "add bandwidth_tbs"]),
        ((*ROW, "bandwidth_tbs"), None, ["bandwidth_tbs = None", "look it up"]),
        ((*ROW, "bandwidth_tbs"), -3.35, ["bandwidth_tbs = -3.35", "must be positive"]),
        ((*ROW, "bandwidth_tbs"), 0, ["bandwidth_tbs = 0", "must be positive"]),
        ((*ROW, "bandwidth_tbs"), "3.35e12", ["'3.35e12'", "not a number"]),
        ((*ROW, "bandwidth_tbs"), True, ["True", "not a number"]),
        ((*ROW, "bandwidth_tbs"), float("nan"), ["nan", "not a number"]),
        ((*ROW, "memory", "capacity_gb"), -80, ["memory.capacity_gb = -80", "must be positive"]),
        ((*ROW, "memory"), 80, ["memory = 80", "mapping"]),
        ((*ROW, "sm_count"), 131.5, ["sm_count = 131.5", "whole number"]),
        ((*ROW, "tflops_dense", "bf16"), -1, ["tflops_dense.bf16 = -1", "must be positive"]),
        ((*ROW, "tflops_dense", "bfloat16"), 989, ["tflops_dense.bfloat16", "unknown dtype", "bf16"]),
        ((*ROW, "tflops_dense"), {}, ["tflops_dense", "at least one"]),
        ((*ROW, "tflops_dense", "bf16"), 1978.8, ["tflops_sparse.bf16", "check which of the two"]),
        ((*ROW, "tflops_sparse", "bf16"), 989.4, ["tflops_sparse.bf16 = 989.4", "above the dense"]),
        ((*ROW, "tflops_sparse", "fp4"), 989.4, ["tflops_sparse.fp4", "dense"]),
        ((*ROW, "tflops_sparse"), DROP, ["sparse_marketing = True", "tflops_sparse"]),
        ((*ROW, "sparse_marketing"), "yes", ["sparse_marketing = 'yes'", "true or false"]),
        ((*ROW, "source"), [], ["source = []", "no row without a source"]),
        ((*ROW, "source"), ["torchtitann"], ["'torchtitann'", "unknown source", "torchtitan"]),
        ((*ROW, "source"), "aic", ["source = 'aic'", "must be a list"]),
        ((*ROW, "confidence"), "sure", ["confidence = 'sure'", "high, medium, low"]),
        (
            (*ROW, "unverified"),
            ["bandwidth_tbs"],
            ["confidence = 'high'", "no source was read for bandwidth_tbs"],
        ),
        ((*ROW, "unverified"), ["bf16"], ["confidence = 'high'", "no source was read for bf16"]),
        ((*ROW, "fp32_unit"), "tensor", ["fp32_unit = 'tensor'", "matrix, vector"]),
        ((*ROW, "compute_capability"), 9.0, ["compute_capability = 9.0", "quotes"]),
        ((*ROW, "driver_names"), ["H100("], ["driver_names = 'H100('", "regular expression"]),
        ((*ROW, "driver_names"), [100], ["driver_names = 100", "regular expression in quotes"]),
        ((*ROW, "driver_names"), ["(H100)?"], ["fits every name", "only this card"]),
        ((*ROW, "bandwith"), 3.35, ["bandwith = 3.35", "unknown field", "bandwidth"]),
    ],
)
def test_a_broken_accelerator(tmp_path, path, value, words):
    document = _one_row("accelerators.yaml", "accelerators", "h100_sxm")
    _put(document, path, value)
    file = _write(tmp_path, "accelerators.yaml", document)
    _refused(lambda: load_accelerators(file), ["accelerators.yaml, h100_sxm", *words])


MODEL = ("models", 0)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ((*MODEL, "n_layers"), DROP, ["n_layers is missing"]),
        ((*MODEL, "d_model"), 0, ["d_model = 0", "must be positive"]),
        ((*MODEL, "vocab"), "128K", ["vocab = '128K'", "not a number"]),
        ((*MODEL, "n_kv_heads"), 7, ["n_kv_heads = 7", "must divide n_heads"]),
        ((*MODEL, "attention", "type"), "mqa", ["attention.type = 'mqa'", "mha, gqa, mla"]),
        ((*MODEL, "attention", "kv_lora_rank"), DROP, ["attention.kv_lora_rank is missing"]),
        ((*MODEL, "attention", "q_lora"), 1536, ["attention.q_lora", "q_lora_rank"]),
        ((*MODEL, "attention", "window"), 4096, ["attention.window_layers = 0", "add up to"]),
        ((*MODEL, "moe", "top_k"), 1000, ["moe.top_k = 1000", "n_experts"]),
        ((*MODEL, "moe", "n_shared"), -1, ["moe.n_shared = -1", "zero or more"]),
        ((*MODEL, "params", "exact_total"), DROP, ["params.exact_total is missing"]),
        ((*MODEL, "source"), ["nobody"], ["'nobody'", "unknown source"]),
    ],
)
def test_a_broken_model(tmp_path, path, value, words):
    document = _one_row("models.yaml", "models", "deepseek-v3")
    _put(document, path, value)
    file = _write(tmp_path, "models.yaml", document)
    _refused(lambda: load_models(file), ["models.yaml, deepseek-v3", *words])


SERIES = ("linear", "series", 0)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ((*SERIES, "accelerator"), "h100", ["accelerator = 'h100'", "no such row", "h100_sxm"]),
        ((*SERIES, "model"), "llama-8b", ["model = 'llama-8b'", "no such row", "llama3.1-8b"]),
        ((*SERIES, "dtype"), "bfloat16", ["dtype = 'bfloat16'", "not known", "bf16"]),
        ((*SERIES, "source"), ["somebody"], ["'somebody'", "unknown source", "aiconfigurator"]),
        ((*SERIES, "source"), DROP, ["source is missing"]),
        ((*SERIES, "points"), [], ["points = []", "at least one point"]),
        ((*SERIES, "points", 1), [2], ["points[1] = [2]", "2 values: m, microseconds"]),
        ((*SERIES, "points", 0, 1), -51.64, ["points[0].microseconds = -51.64", "must be positive"]),
        ((*SERIES, "points", 0, 1), "51.64", ["points[0].microseconds", "not a number"]),
        ((*SERIES, "fixed", "k"), 0, ["fixed.k = 0", "must be positive"]),
        ((*SERIES, "way"), "gem", ["way = 'gem'", "not known", "gemm"]),
        ((*SERIES, "way"), DROP, ["way is missing"]),
        ((*SERIES, "acelerator"), "h100_sxm", ["unknown field", "accelerator"]),
    ],
)
def test_a_broken_published_series(tmp_path, path, value, words):
    document = copy.deepcopy(_whole("published.yaml"))
    document = {k: document[k] for k in ("schema_version", "sources", "ways", "linear")}
    _put(document, path, value)
    file = _write(tmp_path, "published.yaml", document)
    known = {"accelerators": ["t4", "h100_sxm", "h200_sxm"], "models": ["llama3.1-8b", "phi4"]}
    _refused(lambda: load_published(file, **known), ["published.yaml, linear[0]", *words])


def test_an_id_used_twice(tmp_path):
    document = _one_row("accelerators.yaml", "accelerators", "t4")
    document["accelerators"] *= 2
    file = _write(tmp_path, "accelerators.yaml", document)
    _refused(lambda: load_accelerators(file), ["accelerators.yaml, t4", "used twice"])


def test_a_row_without_id(tmp_path):
    document = _one_row("accelerators.yaml", "accelerators", "t4")
    del document["accelerators"][0]["id"]
    file = _write(tmp_path, "accelerators.yaml", document)
    _refused(lambda: load_accelerators(file), ["accelerators[0]", "needs an id"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("schema_version: 2\n", ["schema_version = 2", "schema_version: 1"]),
        ("- just\n- a list\n", ["schema_version = None"]),
        ("schema_version: 1\n", ["accelerators = None", "list of rows"]),
        ("schema_version: [1\n", ["not valid YAML", "line"]),
    ],
)
def test_a_file_of_another_shape(tmp_path, text, words):
    file = tmp_path / "accelerators.yaml"
    file.write_text(text, encoding="utf-8")
    _refused(lambda: load_accelerators(file), ["accelerators.yaml", *words])


def test_a_file_that_is_gone(tmp_path):
    _refused(lambda: load_models(tmp_path / "models.yaml"), ["models.yaml", "can't be read", "restore"])


def test_the_untouched_copy_loads(tmp_path):
    """The tests above fail for their reason, not because a copy can't be read."""
    for file in ("accelerators.yaml", "models.yaml", "published.yaml"):
        shutil.copy(FOLDER / file, tmp_path)
    accelerators = load_accelerators(tmp_path / "accelerators.yaml")
    models = load_models(tmp_path / "models.yaml")
    assert load_published(tmp_path / "published.yaml", accelerators=accelerators, models=models)


def test_a_file_that_became_json_reads_the_same_without_pyyaml(tmp_path, monkeypatch):
    text = '{"schema_version": 1, "sources": {"a": "A"}, "rows": [{"id": "x", "gigabytes": 0.5}]}'
    path = tmp_path / "rows.yaml"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert read(path) == json.loads(text)
    path.write_text(text[:-1], encoding="utf-8")
    with pytest.raises(CatalogError, match=r"rows\.yaml: not valid JSON"):
        read(path)
