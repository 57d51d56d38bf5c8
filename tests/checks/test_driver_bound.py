"""What PCI shows and a layer above does not has the cause that the layers show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_health_checks import box, changed

from dgxcheck.checks.driver import loaded
from dgxcheck.checks.driver.bound import CHECKS, without_rdma_device
from dgxcheck.checks.engine.finding import Finding
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.network import hcas
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.host import Modules
from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.facts.record import replace
from dgxcheck.profiles import library
from dgxcheck.profiles.model import SelectedProfile

GPU, HCA, SWITCH, DISK = "0000:47:00.0", "0000:4b:00.0", "0000:c6:00.0", "0000:01:00.0"
NONE: Json = {"missing": "absent"}
COUNT = "network.hca-count"


def chosen(name: str) -> SelectedProfile:
    return SelectedProfile(profile=library.by_name(name), how="named")


def driver(bdf: str, target: Json = NONE) -> dict[str, Json]:
    return {f"link /sys/bus/pci/devices/{bdf}/driver": target}


def found(tmp_path: Path, facts: dict[str, Json], bdf: str) -> Finding:
    findings = run(box(changed(tmp_path, facts, "dgx-a100")), CHECKS)
    (finding,) = [each for each in findings if each.subject.bdf == bdf]
    return finding


def disks() -> list[str]:
    functions = box("dgx-a100").topology.functions.values()
    return [each.bdf for each in functions if each.class_code == 0x010802]


@pytest.mark.parametrize(
    ("bdf", "target", "status", "fault"),
    [
        (GPU, NONE, "fail", "driver-unbound"),
        (GPU, "../../bus/pci/drivers/nouveau", "fail", "nouveau"),
        (GPU, "../../bus/pci/drivers/vfio-pci", "warn", "driver-other"),
        (GPU, {"missing": "denied"}, "skip", None),
        (HCA, NONE, "fail", "driver-unbound"),
        (HCA, "../../bus/pci/drivers/vfio-pci", "warn", "driver-other"),
        (SWITCH, NONE, "fail", "nvswitch-driver"),
    ],
)
def test_the_driver(bdf: str, target: Json, status: str, fault: str | None, tmp_path: Path) -> None:
    finding = found(tmp_path, driver(bdf, target), bdf)
    assert finding.status.value == status
    assert (finding.judgement.fault.word if finding.judgement.fault else None) == fault


ZEROS = f"{'0x0000000000000000 ' * 2}0x0000000000000000\n" * 13
GPUS, HCAS = (GPU, "0000:4e:00.0"), (HCA, "0000:54:00.0")
GAVE_UP = {
    "pcie.bar1": (GPUS, "text /sys/bus/pci/devices/{}/resource", ZEROS),
    "kernel.gpu-start": (GPUS, "kmsg 60", "5000.0;NVRM: GPU {}: RmInitAdapter failed! (0x26:0xffff:1290)"),
    "kernel.hca": (HCAS, "kmsg 60", "5000.0;mlx5_core {}: probe with driver mlx5_core failed with error -5"),
}


@pytest.mark.parametrize(("check", "own"), [(check, own) for check in GAVE_UP for own in (True, False)])
def test_a_driver_that_gave_up_is_that_of_the_device_of_which_it_says_so(check: str, own: bool, tmp_path: Path) -> None:
    (unbound, other), key, text = GAVE_UP[check]
    of = unbound if own else other
    facts, log = driver(unbound), {key.format(of): text.format(of)}
    spec = changed(tmp_path, *((facts | log, "dgx-a100") if check == "pcie.bar1" else (facts, "dgx-a100", log)))
    (judgement,) = [each.judgement for each in run(box(spec), CHECKS) if each.subject.bdf == unbound]
    assert (judgement.reason == "dependency-failed", judgement.message.endswith(f": see {check}")) == (own, own)


def test_a_disk_without_a_driver_may_be_unused(tmp_path: Path) -> None:
    disk = disks()[0]
    finding = found(tmp_path, driver(disk), disk)
    assert (finding.status.value, finding.judgement.message) == ("warn", "no driver is bound to this NVMe disk")


def test_disks_of_user_space_are_no_fault(tmp_path: Path) -> None:
    """As of SPDK, whatever holds the others of their model."""
    assert found(tmp_path, driver(disks()[0], "../../bus/pci/drivers/vfio-pci"), disks()[0]).status.value == "skip"


def test_an_adapter_whose_module_is_not_loaded(tmp_path: Path) -> None:
    loaded = [each.name for each in box("dgx-a100").modules if each.loaded is True and each.name != "mlx5_core"]
    finding = found(tmp_path, driver(HCA) | {"names /sys/module": [*loaded]}, HCA)
    assert finding.judgement.message == "no driver is bound to this HCA: the module mlx5_core is not loaded"
    assert finding.judgement.fault is Fault.MODULE_NOT_LOADED


@pytest.mark.parametrize("modules", [{}, {"names /sys/module": {"missing": "denied"}}], ids=["listed", "denied"])
def test_nvswitches_that_no_driver_holds_lack_no_module(modules: dict[str, Json], tmp_path: Path) -> None:
    """The GPUs' module is theirs, and holds the GPUs."""
    switches = [f"0000:{bus}:00.0" for bus in ("c4", "c5", "c6", "c7", "c8", "c9")]
    facts = {key: target for bdf in switches for key, target in driver(bdf).items()}
    findings = run(box(changed(tmp_path, facts | modules, "dgx-a100")), CHECKS)
    found = {each.subject.bdf: each.judgement for each in findings if each.subject.bdf in switches}
    assert {bdf: each.message for bdf, each in found.items()} == dict.fromkeys(
        switches, "no driver is bound to this NVSwitch"
    )
    assert {each.fault for each in found.values()} == {Fault.NVSWITCH_DRIVER}


