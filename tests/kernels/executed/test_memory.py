"""Red zones: whoever leaves a tensor, or reads what nobody wrote, is found and named."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kernels.contract.errors import CardRefuses
from kernels.evidence.executed.memory import RED_ZONE, GlobalMemory, own_bytes
from tests.kernels.executed import snippets
from tests.kernels.executed.test_ptx import ONE_EACH, STORE

FLOATS = 40  # of a tensor: its end lies within a warp's second request
LOAD = "ld.global.b32 %r1, [%rd1];"
WRITE = "st.global.b32 [%rd1], %r1;"
COPY = "cp.async.ca.shared.global [%r9], [%rd1], 4;"
ATOM = "atom.global.add.u32 %r1, [%rd1], 1;"


def touch(access: str, offset: int, threads: int = 32) -> int:
    """Each thread accesses 4 bytes, its own number's, from `offset` bytes on; the bytes of all of them."""
    body = f"{ONE_EACH} mov.u32 %r9, 0; add.s64 %rd1, %rd0, %rd9; add.s64 %rd1, %rd1, {offset};"
    body += f"{access} ret;"
    outcome = snippets.run(body, np.zeros(FLOATS, np.float32), threads=threads, shared=1024)
    return outcome.counts.total("bytes", tensor="tensor0")


@pytest.mark.parametrize("access", [LOAD, WRITE, COPY, ATOM])
@pytest.mark.parametrize(
    ("offset", "thread", "distance"),
    [
        (4 * (FLOATS - 31), 31, "4 bytes past its end"),
        (-4, 0, "4 bytes before it"),
        (-128, 0, "128 bytes before it"),
    ],
)
def test_one_element_outside_is_named_with_instruction_line_tensor_and_distance(
    access, offset, thread, distance
):
    form, lanes = access.split()[0], 32 if offset == -128 else 1
    with pytest.raises(CardRefuses) as refusal:
        touch(access, offset)
    assert str(refusal.value) == (
        f"snippet.py:7: {form}: thread {thread} of program 0 is outside every tensor; "
        f"tensor0 is the nearest, {distance} ({lanes} such lanes)."
    )


@pytest.mark.parametrize("access", [LOAD, WRITE, COPY, ATOM])
def test_the_first_and_the_last_element_are_inside(access):
    assert touch(access, 0) == touch(access, 4 * (FLOATS - 32)) == 128


def test_an_access_that_begins_inside_and_ends_outside_is_an_error():
    body = "ld.param.b64 %rd0, [snippet_param_0]; ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd0+160]; ret;"
    with pytest.raises(
        CardRefuses, match=r"outside every tensor; tensor0 is the nearest, 12 bytes past its end"
    ):
        snippets.run(body, np.zeros(41, np.float32))


@pytest.mark.parametrize("address", [0, 8, 2**40, 2**63, 2**64 - 4])
def test_an_address_outside_all_memory_is_an_error_too(address):
    body = f"mov.b64 %rd1, {address:#x}; ld.global.b32 %r1, [%rd1]; ret;"
    with pytest.raises(CardRefuses, match=r"snippet.py:7: ld.global.b32: thread 0 of program 0 is outside"):
        snippets.run(body, np.zeros(4, np.float32))


def test_a_program_of_a_batch_is_named_by_its_number_in_the_launch():
    body = f"{ONE_EACH} mov.u32 %r2, %ctaid.x; mul.wide.u32 %rd2, %r2, 128; add.s64 %rd1, %rd0, %rd9;"
    body += "add.s64 %rd1, %rd1, %rd2; ld.global.b32 %r1, [%rd1]; ret;"
    with pytest.raises(CardRefuses, match="thread 8 of program 5 is outside every tensor; tensor0"):
        snippets.run(body, np.zeros(5 * 32 + 8, np.float32), grid=(6, 1, 1), order="reverse")


@pytest.mark.parametrize(
    ("access", "offset", "size"),
    [
        ("ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd0+{}];", 8, 16),
        ("ld.global.b64 %rd5, [%rd0+{}];", 4, 8),
        ("st.global.b16 [%rd0+{}], %rh1;", 1, 2),
        ("atom.global.add.u32 %r1, [%rd0+{}], 1;", 2, 4),
        ("cp.async.cg.shared.global [%r9], [%rd0+{}], 16;", 4, 16),
    ],
)
def test_an_access_at_no_multiple_of_its_size_is_an_error(access, offset, size):
    body = (
        "ld.param.b64 %rd0, [snippet_param_0]; mov.u32 %r9, 0;" + access.replace("{}", str(offset)) + "ret;"
    )
    with pytest.raises(CardRefuses) as refusal:
        snippets.run(body, np.zeros(64, np.float32), shared=1024)
    form = access.split()[0]
    assert str(refusal.value) == (
        f"snippet.py:7: {form}: an address in tensor0 that is no multiple of its {size} bytes."
    )


@pytest.mark.parametrize(
    ("access", "where"),
    [
        ("ld.shared.b32 %r1, [%r9+1024];", "outside"),
        ("ld.shared.b32 %r1, [%r9+-4];", "outside"),
        ("st.shared.v4.b32 [%r9+1016], {%r1, %r2, %r3, %r4};", "multiple"),
        ("st.shared.b32 [%r9+2], %r1;", "multiple"),
        ("cp.async.cg.shared.global [%r9+1024], [%rd0], 16;", "outside"),
        ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r9+1024];", "outside"),
        ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r9+8];", "multiple"),
    ],
)
def test_shared_memory_has_ends_and_alignment_too(access, where):
    body = f"ld.param.b64 %rd0, [snippet_param_0]; mov.u32 %r9, 0; {access} ret;"
    with pytest.raises(CardRefuses, match=rf"snippet\.py:7: {access.split()[0]}: .*{where}"):
        snippets.run(body, np.zeros(64, np.float32), shared=1024)


