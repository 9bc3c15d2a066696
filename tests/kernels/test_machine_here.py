"""The right card, what Triton needs on the machine, and clocks read while it works: with made-up tools."""

import dataclasses
import datetime
import os
import stat
import subprocess
import sys
import time
import types

import pytest
import torch

from kernels.contract import devices, versions
from kernels.evidence.recorded import write
from kernels.evidence.recorded.write import ROOT
from kernels.evidence.timed import machine, sampling
from kernels.measure.run import Run
from tests.kernels.fakes import CARD

UUID = "GPU-6b1d3a0e-0000-4242-8888-aabbccddeeff"
NOW = "$(date '+%Y/%m/%d %H:%M:%S.%3N')"  # as nvidia-smi writes it
CARD_1 = dataclasses.replace(CARD, uuid=UUID, pci="0000:1b:00.0", architecture="sm_90")


def tool(folder, name, lines):
    """An executable of that name, which tells its arguments to `asked` beside it."""
    path = folder / name
    path.write_text("\n".join(["#!/bin/sh", f'echo "$@" >> {folder}/asked', *lines]) + "\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """A folder in which a test puts its executables; nothing else of their names is found."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin{os.pathsep}/usr/bin")
    return tmp_path


def watched(device=CARD_1, least=1, seconds=10.0):
    """What a sampler saw of `device`: it is asked until it saw as much, or the time is up."""
    began = time.monotonic()
    with sampling.Sampler(device, every=0.01) as seen:
        while time.monotonic() - began < seconds:
            found = seen.between(began, time.monotonic())
            if found and found["samples"] >= least:
                return found
            time.sleep(0.01)
    return None


# ------------------------------------------------------------------------------ while it works


def test_clock_power_and_throttling_are_read_while_the_card_works_by_its_uuid(tools):
    tool(
        tools,
        "nvidia-smi",
        [
            f'echo "{NOW}, 1980, 50, 0x0000000000000000, 350.0, 349.0"',
            f'echo "{NOW}, 1410, 83, 0x0000000000000044, 699.5, 500.0"',
            "sleep 5",
        ],
    )
    found = watched(least=2)
    assert found["sm_mhz"] == {"least": 1410.0, "median": 1980.0, "most": 1980.0}
    assert found["power_w"]["most"] == 699.5 and found["celsius"]["most"] == 83.0
    assert found["reasons"] == ["power cap", "heat (hardware)"]
    asked = (tools / "asked").read_text(encoding="utf-8")
    assert f"-i {UUID}" in asked and "clocks_event_reasons.active" in asked and "-lms 10" in asked


def test_an_older_driver_is_asked_by_the_older_name(tools):
    tool(
        tools,
        "nvidia-smi",
        [
            'case "$*" in',
            '*clocks_event_reasons*) echo "not a valid field to query."; exit 2;;',
            "esac",
            f'echo "{NOW}, 1500, 40, 0x0000000000000004, [N/A], [N/A]"; exec sleep 5',
        ],
    )
    found = watched()
    assert found["sm_mhz"]["median"] == 1500.0 and found["power_w"] is None
    assert found["reasons"] == ["power cap"]


def test_of_an_amd_card_amd_smi_is_asked_by_its_place_on_the_bus(tools):
    told = (
        '[{"gpu": 3, "power": {"socket_power": {"value": 612, "unit": "W"}}, '
        '"clock": {"gfx_0": {"clk": {"value": 1200, "unit": "MHz"}}, "gfx_1": {"clk": {"value": 2100}}, '
        '"mem_0": {"clk": {"value": 900}}}, "temperature": {"hotspot": {"value": 71, "unit": "C"}}}]'
    )
    tool(tools, "amd-smi", [f"cat <<'END'\n{told}\nEND"])
    monkey = dataclasses.replace(CARD_1, uuid="6b1d3a0e", name="AMD Instinct MI300X")
    found = watched(monkey, least=2)
    assert found["sm_mhz"]["most"] == 2100.0
    assert found["power_w"]["most"] == 612.0 and found["celsius"]["most"] == 71.0
    assert "metric -g 0000:1b:00.0" in (tools / "asked").read_text(encoding="utf-8")


