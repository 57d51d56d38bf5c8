"""What is wrong with a measurement as a fault word, what it blames, and what its data crossed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import permutations
from pathlib import Path

import pytest
from measured_box import GPUS, dgx1_p100, fact, found, imported, measured, of_box, overlay, words
from test_checks_burn_in import GPU, burnt

from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.measurement.checks import CHECKS
from dgxcheck.components.component import Component
from dgxcheck.diagnosis.causes import exonerated
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import Json
from dgxcheck.source.recording.load import open_source

BURN_IN = [check for check in CHECKS if check.id == "measure.burn-in"]
A, B, FAR = GPUS[2], GPUS[3], GPUS[7]
AB, BA = f"{A} {B}", f"{B} {A}"
HUNG: Json = {"missing": "timeout", "detail": "no answer for 120 s"}
DEAD: Json = {"failed": "CUDA_ERROR_ECC_UNCORRECTABLE", "code": 214, "detail": "cuStreamQuery"}
NOT_READY: Json = {"failed": "CUDA_ERROR_SYSTEM_NOT_READY", "code": 802, "detail": "cuInit"}
UNOPENED: Json = {"failed": "CUDA_ERROR_UNKNOWN", "code": 999, "detail": "cuInit"}
NCCL = "collective all_reduce 8"


def ids(components: tuple[Component, ...]) -> list[str]:
    return ["/".join(filter(None, component.key)) for component in components]


def load(mask: int) -> dict[str, Json]:
    slow = fact(6.1, "TFLOP/s", clock_mhz=1000)
    return {f"compute {A}": slow, f"under-load {A}": fact(None, "", reasons=mask, sm_clock=1000)}


FAILED: list[tuple[Mapping[str, Json], str, str, FaultKind, list[str]]] = [
    ({f"host-to-device {A}": DEAD}, "host-bandwidth", "GPU2", Fault.MEASUREMENT_FAILED, [f"gpu/{A}"]),
    ({f"device-copy {A}": HUNG}, "memory-bandwidth", "GPU2", Fault.MEASUREMENT_FAILED, [f"gpu/{A}"]),
    ({f"memory-integrity {A}": words(3)}, "memory-integrity", "GPU2", Fault.WRONG_DATA, [f"gpu/{A}/memory"]),
    ({f"memory-integrity {A}": HUNG}, "memory-integrity", "GPU2", Fault.MEASUREMENT_FAILED, [f"gpu/{A}/memory"]),
    ({f"p2p-integrity {AB}": words(3)}, "p2p-integrity", "GPU2 GPU3", Fault.WRONG_DATA,
     [f"nvlink/{A}/{B}", f"gpu/{A}", f"gpu/{B}"]),
    ({f"p2p-integrity {AB}": words(timed_out=True)}, "p2p-integrity", "GPU2 GPU3", Fault.WRONG_DATA,
     [f"nvlink/{A}/{B}", f"gpu/{A}", f"gpu/{B}"]),
    ({"p2p-integrity all": words(1)}, "p2p-integrity", "host", Fault.WRONG_DATA, ["host/host/P2P setting"]),
    ({f"p2p {AB}": HUNG}, "p2p-bandwidth", "GPU2 GPU3", Fault.MEASUREMENT_FAILED,
     [f"nvlink/{A}/{B}", f"gpu/{A}", f"gpu/{B}"]),
    ({f"p2p-off {A} {FAR}": HUNG}, "p2p-bandwidth", "GPU2 GPU7", Fault.MEASUREMENT_FAILED,
     [f"path/{A}/{FAR}", f"gpu/{A}", f"gpu/{FAR}"]),
    ({f"latency {AB}": HUNG}, "p2p-latency", "GPU2 GPU3", Fault.MEASUREMENT_FAILED,
     [f"nvlink/{A}/{B}", f"gpu/{A}", f"gpu/{B}"]),
    ({NCCL: fact(62, wrong=3)}, "collective", "host all_reduce 8", Fault.WRONG_DATA,
     ["host/host/results of NCCL/all_reduce 8"]),
    ({"ring 0 all": HUNG}, "collective", "host rings", Fault.MEASUREMENT_FAILED, ["host/host/NVLink rate"]),
    ({f"compute {A}": DEAD}, "compute", "GPU2", Fault.MEASUREMENT_FAILED, [f"gpu/{A}"]),
    (load(0), "compute", "GPU2", Fault.SLOW, [f"gpu/{A}", f"gpu/{A}/cooling"]),
    (load(0x2), "compute", "GPU2", Fault.CLOCKS_LOWERED, [f"gpu/{A}/clock setting"]),
    (load(0x4), "compute", "GPU2", Fault.POWER_REACHED, [f"gpu/{A}", f"gpu/{A}/cooling"]),
    (load(0x8), "compute", "GPU2", Fault.HARDWARE_SLOWDOWN, [f"gpu/{A}/cooling"]),
    (load(0x48), "compute", "GPU2", Fault.THERMAL_SLOWDOWN, [f"gpu/{A}/cooling"]),
    (load(0x88), "compute", "GPU2", Fault.POWER_BRAKE, [f"gpu/{A}/power supply"]),
    ({"cuda all": UNOPENED}, "host-bandwidth", "host", Fault.NOT_READY, ["driver/NVIDIA driver"]),
    ({"cuda all": NOT_READY}, "host-bandwidth", "host", Fault.NOT_READY, ["driver/NVIDIA driver"]),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "check", "subject", "fault", "blames"), FAILED)
def test_a_failed_measurement_has_a_fault_and_blames(
    facts: dict[str, Json], check: str, subject: str, fault: FaultKind, blames: list[str], tmp_path: Path
) -> None:
    finding = found(measured(tmp_path, dgx1_p100() | facts), f"measure.{check}")[subject]
    assert (finding.judgement.fault, ids(finding.blames)) == (fault, blames)
    assert finding.witness == "measurement"


def test_a_power_limit_is_to_blame_where_it_was_lowered(tmp_path: Path) -> None:
    """At its default it is the GPU that needs more power than its siblings for the same clock."""
    document = json.loads(Path(overlay(tmp_path, dgx1_p100() | load(0x4))).read_text(encoding="utf-8"))
    document["facts"] = {f"nvml nvmlDeviceGetEnforcedPowerLimit {A}": 163000}
    (path := tmp_path / "capped.json").write_text(json.dumps(document), encoding="utf-8")
    finding = found(of_box(open_source(str(path))), "measure.compute")["GPU2"]
    assert (finding.judgement.fault, ids(finding.blames)) == (Fault.POWER_CAPPED, [f"gpu/{A}/power limit"])


@pytest.mark.parametrize(("base", "fault"), [("dgx-a100", Fault.FABRIC_MANAGER_DOWN), ("k80-x8", Fault.NOT_READY)])
def test_a_system_that_is_not_ready_lacks_the_fabric_manager_where_it_needs_one(
    base: str, fault: FaultKind, tmp_path: Path
) -> None:
    finding = found(measured(tmp_path, {"cuda all": NOT_READY}, base), "measure.host-bandwidth")["host"]
    assert (finding.judgement.fault, ids(finding.blames)) == (
        fault, ["host/host/Fabric Manager" if base == "dgx-a100" else "driver/NVIDIA driver"],
    )  # fmt: skip
    assert ("its version must be the driver's own" in finding.remedy) == (base == "dgx-a100")


def test_a_fabric_that_is_reported_as_down_is_not_reported_again(tmp_path: Path) -> None:
    box = measured(tmp_path, {"cuda all": NOT_READY}, "dgx-a100-fabric-manager-down")
    (finding,) = found(box, "measure.host-bandwidth").values()
    assert (finding.status.value, finding.judgement.reason) == ("skip", "dependency-failed")


SLOW: list[tuple[Mapping[str, Json], str, str, list[str]]] = [
    ({f"host-to-device {A}": fact(3)}, "host-bandwidth", "GPU2",
     [f"link/{A}", "link/0000:08:00.0", f"gpu/{A}", f"gpu/{A}/memory", "host/host/memory bandwidth/NUMA node 0",
      "host/host/memory bandwidth"]),
    ({f"device-copy {A}": fact(100)}, "memory-bandwidth", "GPU2", [f"gpu/{A}/memory"]),
    ({f"p2p {AB}": fact(4)}, "p2p-bandwidth", "GPU2 GPU3",
     [f"nvlink/{A}/{B}", f"gpu/{A}/NVLink", f"gpu/{B}/NVLink", "host/host/NVLink rate", f"gpu/{A}",
      f"gpu/{A}/memory", f"gpu/{B}", f"gpu/{B}/memory"]),
    ({f"latency {AB}": fact(18, "us")}, "p2p-latency", "GPU2 GPU3",
     [f"path/{A}/{B}", "host/host/P2P setting", f"gpu/{A}", f"gpu/{B}"]),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "check", "subject", "crossed"), SLOW)
def test_a_slow_figure_names_what_its_data_crossed(
    facts: dict[str, Json], check: str, subject: str, crossed: list[str], tmp_path: Path
) -> None:
    finding = found(measured(tmp_path, dgx1_p100() | facts), f"measure.{check}")[subject]
    assert (finding.judgement.fault, ids(finding.crossed)) == (Fault.SLOW, crossed)


@pytest.mark.parametrize(
    ("facts", "settings"),
    [({NCCL: fact(7.6)}, ["host/host/settings of NCCL"]), ({"ring 0 all": fact(3, directions=2)}, [])],
)
def test_a_slow_collective_crossed_all_nvlinks(facts: dict[str, Json], settings: list[str], tmp_path: Path) -> None:
    (finding,) = found(measured(tmp_path, facts), "measure.collective").values()
    crossed = ids(finding.crossed)
    assert finding.judgement.fault is Fault.SLOW
    assert sum(each.startswith("nvlink/") for each in crossed) == 16
    assert {f"gpu/{gpu}" for gpu in GPUS} < {*crossed}
    assert [each for each in crossed if "NCCL" in each] == settings


def test_pairs_over_pcie_crossed_links_and_settings(tmp_path: Path) -> None:
    box = measured(tmp_path, {}, "k80-x8")
    near, across = (f"p2p {box.gpus[0].bdf} {box.gpus[number].bdf}" for number in (1, 4))
    findings = found(measured(tmp_path, {near: fact(1), across: fact(1)}, "k80-x8"), "measure.p2p-bandwidth")
    assert "socket-interconnect/NUMA nodes 0 and 1" not in ids(findings["GPU0 GPU1"].crossed)
    crossed = ids(findings["GPU0 GPU4"].crossed)
    assert "socket-interconnect/NUMA nodes 0 and 1" in crossed
    assert f"link/{box.gpus[0].bdf}" in crossed
    assert "host/host/P2P setting" in crossed


def test_pairs_over_a_host_bridge_share_it_with_the_gpus_below(tmp_path: Path) -> None:
    box = measured(tmp_path, {}, "k80-x8")
    pair = box.gpus[4], box.gpus[6]
    facts = {f"p2p {pair[0].bdf} {pair[1].bdf}": fact(1)}
    findings = found(measured(tmp_path, facts, "k80-x8"), "measure.p2p-bandwidth").values()
    (bridge,) = [each for finding in findings for each in finding.crossed if each.kind == "host-bridge"]
    assert bridge.name == "pci0000:80"
    assert {gpu.name for gpu in pair} <= {*bridge.shared_by}


def test_all_pairs_slower_with_p2p_crossed_what_they_share() -> None:
    facts = {f"{kind} {a} {b}": fact(value) for a, b in permutations(range(4), 2)
             for kind, value in (("p2p", 9.9), ("p2p-off", 22.2))}  # fmt: skip
    finding = found(imported(facts), "measure.p2p-bandwidth")["host"]
    assert (finding.judgement.fault, ids(finding.crossed)) == (Fault.SLOW, ["host/host/P2P setting"])


@pytest.mark.parametrize(("count", "slow", "gbs", "judged"), [
    (4, {3}, 199, 3), (5, {3, 4}, 199, 7), (4, {2, 3}, 199, 0), (4, {3}, 20, 3),
    (4, {3}, 320, 0),  # another of its places among the switches
    (6, {4, 5}, 38, 0), (8, {7}, 38, 7),  # two beside a bridge of four; one of eight that NVSwitches join
])  # fmt: skip
def test_gpus_slower_than_all_others_over_nvlinks(count: int, slow: set[int], gbs: float, judged: int) -> None:
    """By figures alone: in groups of two GPUs (bridges) nothing tells which are to be the faster."""
    pairs = [(a, b) for a in range(count) for b in range(count) if a != b]
    facts = {f"p2p {a} {b}": fact(gbs if slow & {a, b} else 393) for a, b in pairs}
    warned = found(imported(facts), "measure.p2p-bandwidth").values()
    assert len([each for each in warned if each.status is Status.WARN]) == judged


@pytest.mark.parametrize(
    ("facts", "check", "crossed"),
    [
        ({"host-to-device 0": fact(1)}, "host-bandwidth", ["gpu/GPU0", "host/host/memory bandwidth"]),
        ({"device-copy 0": fact(9, runs=[{"value": 9}, {"value": 2}])}, "memory-bandwidth", ["gpu/GPU0/memory"]),
        ({"p2p 0 1": fact(9), "p2p 1 0": fact(20)}, "p2p-bandwidth", ["gpu/GPU0", "gpu/GPU1"]),
    ],
)
def test_figures_without_a_box_crossed_gpus_by_number(facts: dict[str, Json], check: str, crossed: list[str]) -> None:
    (finding,) = found(imported(facts), f"measure.{check}").values()
    assert (finding.judgement.fault, ids(finding.crossed)) == (Fault.SLOW, crossed)


def every(facts: Mapping[str, Json], folder: Path) -> list[Finding]:
    box = measured(folder, facts)
    checks = ("host-bandwidth", "memory-bandwidth", "p2p-bandwidth", "p2p-latency")
    return [finding for check in checks for finding in found(box, f"measure.{check}").values()]


def test_fast_memory_exonerates_a_gpu_for_copies_alone(tmp_path: Path) -> None:
    facts = {f"device-copy {gpu}": fact(510) for gpu in GPUS} | {f"device-copy {B}": fact(100)}
    findings = every(facts | {f"p2p {AB}": fact(4), f"latency {AB}": fact(9, "us")}, tmp_path)
    by_check = {finding.id: finding for finding in findings if finding.judgement.fault is Fault.SLOW}
    exonerated_keys = {"/".join(filter(None, key)) for key in exonerated(findings, by_check["measure.p2p-bandwidth"])}
    assert {f"gpu/{A}", f"gpu/{A}/memory"} <= exonerated_keys
    assert not {f"gpu/{B}", f"gpu/{B}/memory"} & exonerated_keys
    slow_memory = by_check["measure.memory-bandwidth"]
    assert slow_memory.crossed[0].key not in exonerated(findings, slow_memory)


@pytest.mark.parametrize(
    ("row", "fault", "blames"),
    [
        ({"wrong": 3, "wrong_in": {"memory": 3}}, Fault.WRONG_DATA, [f"gpu/{GPU}", f"gpu/{GPU}/memory"]),
        ({"dbe": 1}, Fault.ECC_UNCORRECTED, [f"gpu/{GPU}/memory"]),
        ({"throttled": {"power brake": 0.05}}, Fault.POWER_BRAKE, [f"gpu/{GPU}/power supply"]),
        ({"throttled": {"hardware thermal slowdown": 0.5}}, Fault.THERMAL_SLOWDOWN, [f"gpu/{GPU}/cooling"]),
        ({"throttled": {"hardware slowdown": 0.5}}, Fault.HARDWARE_SLOWDOWN, [f"gpu/{GPU}/cooling"]),
        ({"drift": {"p2p": [24.0, 12.0]}}, Fault.SLOW, [f"gpu/{GPU}", f"gpu/{GPU}/cooling"]),
        ({"sm_clock": {"min": 1100, "median": 1180}}, Fault.SLOW, [f"gpu/{GPU}", f"gpu/{GPU}/cooling"]),
        ({"ended": "hung: no answer in turn host"}, Fault.BURN_IN, [f"gpu/{GPU}"]),
        ({"missing": "timeout", "detail": "CUDA did not open"}, Fault.BURN_IN, [f"gpu/{GPU}"]),
        ({"failed": "CUDA_ERROR_X", "code": 999, "detail": "cuInit"}, Fault.BURN_IN, [f"gpu/{GPU}"]),
        ({"cycles": 0}, None, [f"gpu/{GPU}"]),
    ],
)
def test_a_burn_in_blames_the_part_that_its_fault_names(
    row: dict[str, Json], fault: FaultKind | None, blames: list[str]
) -> None:
    (finding,) = [each for each in run(burnt(gpu=row), BURN_IN) if each.subject.bdf == GPU]
    assert (finding.judgement.fault, ids(finding.blames)) == (fault, blames)


@pytest.mark.parametrize(
    ("stopped", "fault"),
    [
        ("memory-error", Fault.ECC_UNCORRECTED), ("off-bus", Fault.GPU_LOST), ("vanished", Fault.GPU_LOST),
        ("near-slowdown", Fault.OVERHEATING), ("slowdown", Fault.HARDWARE_SLOWDOWN), ("xid", Fault.BURN_IN),
    ],
)  # fmt: skip
def test_why_a_burn_in_stopped_is_the_fault(stopped: str, fault: FaultKind) -> None:
    findings = run(burnt({"stopped": stopped, "gpu": GPU, "detail": "x"}), BURN_IN)
    assert [each.judgement.fault for each in findings if each.subject.bdf == GPU] == [fault]
    unnamed = run(burnt({"stopped": stopped, "gpu": "0000:ff:00.0", "detail": "x"}), BURN_IN)[-1]
    assert (unnamed.judgement.fault, ids(unnamed.blames)) == (Fault.BURN_IN, ["host/host/burn-in"])


@pytest.mark.parametrize("part", ["cooling", "power supply"])
def test_where_every_gpu_is_held_back_it_is_the_host(part: str) -> None:
    mask = {"cooling": "hardware thermal slowdown", "power supply": "power brake"}[part]
    finding = next(each for each in run(burnt(gpu={"throttled": {mask: 0.5}}), BURN_IN) if each.subject.bdf == GPU)
    assert finding.shared is not None
    assert ids((finding.shared,)) == [f"host/host/{part}"]


def test_what_was_interrupted_or_garbled_has_no_fault(tmp_path: Path) -> None:
    stopped: Json = {"failed": "interrupted", "detail": "after 3 of 9 steps"}
    box = measured(tmp_path, dgx1_p100() | {"cuda all": stopped, f"p2p {AB}": {"missing": "garbled"}})
    (host,) = [each for each in found(box, "measure.host-bandwidth").values() if each.subject.bdf is None]
    assert (host.status.value, host.judgement.fault) == ("unknown", None)
    assert host.judgement.message == "measuring interrupted: after 3 of 9 steps"
    pair = found(box, "measure.p2p-bandwidth")["GPU2 GPU3"]
    assert (pair.status.value, pair.judgement.fault) == ("unknown", None)
