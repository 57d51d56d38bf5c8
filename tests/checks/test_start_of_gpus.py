"""The kernel log: GPUs and modules that were refused, BARs without a place, devices that another driver was given."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import of_text
from kernel_lines import GPU, JUDGED, NOWHERE, UNJUDGED, with_log
from test_faults_of_hosts import bad_findings
from test_health_checks import box

from dgxcheck.checks.engine.finding import Status
from dgxcheck.facts.faults import MODULES_REFUSED, Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import replace


def test_a_gpu_that_is_not_listed_is_not_the_one_that_another_line_names() -> None:
    machine = box("dgx-1-v100")
    gpus = tuple(replace(gpu, index=None) if gpu.bdf == GPU else gpu for gpu in machine.gpus)
    unlisted = replace(machine, gpus=gpus, topology=replace(machine.topology, devices=gpus))
    said = "RmInitAdapter failed! (0x26:0xffff:1290)"
    for line, due in ((f"NVRM: GPU {NOWHERE}: {said}", NOWHERE), (f"NVRM: {said}", GPU)):
        assert [bad.subject.bdf for bad in bad_findings(with_log(unlisted, (line,)), "kernel.gpu-start")] == [due]


BOOT = "[    0.000000] Linux version 4.15.0"
FAILED = "[    5.000000] NVRM: rm_init_adapter failed for device bearing minor number 0"
XID = "NVRM: Xid (PCI:0000:52:00):"


@pytest.mark.parametrize(("lines", "status"), [
    ((BOOT, FAILED), "fail"),
    ((FAILED,), "warn"),
    (("NVRM: RmInitAdapter failed! (0x26:0xffff:1096)",), "warn"),
    ((BOOT, FAILED, f"[   20.000000] {XID} 31, pid=4711, name=python3, Ch 00000008, MMU Fault"), "warn"),
    ((BOOT, FAILED, f"[   20.000000] {XID} 31, Ch 00000010, engmask 00000101, intr 10000000"), "warn"),
    ((BOOT, FAILED, f"[   20.000000] {XID} 13, Graphics Exception: ESR 0x404490=0x80000001"), "warn"),
    ((BOOT, f"[    2.000000] {XID} 31, Ch 00000010, engmask 00000101, intr 10000000", FAILED), "fail"),
    ((BOOT, FAILED, f"[   20.000000] {XID} 79, GPU has fallen off the bus."), "fail"),
    ((BOOT, FAILED, "[   55.000000] nvidia-modeset: Allocated GPU:0 (GPU-0c8e7d6f) @ PCI:0000:07:00.0"), "warn"),
])  # fmt: skip
def test_a_gpu_that_a_log_does_not_name_fails_where_nothing_says_that_it_runs(
    lines: tuple[str, ...], status: str, tmp_path: Path
) -> None:
    _, document = of_text("".join(f"{line}\n" for line in lines), tmp_path)
    found = [each["status"] for each in document["findings"] if each["id"] == "kernel.gpu-start"]
    assert found[-1:] == [status]


def test_a_gpu_that_a_log_does_not_name_is_a_warning_where_others_run() -> None:
    (bad,) = bad_findings(with_log(box("dgx-1-v100"), (FAILED.partition("] ")[2],)), "kernel.gpu-start")
    assert bad.status is Status.WARN


def test_modules_that_the_kernel_refused_are_judged_one_by_one() -> None:
    lines = ("nvidia_uvm: Unknown symbol x (err -2)", "gdrdrv: disagrees about version of symbol nvidia_p2p_get_pages")
    found = bad_findings(with_log(box("dgx-1-v100"), lines), "kernel.gpu-start")
    assert {(bad.subject.part, bad.judgement.measured) for bad in found} == {("gdrdrv", 1), ("nvidia_uvm", 1)}


def test_the_reason_of_a_refused_gpu_leads_to_its_own_remedy() -> None:
    machine = box("dgx-1-v100")
    remedies = {
        bad.judgement.remedy: lines
        for lines, check, fault in JUDGED if fault in (Fault.GPU_REFUSED, *MODULES_REFUSED)
        for bad in bad_findings(with_log(machine, lines), check)
    }  # fmt: skip
    assert sorted(" ".join(remedy.split()[:3]) for remedy in remedies) == [
        "build the modules", "find that driver", "in the firmware", "install a release", "install the GSP",
        "install the driver's", "install the open", "install the proprietary", "load the modules",
    ]  # fmt: skip
    assert all("reset" not in remedy and "replace" not in remedy for remedy in remedies)


@pytest.mark.parametrize("text", [lines[0] for lines in UNJUDGED if "oad" in lines[0] and "NVRM" not in lines[0]])
def test_a_refused_signature_counts_where_the_driver_is_not_loaded(text: str) -> None:
    machine = box("dgx-1-v100")
    assert not bad_findings(with_log(machine, (text,)), "kernel.gpu-start")
    without = replace(machine, snapshot=replace(machine.snapshot, gpu=Missing(Gap.ABSENT, "nvmlInit", code=9)))
    (bad,) = bad_findings(with_log(without, (text,)), "kernel.gpu-start")
    assert bad.judgement.fault is Fault.MODULE_UNSIGNED
    assert "signature" in bad.judgement.message


@pytest.mark.parametrize("text", [lines[0] for lines in UNJUDGED if "BAR 1" in lines[0] and "size" in lines[0]])
def test_a_bar_without_a_place_counts_for_a_gpu_that_nvml_does_not_list(text: str) -> None:
    machine = box("dgx-1-v100")
    here = text.replace(NOWHERE, GPU)
    assert not bad_findings(with_log(machine, (here,)), "kernel.gpu-start")
    gpus = tuple(replace(gpu, index=None) if gpu.bdf == GPU else gpu for gpu in machine.gpus)
    unlisted = replace(machine, gpus=gpus, topology=replace(machine.topology, devices=gpus))
    (bad,) = bad_findings(with_log(unlisted, (here,)), "kernel.gpu-start")
    assert bad.judgement.fault is Fault.BAR1_SMALL


def test_a_device_that_was_lent_to_a_guest_is_a_gpu_only_where_something_says_so() -> None:
    machine = box("dgx-1-v100")
    (gpu, *_) = machine.gpus
    said = "not ready 65535ms after FLR; giving up"
    (bad,) = bad_findings(with_log(machine, (f"vfio-pci {NOWHERE}: {said}",)), "kernel.hot-plug")
    assert (bad.blames[0].kind, bad.blames[0].part, bad.blames[0].bdf) == ("slot", "device", NOWHERE)
    own = with_log(machine, (f"vfio-pci {gpu.bdf}: {said}",))
    assert [bad.blames[0].kind for bad in bad_findings(own, "kernel.off-bus")] == ["gpu"]
    assert not bad_findings(own, "kernel.hot-plug")
    beside = (f"NVRM: GPU {NOWHERE}: GPU has fallen off the bus.", f"snd_hda_intel {NOWHERE[:-1]}1: {said}")
    assert not bad_findings(with_log(machine, beside), "kernel.hot-plug")


def test_a_bar_without_a_place_counts_where_the_log_alone_knows_the_gpu() -> None:
    """https://github.com/HeyMeco/Rockchip-pcie-devices/issues/2"""
    machine = box("dgx-1-v100")
    found = f"pci {NOWHERE}: [10de:2204] type 00 class 0x030000 PCIe Legacy Endpoint"
    refused = f"pci {NOWHERE}: BAR 1 [mem size 0x10000000 64bit pref]: can't assign; no space"
    (bad,) = bad_findings(with_log(machine, (found, refused)), "kernel.gpu-start")
    assert (bad.judgement.fault, bad.blames[0].kind, bad.blames[0].part) == (Fault.BAR1_SMALL, "gpu", "BAR1")
    assert not bad_findings(with_log(machine, (found.replace("10de", "1a03"), refused)), "kernel.gpu-start")
    for given in ("BAR 1 [mem 0x3800000000-0x380fffffff 64bit pref]: assigned", "BAR 1: assigned [mem 0x38000000]"):
        lines = (found, refused, f"pci {NOWHERE}: {given}")
        assert not bad_findings(with_log(machine, lines), "kernel.gpu-start")