@pytest.mark.parametrize(("every", "message", "fault"), [
    (False, "no driver is bound to this HCA", Fault.DRIVER_UNBOUND),
    (True, "no driver is bound to any HCA; the module mlx5_core may not be loaded", Fault.MODULE_NOT_LOADED),
])  # fmt: skip
def test_a_module_that_may_be_built_in_holds_at_least_one(
    every: bool, message: str, fault: FaultKind, tmp_path: Path
) -> None:
    adapters = [each.bdf for each in box("dgx-a100").topology.devices if each.kind == "nic" and each.bdf is not None]
    assert HCA in adapters
    facts: dict[str, Json] = {"names /sys/module": {"missing": "denied"}}
    for bdf in adapters if every else [HCA]:
        facts |= driver(bdf)
    finding = found(tmp_path, facts, HCA)
    assert (finding.judgement.message, finding.judgement.fault) == (message, fault)


@pytest.mark.parametrize(("users", "status"), [(0, "warn"), (1, "skip")])
def test_what_is_set_aside_while_virtual_machines_run_is_theirs(users: int, status: str, tmp_path: Path) -> None:
    loaded = [each.name for each in box("dgx-a100").modules if each.loaded is True]
    facts = driver(GPU, "../../bus/pci/drivers/vfio-pci") | {"names /sys/module": [*loaded, "kvm_amd"]}
    spec = changed(tmp_path, facts, "dgx-a100", {"text /sys/module/kvm_amd/refcnt": f"{users}\n"})
    assert [each.status.value for each in run(box(spec), CHECKS) if each.subject.bdf == GPU] == [status]


def test_a_device_that_sleeps_is_woken_before_it_is_bound(tmp_path: Path) -> None:
    asleep: dict[str, Json] = {f"text /sys/bus/pci/devices/{GPU}/power_state": "D3cold\n"}
    finding = found(tmp_path, driver(GPU) | asleep, GPU)
    assert finding.judgement.message == "no driver is bound to this GPU, and it is asleep (D3cold)"
    assert finding.remedy.startswith(f"wake it (echo on > /sys/bus/pci/devices/{GPU}/power/control), then bind it")


def unlisted(*modules: str) -> dict[str, Json]:
    """The adapter is bound, and /sys/class/infiniband does not have it; without these modules."""
    machine = box("dgx-a100")
    devices = machine.snapshot.infiniband
    assert isinstance(devices, tuple)
    names = [each.name for each in devices if each.bdf != HCA]
    assert len(names) == len(devices) - 1
    facts: dict[str, Json] = {"names /sys/class/infiniband": [*names]}
    if modules:
        known = machine.snapshot.modules
        assert isinstance(known, Modules)
        kept = [each.name for each in known.modules if each.loaded is True and each.name not in modules]
        facts["names /sys/module"] = [*kept]
    return facts


