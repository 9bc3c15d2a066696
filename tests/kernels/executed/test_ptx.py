"""PTX text as a kernel: scopes, labels, predicates, places in the source; what can't be read is refused."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.evidence.executed import ptx
from kernels.evidence.executed.forms import decode
from kernels.evidence.executed.ptx import NotExecutable
from tests.kernels.executed import snippets

ONE_EACH = "mov.u32 %r0, %tid.x; mul.wide.u32 %rd9, %r0, 4; ld.param.b64 %rd0, [snippet_param_0];"
STORE = "add.s64 %rd1, %rd0, %rd9; st.global.b32 [%rd1], %r1; ret;"


def each_thread(body: str, threads: int = 32) -> list[int]:
    """What each thread leaves in %r1; %r0 is its number."""
    out = np.zeros(threads, np.uint32)
    snippets.run(ONE_EACH + body + STORE, out, threads=threads)
    return out.tolist()


def test_the_parameters_threads_and_registers_are_read():
    kernel = ptx.read(snippets.text("ret;", threads=96, parameters=["u64", "u32", "f32"]))
    assert (kernel.name, kernel.threads) == ("snippet", 96)
    assert kernel.parameters == (
        ("u64", "snippet_param_0"),
        ("u32", "snippet_param_1"),
        ("f32", "snippet_param_2"),
    )
    assert [kernel.width[name] for name in ("%p19", "%rb99", "%rh0", "%r7", "%rd99")] == [1, 8, 16, 32, 64]


def test_tritons_parameters_with_attributes_are_read():
    head = ".visible .entry k(.param .u64 .ptr .global .align 1 k_param_0, .param .u32 k_param_1)"
    assert ptx.read(head + " .reqntid 32 {ret;}").parameters == (("u64", "k_param_0"), ("u32", "k_param_1"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (".version 8.7", "no .entry"),
        (".visible .entry k(.param .u64 k_param_0) {ret;}", "no .reqntid"),
        (".visible .entry k() .reqntid 32 { add.s32 %r1, %r2 }", "can't be read"),
        (".visible .entry k() .reqntid 32 { ret;", "can't be read"),
        (".visible .entry k() .reqntid 32 { 4711; ret; }", "can't be read: '4711'"),
    ],
)
def test_a_text_that_is_no_kernel_is_refused_with_what_is_wrong(text, why):
    with pytest.raises(NotExecutable, match=why):
        ptx.read(text)


def test_an_error_names_the_line_of_the_source():
    body = ".loc 1 7 3\nmov.u32 %r1, 1;\n.loc 1 9 12\nfoo.bar %r1;\nret;"
    assert [str(one) for one in ptx.read(snippets.text(body)).code][:2] == [
        "snippet.py:7: mov.u32",
        "snippet.py:9: foo.bar",
    ]


def test_all_that_is_unknown_is_in_one_error_each_form_once_with_its_line():
    body = """
.loc 1 3 1
foo.bar %r1, %r2;
add.s32 %r1, %r2, %r3;
.loc 1 4 1
ld.global.v3.b32 {%r1, %r2, %r3}, [%rd1];
foo.bar %r3, %r4;
.loc 1 5 1
mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r1,%r2,%r3,%r4}, {%r1,%r2}, {%r1}, {%r1,%r2,%r3,%r4};
ret;"""
    with pytest.raises(NotExecutable) as refusal:
        snippets.kernel(body)
    assert str(refusal.value) == (
        "snippet: 3 instructions are not known here: foo.bar at snippet.py:3; ld.global.v3.b32 at "
        "snippet.py:4; mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 at snippet.py:5."
    )


@pytest.mark.parametrize(
    "line",
    [
        "add.s32 %r1, %r2, %unknown;",  # a register that nobody declared
        "add.s32 %r1, %r2;",
        "add.s32 %r1, %r2, %r3, %r4;",
        "ld.global.v2.b32 {%r1, %r2, %r3}, [%rd1];",
        "ld.global.b32 %r1, [__local_depot0];",
        "bra $nowhere;",
        "bar.sync 1;",
        "bar.sync 0, 64;",
        "@%p1 bar.sync 0;",
    ],
)
def test_operands_that_are_not_known_are_refused_before_anything_runs(line):
    form = line.split()[1 if "@" in line else 0]
    with pytest.raises(NotExecutable, match=f"snippet: 1 instructions are not known here: {form}"):
        snippets.kernel(f"{line} ret;", threads=128)


def test_registers_of_inline_assembly_are_its_own():
    body = """
mov.u32 %r2, 5;
{ .reg .b32 %r2; mov.u32 %r2, 70; add.s32 %r1, %r2, 1; }
add.s32 %r1, %r1, %r2;"""
    assert set(each_thread(body)) == {76}


def test_scopes_lie_in_each_other_and_the_inner_name_counts():
    body = """
{ .reg .b32 x; mov.u32 x, 1;
  { .reg .b32 x, y; mov.u32 x, 10; mov.u32 y, 100; add.s32 %r1, x, y; }
  add.s32 %r1, %r1, x; }"""
    assert set(each_thread(body)) == {111}


def test_two_scopes_may_have_the_same_label_which_is_used_before_it_appears():
    scope = """
{ .reg .pred p;
  setp.lt.u32 p, %r0, {limit};
  @p bra done;
  add.s32 %r1, %r1, {plus};
  done: }"""
    body = "mov.u32 %r1, 0;" + "".join(
        scope.replace("{limit}", str(limit)).replace("{plus}", str(plus))
        for limit, plus in ((8, 1), (16, 10))
    )
    assert each_thread(body) == [0] * 8 + [1] * 8 + [11] * 16


@pytest.mark.parametrize(("at", "wanted"), [("@%p1", 7), ("@!%p1", 9)])
def test_a_predicate_and_its_opposite(at, wanted):
    found = each_thread(f"mov.u32 %r1, {16 - wanted}; setp.lt.u32 %p1, %r0, 3; {at} mov.u32 %r1, {wanted};")
    assert found == [7] * 3 + [9] * 29


def test_comments_and_pragmas_say_nothing():
    assert set(each_thread('// begin inline asm; {\nmov.u32 %r1, 3; // ;\n.pragma "nounroll";')) == {3}


def test_a_kernel_may_end_without_ret():
    out = np.zeros(32, np.uint32)
    snippets.run(ONE_EACH + "mov.u32 %r1, 4;" + STORE.replace("ret;", ""), out)
    assert set(out) == {4}


def test_decoding_gives_every_instruction_something_to_run():
    kernel = decode(ptx.read(snippets.text("mov.u32 %r1, 1; bar.sync 0; ret;")))
    assert [one.run is None for one in kernel.code] == [False, True, True, True]