def test_a_machine_without_these_tools_has_no_samples_and_goes_on(tools):
    with sampling.Sampler(CARD_1) as seen:
        assert seen.between(0.0, time.monotonic()) is None
    assert sampling.clocks(CARD_1) == {}


@pytest.mark.parametrize("line", ["", "No devices were found", "1, 2, 3", "[N/A], [N/A], 40, 0x4"])
def test_what_is_no_line_of_samples_is_left_out(line):
    assert sampling.parse_nvidia(line, 0.0) is None
    assert sampling.parse_amd(line, 0.0) is None


def test_a_mask_of_reasons_that_is_none_slows_nothing_down():
    assert sampling.parse_nvidia("?, 1980, 50, [Not Supported], 350.0, 1", 0.0).reasons == ()


def test_power_is_that_of_the_moment_and_the_mean_where_the_card_or_its_driver_has_no_other(tools):
    assert sampling.parse_nvidia("?, 1980, 50, 0x0, 650.5, 400.0", 0.0).power_w == 650.5
    assert sampling.parse_nvidia("?, 1980, 50, 0x0, [N/A], 400.0", 0.0).power_w == 400.0
    refuses = ['case "$*" in', '*power.draw.instant*) echo "not a valid field to query."; exit 2;;', "esac"]
    tool(tools, "nvidia-smi", [*refuses, f'echo "{NOW}, 1500, 40, 0x4, 300.0"; exec sleep 5'])
    assert watched()["power_w"]["median"] == 300.0
    asked = (tools / "asked").read_text(encoding="utf-8").splitlines()
    assert "power.draw.instant" in asked[0] and asked[-1].count("power.draw") == 1


@pytest.mark.parametrize(
    ("stamp", "at"),
    [
        ("2026/03/01 12:00:00.250", 98.75),  # a pipe held it for 1.25 s
        ("2026/03/01 11:00:00.250", 100.0),  # of another clock, or time zone
        ("2026/03/01 12:00:02.000", 100.0),
        ("[Unknown Error]", 100.0),
    ],
)
def test_a_sample_is_of_the_time_that_the_driver_s_tool_says(stamp, at):
    wall = datetime.datetime(2026, 3, 1, 12, 0, 1, 500_000).astimezone().timestamp()
    sample = sampling.parse_nvidia(f"{stamp}, 1980, 50, 0x0, 350.0, 350.0", 100.0, wall=wall)
    assert sample.at == pytest.approx(at)


@pytest.mark.parametrize(
    ("told", "there"),
    [('echo "4242"', True), ("", False), ('echo "[Insufficient Permissions]"', False), ("exit 9", False)],
)
def test_another_program_on_this_card_is_seen_before_it_begins_and_noted(tools, told, there):
    tool(tools, "nvidia-smi", ['case "$*" in', f"*query-compute-apps=pid*) {told or ':'};;", "esac"])
    assert sampling.others(CARD_1) is there
    assert f"-i {UUID}" in (tools / "asked").read_text(encoding="utf-8")
    assert sampling.others(dataclasses.replace(CARD_1, imaginary=True)) is False
    record = {**write.empty(CARD_1, "x"), "missing": []}
    run = Run(record, tools / "x.json", CARD_1, lambda *_, **__: iter(()), lambda line: None)
    run.measure({}, launches=False)
    assert [note.partition(":")[0] for note in record["notes"]] == ["Another program is on this card"] * there


@pytest.mark.parametrize("told", ["[]", "{}", '[{"clock": {}, "power": {}}]'])
def test_an_amd_smi_of_another_version_is_asked_once_and_left(tools, told):
    tool(tools, "amd-smi", [f"echo '{told}'"])
    assert watched(seconds=0.5) is None
    assert len((tools / "asked").read_text(encoding="utf-8").splitlines()) == 1