def test_shared_memory_that_nobody_wrote_is_nan_in_every_float_format():
    """Pitfall: zeros would hide the read."""
    out = np.zeros(32, np.float32)
    snippets.run(f"{ONE_EACH} shl.b32 %r2, %r0, 2; ld.shared.b32 %r1, [%r2]; {STORE}", out, shared=256)
    assert np.isnan(out).all()
    assert np.isnan(out.view(np.float16)).all()
    halves = out.view(np.uint16).astype(np.uint32) << 16
    assert np.isnan(halves.view(np.float32)).all()


def test_tensors_lie_gigabytes_apart_and_where_they_are_kept_beside_red_zones():
    memory = GlobalMemory()
    places = [
        memory.put(name, np.zeros(size, np.uint8)) for name, size in (("a", 1), ("b", RED_ZONE), ("c", 3))
    ]
    assert all(place % RED_ZONE == 0 for place in places)
    assert np.diff(places).min() >= 2**36
    assert memory.name(places[1] + 5) == memory.name(places[1] + RED_ZONE - 1) == "b"
    for nowhere in (places[1] - 1, places[1] + RED_ZONE, places[1] + 2**35, 0, 2**62, -1):
        assert memory.name(nowhere) == "nothing"


@pytest.mark.parametrize("access", [LOAD, WRITE, COPY, ATOM])
@pytest.mark.parametrize("offset", [256, 320, 1024, 2**31, 2**34, -160, -256, -1024, -(2**31), -(2**34)])
def test_whoever_leaves_a_tensor_by_any_distance_lands_in_no_other(access, offset):
    """Pitfall: beyond the red zone lies the next tensor, whose bytes may be touched."""
    start = "b64 %rd8, [snippet_param_1]; ld.param.b64 %rd0, [snippet_param_1]; mov.u32 %r9, 0;"
    body = f"ld.param.{start} mov.u32 %r0, %tid.x; mul.wide.u32 %rd9, %r0, 4; add.s64 %rd1, %rd0, %rd9;"
    body += f"add.s64 %rd1, %rd1, {offset}; {access} ret;"
    three = [np.zeros(FLOATS, np.float32) for _ in range(3)]
    with pytest.raises(CardRefuses, match="is outside every tensor; tensor1 is the nearest, "):
        snippets.run(body, *three, shared=1024)


@pytest.mark.parametrize("access", ["ld.global.b32 %r1, [%rd1];", "atom.global.exch.b32 %r1, [%rd1], %r0;"])
def test_lanes_of_one_instruction_may_be_in_different_tensors(access):
    body = f"""
ld.param.b64 %rd2, [snippet_param_0]; ld.param.b64 %rd3, [snippet_param_1];
ld.param.b64 %rd4, [snippet_param_2];
mov.u32 %r0, %tid.x; mul.wide.u32 %rd9, %r0, 4; setp.lt.u32 %p1, %r0, 7; selp.b64 %rd1, %rd2, %rd3, %p1;
add.s64 %rd1, %rd1, %rd9; {access} add.s64 %rd4, %rd4, %rd9; st.global.b32 [%rd4], %r1; ret;"""
    a, b, out = np.arange(32, dtype=np.uint32), 100 + np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
    snippets.run(body, a, b, out)
    assert out.tolist() == [n if n < 7 else 100 + n for n in range(32)]


def test_the_bytes_of_views_are_those_of_their_elements():
    whole = torch.arange(24, dtype=torch.int16).reshape(4, 6)  # 48 bytes
    size = whole.untyped_storage().nbytes()
    assert own_bytes([whole.T], size).all()
    assert own_bytes([whole[:, :3], whole[:, 3:]], size).all()
    assert not own_bytes([whole[:0]], size).any()
    assert np.flatnonzero(own_bytes([whole[1:, 1]], size)).tolist() == [14, 15, 26, 27, 38, 39]
    assert np.flatnonzero(own_bytes([whole[0, :1].expand(5)], size)).tolist() == [0, 1]


@pytest.mark.parametrize(("form", "words"), [("b32 %r1", 1), ("v2.b32 {%r1, %r2}", 2), ("b64 %rd5", 2),
                                            ("v4.b32 {%r1, %r2, %r3, %r4}", 4)])  # fmt: skip
@pytest.mark.parametrize("place", range(8))
def test_an_access_of_which_one_byte_is_nobodys_is_an_error(form, words, place):
    mine = np.array([1, 0, 1, 1, 1, 1, 1, 0], bool)
    place -= place % words
    state = snippets.here(body=f"ld.global.{form}, [%rd1];")
    start = state.memory.put("x", np.zeros(32, np.uint8), mine.repeat(4))
    snippets.put(state, {"%rd1": np.uint64([start + 4 * place])})
    if mine[place : place + words].all():
        snippets.step(state)
    else:
        with pytest.raises(CardRefuses, match=f"touches byte {4 * place} of the memory that x is a view of"):
            snippets.step(state)


def test_what_was_put_is_got_back_and_is_a_copy():
    memory, data = GlobalMemory(), np.arange(7, dtype=np.uint8)
    place = memory.put("a", data)
    data[:] = 0
    found = memory.get(place, 7)
    assert found.tolist() == list(range(7))
    found[:] = 9
    assert memory.get(place, 7).tolist() == list(range(7))
