"""PCIe, NVLink, P2P and GPUDirect: the fault of each finding, and the components that it can come from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fabric_box import PROFILES, box, findings
from rdma_box import MODULE, PCI, acs, modules
from test_aer import aer
from test_checks_gdr import GROUP, LOW, TYPE, limited
from test_checks_nvlink import ALL_DOWN, DOWN, GPU3, OUTER, STATE, both, ends_at, of_pairs
from test_checks_pcie import BUSY, NVML, PORT, SWITCH, bar1, grown, speed
from test_health_checks import GPU2, changed

from dgxcheck.checks.engine.finding import BAD
from dgxcheck.checks.pcie.isolation import disable_translation
from dgxcheck.checks.registry import CHECKS
from dgxcheck.components.component import Key
from dgxcheck.components.containment import NVSWITCHES
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.source.recording.keys import to_rows
from dgxcheck.source.recording.load import open_source

HCA = "0000:0c:00.0"
LINK, HCA_LINK, PARENT = ("link", GPU2, ""), ("link", HCA, ""), ("link", SWITCH, "")
GPU, PAIR = ("gpu", GPU2, ""), f"{GPU2}/{GPU3}"
PORTS = [("gpu", GPU2, "NVLink"), ("gpu", GPU3, "NVLink")]
NVLINKS = ("nvlink", PAIR, "")
BOARD = ("0000:0a:00.0", "0000:0b:00.0")
Facts = dict[str, Json]


def host(part: str) -> Key:
    return "host", "host", part


def max_payload(bdf: str, code: int) -> Facts:
    """MaxPayload 128 << code in the Device Control register of one function."""
    data = open_source("dgx-1-v100").data(f"{PCI}/{bdf}/config")
    assert not isinstance(data, Missing)
    space = bytearray(data)
    at = space[0x34]
    while space[at] != 0x10:
        at = space[at + 1]
    space[at + 8] = space[at + 8] & 0x1F | code << 5
    return {f"data {PCI}/{bdf}/config": to_rows(bytes(space))}


def blamed(spec: str, check: str, reference: str = "dgx-1-v100") -> list[tuple[FaultKind | None, list[Key]]]:
    """Fault and keys of the components of each bad finding of a check."""
    bad = [each for each in findings(box(spec, reference), check) if each.status in BAD]
    return [(each.judgement.fault, [component.key for component in each.blames]) for each in bad]


CHANGED: dict[str, tuple[str, Facts, FaultKind, list[Key]]] = {
    "narrow": ("pcie.width", speed(GPU2, "current_link_width", "8"), Fault.LINK_NARROW, [LINK]),
    "narrow uplink": ("pcie.path", speed(SWITCH, "current_link_width", "8"), Fault.LINK_NARROW, [PARENT]),
    "below the profile": ("pcie.generation", {NVML.format("MaxPcieLinkGeneration"): 2}, Fault.LINK_SLOW, [LINK]),
    "slow under load": ("pcie.generation", BUSY, Fault.LINK_DEGRADED, [LINK]),
    "small BAR1": ("pcie.bar1", bar1(256), Fault.BAR1_SMALL, [("gpu", GPU2, "BAR1")]),
    "two sizes of BAR1": ("pcie.bar1", bar1(16384, nvml=8192), Fault.BAR1_MISMATCH, [("gpu", GPU2, "BAR1")]),
    "links between two": ("nvlink.graph", DOWN, Fault.NVLINK_DOWN, [NVLINKS, *PORTS]),
    "one end": ("nvlink.symmetry", {STATE.format(GPU3, 3): 0}, Fault.NVLINK_ONE_SIDED, [NVLINKS, *PORTS]),
    "P2P over NVLink": ("p2p.status", both(1), Fault.P2P_BLOCKED, [NVLINKS, GPU, ("gpu", GPU3, "")]),
    "two modules": (
        "gdr.peer-memory", {f"names {MODULE}": ["nvidia_peermem", "nv_peer_mem"]}, Fault.PEER_MEMORY,
        [host("peer memory module")]),
    "not registered": ("gdr.peer-memory", modules(), Fault.PEER_MEMORY, [host("peer memory module")]),
    "ACS": ("gdr.acs", acs(PORT, 0x1D), Fault.ACS, [("bridge", PORT, "ACS setting")]),
    "MaxPayload of a port": (
        "gdr.max-payload", max_payload(PORT, 0), Fault.MAX_PAYLOAD, [("bridge", PORT, "MaxPayload")]),
    "MaxPayload of an HCA": ("gdr.max-payload", max_payload(HCA, 0), Fault.MAX_PAYLOAD, [("hca", HCA, "MaxPayload")]),
    "slow HCA": ("gdr.link", speed(HCA, "current_link_speed", "5.0 GT/s PCIe"), Fault.LINK_DEGRADED, [HCA_LINK]),
    "narrow HCA": ("gdr.link", speed(HCA, "current_link_width", "8"), Fault.LINK_NARROW, [HCA_LINK]),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGED)
def test_a_state_blames(case: str, tmp_path: Path) -> None:
    check, facts, fault, keys = CHANGED[case]
    assert blamed(changed(tmp_path, facts), check) == [(fault, keys)]


GROWN: dict[str, tuple[str, Facts, FaultKind, list[Key]]] = {
    "replays": ("pcie.replay", {NVML.format("PcieReplayCounter"): {"": 9}}, Fault.PCIE_REPLAYS, [LINK]),
    "fatal": ("pcie.aer", aer("fatal", "DLP", 1), Fault.AER_UNCORRECTABLE, [LINK]),
    "non-fatal": ("pcie.aer", aer("nonfatal", "CmpltTO", 1), Fault.AER_UNCORRECTABLE, [LINK]),
    "correctable": ("pcie.aer", aer("correctable", "RxErr", 101), Fault.AER_CORRECTABLE, [LINK]),
    "of a switch": ("pcie.aer", aer("correctable", "RxErr", 101, SWITCH), Fault.AER_CORRECTABLE, [PARENT]),
    "of an HCA": ("pcie.aer", aer("fatal", "DLP", 1, HCA), Fault.AER_UNCORRECTABLE, [HCA_LINK, ("hca", HCA, "")]),
}


@pytest.mark.parametrize("case", GROWN)
def test_growth_blames(case: str, tmp_path: Path) -> None:
    check, later, fault, keys = GROWN[case]
    assert blamed(grown(tmp_path, later), check) == [(fault, keys)]


def test_errors_of_a_link_blame_the_links_to_its_far_end(tmp_path: Path) -> None:
    (peer,) = (
        link.remote_bdf for link in box("dgx-1-v100").snapshot.nvlink  # type: ignore[union-attr]
        if (link.bdf, link.link) == (GPU2, 0)
    )  # fmt: skip
    spec = grown(tmp_path, {f"nvml nvmlDeviceGetNvLinkErrorCounter {GPU2}": {"0 0": 1}})
    joined = "/".join(sorted((GPU2, str(peer))))
    assert blamed(spec, "nvlink.errors") == [(Fault.NVLINK_ERRORS, [("nvlink", joined, ""), PORTS[0]])]


def test_a_gpu_without_nvlinks_is_to_blame_itself(tmp_path: Path) -> None:
    """A link that is down names no far end."""
    assert blamed(changed(tmp_path, ALL_DOWN | ends_at(GPU2)), "nvlink.state") == [(Fault.NVLINK_DOWN, PORTS[:1])]


def test_links_to_the_wrong_gpu_are_miswired() -> None:
    faults = blamed("dgx-station-v100-nvlink-wrong-peer", "nvlink.graph", "dgx-station-v100")
    assert {fault for fault, _ in faults} == {Fault.NVLINK_MISWIRED}
    assert {keys[0][0] for _, keys in faults} == {"nvlink"}
    assert blamed("dgx-1-p100", "nvlink.graph") == [(Fault.NVLINK_MISWIRED, [host("NVLink graph")])]


@pytest.mark.parametrize(("base", "part"), [("dgx-1-v100", host("NVLink rate")), ("dgx-a100", NVSWITCHES.key)])
def test_what_all_nvlinks_share(base: str, part: Key) -> None:
    of = box(base)
    (check,) = (check for check in CHECKS if check.id == "nvlink.state")
    subject, judgement = next(iter(check.judge(of)))
    shared = check.shared(of, subject, judgement)
    assert shared is not None
    assert shared.key == part


@pytest.mark.parametrize(
    ("check", "part"),
    [
        ("pcie.width", host("PCIe setting")),
        ("pcie.generation", host("PCIe setting")),
        ("pcie.bar1", host("large BARs")),
        ("gdr.bar1", ("gpus", "GPUs", "BAR1")),
        ("pcie.replay", None),
        ("pcie.aer", None),
    ],
)
def test_what_all_gpus_share(check: str, part: Key | None) -> None:
    of = box("dgx-1-v100", "dgx-1-v100")
    (wanted,) = (each for each in CHECKS if each.id == check)
    subject, judgement = next(iter(wanted.judge(of)))
    shared = wanted.shared(of, subject, judgement)
    assert (None if shared is None else shared.key) == part


def test_p2p_over_pcie_blames_the_setting_first(tmp_path: Path) -> None:
    pair = [("path", PAIR, ""), GPU, ("gpu", GPU3, "")]
    setting: Key = ("bridge", "0000:09:08.0", "ACS setting")
    assert blamed("k80-x8-p2p-broken", "p2p.status", "k80-x8") == [(Fault.P2P_BLOCKED, pair)]
    assert blamed("k80-x8-p2p-acs", "p2p.status", "k80-x8") == [(Fault.P2P_BLOCKED, [setting, *pair])]
    redirected = acs("0000:09:08.0", 0x1D, "k80-x8") | of_pairs(1, *OUTER)
    at_bridge = blamed(changed(tmp_path, redirected, "k80-x8"), "p2p.status", "k80-x8")
    assert at_bridge == [(Fault.P2P_BLOCKED, [setting, host("P2P setting")])]


def test_an_iommu_that_translates_is_blamed_before_acs(tmp_path: Path) -> None:
    facts = {f"link {PCI}/{bdf}/iommu_group": GROUP for bdf in BOARD} | acs("0000:09:08.0", 0x1D, "k80-x8")
    document: Facts = {
        "schema": "dgxcheck/overlay/1", "base": "k80-x8", "facts": {**facts, **of_pairs(1, BOARD)},
        "add": {TYPE: "DMA\n"},
    }  # fmt: skip
    path = tmp_path / "fault.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    ((fault, keys),) = blamed(str(path), "p2p.status", "k80-x8")
    assert (fault, keys[:2]) == (Fault.P2P_BLOCKED, [host("IOMMU setting"), ("bridge", "0000:09:08.0", "ACS setting")])


SHIPPED: dict[str, tuple[str, FaultKind, Key]] = {
    "bar1-unassigned": ("pcie.bar1", Fault.BAR1_SMALL, ("gpu", "0000:8a:00.0", "BAR1")),
    "bar1-full": ("gdr.bar1", Fault.BAR1_FULL, ("gpu", "0000:86:00.0", "BAR1")),
    "verbs-shut": ("gdr.stack", Fault.VERBS, host("verbs device nodes")),
    "memlock": ("gdr.memlock", Fault.MEMLOCK, host("memlock limit")),
    "iommu-dma": ("gdr.iommu", Fault.IOMMU, host("IOMMU setting")),
    "acs-everywhere": ("gdr.acs", Fault.ACS, host("ACS setting")),
    "max-payload": ("gdr.max-payload", Fault.MAX_PAYLOAD, ("gpu", "0000:0b:00.0", "MaxPayload")),
}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_fault_blames(name: str) -> None:
    check, fault, key = SHIPPED[name]
    assert blamed(f"dgx-1-v100-{name}", check) == [(fault, [key])]


def test_an_hca_in_another_slot_is_misplaced() -> None:
    misplaced = blamed("dgx-1-v100-hca-wrong-slot", "gdr.path", "")
    assert misplaced
    assert {(fault, *keys) for fault, keys in misplaced} == {(Fault.MISPLACED, host("placement of HCAs"))}


def test_jobs_with_a_low_limit_are_a_fault_of_memlock(tmp_path: Path) -> None:
    assert limited(tmp_path, {}, limits=LOW).fault is Fault.MEMLOCK


def test_what_cannot_be_read_has_no_fault(tmp_path: Path) -> None:
    spec = changed(tmp_path, {NVML.format("CurrPcieLinkGeneration"): {"missing": "garbled"}})
    assert blamed(spec, "pcie.generation") == [(None, [LINK])]


def test_a_translating_group_with_iommu_pt_is_not_a_matter_of_the_command_line(tmp_path: Path) -> None:
    assert disable_translation(box("dgx-1-v100")).startswith("boot with iommu=pt")
    set_already = changed(tmp_path, {"text /proc/cmdline": "root=/dev/sda2 iommu=pt\n"})
    remedy = disable_translation(box(set_already))
    assert "boot with" not in remedy
    assert "/sys/kernel/iommu_groups" in remedy


def test_every_profile_is_judged_without_a_fault() -> None:
    for name in PROFILES:
        for finding in findings(box(name, name), "pcie", "nvlink", "p2p", "gdr"):
            assert (finding.judgement.fault, finding.blames) == (None, ()), finding.key