def test_a_tool_that_can_not_be_started_is_none(tools):
    path = tools / "nvidia-smi"
    path.write_bytes(b"\x7fELF of another machine")
    path.chmod(0o755)
    assert watched(seconds=0.5) is None and sampling.clocks(CARD_1) == {}


def test_an_imaginary_card_is_not_asked(tools):
    tool(tools, "nvidia-smi", [f'echo "{NOW}, 1980, 50, 0x0, 350.0, 350.0"', "exec sleep 60"])
    imaginary = dataclasses.replace(CARD_1, imaginary=True)
    assert watched(imaginary, seconds=0.3) is None and sampling.clocks(imaginary) == {}
    assert not (tools / "asked").exists()


def test_a_sampler_ends_with_its_block(tools):
    tool(tools, "nvidia-smi", [f'echo "{NOW}, 1980, 50, 0x0, 350.0, 350.0"', "exec sleep 60"])
    began = time.monotonic()
    with sampling.Sampler(CARD_1, every=0.01) as seen:
        while not seen.between(began, time.monotonic()) and time.monotonic() - began < 10:
            time.sleep(0.01)
        process = seen._process
    assert process.wait(timeout=5) != 0


def test_what_the_card_is_set_to_is_asked_by_uuid(tools):
    tool(tools, "nvidia-smi", ['echo "580.1, 210, 405, 1980, 2619, 700.00, 35, 00000000:1B:00.0, Disabled"'])
    assert sampling.clocks(CARD_1)["clocks.max.sm"] == "1980"
    assert f"-i {UUID}" in (tools / "asked").read_text(encoding="utf-8")


# ----------------------------------------------------------------------------------- which card


class Properties(types.SimpleNamespace):
    name, major, minor, multi_processor_count, L2_cache_size = "NVIDIA H100 80GB HBM3", 9, 0, 132, 50 * 2**20
    uuid = "6b1d3a0e-0000-4242-8888-aabbccddeeff"
    pci_domain_id, pci_bus_id, pci_device_id = 0, 0x1B, 0


def card_here(monkeypatch, hip=None, **changes):
    properties = Properties(**changes)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: properties)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda index=0: (79 * 10**9, 80 * 10**9))
    monkeypatch.setattr(torch.version, "hip", hip)
    monkeypatch.setattr(devices, "MODE", "compiled")
    devices._chip_here.cache_clear()
    try:
        return machine.gpu_here()
    finally:
        devices._chip_here.cache_clear()


def test_the_card_is_known_by_its_uuid_and_its_place_on_the_bus(monkeypatch):
    here = card_here(monkeypatch)
    assert (here.uuid, here.pci, here.accelerator) == (UUID, "0000:1b:00.0", "h100_sxm")
    assert (here.architecture, here.target, here.known_as) == ("sm_90", "sm_90", UUID)
    assert machine.why_not_timed(here) == ""


def test_a_torch_that_says_neither_still_has_a_card(monkeypatch):
    here = card_here(monkeypatch, uuid=None, pci_bus_id=None)
    assert (here.uuid, here.pci, here.known_as) == ("", "", "0")


def test_a_slice_of_a_card_is_refused_with_a_sentence(monkeypatch):
    here = card_here(monkeypatch, name="NVIDIA H100 80GB HBM3 MIG 1g.10gb")
    assert here.accelerator is None, "the datasheet of the whole card is not its own"
    assert "is a slice of a NVIDIA H100 80GB HBM3 (MIG, or" in machine.why_not_timed(here)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-1f2e3d")
    assert card_here(monkeypatch, name="NVIDIA H100 NVL").slice_of


def test_a_checkout_that_is_another_user_s_has_its_commit(monkeypatch):
    """As in a container, where its files often are; git would call the ownership dubious and say nothing."""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # git's own tests use it
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    alone = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, encoding="utf-8"
    )
    assert "dubious ownership" in alone.stderr
    assert machine.commit(ROOT) != "unknown"


