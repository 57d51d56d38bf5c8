"""PCIe links that keep their speed, control words, MaxReadReq, NVSwitches, rate of NVLinks, fabric health."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from config_words import COMMAND, DEVICE_CONTROL, LINK_CONTROL_2, word
from fabric_box import PROFILES, bad, box, findings, said
from test_health_checks import GPU2, changed

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import BAD
from dgxcheck.checks.pcie.gpu_link import slow_fault
from dgxcheck.checks.pcie.path import links
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.ids import NVLINK_SPEED
from dgxcheck.facts.missing import Gap, Json, Missing, rows
from dgxcheck.facts.record import replace
from dgxcheck.profiles.model import Board, Number

CONFIG = "data /sys/bus/pci/devices/{}/config"
FILE = "text /sys/bus/pci/devices/{}/{}"
SWITCH, SWITCH_PORT, HCA = "0000:08:00.0", "0000:00:03.0", "0000:0c:00.0"
DISK, NVSWITCH = "0000:51:00.0", "0000:61:00.0"
UNREAD = Missing(Gap.DENIED, "x")
GEN1, GEN2 = "2.5 GT/s\n", "5 GT/s\n"
V100 = PROFILES["dgx-1-v100"]
A100 = [f"0000:{bus}:00.0" for bus in ("07", "0f", "47", "4e", "87", "90", "b7", "bd")]
FABRIC = "nvml nvmlDeviceGetGpuFabricInfo {}"
RATE = "nvml nvmlDeviceGetFieldValues {} {} " + str(NVLINK_SPEED)
VERSION = "nvml nvmlDeviceGetNvLinkVersion {} {}"


def at_gen(bdf: str, text: str) -> dict[str, Json]:
    return {FILE.format(bdf, "current_link_speed"): text}


def target(base: str, bdf: str, gen: int) -> dict[str, Json]:
    return word(base, bdf, LINK_CONTROL_2, 0xF, gen)


def faults(spec: str, check: str, base: str) -> list[tuple[str, FaultKind | None, str]]:
    """Status, fault, and kind of the likeliest component of each bad finding."""
    found = [each for each in findings(box(spec, PROFILES[base]), check) if each.status in BAD]
    return [(each.status.value, each.judgement.fault, each.blames[0].kind) for each in found]


@pytest.mark.parametrize(
    ("base", "facts", "check", "due"),
    [
        ("dgx-1-v100", at_gen(SWITCH, GEN1), "pcie.path", ("fail", Fault.LINK_DEGRADED, "link")),
        ("dgx-1-v100", at_gen(SWITCH, GEN1) | target("dgx-1-v100", SWITCH_PORT, 1), "pcie.path",
         ("fail", Fault.LINK_LIMITED, "bridge")),
        ("dgx-1-v100", at_gen(SWITCH, GEN1) | target("dgx-1-v100", SWITCH_PORT, 2), "pcie.path",
         ("fail", Fault.LINK_DEGRADED, "link")),  # slower than the setting allows
        ("dgx-1-v100", at_gen(SWITCH, GEN1) | {CONFIG.format(SWITCH_PORT): {"missing": "denied"}}, "pcie.path",
         ("fail", Fault.LINK_SLOW, "link")),
        ("dgx-1-v100", at_gen(HCA, GEN1) | target("dgx-1-v100", "0000:09:14.0", 1), "gdr.link",
         ("warn", Fault.LINK_LIMITED, "bridge")),
        ("dgx-2", at_gen(DISK, GEN1), "pcie.path", ("warn", Fault.LINK_SLOW, "link")),
        ("dgx-2", at_gen(NVSWITCH, GEN1), "pcie.path", ("warn", Fault.LINK_DEGRADED, "link")),
        ("dgx-2", {FILE.format(DISK, "current_link_width"): "2\n"}, "pcie.path",
         ("warn", Fault.LINK_NARROW, "link")),
    ],
)  # fmt: skip
def test_links_that_keep_their_speed(
    base: str, facts: dict[str, Json], check: str, due: tuple[str, FaultKind, str], tmp_path: Path
) -> None:
    assert faults(changed(tmp_path, facts, base), check, base) == [due]


@pytest.mark.parametrize(("limit", "changes", "due"), [
    (1, {}, Fault.LINK_LIMITED), (2, {}, Fault.LINK_DEGRADED), (1, {"gen": UNREAD}, Fault.LINK_DEGRADED),
    (1, {"max_gen": UNREAD}, Fault.LINK_SLOW), (1, {"max_gen": 1}, Fault.LINK_DEGRADED),
])  # fmt: skip
def test_what_holds_a_link(limit: int, changes: dict[str, Missing | int], due: FaultKind, tmp_path: Path) -> None:
    spec = changed(tmp_path, at_gen(SWITCH, GEN1) | target("dgx-1-v100", SWITCH_PORT, limit))
    hop = links(of := box(spec))[SWITCH_PORT]
    assert slow_fault(of, replace(hop, **changes)) is due


def test_the_setting_that_holds_a_link_is_evidence(tmp_path: Path) -> None:
    spec = changed(tmp_path, at_gen(SWITCH, GEN1) | target("dgx-1-v100", SWITCH_PORT, 1))
    (finding,) = [each for each in findings(box(spec, V100), "pcie.path") if each.status in BAD]
    assert (f"/sys/bus/pci/devices/{SWITCH_PORT}/config", "Target Link Speed gen1") in {
        (each.where, each.value) for each in finding.judgement.evidence
    }


@pytest.mark.parametrize(("gen", "due"), [(1, "fail"), (2, "warn")])
def test_a_link_above_a_gpu_is_held_to_the_profile(gen: int, due: str, tmp_path: Path) -> None:
    profile = replace(V100, numbers={"pcie.link_gen": Number(value=2, source="test")})
    spec = changed(tmp_path, at_gen(SWITCH, {1: GEN1, 2: GEN2}[gen]))
    assert bad(box(spec, profile), "pcie.path") == {("pcie.path", SWITCH, due)}


def test_an_idle_gpu_may_run_slower(tmp_path: Path) -> None:
    assert faults(changed(tmp_path, at_gen(GPU2, GEN1)), "pcie.path", "dgx-1-v100") == []


def test_a_virtual_function_has_no_link_of_its_own(tmp_path: Path) -> None:
    names = ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width")
    nothing: dict[str, Json] = {FILE.format(DISK, name): "Unknown\n" for name in names}
    spec = changed(tmp_path, nothing, "dgx-2")
    assert said(box(spec), "pcie.path", DISK) == []


@pytest.mark.parametrize(
    ("bdf", "mask", "due"),
    [(GPU2, 0x4, "fail"), (GPU2, 0x2, "fail"), (HCA, 0x6, "fail"), (SWITCH, 0x4, "fail"), (SWITCH, 0x400, "pass")],
)
def test_bus_mastering(bdf: str, mask: int, due: str, tmp_path: Path) -> None:
    spec = changed(tmp_path, word("dgx-1-v100", bdf, COMMAND, mask, 0))
    assert said(box(spec, V100), "pcie.enabled", bdf) == [due]
    assert bad(box(spec, V100), "pcie.enabled") == ({("pcie.enabled", bdf, "fail")} if due == "fail" else set())


def test_bus_mastering_above_the_dma_function_of_an_adapter(tmp_path: Path) -> None:
    port = "0019:02:00.0"
    of = box(changed(tmp_path, word("gb300-nvl72", port, COMMAND, 0x4, 0), "gb300-nvl72"))
    assert bad(of, "pcie.enabled") == {("pcie.enabled", port, "fail")}


def test_bus_mastering_of_a_device_that_nobody_uses(tmp_path: Path) -> None:
    off = word("dgx-1-v100", GPU2, COMMAND, 0x6, 0)
    driver = f"link /sys/bus/pci/devices/{GPU2}/driver"
    guest = changed(tmp_path, off | {driver: "../../../bus/pci/drivers/vfio-pci"})
    assert said(box(guest, V100), "pcie.enabled", GPU2) == []
    asleep: dict[str, Json] = {FILE.format(GPU2, "power_state"): "D3hot\n"}
    persistence, name = f"nvml nvmlDeviceGetPersistenceMode {GPU2}", f"nvml nvmlDeviceGetName {GPU2}"
    laptop = "NVIDIA GeForce RTX 4060 Laptop GPU"
    assert said(box(changed(tmp_path, asleep), V100), "pcie.enabled", GPU2) == ["warn"]
    for facts in (asleep | {persistence: 0}, asleep | {name: laptop}):
        assert said(box(changed(tmp_path, facts), V100), "pcie.enabled", GPU2) == ["skip not-supported"]
    assert said(box("dgx-1-v100-not-root", V100), "pcie.enabled") == ["skip no-permission"]


def read_request(bdf: str, code: int) -> dict[str, Json]:
    return word("dgx-1-v100", bdf, DEVICE_CONTROL, 0x7000, code << 12)


@pytest.mark.parametrize(("code", "due"), [(5, "pass"), (2, "warn"), (0, "warn")])
def test_max_read_request_of_one_hca(code: int, due: str, tmp_path: Path) -> None:
    assert said(box(changed(tmp_path, read_request(HCA, code))), "gdr.read-request", HCA) == [due]


@pytest.mark.parametrize(("code", "due"), [(2, "pass"), (1, "warn")])
def test_max_read_request_of_all_hcas(code: int, due: str, tmp_path: Path) -> None:
    every = [each.bdf for each in box("dgx-1-v100").topology.devices if each.kind == "nic"]
    spec = changed(tmp_path, {key: value for bdf in every for key, value in read_request(str(bdf), code).items()})
    assert said(box(spec), "gdr.read-request") == [due] * 4


def board_of(found: Box, rate: int) -> Box:
    board = Board(id="10de:1db1", name="a V100", numbers={"nvlink_rate": Number(value=rate, source="test")})
    return replace(found, boards={"10de:1db1": board})


@pytest.mark.parametrize(
    ("links", "value", "due"),
    [
        ([], 0, {None: "pass"}),
        ([3], 20000, {"3": "fail"}),
        ([3], 25500, {None: "pass"}),  # within 2 %
        ([0, 5], 12890, {"0": "fail", "5": "fail"}),
        (range(6), 20000, {None: "fail"}),
    ],
)
def test_rate_of_links_of_one_gpu(links: list[int], value: int, due: dict[str | None, str], tmp_path: Path) -> None:
    spec = changed(tmp_path, {RATE.format(GPU2, link): value for link in links})
    found = [each for each in findings(box(spec, V100), "nvlink.rate") if each.subject.bdf == GPU2]
    assert {each.subject.part or None: each.status.value for each in found} == due


@pytest.mark.parametrize(("links", "named"), [((3,), "link 3 at "), ((2, 3), "all NVLinks at ")])
def test_the_only_link_of_a_gpu_is_named(links: tuple[int, ...], named: str) -> None:
    of = box("dgx-1-v100", V100)
    rates = tuple(replace(row, speed_mbs=20000) if row.bdf == GPU2 else row for row in rows(of.snapshot.nvlink_rate)
                  if row.bdf != GPU2 or row.link in links)  # fmt: skip
    (found,) = (each for each in findings(replace(of, snapshot=replace(of.snapshot, nvlink_rate=rates)), "nvlink.rate")
                if each.subject.bdf == GPU2)  # fmt: skip
    assert found.judgement.message.startswith(named)


def test_rate_of_all_links_is_held_to_the_board(tmp_path: Path) -> None:
    gpus = [str(gpu.bdf) for gpu in box("dgx-1-v100").topology.gpus]
    spec = changed(tmp_path, {RATE.format(gpu, link): 20000 for gpu in gpus for link in range(6)})
    assert said(box(spec, V100), "nvlink.rate", GPU2) == ["pass"]  # fabric_box's board has no rate
    assert said(board_of(box(spec, V100), 25781), "nvlink.rate", GPU2) == ["fail"]
    assert said(board_of(box(spec), 25781), "nvlink.rate", GPU2) == ["warn"]
    assert said(box("dgx-1-p100"), "nvlink.rate", "0000:06:00.0") == ["skip not-recorded"]


def test_generation_of_links(tmp_path: Path) -> None:
    one = changed(tmp_path, {VERSION.format(GPU2, 1): 1})
    assert bad(box(one), "nvlink.generation") == {("nvlink.generation", GPU2, "fail")}
    gpus = [str(gpu.bdf) for gpu in box("dgx-1-v100").topology.gpus]
    every = changed(tmp_path, {VERSION.format(gpu, link): 1 for gpu in gpus for link in range(6)})
    assert bad(box(every), "nvlink.generation") == set()
    profile = replace(V100, numbers={"nvlink.generation": Number(value=2, source="test")})
    assert said(box(every, profile), "nvlink.generation") == ["fail"] * 8
    assert said(box(every, profile, "gpus"), "nvlink.generation") == ["warn"] * 8


def fabric(**members: Json) -> Json:
    uuid = "00000001-0000-0000-0000-000000000001"
    known: dict[str, Json] = {"state": 3, "status": 0, "cliqueId": 2, "clusterUuid": uuid}
    return known | members


@pytest.mark.parametrize(
    ("members", "status", "fault"),
    [
        ({"healthMask": 0x1AA, "healthSummary": 1}, "pass", None),
        ({"healthMask": 0, "healthSummary": 1}, "pass", None),  # nothing but the summary is supported
        ({"healthMask": 0x1AA}, "pass", None),
        ({"healthSummary": 1}, "pass", None),
        ({}, "skip", None),
        ({"healthMask": 0, "healthSummary": 0}, "skip", None),
        ({"healthMask": 0x1A9, "healthSummary": 3}, "warn", Fault.FABRIC_DEGRADED),
        ({"healthMask": 0x1A6, "healthSummary": 1}, "warn", Fault.FABRIC_DEGRADED),
        ({"healthMask": 0x16A, "healthSummary": 1}, "warn", Fault.FABRIC_DEGRADED),
        ({"healthMask": 0x19A, "healthSummary": 2}, "fail", Fault.FABRIC_UNHEALTHY),
        ({"healthMask": 0x1AA, "healthSummary": 2}, "fail", Fault.FABRIC_UNHEALTHY),
        ({"healthMask": 0, "healthSummary": 3}, "warn", Fault.FABRIC_DEGRADED),
        ({"healthMask": 0x5AA, "healthSummary": 2}, "fail", Fault.FABRIC_MISCONFIGURED),
        ({"healthMask": 0x9AA | 0x8000}, "fail", Fault.FABRIC_MISCONFIGURED),
        ({"healthMask": 0x1AA | 0x8000}, "warn", Fault.FABRIC_DEGRADED),
    ],
)  # fmt: skip
def test_fabric_health(members: dict[str, Json], status: str, fault: FaultKind | None, tmp_path: Path) -> None:
    good = fabric(healthMask=0x1AA, healthSummary=1)
    facts: dict[str, Json] = {FABRIC.format(bdf): good for bdf in A100} | {FABRIC.format(A100[2]): fabric(**members)}
    found = findings(box(changed(tmp_path, facts, "dgx-a100")), "driver.fabric-health")
    own = [each for each in found if each.subject.bdf == A100[2]]
    assert [(each.status.value, each.judgement.fault) for each in own] == [(status, fault)]
    assert {each.status.value for each in found if each not in own} == {"pass"}


SXID = "nvidia-nvswitch0: SXid (PCI:0000:c7:00.0): "


@pytest.mark.parametrize(("lines", "due"), [
    ((f"{SXID}20034, Fatal, Link 28 LTSSM Fault Up",), ["fabric", "0000:c7:00.0"]),
    ((f"{SXID}12028, Non-fatal, x",), ["fabric"]),
    ((f"{SXID}20034, Fatal, Link 28 LTSSM Fault Up", "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.127.05"),
     ["fabric"]),
])  # fmt: skip
def test_an_nvswitch_with_a_fatal_error_may_be_why(lines: tuple[str, ...], due: list[str], tmp_path: Path) -> None:
    path = Path(changed(tmp_path, {FABRIC.format(A100[2]): fabric(healthMask=0, healthSummary=2)}, "dgx-a100"))
    log = {f"kmsg {40 + at}": f"{3600 + at}.000000;{line}" for at, line in enumerate(lines)}
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"add": log}), encoding="utf-8")
    (bad,) = [each for each in findings(box(str(path)), "driver.fabric-health") if each.subject.bdf == A100[2]]
    assert [each.part or each.name for each in bad.blames] == due


@pytest.mark.parametrize(("reason", "step"), [
    (2, "system GUIDs"), (3, "chassis serial"), (4, "partition"), (5, "NVLinks"), (6, "firmware"), (7, "slot"),
    (8, "reset"), (9, ""),
])  # fmt: skip
def test_an_incorrect_configuration_of_the_fabric_has_its_own_step(reason: int, step: str, tmp_path: Path) -> None:
    facts: dict[str, Json] = {FABRIC.format(A100[2]): fabric(healthMask=0xAA | reason << 8, healthSummary=2)}
    found = findings(box(changed(tmp_path, facts, "dgx-a100")), "driver.fabric-health")
    (remedy,) = {each.judgement.remedy for each in found if each.subject.bdf == A100[2]}
    assert step in remedy
    assert bool(step) == bool(remedy)


def test_a_gpu_without_the_fabric_of_the_others(tmp_path: Path) -> None:
    facts: dict[str, Json] = {FABRIC.format(bdf): fabric() for bdf in A100}
    one = box(changed(tmp_path, facts | {FABRIC.format(A100[6]): fabric(state=0)}, "dgx-a100"))
    assert bad(one, "driver.fabric") == {("driver.fabric", A100[6], "fail")}
    two = facts | {FABRIC.format(bdf): fabric(state=0) for bdf in A100[:2]}
    both = {("driver.fabric", bdf, "fail") for bdf in A100[:2]}
    assert bad(box(changed(tmp_path, two, "dgx-a100")), "driver.fabric") == both
    half = facts | {FABRIC.format(bdf): fabric(state=0) for bdf in A100[:4]}
    assert bad(box(changed(tmp_path, half, "dgx-a100")), "driver.fabric") == set()


def test_memory_space_of_a_virtual_function_is_always_off(tmp_path: Path) -> None:
    function: dict[str, Json] = {f"link /sys/bus/pci/devices/{HCA}/physfn": "../0000:0c:00.1"}
    spec = changed(tmp_path, word("dgx-1-v100", HCA, COMMAND, 0x2, 0) | function)
    assert said(box(spec, V100), "pcie.enabled", HCA) == []


def test_a_gpu_in_another_clique(tmp_path: Path) -> None:
    facts: dict[str, Json] = {FABRIC.format(bdf): fabric(healthMask=0x1AA) for bdf in A100}
    one = facts | {FABRIC.format(A100[0]): fabric(healthMask=0x1AA, cliqueId=3)}
    found = box(changed(tmp_path, one, "dgx-a100"))
    assert bad(found, "driver.fabric-health") == {("driver.fabric-health", A100[0], "warn")}
    half = facts | {FABRIC.format(bdf): fabric(healthMask=0x1AA, cliqueId=3) for bdf in A100[:4]}
    assert bad(box(changed(tmp_path, half, "dgx-a100")), "driver.fabric-health") == set()  # two partitions
