"""The rung "timed", exercised with a pretended card and clock: correctness first, then the arithmetic."""

import dataclasses
import io
import json
import time
import types
from pathlib import Path

import pytest
import torch

from book import catalog
from kernels import decode_attention, gemv
from kernels.contract.errors import PhysicsDisagrees, Unsupported
from kernels.contract.launch import Launch
from kernels.evidence import timed
from kernels.evidence.experiments import all_experiments
from kernels.evidence.timed import baselines, clocks, dram, launched, torch_products
from kernels.evidence.timed.ceilings import DATASHEET
from tests.kernels.fakes import CARD, Runs, Says
from tests.kernels.toy import experiment as toy

SIZES = {"m": 16, "k": 128, "n": 128}
TOPS = timed.Ceilings("fp16", 3e12, "torch copy", 7e14, "torch.matmul", {}, {})


def timed_with(tops):
    return timed.measure(toy, CARD, "fp16", SIZES, Says(1e-6), tops)


def measure(clock, **changes):
    return timed.measure(dataclasses.replace(toy, **changes), CARD, "fp16", SIZES, clock, TOPS)


def test_rates_and_shares_follow_from_the_time_and_the_formula():
    row = measure(Says(1e-6))
    work = toy.cost(**SIZES, itemsize=2)
    assert row.bytes_per_s == work.bytes / 1e-6
    assert row.flops_per_s == work.flops / 1e-6
    assert row.of_bandwidth == pytest.approx(work.bytes / 1e-6 / 3e12)
    assert row.of_roof == pytest.approx(work.bytes / 3e12 / 1e-6)  # far left of the ridge
    assert row.of_datasheet == pytest.approx(work.bytes / 3.35e12 / 1e-6)
    assert (row.low, row.high, row.runs, row.alarms) == (0.98 * 1e-6, 1.03 * 1e-6, 11, ())
    assert 0 < row.relative_error < 2e-3


def test_a_time_below_the_floor_sounds_the_alarm():
    row = measure(Says(1e-9))
    assert len(row.alarms) == 2
    assert all("Impossible result: the bandwidth" in sentence for sentence in row.alarms)


def test_a_wrong_kernel_is_never_timed():
    clock = Says(1e-6)
    with pytest.raises(PhysicsDisagrees, match="the kernel is wrong on this device"):
        measure(clock, run=lambda x, w: 1.01 * (x.float() @ w.float()))
    assert clock.budgets == []


def test_an_element_that_is_never_written_is_found_by_the_poison():
    def forgets_a_row(x, w):
        y = torch.empty(x.shape[0], w.shape[1])
        y[:-1] = (x.float() @ w.float())[:-1]
        return y

    with pytest.raises(PhysicsDisagrees, match="never written"):
        measure(Says(1e-6), run=forgets_a_row)


def test_the_poison_is_switched_off_again():
    with timed.poisoned():
        assert torch.empty(8).isnan().all()
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_point_that_does_not_fit_is_left_out_and_the_others_are_timed():
    small = dataclasses.replace(CARD, free_bytes=10**7)
    points, _ = timed.run(
        toy, dtype="fp16", device=small, clock=Says(1e-3), tops=TOPS, m=[16, 2**20], k=64, n=64
    )
    assert [point.sizes["m"] for point in points] == [16]
    assert "m = 1,048,576" in points[0].notes[-1] and "GB are free" in points[0].notes[-1]
    with pytest.raises(Unsupported, match="close other GPU programs"):
        timed.run(toy, dtype="fp16", device=small, clock=Says(1e-3), tops=TOPS, m=2**20, k=64, n=64)


def test_the_vendor_is_timed_beside_a_kernel_by_the_same_clock():
    matmul_ = all_experiments()["matmul"]
    clock = Says(4e-6, 3e-6)
    sizes = {"m": 4, "k": 64, "n": 64}
    point = timed.measure(matmul_, CARD, "fp16", sizes, clock, TOPS, baselines=True)
    error = point.baseline.pop("relative_error")
    counted = {name: point.baseline[name] for name in ("name", "seconds", "share", "others")}
    assert counted == {"name": "torch.matmul", "seconds": 3e-6, "share": 0.75, "others": {}}
    assert 0 <= error <= matmul_.tolerance("fp16")
    assert point.as_record()["baseline"]["name"] == "torch.matmul"
    assert timed.measure(matmul_, CARD, "fp16", sizes, Says(1e-6), TOPS).baseline is None