def test_without_a_gpu_torch_s_own_reason_is_told(monkeypatch):
    """The first minute on a rented machine: a driver that is older than the CUDA of the wheel."""

    def old():
        raise RuntimeError("The NVIDIA driver on your system is too old (found version 12080). Please update")

    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.version, "hip", None)
    assert machine.no_gpu() == f"no GPU here, and this PyTorch ({torch.__version__}) is a build for CPUs"
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "init", old)
    assert machine.no_gpu() == (
        "no GPU here; PyTorch says: The NVIDIA driver on your system is too old (found version 12080)"
    )
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    assert machine.no_gpu() == "no GPU here"


def test_rocm_s_cards_are_known_by_their_architecture(monkeypatch):
    name = "AMD Instinct MI300X"
    mi300 = {"hip": "6.4", "name": name, "gcnArchName": "gfx942:sramecc+:xnack-", "L2_cache_size": 2**22}
    here = card_here(monkeypatch, **mi300, multi_processor_count=304)
    assert here.l2_bytes == 2**28, "its Infinity Cache is what must be flushed"
    assert (here.target, here.accelerator, here.uuid) == ("gfx942", "mi300x", Properties.uuid)
    part = card_here(monkeypatch, **mi300, multi_processor_count=38)
    assert part.accelerator is None and "is a slice of a AMD Instinct MI300X" in machine.why_not_timed(part)
    other = card_here(monkeypatch, hip="6.4", name="Radeon", gcnArchName="gfx1100")
    assert other.target is None
    assert "is gfx1100, for which there are no plans" in machine.why_not_timed(other)


def test_triton_is_found_under_the_names_that_rocm_s_torch_brings_it_under(monkeypatch):
    def version(name):
        if name == "pytorch-triton-rocm":
            return "3.6.0"
        raise versions.PackageNotFoundError(name)

    monkeypatch.setattr(versions, "version", version)
    assert machine.software()["triton"] == "3.6.0"
    monkeypatch.setattr(versions, "TRITON", ("triton",))
    assert machine.software()["triton"] is None


# ----------------------------------------------------------------------------- what Triton needs


def test_a_machine_with_compiler_and_headers_lacks_nothing(tools, monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    tool(tools, "gcc", [])
    (tools / "Python.h").write_text("", encoding="utf-8")
    monkeypatch.setattr(machine.sysconfig, "get_paths", lambda scheme: {"include": str(tools)})
    assert machine.no_compiler() == ""


def test_a_machine_without_a_compiler_is_told_so(tools, monkeypatch):
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.delenv("CC", raising=False)
    assert "no C compiler here: Triton builds its driver" in machine.no_compiler()
    monkeypatch.setenv("CC", "mycc")
    assert "CC = 'mycc': there is no such program" in machine.no_compiler()


def test_a_machine_without_python_s_headers_is_told_so(tools, monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    tool(tools, "gcc", [])
    monkeypatch.setattr(machine.sysconfig, "get_paths", lambda scheme: {"include": str(tools)})
    assert "holds no Python.h" in machine.no_compiler()
    assert f"python{sys.version_info.major}.{sys.version_info.minor}-dev" in machine.no_compiler()


def test_a_card_that_triton_is_too_new_for_is_refused_with_a_sentence(monkeypatch):
    here = card_here(monkeypatch, name="Tesla P100-PCIE-16GB", major=6, minor=0)
    monkeypatch.setattr(devices, "MODE", "compiled")
    assert "older than Triton supports" in machine.why_not_timed(here)


def test_a_card_that_the_catalog_lacks_has_the_formats_of_its_kind():
    unknown = dataclasses.replace(CARD, accelerator=None)
    assert unknown.card() is None and unknown.has("fp8")
    assert not dataclasses.replace(unknown, target="sm_80").has("fp8")