@pytest.mark.parametrize(("size", "due"), [
    ("0x2000000000 64bit pref", ["host"]), ("0x200000000 64bit pref", ["host"]), ("0x10000000 64bit pref", []),
    ("0x80000000", []),
])  # fmt: skip
def test_a_large_bar_without_a_place_counts_where_nothing_but_the_log_is_there(
    size: str, due: list[str], tmp_path: Path
) -> None:
    """Others than GPUs have none of 8 GiB; which device it is nothing says."""
    text = f"[    0.911123] pci {NOWHERE}: BAR 1 [mem size {size}]: can't assign; no space\n"
    _, found = of_text(text, tmp_path)
    assert [cause["component"]["kind"] for cause in found["causes"]] == due
    named = f"[    0.811123] pci {NOWHERE}: [10de:2330] type 00 class 0x030200\n"
    _, found = of_text(named + text, tmp_path)
    assert [cause["component"]["kind"] for cause in found["causes"]] == ["gpu"]


@pytest.mark.parametrize(("said", "fault"), [
    (f"nvidia: probe of {NOWHERE} failed with error -1", Fault.BAR1_SMALL),
    (f"NVRM: GPU {NOWHERE}: RmInitAdapter failed! (0x22:0x56:884)", Fault.GPU_UNRECOGNISED),
])  # fmt: skip
def test_a_start_that_failed_without_a_reason_failed_for_want_of_a_bar(said: str, fault: FaultKind) -> None:
    """Also of a device that the log names as a GPU only so."""
    refused = f"pci {NOWHERE}: BAR 1 [mem size 0x10000000 64bit pref]: failed to assign"
    (bad,) = bad_findings(with_log(box("dgx-1-v100"), (refused, said)), "kernel.gpu-start")
    assert bad.judgement.fault is fault
    (bad,) = bad_findings(with_log(box("dgx-1-v100"), (said,)), "kernel.gpu-start")
    assert bad.judgement.fault is not Fault.BAR1_SMALL