def test_a_vendor_that_fails_is_a_note_and_the_point_stays(monkeypatch):
    def fails(*_):
        raise RuntimeError("No available kernel. Aborting execution.\nmore words")

    monkeypatch.setattr(baselines, "known", lambda *_: True)
    monkeypatch.setattr(baselines, "of", lambda _, inputs, dtype: {"theirs": lambda: toy.run(**inputs)})

    class Fails(Says):
        def time(self, work, budget=0.3):
            return fails() if self.budgets else super().time(work, budget)

    point = timed.measure(toy, CARD, "fp16", SIZES, Fails(1e-6), TOPS, baselines=True)
    assert point.baseline is None and point.seconds == 1e-6
    assert point.notes == (
        "theirs could not be timed beside it: RuntimeError: No available kernel. Aborting execution.",
    )


def test_a_point_keeps_the_plan_and_the_launches_that_ran():
    kept = timed.measure(
        all_experiments()["linear"], CARD, "fp16", {"m": 4, "k": 2048, "n": 64}, Says(1e-6), TOPS
    )
    assert kept.as_record()["plan"]["splits"] > 1
    assert [kernel["label"] for kernel in kept.kernels] == ["linear", "add partials"]


def test_what_the_compiler_made_of_a_kernel_stands_beside_its_launch():
    class Compiled:
        metadata = types.SimpleNamespace(shared=4096, num_warps=8)

        def _init_handles(self):
            self.n_regs, self.n_spills = 128, 2

    kernel = types.SimpleNamespace(warmup=lambda *args, grid, **options: Compiled(), __name__="kernel")
    kept = launched.compiled(Launch(kernel, (4,), (), {}))
    assert kept == {"registers": 128, "spilled_bytes": 8, "shared_bytes": 4096, "warps": 8}
    assert launched.compiled(Launch(types.SimpleNamespace(), (4,), ())) == {}, "what isn't known is left out"


def test_what_a_clock_says_besides_the_time_is_kept_beside_it():
    told = clocks.Timing(1e-6, 1e-6, 1e-6, 3, "eager", 2e-5, 3e-6, ("Python took longer.",))
    kept = measure(types.SimpleNamespace(time=lambda work, budget: told)).as_record()
    assert (kept["way"], kept["launch_seconds"], kept["empty_seconds"]) == ("eager", 2e-5, 3e-6)
    assert kept["notes"] == ["Python took longer."]


def test_ceilings_take_the_best_of_every_candidate_and_name_it():
    tops = timed.ceilings(CARD, "bf16", Says(1e-4, 3e-4, 1e-4, 4e-5, 2e-5))
    assert set(tops.bandwidths) == {"torch copy", "torch triad", "torch read"}
    assert set(tops.peaks) == {"torch.matmul 2048", "kernels.matmul"}
    assert (tops.bandwidth_by, tops.peak_by) == ("torch copy", "kernels.matmul")
    assert tops.peak == 2 * 2048**3 / 2e-5
    assert "Little memory is free" in tops.notes[0]


def test_on_a_t4_the_arithmetic_ceiling_is_torch_s_and_says_so():
    t4 = dataclasses.replace(CARD, accelerator="t4", target="sm_75")
    tops = timed.ceilings(t4, "fp16", Says(1e-3))
    assert list(tops.peaks) == ["torch.matmul 2048"]
    assert "the arithmetic ceiling is torch's" in tops.notes[-1]
    assert timed.default_dtype(toy, t4) == "fp16"
    assert timed.default_dtype(toy, CARD) == "bf16"


def test_fp8_has_a_ceiling_by_torch_s_scaled_product_the_faster_way_of_summing():
    tops = timed.ceilings(CARD, "fp8", Says(1e-4, 1e-4, 1e-4, 4e-5, 2e-5))
    assert tops.peak == 2 * 2048**3 / 2e-5
    assert tops.peak_by == "torch._scaled_mm, fast sums, 2048"
    assert "torch._scaled_mm 2048" in tops.peaks
    assert tops.peak_measured and tops.roof("measured here").name == "measured here"


def test_int8_has_a_ceiling_by_torch_s_integer_product():
    tops = timed.ceilings(CARD, "int8", Says(1e-4))
    assert list(tops.peaks) == ["torch._int_mm 2048"]


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16", "fp8", "int8"])
def test_each_product_of_torch_s_that_is_timed_runs_as_it_is_called(dtype):
    works, note = torch_products.products(CARD, dtype, 64)
    assert works and not note
    for work in works.values():
        y = work()
        assert y.shape == (64, 64) and y.double().std() > 1  # sums of 64 random products, no zeros


