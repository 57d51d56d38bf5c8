"""GPUs against their reference, their siblings and themselves: thresholds, gaps, and who is to blame."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from gpu_box import board, choice
from measured_box import of_box
from test_health_checks import GPU2, NVML, box, changed, status

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Finding
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import replace
from dgxcheck.profiles.model import Selection
from dgxcheck.source.protocol import Origin
from dgxcheck.source.recording.keys import GroupedFacts, insert
from dgxcheck.source.recording.load import open_source
from dgxcheck.source.recording.replay import RecordedSource

MIB = 1 << 20
ALL = ("06", "07", "0a", "0b", "85", "86", "89", "8a")
BAD: Json = {"missing": "garbled", "detail": "NVML 14: corrupted InfoROM"}
UNSUPPORTED: Json = {"missing": "unsupported"}
ABSENT: Json = {"missing": "absent"}
DENIED: Json = {"missing": "denied"}
UNRECORDED: Json = {"missing": "unrecorded"}
DEFAULT = f"{NVML}PowerManagementDefaultLimit {GPU2}"
BUSY: Json = {"gpu": 100, "memory": 0}
IDLE: Json = {"gpu": 0, "memory": 0}
HELD: Json = {"total": 16384 * MIB, "free": 8192 * MIB, "used": 8192 * MIB}
IN_DOCKER: dict[str, Json] = {"text /.dockerenv": ""}
UVM = "opens /dev/nvidia-uvm"
PROC = "text /proc/driver/nvidia/version"
OTHER = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Thu Jan  1 00:00:00 UTC 1970\n"
IN_XEN: dict[str, Json] = {"text /sys/hypervisor/type": "xen\n"}


def said(facts: Box, check: str, bdf: str | None = GPU2) -> Finding:
    (wanted,) = [each for each in CHECKS if each.id == check]
    (finding,) = [each for each in run(facts, [wanted]) if each.subject.bdf == bdf]
    return finding


def word(finding: Finding) -> str:
    return " ".join([finding.status.value, finding.judgement.reason]).rstrip()


def everywhere(question: str, values: Sequence[Json]) -> dict[str, Json]:
    return {f"{NVML}{question.format(f'0000:{bus}:00.0')}": value for bus, value in zip(ALL, values, strict=True)}


@pytest.mark.parametrize(
    ("check", "bdf", "facts", "due"),
    [
        ("driver.version-match", None, {"nvml nvmlSystemGetNVMLVersion": "12.535.54.03"}, "fail"),
        ("driver.version-match", None, {"nvml nvmlSystemGetCudaDriverVersion": 11080}, "warn"),
        ("driver.version-match", None, {"nvml nvmlSystemGetCudaDriverVersion": 13000}, "pass"),  # cuda-compat
        ("driver.version-match", None, {"nvml nvmlSystemGetNVMLVersion": "x.550.127.05"}, "pass"),
        ("driver.version-match", None, {PROC: OTHER}, "fail"),
        ("driver.version-match", None, {"nvml nvmlSystemGetNVMLVersion": UNSUPPORTED}, "pass"),
        ("driver.version-match", None, {PROC: ABSENT}, "pass"),
        ("driver.version-match", None, {PROC: ABSENT, "text /sys/module/nvidia/version": ABSENT}, "pass"),
        ("driver.version-match", None, {"nvml nvmlInit": {"missing": "garbled", "detail": "NVML 18: x"}}, "fail"),
        ("driver.version-match", None, {"nvml nvmlInit": {"missing": "absent"}}, "skip not-supported"),
        ("driver.device-nodes", GPU2, {"opens /dev/nvidia2": ABSENT}, "warn"),
        ("driver.device-nodes", GPU2, {"opens /dev/nvidia2": False}, "warn"),
        ("driver.device-nodes", GPU2, {"opens /dev/nvidia3": DENIED}, "pass"),
        ("driver.device-nodes", GPU2, {"opens /dev/nvidia2": {"missing": "unrecorded"}}, "skip not-recorded"),
        ("driver.device-nodes", GPU2, IN_DOCKER | {"opens /dev/nvidia2": DENIED}, "skip not-visible"),
        ("driver.device-nodes", GPU2, {f"{NVML}MinorNumber {GPU2}": UNSUPPORTED}, "skip not-supported"),
        ("driver.device-nodes", None, {UVM: DENIED}, "warn"),
        ("driver.device-nodes", None, {"opens /dev/nvidiactl": DENIED}, "warn"),
        ("driver.device-nodes", None, IN_DOCKER | {UVM: ABSENT}, "skip not-visible"),
        ("driver.responsive", None, {f"{NVML}TopologyCommonAncestor 0000:06:00.0 0000:07:00.0": {"missing": "timeout"}},
         "fail"),  # of either, or of the driver
        ("driver.responsive", GPU2, {f"{NVML}PowerUsage {GPU2}": {"missing": "timeout"}}, "fail"),
        ("gpu.inforom", GPU2, {f"{NVML}InforomVersion {GPU2} 1": BAD}, "fail"),
        ("gpu.inforom", GPU2, {f"{NVML}EccMode {GPU2}": BAD}, "fail"),
        ("gpu.inforom", GPU2, {f"{NVML}InforomImageVersion {GPU2}": UNSUPPORTED}, "warn"),
        ("gpu.inforom", GPU2, {f"{NVML}InforomImageVersion {GPU2}": ""}, "warn"),
        ("gpu.inforom", GPU2, everywhere("InforomImageVersion {}", [UNSUPPORTED] * 8), "skip not-supported"),
        ("gpu.inforom", "0000:0b:00.0", {f"{NVML}InforomImageVersion {GPU2}": BAD}, "pass"),
        ("ecc.mode", GPU2, {f"{NVML}EccMode {GPU2}": [0, 0]}, "warn"),
        ("ecc.mode", GPU2, everywhere("EccMode {}", [[0, 0]] * 8), "pass"),
        ("ecc.mode", "0000:0b:00.0", {f"{NVML}EccMode {GPU2}": [0, 0]}, "pass"),
        ("clock.application", GPU2, {f"{NVML}ApplicationsClock {GPU2} 0": 1311}, "warn"),
        ("clock.application", GPU2, {f"{NVML}ApplicationsClock {GPU2} 0": 1530}, "pass"),
        ("clock.application", GPU2, {f"{NVML}ApplicationsClock {GPU2} 2": 810}, "warn"),
        ("clock.application", GPU2, {f"{NVML}ApplicationsClock {GPU2} 0": UNSUPPORTED}, "skip not-supported"),
        ("clock.application", GPU2, {f"{NVML}DefaultApplicationsClock {GPU2} 0": 0}, "unknown"),
        *(("clock.application", GPU2, {
            f"{NVML}PerformanceState {GPU2}": 0, f"{NVML}CurrentClocksEventReasons {GPU2}": mask,
            f"{NVML}ClockInfo {GPU2} 0": clock, f"{NVML}UtilizationRates {GPU2}": busy}, due)
          for mask, clock, busy, due in (
              (2, 1180, BUSY, "warn"), (2, 1181, BUSY, "pass"), (2, UNSUPPORTED, BUSY, "pass"),
              (6, 1180, BUSY, "pass"), (2, 1180, IDLE, "pass"), (2, 1180, UNSUPPORTED, "skip not-supported"))),
        *(("gpu.memory-held", GPU2,
           {f"{NVML}MemoryInfo {GPU2}": HELD, f"{NVML}UtilizationRates {GPU2}": IDLE, **more}, due)
          for more, due in (({}, "warn"), (IN_DOCKER, "skip not-visible"))),
        ("power.limit", GPU2, {f"{NVML}EnforcedPowerLimit {GPU2}": 163000,
                               f"{NVML}PowerManagementLimit {GPU2}": UNSUPPORTED}, "warn"),
        *(("thermal.temperature", GPU2, {f"{NVML}Temperature {GPU2} 0": celsius, f"{NVML}FanSpeed {GPU2}": 0}, due)
          for celsius, due in ((30, "pass"), (75, "warn"), (88, "fail"), (255, "skip dependency-failed"))),
        *(("thermal.temperature", GPU2, {
            f"{NVML}Temperature {GPU2} 0": celsius, f"{NVML}TemperatureThreshold {GPU2} 1": UNRECORDED,
            f"{NVML}MarginTemperature {GPU2}": UNRECORDED}, due)
          for celsius, due in ((90, "warn"), (255, "skip not-recorded"))),
        ("thermal.outlier", GPU2, {f"{NVML}Temperature {GPU2} 0": 53}, "pass"),
        ("thermal.outlier", GPU2, {f"{NVML}Temperature {GPU2} 0": 54}, "warn"),
        ("thermal.outlier", GPU2, {f"{NVML}Temperature {GPU2} 0": 255}, "skip dependency-failed"),
        ("thermal.outlier", GPU2, {f"{NVML}Temperature {GPU2} 0": 60,
                                   f"{NVML}PowerUsage {GPU2}": 90000}, "skip no-reference"),
        ("thermal.outlier", GPU2, {f"{NVML}Temperature {GPU2} 0": 60,
                                   f"{NVML}PerformanceState {GPU2}": 2}, "skip no-reference"),
        ("thermal.outlier", GPU2, {f"{NVML}Temperature {GPU2} 0": 83}, "warn"),
        ("thermal.outlier", GPU2, {f"{NVML}Temperature {bdf} 0": 83 for bdf in (GPU2, "0000:0b:00.0")},
         "skip dependency-failed"),
        ("thermal.outlier", GPU2, {f"{NVML}PowerUsage {GPU2}": UNSUPPORTED}, "skip not-supported"),
        ("gpu.uniform", GPU2, {f"{NVML}EccMode {GPU2}": [0, 0]}, "pass"),  # ecc.mode tells of it
        ("gpu.uniform", GPU2, {f"{NVML}EnforcedPowerLimit {GPU2}": 163000}, "pass"),
        ("gpu.uniform", GPU2, {f"{NVML}ApplicationsClock {GPU2} 0": 1005}, "pass"),
        ("gpu.uniform", GPU2, {f"{NVML}ApplicationsClock {GPU2} 0": 1530}, "warn"),
        ("gpu.uniform", GPU2, {f"{NVML}MaxClockInfo {GPU2} 0": 1380}, "warn"),
        ("gpu.uniform", GPU2, {f"{NVML}DefaultApplicationsClock {GPU2} 0": 1290}, "warn"),
        ("gpu.uniform", GPU2, {f"{NVML}InforomImageVersion {GPU2}": "G503.0201.00.03"}, "warn"),
        ("gpu.uniform", GPU2, {f"{NVML}VbiosVersion {GPU2}": UNSUPPORTED}, "pass"),
        ("gpu.uniform", "0000:0b:00.0", {f"{NVML}VbiosVersion {GPU2}": "88"}, "pass"),
        ("gpu.uniform", None, everywhere("VbiosVersion {}", ["88.1"] * 4 + ["88.2"] * 4), "warn"),
        ("gpu.uniform", GPU2, everywhere("VbiosVersion {}", ["88.1"] * 4 + ["88.2"] * 4), "pass"),
        ("gpu.uniform", GPU2, {f"{NVML}Name {GPU2}": "Tesla P40"}, "skip no-reference"),
        ("gpu.uniform", GPU2, {f"{NVML}MemoryInfo {GPU2}": {"total": 16220 * MIB, "free": 0, "used": 0}}, "warn"),
        ("gpu.uniform", GPU2, {f"{NVML}MemoryInfo {GPU2}": {"total": 16221 * MIB, "free": 0, "used": 0}}, "pass"),
        ("gpu.uniform", GPU2, {f"{NVML}MemoryInfo {GPU2}": {"total": 16000 * MIB, "free": 0, "used": 0},
                               f"{NVML}DisplayActive {GPU2}": 1}, "pass"),
        ("gpu.uniform", GPU2, {f"{NVML}MemoryInfo {GPU2}": {"total": 12200 * MIB, "free": 0, "used": 0},
                               f"{NVML}DisplayActive {GPU2}": 1}, "warn"),
    ],
)  # fmt: skip
def test_thresholds_and_blame(check: str, bdf: str | None, facts: dict[str, Json], due: str, tmp_path: Path) -> None:
    assert status(changed(tmp_path, facts), check, bdf) == due


def test_the_node_that_is_made_when_first_needed_is_not_missed(tmp_path: Path) -> None:
    modules: Json = ["ib_core", "mlx5_core", "mlx5_ib", "nvidia", "nvidia_modeset"]
    spec = changed(tmp_path, {UVM: ABSENT, "names /sys/module": modules})
    assert status(spec, "driver.device-nodes", None) == "pass"


@pytest.mark.parametrize(
    ("info", "due"),
    [
        ({"state": 3, "status": 0, "cliqueId": 0, "clusterUuid": "x"}, "pass"),
        ({"state": 2, "status": 0, "cliqueId": 0, "clusterUuid": "x"}, "fail"),
        ({"state": 1, "status": 0, "cliqueId": 0, "clusterUuid": "x"}, "fail"),
        ({"state": 3, "status": 15, "cliqueId": 0, "clusterUuid": "x"}, "fail"),
        ({"state": 9, "status": 0, "cliqueId": 0, "clusterUuid": "x"}, "unknown"),
        ({"state": 3, "cliqueId": 0, "clusterUuid": "x"}, "skip not-supported"),
    ],
)
def test_registration_with_the_fabric_manager(info: Json, due: str, tmp_path: Path) -> None:
    gpu = "0000:0f:00.0"
    spec = changed(tmp_path, {f"{NVML}GpuFabricInfo {gpu}": info}, "dgx-a100")
    assert status(spec, "driver.fabric", gpu) == due


def test_a_fabric_manager_that_is_down_is_one_finding(tmp_path: Path) -> None:
    buses = ("07", "0f", "47", "4e", "87", "90", "b7", "bd")
    down: Json = {"state": 2, "status": 0}
    spec = changed(tmp_path, {f"{NVML}GpuFabricInfo 0000:{bus}:00.0": down for bus in buses}, "dgx-a100")
    assert status(spec, "driver.fabric", None) == "fail"
    fine: Json = {"state": 0, "status": 0}
    spec = changed(tmp_path, {f"{NVML}GpuFabricInfo 0000:{bus}:00.0": fine for bus in buses}, "dgx-a100")
    assert status(spec, "driver.fabric", None) == "pass"


@pytest.mark.parametrize(
    ("how", "facts", "due"),
    [
        ("named", {}, "pass"),
        ("gpus", {}, "skip no-reference"),
        ("named", IN_DOCKER, "skip not-visible"),
        ("product", IN_XEN, "skip not-visible"),
        ("named", {"nvml nvmlDeviceGetCount": 7}, "pass"),  # on the PCI tree: gpu.lost tells of it
    ],
)
def test_count(how: Selection, facts: dict[str, Json], due: str, tmp_path: Path) -> None:
    whole = replace(box(changed(tmp_path, facts)), choice=choice("dgx-1-v100", how))
    assert word(said(whole, "gpu.count", None)) == due


@pytest.mark.parametrize(
    ("base", "how", "due"),
    [("dgx-1-v100", "named", "pass"), ("dgx-1-p100", "product", "fail"), ("dgx-1-p100", "gpus", "skip no-reference")],
)
def test_model(base: str, how: Selection, due: str) -> None:
    whole = replace(box("dgx-1-v100"), choice=choice(base, how))
    assert word(said(whole, "gpu.model")) == due


@pytest.mark.parametrize(
    ("total", "how", "due"),
    [
        (16384, "named", "pass"), (16057, "named", "pass"), (16056, "named", "fail"), (8192, "gpus", "warn"),
        (8192, None, "warn"), (32768, "named", "pass"),
    ],
)  # fmt: skip
def test_memory_size(total: int, how: Selection | None, due: str, tmp_path: Path) -> None:
    spec = changed(tmp_path, {f"{NVML}MemoryInfo {GPU2}": {"total": total * MIB, "free": 0, "used": 0}})
    known = {"10de:1db1": board("10de:1db1", memory=16384)}
    whole = replace(box(spec), boards=known, choice=choice("dgx-1-v100", how) if how else None)
    assert word(said(whole, "gpu.memory-size")) == due


@pytest.mark.parametrize(("mib", "due"), [(81559, "pass"), (40960, "warn")])
def test_a_dump_without_a_pci_tree_is_judged_by_the_model_that_nvml_names(mib: int, due: str) -> None:
    """As in ``nvidia-smi -q -x``: an H100, of which sysfs shows nothing."""
    dump: dict[str, Json] = {
        "nvml nvmlInit": True, "nvml nvmlDeviceGetCount": 1, "nvml nvmlDeviceGetHandleByIndex 0": "0000:53:00.0",
        f"{NVML}PciInfo 0000:53:00.0": {"pciDeviceId": 0x233010DE},
        f"{NVML}MemoryInfo 0000:53:00.0": {"total": mib * MIB, "free": mib * MIB, "used": 0},
    }  # fmt: skip
    lines: GroupedFacts = {}
    for key, value in dump.items():
        insert(lines, key, value)
    finding = said(of_box(RecordedSource(lines, Origin("recording"))), "gpu.memory-size", "0000:53:00.0")
    assert word(finding) == due
    assert "H100 80GB HBM3" in finding.judgement.message


@pytest.mark.parametrize(("most", "due"), [(1530, "pass"), (1531, "warn"), (1380, "pass")])
def test_highest_clock(most: int, due: str) -> None:
    whole = replace(box("dgx-1-v100"), boards={"10de:1db1": board("10de:1db1", max_graphics_clock=most)})
    assert word(said(whole, "clock.max")) == due


@pytest.mark.parametrize(("ships", "due"), [(1, "warn"), (0, "pass")])
def test_ecc_off_on_all(ships: int, due: str, tmp_path: Path) -> None:
    spec = changed(tmp_path, everywhere("EccMode {}", [[0, 0]] * 8))
    whole = replace(box(spec), boards={"10de:1db1": board("10de:1db1", ecc=ships)})
    assert word(said(whole, "ecc.mode")) == due


@pytest.mark.parametrize(
    ("left", "slowdown", "due"),
    [(3, -2, "pass"), (2, -2, "warn"), (-2, -2, "warn"), (54, -2, "pass"), (54, UNSUPPORTED, "skip not-supported")],
)
def test_margin(left: int, slowdown: Json, due: str, tmp_path: Path) -> None:
    gpu = "0000:0f:00.0"
    facts: dict[str, Json] = {
        f"{NVML}MarginTemperature {gpu}": left,
        f"{NVML}FieldValues {gpu} 194": slowdown,
        f"{NVML}TemperatureThreshold {gpu} 1": UNSUPPORTED,
    }
    assert status(changed(tmp_path, facts, "dgx-a100"), "thermal.margin", gpu) == due


def test_a_board_that_tells_degrees_is_judged_by_degrees(tmp_path: Path) -> None:
    gpu = "0000:0f:00.0"
    facts: dict[str, Json] = {f"{NVML}MarginTemperature {gpu}": 1, f"{NVML}FieldValues {gpu} 194": -2}
    assert status(changed(tmp_path, facts, "dgx-a100"), "thermal.margin", gpu) == "skip not-supported"


@pytest.mark.parametrize(("now", "pending", "due"), [(0, 0, "pass"), (1, 1, "pass"), (0, 1, "warn"), (1, 0, "warn")])
def test_mig(now: int, pending: int, due: str, tmp_path: Path) -> None:
    gpu = "0000:0f:00.0"
    assert status(changed(tmp_path, {f"{NVML}MigMode {gpu}": [now, pending]}, "dgx-a100"), "gpu.mig", gpu) == due


@pytest.mark.parametrize(("instances", "found"), [((), "warn"), (("gi1", "gi2"), "pass"), (None, "pass")])
def test_mig_without_an_instance(instances: tuple[str, ...] | None, found: str, tmp_path: Path) -> None:
    """No instance survives a reset or reboot; a container does not show them."""
    gpu, names = "0000:0f:00.0", "names /proc/driver/nvidia/capabilities/gpu1/mig"
    facts: dict[str, Json] = {f"{NVML}MigMode {gpu}": [1, 1], f"{NVML}MinorNumber {gpu}": 1}
    seen: dict[str, Json] = {} if instances is None else {names: [*instances]}
    assert status(changed(tmp_path, facts, "dgx-a100", seen), "gpu.mig", gpu) == found


def test_halves_of_a_k80_board_may_differ_in_vbios(tmp_path: Path) -> None:
    halves: list[Json] = ["80.21.1F.00.05", "80.21.1F.00.06"] * 4
    spec = changed(tmp_path, everywhere("VbiosVersion {}", halves), "k80-x8")
    assert status(spec, "gpu.uniform", GPU2) == "pass"
    halves[2] = "80.21.1B.00.01"
    spec = changed(tmp_path, everywhere("VbiosVersion {}", halves), "k80-x8")
    assert status(spec, "gpu.uniform", GPU2) == "warn"


def test_one_gpu_asked_about_is_still_compared_with_all(tmp_path: Path) -> None:
    whole = box(changed(tmp_path, {f"{NVML}VbiosVersion {GPU2}": "88", f"{NVML}EccMode {GPU2}": [0, 0]}))
    (own,) = [gpu for gpu in whole.gpus if gpu.bdf == GPU2]
    findings = {each.id: each.status.value for each in run(replace(whole, gpus=(own,)), CHECKS)}
    assert (findings["gpu.uniform"], findings["ecc.mode"], findings["thermal.outlier"]) == ("warn", "warn", "pass")


@pytest.mark.parametrize(("milliwatts", "more", "due"), [
    (225_000, {}, "pass"), (224_999, {}, "warn"), (150_000, {DEFAULT: UNRECORDED}, "warn"),
    (0, {DEFAULT: UNRECORDED}, "skip"),  # a limit of nothing is not valid
])  # fmt: skip
def test_makers_choose_a_limit_a_quarter_lower(
    milliwatts: int, more: dict[str, Json], due: str, tmp_path: Path
) -> None:
    names = ("EnforcedPowerLimit", "PowerManagementLimit", "PowerManagementDefaultLimit")
    facts: dict[str, Json] = {f"{NVML}{name} {GPU2}": milliwatts for name in names} | more
    (check,) = [each for each in CHECKS if each.id == "power.limit"]
    found = run(of_box(open_source(changed(tmp_path, facts))), [check])
    assert [each.status.value for each in found if each.subject.bdf == GPU2] == [due]


@pytest.mark.parametrize(("wanted_w", "elsewhere"), [(300, True), (163, False)])
def test_a_limit_that_is_not_the_one_set_comes_from_elsewhere(wanted_w: int, elsewhere: bool, tmp_path: Path) -> None:
    """As on a GH200 whose module is limited: 700 W enforced, 900 W set."""
    held: dict[str, Json] = {f"{NVML}EnforcedPowerLimit {GPU2}": 163000}
    held[f"{NVML}PowerManagementLimit {GPU2}"] = 1000 * wanted_w
    findings = run(box(changed(tmp_path, held)), CHECKS)
    (found,) = [each for each in findings if each.id == "power.limit" and each.subject.bdf == GPU2]
    assert found.status.value == "warn"
    assert found.judgement.message.endswith("another limit applies") is elsewhere