def test_an_adapter_of_which_no_rdma_device_is_made(tmp_path: Path) -> None:
    finding = found(tmp_path, unlisted(), HCA)
    assert finding.judgement.fault is not None
    assert (finding.status.value, finding.judgement.fault.word) == ("fail", "hca-unlisted")
    assert "mlx5_ib is not loaded" not in finding.judgement.message
    finding = found(tmp_path, unlisted("mlx5_ib"), HCA)
    assert finding.judgement.message.endswith("no RDMA device is made of it: the module mlx5_ib is not loaded")
    assert finding.remedy.startswith("modprobe mlx5_ib")


@pytest.mark.parametrize(("log", "status"), [
    ({}, "unknown"),
    ({"kmsg 60": f"5000.0;mlx5_core {HCA}: poll_health:835:(pid 0): Fatal error 1 detected"}, "fail"),
])  # fmt: skip
def test_an_adapter_of_another_network_namespace(log: dict[str, Json], status: str, tmp_path: Path) -> None:
    machine = box("dgx-a100")
    interfaces = machine.snapshot.network
    assert isinstance(interfaces, tuple)
    names = [each.name for each in interfaces if each.bdf != HCA]
    assert len(names) < len(interfaces)
    facts = unlisted() | {"names /sys/class/net": [*names]}
    document = {"schema": "dgxcheck/overlay/1", "base": "dgx-a100", "facts": facts, "add": log}
    path = tmp_path / "elsewhere.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    findings = run(box(str(path)), CHECKS)
    (status_there,) = [each.status.value for each in findings if each.subject.bdf == HCA]
    assert status_there == status


def test_such_an_adapter_is_not_missing(tmp_path: Path) -> None:
    machine = box(changed(tmp_path, unlisted(), "dgx-a100"))
    assert [each.bdf for each in without_rdma_device(machine)] == [HCA]
    (number,) = run(replace(machine, choice=chosen("dgx-a100")), [each for each in hcas.CHECKS if each.id == COUNT])
    assert number.status.value == "pass"
    assert f"; {HCA} without an RDMA device (driver.bound, kernel.hca)" in number.judgement.message


@pytest.mark.parametrize(("code", "known", "fault"), [
    (999, True, "container-devices"), (999, False, "driver-failed"), (9, False, "driver-not-loaded"),
])  # fmt: skip
def test_a_container_of_which_nodes_are_not_known_has_no_fault_of_theirs(
    code: int, known: bool, fault: str, tmp_path: Path
) -> None:
    facts: dict[str, Json] = {f"opens /dev/nvidia{minor}": False for minor in (*range(8), "ctl")}
    facts |= {"nvml nvmlInit": {"missing": "garbled", "detail": f"NVML {code}", "code": code}, "text /.dockerenv": ""}
    seen = box(changed(tmp_path, facts, "dgx-a100"))
    if not known:
        unknown = Missing(Gap.UNRECORDED, "/dev")
        seen = replace(seen, snapshot=replace(seen.snapshot, device_nodes=unknown))
    (finding,) = run(seen, [check for check in loaded.CHECKS if check.id == "driver.library"])
    assert finding.judgement.fault is not None, finding.judgement.message
    assert (finding.status.value, finding.judgement.fault.word) == ("fail", fault)


@pytest.mark.parametrize(("refused", "status"), [(GPU, "skip"), ("0000:07:00.0", "fail")])
def test_only_the_gpu_that_the_driver_gave_up_on_has_its_reason_there(
    refused: str, status: str, tmp_path: Path
) -> None:
    line = f"5000.0;NVRM: GPU {refused}: RmInitAdapter failed! (0x22:0x56:884)"
    document: Json = {"schema": "dgxcheck/overlay/1", "base": "dgx-a100", "facts": driver(GPU),
                      "add": {"kmsg 60": line}}  # fmt: skip
    path = tmp_path / "gave-up.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    (finding,) = [each for each in run(box(str(path)), CHECKS) if each.subject.bdf == GPU]
    assert finding.status.value == status