@pytest.mark.parametrize("dtype", ["fp8", "int8"])
@pytest.mark.parametrize("how", ["absent", "refuses"])
def test_where_torch_has_no_product_the_datasheet_stands_in_and_says_so(monkeypatch, dtype, how):
    def refuses(*_, **__):
        raise RuntimeError("CUBLAS_STATUS_NOT_SUPPORTED when calling cublasLtMatmul\nmore words")

    name = {"fp8": "_scaled_mm", "int8": "_int_mm"}[dtype]
    monkeypatch.setattr(torch, name, None if how == "absent" else refuses)
    tops = timed.ceilings(CARD, dtype, Runs())
    assert tops.peak == CARD.card().peak(dtype)
    assert tops.peaks == {} and not tops.peak_measured
    assert tops.roof("measured here").name == "measured here (peak of the datasheet)"
    said = " ".join(tops.notes)
    expected = "torch has no product" if how == "absent" else "CUBLAS_STATUS_NOT_SUPPORTED"
    assert expected in said and "more words" not in said
    assert f"in {dtype} is the datasheet's 1.979e+15 FLOP/s of H100 SXM" in said


def test_a_dtype_that_torch_never_multiplies_has_the_datasheet_s_ceiling():
    b200 = dataclasses.replace(CARD, accelerator="b200", target="sm_100")
    for dtype in ("nvfp4", "mxfp4", "fp4", "tf32"):
        assert timed.ceilings(b200, dtype, Says(1e-4)).peak == b200.card().peak(dtype)


def test_a_failure_of_a_plain_product_is_not_hidden(monkeypatch):
    def out_of_memory():
        raise RuntimeError("out of memory")

    monkeypatch.setattr(torch_products, "products", lambda *_: ({"torch.matmul": out_of_memory}, ""))
    with pytest.raises(RuntimeError, match="out of memory"):
        timed.ceilings(CARD, "bf16", Runs())


A100 = dataclasses.replace(CARD, name="Pretended A100", accelerator="a100_80gb_sxm", target="sm_80")
UNKNOWN = dataclasses.replace(CARD, name="Some card", accelerator=None, target=None)


def test_a_dtype_that_the_card_lacks_is_refused_before_anything_is_timed():
    clock = Says(1e-4)
    with pytest.raises(Unsupported, match="Pretended A100 has no arithmetic for it; choose fp32, tf32, fp16"):
        timed.ceilings(A100, "fp8", clock)
    assert clock.budgets == []


def test_a_card_that_nobody_knows_is_measured_and_else_refused(monkeypatch):
    assert timed.ceilings(UNKNOWN, "fp8", Says(1e-4)).peak_measured
    with pytest.raises(Unsupported, match="nothing says how fast Some card is in it.*the catalog has no row"):
        timed.ceilings(UNKNOWN, "fp4", Says(1e-4))


def test_a_dtype_of_no_format_is_answered_with_the_nearest():
    with pytest.raises(catalog.UnknownName, match="'float8'.*fp8"):
        timed.ceilings(CARD, "float8", Says(1e-4))


def test_an_fp8_experiment_gets_a_sentence_on_a_card_without_fp8():
    only = dataclasses.replace(toy, dtypes=("fp8",))
    assert timed.default_dtype(only, CARD) == "fp8"
    with pytest.raises(Unsupported, match="toy runs in fp8; Pretended A100 has fp32, tf32"):
        timed.default_dtype(only, A100)
    either = dataclasses.replace(toy, dtypes=("fp8", "bf16"))
    assert timed.default_dtype(either, A100) == "bf16"
    with pytest.raises(Unsupported, match="toy runs in fp8; Pretended A100"):
        timed.run(only, device=A100, clock=Says(1e-4))


def test_a_dtype_asked_for_by_name_gets_the_same_sentence():
    with pytest.raises(Unsupported, match=r"dtype = 'fp8': sm_80 \(A100 SXM\) has none; choose bf16"):
        timed.run(decode_attention.experiment, dtype="fp8", device=A100, clock=Says(1e-4))
    with pytest.raises(Unsupported, match="dtype = 'int3': toy does not run in it"):
        timed.run(toy, dtype="int3", device=A100, clock=Says(1e-4))


def test_a_card_that_shares_the_target_of_a_newer_one_has_what_its_own_row_says():
    a10g = dataclasses.replace(CARD, name="A10G", accelerator="a10g", target="sm_89")  # planned like an L4
    assert "A10G has none" in timed.why_not(decode_attention.experiment, a10g, "fp8")
    assert timed.why_not(decode_attention.experiment, a10g, "bf16") == ""