def test_a_gpu_that_another_driver_was_given_is_no_fault() -> None:
    machine = box("dgx-1-v100")
    lines = ("NVRM: The NVIDIA probe routine was not called for 1 device(s).",)
    (gpu, *others) = machine.gpus
    function = gpu.function
    assert function is not None
    given = replace(gpu, index=None, function=replace(function, driver="vfio-pci"))
    gpus = (given, *others)
    made = replace(machine, gpus=gpus, topology=replace(machine.topology, devices=gpus))
    assert not bad_findings(with_log(made, lines), "kernel.gpu-start")
    taken = replace(given, function=replace(function, driver="nouveau"))  # driver.bound reports it
    made = replace(machine, gpus=(taken, *others), topology=replace(machine.topology, devices=(taken, *others)))
    assert not bad_findings(with_log(made, lines), "kernel.gpu-start")


def test_the_log_has_the_version_of_the_module_that_refused(tmp_path: Path) -> None:
    text = """Failed to initialize NVML: Driver/library version mismatch
[    1.000000] NVRM: API mismatch: the client has the version 535.161.07, but
[    1.000000] NVRM: this kernel module has the version 535.154.05.  Please
"""
    (found,) = [each for each in of_text(text, tmp_path)[1]["findings"] if each["id"] == "driver.version-match"]
    assert found["message"].endswith("loaded kernel module, version 535.154.05")
