"""Checks of driver, GPUs and placement: the fault that each bad finding names, and what it can come from."""

from __future__ import annotations

from pathlib import Path

import pytest
from fabric_box import PROFILES
from gpu_box import board, choice
from test_checks_gpu import BAD, everywhere
from test_checks_gpu import said as finding_of
from test_gpu_held_down import POWER, REASONS, later, violation
from test_health_checks import GPU2, NVML, box, changed
from together import for_each

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import BAD as BAD_STATUSES
from dgxcheck.checks.engine.finding import Finding
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.gpu.beside_siblings import POWER_CAP
from dgxcheck.checks.registry import CHECKS
from dgxcheck.components.component import Component
from dgxcheck.difference.compare import compare
from dgxcheck.difference.model import Side
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import NOT_LOADABLE, Json
from dgxcheck.facts.record import replace
from dgxcheck.profiles.model import SelectedProfile

A100_GPU = "0000:0f:00.0"
A100_BUSES = ("07", "0f", "47", "4e", "87", "90", "b7", "bd")
DRIVER, HOST = ("driver", "NVIDIA driver", ""), "host"


def gpu(part: str, bdf: str = GPU2) -> tuple[str, str, str]:
    return "gpu", bdf, part


def key(component: Component) -> tuple[str, str, str]:
    return component.kind, component.bdf or component.name, "/".join(filter(None, (component.part, component.position)))


def error(code: int, kind: str = "garbled") -> Json:
    return {"missing": kind, "detail": "words that nothing depends on", "code": code}


def shared(finding: Finding) -> tuple[str, str] | None:
    return None if finding.shared is None else (finding.shared.kind, finding.shared.part)


