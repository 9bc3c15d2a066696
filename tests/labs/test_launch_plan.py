"""A plan comes from foreign code: each thing in it that could hurt, or cheat, is refused with its reason."""

from __future__ import annotations

import copy
import json

import pytest

from labs.kit.launch_plan import BadPlan, check

INPUTS = {"x": {"shape": [4, 8], "strides": [8, 1], "dtype": "float16"}}
X = {"buffer": "x", "offset": 0, "shape": [4, 8], "strides": [8, 1], "dtype": "float16"}
Y = {"buffer": "b", "offset": 0, "shape": [4, 4], "strides": [4, 1], "dtype": "float16"}
GOOD = {
    "buffers": [
        {"id": "x", "bytes": 64, "fill": "input", "made_by": ""},
        {"id": "b", "bytes": 32, "fill": "empty", "made_by": "empty"},
    ],
    "steps": [
        {"zero": "b"},
        {
            "kernel": "k",
            "grid": [2],
            "args": {"x_ptr": {"view": X}, "y_ptr": {"view": Y}, "n": {"scalar": 4}, "t": {"tl": "float32"}},
            "options": {"num_warps": 4},
        },
    ],
    "returns": Y,
}


def changed(*path_and_value):
    *path, value = path_and_value
    plan = copy.deepcopy(GOOD)
    place = plan
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return plan


def test_an_honest_plan_passes():
    check(GOOD, ["k"], INPUTS)


@pytest.mark.parametrize(
    "plan, word",
    [
        (changed("steps", []), "no kernel was launched"),
        (changed("steps", 1, "kernel", "other"), "other is launched"),
        (changed("steps", 1, "grid", [0]), "grid"),
        (changed("steps", 1, "grid", [-3]), "grid"),
        (changed("steps", 1, "grid", [10**6]), "20,000 programs"),
        (changed("steps", 1, "grid", []), "grid"),
        (changed("steps", 1, "grid", [1, 1, 1, 1]), "grid"),
        (changed("steps", 1, "grid", [True]), "whole number"),
        (changed("steps", [GOOD["steps"][1]] * 201), "201 kernels"),
        (changed("steps", 1, "options", {"num_warps": 4096}), "num_warps"),
        (changed("steps", 1, "options", {"extern_libs": 1}), "extern_libs"),
        (changed("steps", 1, "args", "n", {"scalar": [1]}), "number was expected"),
        (changed("steps", 1, "args", "t", {"tl": "core"}), "core"),
        (changed("steps", 1, "args", "x_ptr", {"view": {**X, "offset": 1}}), "past its end"),
        (changed("steps", 1, "args", "x_ptr", {"view": {**X, "strides": [9, 1]}}), "past its end"),
        (changed("steps", 1, "args", "x_ptr", {"view": {**X, "strides": [-8, 1]}}), "whole number"),
        (changed("steps", 1, "args", "x_ptr", {"view": {**X, "dtype": "float64"}}), "past its end"),
        (changed("steps", 1, "args", "x_ptr", {"view": {**X, "dtype": "object"}}), "object"),
        (changed("steps", 1, "args", "x_ptr", {"view": {**X, "buffer": "key"}}), "can't be read"),
        (changed("steps", 1, "args", {"x_ptr": {}}), "can't be read"),
        (changed("returns", {**Y, "buffer": "x"}), "one of the inputs"),
        (changed("returns", {**Y, "shape": [40, 4]}), "past its end"),
        (changed("returns", None), "can't be read"),
        (changed("buffers", 1, "bytes", 2**40 - 1), "256 MiB"),
        (changed("buffers", 1, "bytes", -1), "whole number"),
        (changed("buffers", 1, "bytes", 1e9), "whole number"),
        (
            changed("buffers", 1, {"id": "b", "bytes": 32, "fill": "host", "made_by": "mm"}),
            "computed by torch.mm",
        ),
        (
            changed("buffers", 0, {"id": "x", "bytes": 64, "fill": "host", "made_by": "mul_"}),
            "changed on the host",
        ),
        ({}, "can't be read"),
    ],
)
def test_each_thing_that_is_wrong_with_a_plan_has_its_sentence(plan, word):
    with pytest.raises(BadPlan, match=word):
        check(plan, ["k"], INPUTS)


def test_what_the_host_computed_may_not_go_into_a_kernel():
    plan = changed(
        "buffers", GOOD["buffers"] + [{"id": "c", "bytes": 64, "fill": "host", "made_by": "clone"}]
    )
    plan["steps"][1]["args"]["x_ptr"] = {"view": {**X, "buffer": "c"}}
    with pytest.raises(BadPlan, match="x_ptr was computed by torch.clone on the host"):
        check(plan, ["k"], INPUTS)


def _places(part, path=()):
    yield path
    if isinstance(part, dict | list):
        for key in part if isinstance(part, dict) else range(len(part)):
            yield from _places(part[key], (*path, key))


def _deep(levels):
    return [] if not levels else [_deep(levels - 1)]


@pytest.mark.parametrize(
    "junk",
    [None, -1, float("inf"), "\ud800", "x" * 2000, [], {}, [[[]]], {"a": 1}, 10**400, [1, "2"], _deep(900)],
)
def test_junk_anywhere_is_refused_or_goes_no_further(junk):
    for path in _places(GOOD):
        try:
            passed = check(changed(*path, junk) if path else junk, ["k"], INPUTS)
        except BadPlan:
            continue
        assert json.loads(json.dumps(passed)) == passed or path[-1] == "scalar"
        assert "[[[" not in json.dumps(passed)


def test_what_was_not_looked_at_goes_no_further():
    plan = changed("steps", 1, "args", "n", {"scalar": 4, "more": 1})
    plan["buffers"][0]["more"] = plan["steps"][1]["more"] = plan["returns"]["more"] = plan["more"] = 1
    assert check(plan, ["k"], INPUTS) == check(GOOD, ["k"], INPUTS) == GOOD


def test_an_input_stays_what_it_was():
    with pytest.raises(BadPlan, match="x was changed on the host, by torch.zero_"):
        check(changed("steps", 0, {"zero": "x"}), ["k"], INPUTS)
    with pytest.raises(BadPlan, match="is one of the inputs"):
        check(changed("buffers", 0, "fill", "empty") | {"returns": X}, ["k"], INPUTS)
