"""Where GPUs and HCAs sit: what is in a wrong place, and who is to blame where that is not certain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from fabric_box import PROFILES, bad, box, findings, said
from test_health_checks import GPU2, changed

from dgxcheck.checks.placement.misplaced import Misplaced, misplaced
from dgxcheck.checks.placement.placement import is_reference_machine, other
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import replace
from dgxcheck.profiles import library
from dgxcheck.profiles.model import SelectedProfile, Selection, Wiring
from dgxcheck.topology.model import Device, Topology

V100 = PROFILES["dgx-1-v100"]
NODE = "text /sys/bus/pci/devices/{}/numa_node"
LINK = "link /sys/bus/pci/devices/{}"
ANCESTOR = "nvml nvmlDeviceGetTopologyCommonAncestor {} {}"
GPU3, HCA = "0000:0b:00.0", "0000:0c:00.0"
OTHER_SWITCH = "../../../devices/pci0000:80/0000:80:03.0/0000:87:00.0/0000:88:1c.0/{}"
ROOT_PORT = "../../../devices/pci0000:00/0000:00:01.0/{}"


def names(found: Misplaced | None) -> tuple[list[str], list[str]] | None:
    return None if found is None else ([one.name for one in found.devices], [one.name for one in found.likewise])


def wrong(spec: str, devices: str) -> tuple[list[str], list[str]] | None:
    """What ``misplaced`` says of the GPUs or the HCAs."""
    topology: Topology = box(spec).topology
    nics: Sequence[Device] = [each for each in topology.devices if each.kind == "nic"]
    if devices == "gpus":
        return names(misplaced(topology.gpus, topology.gpus, topology, V100.wiring, lambda one: one.to_gpus, nics))
    return names(misplaced(topology.gpus, nics, topology, V100.wiring, lambda one: one.to_hcas))


@pytest.mark.parametrize(
    ("facts", "devices", "due"),
    [
        ({}, "gpus", ([], [])),
        ({}, "hcas", ([], [])),
        ({LINK.format(HCA): ROOT_PORT.format(HCA)}, "hcas", (["mlx5_1"], [])),
        ({LINK.format(HCA): OTHER_SWITCH.format(HCA), NODE.format(HCA): "1\n"}, "hcas", (["mlx5_3"], ["mlx5_1"])),
        ({LINK.format(GPU2): ROOT_PORT.format(GPU2)}, "gpus", (["GPU2"], [])),
    ],
)
def test_the_fewest_that_explain_it(
    facts: dict[str, Json], devices: str, due: tuple[list[str], list[str]], tmp_path: Path
) -> None:
    assert wrong(changed(tmp_path, facts), devices) == due


def test_a_gpu_on_a_wrong_switch_is_no_fault_of_hcas(tmp_path: Path) -> None:
    spec = changed(tmp_path, {LINK.format(GPU2): ROOT_PORT.format(GPU2)})
    assert bad(box(spec, V100), "topology.profile", "network") == {("topology.profile", None, "warn")}
    (finding,) = findings(box(spec, V100), "topology.profile")
    assert "GPU2" in finding.judgement.message
    assert "GPU3" not in finding.judgement.message


def test_a_wiring_of_another_machine_is_one_finding(tmp_path: Path) -> None:
    other = replace(V100, wiring=(Wiring(gpus=8, to_gpus={"PIX": 7}, to_hcas={"PIX": 4}),))
    assert bad(box("dgx-1-v100", other), "topology.profile", "network") == {("topology.profile", None, "warn")}
    assert said(box("dgx-1-v100", other), "network.hca-placement") == ["skip dependency-failed"]


@pytest.mark.parametrize("check", ["topology.profile", "network.hca-placement"])
def test_no_reference(check: str) -> None:
    assert said(box("dgx-1-v100"), check) == ["skip no-reference"]
    assert said(box("dgx-1-v100", V100, "gpus"), check) == ["skip no-reference"]
    assert said(box("dgx-1-v100", replace(V100, wiring=())), check) == ["skip no-reference"]


@pytest.mark.parametrize(("base", "reference", "why"), [
    ("dgx-1-v100", "pcie-x8", "has no HCAs"), ("geforce-x4", "dgx-1-v100", "no HCAs with an InfiniBand port"),
])  # fmt: skip
def test_hcas_have_no_place_where_machine_or_reference_has_none(base: str, reference: str, why: str) -> None:
    (found,) = findings(box(base, reference), "network.hca-placement")
    assert (found.status.value, found.judgement.reason) == ("skip", "not-supported")
    assert found.judgement.message.endswith(why)


def test_a_path_that_is_not_known_never_passes(tmp_path: Path) -> None:
    gone: Json = {"missing": "denied", "detail": "no"}
    assert said(box(changed(tmp_path, {LINK.format(GPU2): gone}), V100), "topology.profile") == ["skip no-permission"]
    spec = changed(tmp_path, {LINK.format(HCA): gone})
    assert said(box(spec, V100), "network.hca-placement", "mlx5_1") == ["skip no-permission"]


@pytest.mark.parametrize(
    ("facts", "due"),
    [
        ({ANCESTOR.format(GPU2, GPU3): 20}, "warn"),
        ({ANCESTOR.format(GPU2, GPU3): 0}, "pass"),  # PIX both
        ({ANCESTOR.format(GPU2, GPU3): 99}, "unknown"),
        ({ANCESTOR.format(GPU2, GPU3): {"missing": "unsupported"}}, "unknown"),  # the others answer
        ({NODE.format(GPU2): "-1\n"}, "pass"),  # no class to compare with
    ],
)
def test_nvml_agrees(facts: dict[str, Json], due: str, tmp_path: Path) -> None:
    assert said(box(changed(tmp_path, facts)), "topology.nvml-agrees") == [due]


def test_nvml_agrees_needs_answers(tmp_path: Path) -> None:
    gpus = [gpu.bdf or "" for gpu in box("dgx-1-v100").gpus]
    quiet: dict[str, Json] = {
        ANCESTOR.format(a, b): {"missing": "unsupported"} for i, a in enumerate(gpus) for b in gpus[i + 1 :]
    }
    assert said(box(changed(tmp_path, quiet)), "topology.nvml-agrees") == ["unknown"]


def test_an_ethernet_adapter_may_sit_anywhere(tmp_path: Path) -> None:
    """One RoCE card beside the HCAs of the fabric; as an HCA it would be in a wrong slot."""
    moved: dict[str, Json] = {LINK.format(HCA): ROOT_PORT.format(HCA)}
    layer = "text /sys/class/infiniband/mlx5_{}/ports/1/link_layer"
    assert bad(box(changed(tmp_path, moved), V100), "network") == {("network.hca-placement", HCA, "warn")}
    roce = moved | {layer.format(1): "Ethernet\n"}
    assert bad(box(changed(tmp_path, roce), V100), "network.hca-placement", "topology.profile") == set()
    none_left: dict[str, Json] = {layer.format(number): "Ethernet\n" for number in range(4)}
    assert said(box(changed(tmp_path, none_left), V100), "network.hca-placement") == ["skip not-supported"]


def test_a_guest_sees_no_numa_node(tmp_path: Path) -> None:
    facts: dict[str, Json] = {NODE.format(GPU2): "-1\n", "text /sys/hypervisor/type": "xen\n"}
    assert said(box(changed(tmp_path, facts)), "topology.numa") == ["skip not-visible", "pass"]


@pytest.mark.parametrize(
    ("facts", "due"),
    [
        ({}, ["pass", "pass"]),
        ({NODE.format(GPU2): "-1\n"}, ["warn", "pass"]),
        ({NODE.format(HCA): "-1\n"}, ["warn", "pass"]),
        ({NODE.format(GPU2): {"missing": "absent"}}, ["skip not-supported", "pass"]),
        ({"names /sys/devices/system/node": ["node0"]}, ["skip not-supported"]),
        ({"names /sys/devices/system/node": {"missing": "unrecorded"}}, ["skip not-recorded"]),
    ],
)
def test_numa(facts: dict[str, Json], due: list[str], tmp_path: Path) -> None:
    assert said(box(changed(tmp_path, facts)), "topology.numa") == due


NAMELESS: dict[str, Json] = {"text /sys/class/dmi/id/product_name": {"missing": "denied"}}


@pytest.mark.parametrize(("facts", "how", "due"), [
    ({}, "gpus", False), ({}, "named", True), (NAMELESS, "gpus", True),
    (NAMELESS | {LINK.format(GPU2): OTHER_SWITCH.format(GPU2)}, "gpus", False),
    (NAMELESS | {LINK.format(HCA): OTHER_SWITCH.format(HCA)}, "gpus", False),
    (NAMELESS | {LINK.format(GPU2): {"missing": "denied"}}, "gpus", False),
    (NAMELESS | {"names /sys/class/infiniband": ["mlx5_0", "mlx5_1", "mlx5_2"]}, "gpus", False),
])  # fmt: skip
def test_boards_of_eight_gpus_are_machines_of_others_too(
    facts: dict[str, Json], how: Selection, due: bool, tmp_path: Path
) -> None:
    choice = SelectedProfile(profile=library.by_name("dgx-1-v100"), how=how)
    assert is_reference_machine(box(changed(tmp_path, facts)), choice) is due


@pytest.mark.parametrize(("likewise", "due"), [
    (0, ""), (1, "; GPU0 explains the PCI classes equally well"),
    (2, "; GPU0, GPU1 explain the PCI classes equally well"),
])  # fmt: skip
def test_devices_that_explain_it_as_well_are_named(likewise: int, due: str) -> None:
    assert other(Misplaced(devices=(), likewise=box("dgx-1-v100").topology.gpus[:likewise])) == due