@for_each(
    ("check", "bdf", "facts", "fault", "blamed"),
    [
        ("driver.library", None, {"nvml nvmlInit": error(9, "absent")}, Fault.DRIVER_NOT_LOADED, DRIVER),
        ("driver.library", None, {"nvml nvmlInit": error(12, "absent")}, Fault.LIBRARY_MISSING, DRIVER),
        ("driver.library", None, {"nvml nvmlInit": error(NOT_LOADABLE)}, Fault.LIBRARY_BROKEN, DRIVER),
        ("driver.library", None, {"nvml nvmlInit": error(18)}, Fault.DRIVER_MISMATCH, DRIVER),
        ("driver.library", None, {"nvml nvmlInit": error(999)}, Fault.DRIVER_FAILED, DRIVER),
        ("driver.responsive", GPU2, {f"{NVML}Name {GPU2}": {"missing": "timeout"}}, Fault.DRIVER_UNRESPONSIVE, gpu("")),
        ("driver.responsive", GPU2, {"nvml nvmlDeviceGetHandleByIndex 2": {"missing": "timeout"}},
         Fault.DRIVER_UNRESPONSIVE, gpu("")),
        ("driver.responsive", None, {f"nvml nvmlDeviceGetHandleByIndex {n}": {"missing": "timeout"} for n in (2, 5)},
         Fault.DRIVER_UNRESPONSIVE, DRIVER),
        ("driver.responsive", None, {"nvml nvmlInit": {"missing": "timeout"}}, Fault.DRIVER_UNRESPONSIVE, DRIVER),
        ("driver.bound", GPU2, {f"link /sys/bus/pci/devices/{GPU2}/driver": "../../bus/pci/drivers/nouveau"},
         Fault.NOUVEAU, DRIVER),
        ("driver.persistence", GPU2, {f"{NVML}PersistenceMode {GPU2}": 0}, Fault.PERSISTENCE_OFF,
         gpu("persistence mode")),
        ("driver.version-match", None, {"nvml nvmlInit": error(18)}, Fault.DRIVER_MISMATCH, DRIVER),
        ("driver.version-match", None, {"nvml nvmlSystemGetNVMLVersion": "12.1.2"}, Fault.DRIVER_MISMATCH, DRIVER),
        ("driver.device-nodes", GPU2, {"opens /dev/nvidia2": False}, Fault.DEVICE_NODE, gpu("device node")),
        ("driver.device-nodes", None, {"opens /dev/nvidiactl": False}, Fault.DEVICE_NODE, (HOST, HOST, "device nodes")),
        ("gpu.lost", GPU2, {f"{NVML}Name {GPU2}": error(15, "lost")}, Fault.GPU_LOST, gpu("")),
        ("gpu.reset-required", GPU2, {f"{NVML}Name {GPU2}": error(16, "lost")}, Fault.RESET_REQUIRED, gpu("")),
        ("gpu.compute-mode", GPU2, {f"{NVML}ComputeMode {GPU2}": 2}, Fault.COMPUTE_PROHIBITED, gpu("compute mode")),
        ("gpu.inforom", GPU2, {f"{NVML}EccMode {GPU2}": BAD}, Fault.INFOROM, gpu("InfoROM")),
        ("gpu.uniform", GPU2, {f"{NVML}VbiosVersion {GPU2}": "88"}, Fault.UNEQUAL, gpu("versions and settings")),
        ("gpu.uniform", None, everywhere("VbiosVersion {}", ["88.1"] * 4 + ["88.2"] * 4), Fault.UNEQUAL,
         (HOST, HOST, "VBIOS and settings of GPUs")),
        ("ecc.mode", GPU2, {f"{NVML}EccMode {GPU2}": [0, 0]}, Fault.ECC_OFF, gpu("ECC mode")),
        ("ecc.mode", GPU2, {f"{NVML}EccMode {GPU2}": [1, 0]}, Fault.ECC_PENDING, gpu("ECC mode")),
        ("ecc.volatile", GPU2, {f"{NVML}TotalEccErrors {GPU2} 1 0": 1}, Fault.ECC_UNCORRECTED, gpu("memory")),
        ("ecc.retired-pages", GPU2, {f"{NVML}RetiredPages {GPU2} 1": [{"address": n} for n in range(11)]},
         Fault.PAGES_MANY, gpu("memory")),
        ("ecc.retired-pages", GPU2, {f"{NVML}RetiredPages {GPU2} 1": [{"address": n} for n in range(63)]},
         Fault.PAGES_EXHAUSTED, gpu("memory")),
        ("ecc.retirement-pending", GPU2, {f"{NVML}RetiredPagesPendingStatus {GPU2}": 1}, Fault.RETIREMENT_PENDING,
         gpu("memory")),
        ("clock.throttle", GPU2, {f"{NVML}CurrentClocksEventReasons {GPU2}": 0x88}, Fault.POWER_BRAKE,
         gpu("power supply")),
        ("clock.throttle", GPU2, {f"{NVML}CurrentClocksEventReasons {GPU2}": 0x48}, Fault.THERMAL_SLOWDOWN,
         gpu("cooling")),
        ("clock.throttle", GPU2, {f"{NVML}CurrentClocksEventReasons {GPU2}": 0x8}, Fault.POWER_VIOLATION,
         gpu("power supply")),
        *(("clock.throttle", GPU2, {f"{NVML}CurrentClocksEventReasons {GPU2}": 0x8, f"{NVML}Temperature {GPU2} 0": now},
           fault, gpu(part)) for now, fault, part in ((67, Fault.POWER_VIOLATION, "power supply"),
                                                      (68, Fault.HARDWARE_SLOWDOWN, "cooling"))),
        ("clock.throttle", GPU2, {f"{NVML}CurrentClocksEventReasons {GPU2}": 0x20}, Fault.THERMAL_SLOWDOWN,
         gpu("cooling")),
        ("clock.application", GPU2, {f"{NVML}ApplicationsClock {GPU2} 0": 1005}, Fault.CLOCKS_LOWERED,
         gpu("clock setting")),
        ("power.limit", GPU2, {f"{NVML}EnforcedPowerLimit {GPU2}": 163000}, Fault.POWER_CAPPED, gpu("power limit")),
        ("thermal.temperature", GPU2, {f"{NVML}Temperature {GPU2} 0": 83}, Fault.OVERHEATING, gpu("cooling")),
        ("thermal.temperature", GPU2, {f"{NVML}Temperature {GPU2} 0": 88}, Fault.OVERHEATING, gpu("cooling")),
        ("thermal.outlier", GPU2, {f"{NVML}Temperature {GPU2} 0": 60}, Fault.HEAT_SINK, gpu("cooling")),
        ("topology.nvml-agrees", None, {f"{NVML}TopologyCommonAncestor 0000:06:00.0 0000:07:00.0": 50},
         Fault.DISAGREEMENT, DRIVER),
        ("topology.numa", None, {f"text /sys/bus/pci/devices/{GPU2}/numa_node": "-1\n"}, Fault.NUMA_UNKNOWN,
         ("host-bridge", "pci0000:00", "")),
    ],
)  # fmt: skip
def test_fault_and_component(
    check: str, bdf: str | None, facts: dict[str, Json], fault: FaultKind, blamed: tuple[str, str, str], tmp_path: Path
) -> None:
    assert blame(box(changed(tmp_path, facts)), check, bdf) == (fault, blamed)