def test_an_fp8_cache_is_held_against_the_ceiling_of_what_multiplies_it():
    fp8_cache = decode_attention.experiment
    assert fp8_cache.arithmetic("fp8") in ("fp16", "bf16")
    assert timed.peak_of(fp8_cache, CARD.card(), "fp8") == CARD.card().peak("bf16")
    assert timed.peak_of(gemv.experiment, CARD.card(), "bf16") == CARD.card().peaks["fp32"]


def test_a_datasheet_s_peak_is_never_called_a_measured_ceiling():
    too_low = dataclasses.replace(TOPS, peak=1e6)
    assert any("measured in this run" in a for a in timed_with(too_low).alarms)
    assert timed_with(dataclasses.replace(too_low, peak_by=DATASHEET)).alarms == ()


def test_every_experiment_says_what_error_it_allows_in_each_of_its_dtypes():
    for experiment in all_experiments().values():
        assert all(0 <= experiment.tolerance(dtype) < 0.1 for dtype in experiment.dtypes)
    with pytest.raises(ValueError, match="toy says no relative error allowed in mxfp4.*add it"):
        toy.tolerance("mxfp4")
    assert dataclasses.replace(toy, tolerances={"mxfp4": 0.2}).tolerance("mxfp4") == 0.2


def test_with_no_gpu_timing_is_refused_with_a_sentence():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(Unsupported, match="No GPU here.*cpu_roofline"):
        timed.run(toy)


# ----------------------------------------------------------------------------------- hardware counters

NCU = """==PROF== Connected to process 1234
some line that the program printed
==PROF== Profiling "linear_kernel" - 0: 0%....50%....100% - 1 pass
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"
"0","1234","python3","127.0.0.1","linear_kernel","1","7","(128, 1, 1)","(64, 1, 1)","0","9.0","Command line profiler metrics","dram__bytes_read.sum","byte","33,554,432"
"0","1234","python3","127.0.0.1","linear_kernel","1","7","(128, 1, 1)","(64, 1, 1)","0","9.0","Command line profiler metrics","dram__bytes_write.sum","byte","65,536"
"1","1234","python3","127.0.0.1","add_partials_kernel","1","7","(128, 1, 1)","(4, 1, 1)","0","9.0","Command line profiler metrics","dram__bytes_read.sum","Kbyte","1.5"
"1","1234","python3","127.0.0.1","add_partials_kernel","1","7","(128, 1, 1)","(4, 1, 1)","0","9.0","Command line profiler metrics","dram__bytes_write.sum","byte","0"
"""  # noqa: E501


def test_counter_tables_are_summed_over_the_launches_in_bytes():
    assert dram.parse(NCU) == (33_554_432 + 1500, 65_536)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("==PROF== Connected\n==WARNING== No kernels were profiled.\n", "printed no table"),
        (NCU.replace("33,554,432", "n/a"), "does not have that counter"),
        ("\n".join(line for line in NCU.splitlines() if "write" not in line), "left a counter out"),
    ],
)
def test_counters_that_were_not_read_are_never_zero(text, says):
    with pytest.raises(Unsupported, match=says):
        dram.parse(text)


def marked(*groups):
    """ncu's table for several requests: a launch of the kernel that does nothing stands before each."""
    head, read, write = NCU.splitlines()[3:6]
    rows, number = [], 0
    for group in groups:
        for name, value in (("noop_kernel", "0"), *(("linear_kernel", str(v)) for v in group)):
            for row in (read, write):
                fields = row.split('","')
                fields[0], fields[4], fields[-1] = f'"{number}', name, f'{value}"'
                rows.append('","'.join(fields))
            number += 1
    return "\n".join(["==PROF== Connected", head, *rows])


def test_one_table_for_all_kernels_is_cut_where_the_kernel_that_does_nothing_ran():
    assert dram.parse_all(marked([1000, 24], [7]), 2) == [(1024.0, 1024.0), (7.0, 7.0)]


def test_what_failed_in_that_process_is_said_and_the_others_are_counted():
    text = "failed 1: OutOfMemoryError: CUDA out of memory.\n" + marked([1000], [], [7])
    first, second, third = dram.parse_all(text, 3)
    assert (first, third) == ((1000.0, 1000.0), (7.0, 7.0))
    assert second == "DRAM bytes were not counted: OutOfMemoryError: CUDA out of memory."


def test_what_a_process_that_died_did_not_come_to_is_not_zero():
    first, second = dram.parse_all(marked([1000]), 2)
    assert first == (1000.0, 1000.0) and "left a counter out" in second