def blame(facts: Box, check: str, bdf: str | None = GPU2) -> tuple[FaultKind | None, tuple[str, str, str]]:
    """The fault of the first bad finding of a check about this device, and what it blames first."""
    (wanted,) = [each for each in CHECKS if each.id == check]
    findings = [finding for finding in run(facts, [wanted]) if finding.subject.bdf == bdf]
    bad = next(finding for finding in findings if finding.status in BAD_STATUSES)
    return bad.judgement.fault, key(bad.blames[0])


@pytest.mark.parametrize(
    ("check", "facts", "fault", "blamed"),
    [
        ("gpu.mig", {f"{NVML}MigMode {A100_GPU}": [0, 1]}, Fault.MIG_PENDING, gpu("MIG mode", A100_GPU)),
        ("ecc.row-remap", {f"{NVML}RemappedRows {A100_GPU}": [0, 0, 1, 0]}, Fault.REMAP_PENDING,
         gpu("memory", A100_GPU)),
        ("ecc.row-remap", {f"{NVML}RemappedRows {A100_GPU}": [0, 0, 1, 1]}, Fault.REMAP_FAILED,
         gpu("memory", A100_GPU)),
        ("driver.fabric", {f"{NVML}GpuFabricInfo {A100_GPU}": {"state": 2, "status": 0}}, Fault.FABRIC_FAILED,
         gpu("fabric", A100_GPU)),
        ("thermal.margin", {f"{NVML}MarginTemperature {A100_GPU}": 1, f"{NVML}FieldValues {A100_GPU} 194": -2,
                            f"{NVML}TemperatureThreshold {A100_GPU} 1": {"missing": "unsupported"}},
         Fault.OVERHEATING, gpu("cooling", A100_GPU)),
        *((("gpu.reset-required", {f"{NVML}FieldValues {A100_GPU} 230": number}, fault, gpu("", A100_GPU)))
          for number, fault in ((1, Fault.RESET_REQUIRED), (2, Fault.REBOOT_REQUIRED), (3, Fault.DRAIN_REQUIRED),
                                (4, Fault.DRAIN_AND_RESET), (5, Fault.IMEX_RECOVERY), (9, Fault.RECOVERY_REQUIRED))),
    ],
)  # fmt: skip
def test_fault_and_component_from_ampere_on(
    check: str, facts: dict[str, Json], fault: FaultKind, blamed: tuple[str, str, str], tmp_path: Path
) -> None:
    assert blame(box(changed(tmp_path, facts, "dgx-a100")), check, A100_GPU) == (fault, blamed)


def test_a_fabric_manager_that_is_down_is_blamed(tmp_path: Path) -> None:
    down: Json = {"state": 2, "status": 0}
    spec = changed(tmp_path, {f"{NVML}GpuFabricInfo 0000:{bus}:00.0": down for bus in A100_BUSES}, "dgx-a100")
    assert blame(box(spec), "driver.fabric", None) == (Fault.FABRIC_MANAGER_DOWN, ("host", "host", "Fabric Manager"))


def test_programs_with_another_library_are_to_blame_themselves() -> None:
    facts = box("dgx-1-v100-old-client")
    expected = (Fault.CLIENT_MISMATCH, (HOST, HOST, "programs with another driver library"))
    assert blame(facts, "driver.version-match", None) == expected


def test_against_a_reference(tmp_path: Path) -> None:
    reference = SelectedProfile(profile=PROFILES["dgx-1-v100"], how="named")
    missing = replace(box("dgx-1-v100-gpu-missing"), choice=reference)
    assert blame(missing, "gpu.count", None) == (Fault.GPU_MISSING, ("slot", "0000:09:10.0", "missing GPU"))
    wrong = replace(box("dgx-1-v100"), choice=choice("dgx-1-p100", "product"))
    assert blame(wrong, "gpu.model") == (Fault.WRONG_MODEL, gpu("model"))
    small = replace(box("dgx-1-v100"), boards={"10de:1db1": board("10de:1db1", memory=32768)})
    assert blame(small, "gpu.memory-size") == (Fault.MEMORY_SIZE, gpu("memory"))
    slow = replace(box("dgx-1-v100"), boards={"10de:1db1": board("10de:1db1", max_graphics_clock=1531)})
    assert blame(slow, "clock.max") == (Fault.CLOCKS_LIMITED, gpu("versions and settings"))
    other_root = f"../../../devices/pci0000:00/0000:00:01.0/{GPU2}"
    moved = replace(box(changed(tmp_path, {f"link /sys/bus/pci/devices/{GPU2}": other_root})), choice=reference)
    assert blame(moved, "topology.profile", None) == (Fault.MISPLACED, (HOST, HOST, "placement of GPUs"))