REQUESTS = [{"experiment": "tests.kernels.toy:experiment", "dtype": "fp16", "sizes": SIZES}]


def test_why_ncu_counted_nothing_is_in_its_own_words():
    text = "==PROF== Connected\n==ERROR== Profiling is not supported on this device\n==PROF== Done\n"
    with pytest.raises(Unsupported, match="printed no table.*It says: Profiling is not supported on this"):
        dram.parse_all(text, 1)


def test_counters_that_may_not_be_read_give_a_sentence():
    def forbidden(command, asked, timeout):
        assert command[:2] == ["ncu", "--csv"] and json.loads(asked) == REQUESTS
        return types.SimpleNamespace(stdout="==ERROR== ERR_NVGPUCTRPERM - no permission", stderr="")

    with pytest.raises(Unsupported, match="only administrators"):
        dram.all_bytes(REQUESTS, call=forbidden, ncu="ncu")


def test_counting_that_takes_too_long_is_ended_with_all_its_processes(tmp_path):
    ncu = tmp_path / "ncu"
    ncu.write_text(f"#!/bin/sh\n(sleep 60 & echo $! > {tmp_path}/inner; wait)\n", encoding="utf-8")
    ncu.chmod(0o755)
    with pytest.raises(Unsupported, match="`ncu` was not done after 1 s, and was stopped"):
        dram.all_bytes(REQUESTS, ncu=str(ncu), timeout=1)
    inner = int((tmp_path / "inner").read_text(encoding="utf-8"))
    for _ in range(100):  # the system takes a moment
        if not _runs(inner):
            break
        time.sleep(0.05)
    assert not _runs(inner)


def _runs(process):
    try:
        return (
            "Z" not in Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        )
    except OSError:
        return False


def test_an_ncu_that_can_not_be_started_is_said(tmp_path):
    ncu = tmp_path / "ncu"
    ncu.write_bytes(b"\x7fELF of another machine")
    ncu.chmod(0o755)
    with pytest.raises(Unsupported, match="`ncu` did not run"):
        dram.all_bytes(REQUESTS, ncu=str(ncu))


def test_ncu_is_found_beside_the_compiler_of_cuda_too(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    assert dram.ncu_path() is None
    (tmp_path / "cuda/bin").mkdir(parents=True)
    (tmp_path / "cuda/bin/ncu").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "cuda/bin/ncu").chmod(0o755)
    assert dram.ncu_path() == str(tmp_path / "cuda/bin/ncu")


def test_without_ncu_there_is_a_sentence(monkeypatch):
    monkeypatch.setattr(dram, "ncu_path", lambda: None)
    with pytest.raises(Unsupported, match="is not installed here"):
        dram.all_bytes(REQUESTS)


class Cuda:
    """torch.cuda, as the process that is profiled uses it: a log of what it was told."""

    def __init__(self):
        self.log = []
        self.profiler = types.SimpleNamespace(
            start=lambda: self.log.append("start"), stop=lambda: self.log.append("stop")
        )

    def synchronize(self):
        self.log.append("wait")

    def empty_cache(self):
        self.log.append("empty")


def test_the_profiled_process_runs_each_request_once_behind_its_mark(monkeypatch, capsys):
    cuda, here = Cuda(), torch.empty
    asked = [{"experiment": name, "dtype": "fp16", "sizes": {"m": 4}} for name in ("good", "bad")]

    def inputs(*, m, dtype, device, seed):
        assert device == "cuda"
        return {"x": m}

    def fails(**_):
        raise torch.OutOfMemoryError("CUDA out of memory.\nmore words")

    found = {
        "good": types.SimpleNamespace(inputs=inputs, run=lambda x: cuda.log.append("run")),
        "bad": types.SimpleNamespace(inputs=fails, run=None),
    }
    monkeypatch.setattr(torch, "cuda", cuda)
    monkeypatch.setattr(torch, "empty", lambda *shape, device: here(*shape))
    monkeypatch.setattr(dram, "find", found.__getitem__)
    monkeypatch.setattr("kernels.noop.noop", lambda x: cuda.log.append("mark"))
    monkeypatch.setattr(dram.sys, "stdin", io.StringIO(json.dumps(asked)))
    dram.main()
    assert cuda.log == [
        *["mark", "run", "wait", "start", "mark", "run", "wait", "stop", "empty"],
        *["start", "mark", "wait", "stop", "empty"],
    ]
    assert capsys.readouterr().out == "failed 1: OutOfMemoryError: CUDA out of memory.\n"