@pytest.mark.parametrize(
    ("spec", "bdf", "blamed"),
    [
        ("dgx-1-v100-gpu-missing", "0000:0b:00.0", ("slot", "0000:09:10.0", "missing GPU")),
        ("dgx-1-v100-port-down", "0000:0c:00.0", ("port", "0000:0c:00.0", "")),
        ("dgx-1-v100-switch-x8", "0000:08:00.0", ("link", "0000:08:00.0", "")),
        ("dgx-1-v100-nvlink-down", GPU2, ("nvlink", GPU2, "")),
        ("dgx-1-v100-gpu-lost", GPU2, gpu("")),
    ],
)
def test_drift(spec: str, bdf: str, blamed: tuple[str, str, str]) -> None:
    old, new = box("dgx-1-v100"), box(spec)
    sides = (Side(snapshot=each.snapshot, topology=each.topology, namespace="x") for each in (old, new))
    drifted = replace(new, choice=SelectedProfile(profile=PROFILES["dgx-1-v100"], how="named"), drift=compare(*sides))
    assert blame(drifted, "baseline.drift", bdf) == (Fault.DRIFT, blamed)


def test_growth(tmp_path: Path) -> None:
    short = later(tmp_path, {POWER: violation(0)}, {POWER: violation(90), REASONS: POWER_CAP})
    assert blame(short, "power.violation") == (Fault.POWER_VIOLATION, gpu("power supply"))
    grown = later(tmp_path, {"TotalEccErrors {} 1 1": 4}, {"TotalEccErrors {} 1 1": 5})
    assert blame(grown, "ecc.aggregate") == (Fault.ECC_UNCORRECTED, gpu("memory"))


def test_pinned_versions(tmp_path: Path) -> None:
    plain = box(changed(tmp_path, {"text /sys/class/infiniband/mlx5_1/fw_ver": "1.2.3\n"}))
    pinned = replace(plain, settings=replace(plain.settings, driver=("1",), vbios=("2",), hca_firmware=("3",)))
    assert blame(pinned, "site.versions", None) == (Fault.VERSION, (HOST, HOST, "versions/driver"))
    assert blame(pinned, "site.versions") == (Fault.VERSION, gpu(""))
    assert blame(pinned, "site.versions", "0000:0c:00.0") == (Fault.VERSION, ("hca", "0000:0c:00.0", ""))


@pytest.mark.parametrize(
    ("check", "facts", "expected"),
    [
        ("thermal.temperature", {f"{NVML}Temperature {GPU2} 0": 88}, (HOST, "cooling")),
        ("clock.throttle", {f"{NVML}CurrentClocksEventReasons {GPU2}": 0x88}, (HOST, "power supply")),
        ("clock.throttle", {f"{NVML}CurrentClocksEventReasons {GPU2}": 0x20}, (HOST, "cooling")),
        ("power.limit", {f"{NVML}EnforcedPowerLimit {GPU2}": 163000}, ("gpus", "power limit")),
        ("driver.persistence", {f"{NVML}PersistenceMode {GPU2}": 0}, ("gpus", "persistence mode")),
        ("ecc.volatile", {f"{NVML}TotalEccErrors {GPU2} 1 0": 1}, None),
    ],
)
def test_what_is_to_blame_where_all_gpus_have_it(
    check: str, facts: dict[str, Json], expected: tuple[str, str] | None, tmp_path: Path
) -> None:
    assert shared(finding_of(box(changed(tmp_path, facts)), check)) == expected


@pytest.mark.parametrize(("action", "expected"), [(1, ("gpus", "")), (2, None), (3, None), (5, (HOST, "IMEX"))])
def test_gpus_that_all_require_a_reset_are_reset_together(
    action: int, expected: tuple[str, str] | None, tmp_path: Path
) -> None:
    spec = changed(tmp_path, {f"{NVML}FieldValues {A100_GPU} 230": action}, "dgx-a100")
    assert shared(finding_of(box(spec), "gpu.reset-required", A100_GPU)) == expected


def test_what_could_not_be_read_names_no_fault(tmp_path: Path) -> None:
    finding = finding_of(box(changed(tmp_path, {f"{NVML}Temperature {GPU2} 0": "hot"})), "thermal.temperature")
    assert (finding.status.value, finding.judgement.fault) == ("unknown", None)
