"""What stops two GPUs that PCIe joins: the driver's word and wrong data name the same setting and what lifts it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fabric_box import findings
from rdma_box import MODULE, PCI, acs
from test_checks_gdr import GROUP, GUEST, TYPE
from test_health_checks import box, changed

from dgxcheck.checks.engine.finding import Status
from dgxcheck.checks.pcie.acs_rules import acs_rules
from dgxcheck.checks.pcie.isolation import blocking_settings, disable_acs
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.source.recording.load import open_source

STATUS, INTEGRITY = "p2p.status", "measure.p2p-integrity"
BOARD = ("0000:0a:00.0", "0000:0b:00.0")
"""GPU2 and GPU3 of k80-x8, below one switch."""
ACROSS = ("0000:06:00.0", "0000:85:00.0")
PORT = "0000:09:08.0"
REDIRECTS = acs(PORT, 0x1D, "k80-x8")
GROUPED: dict[str, Json] = {f"link {PCI}/{BOARD[0]}/iommu_group": GROUP}
WRONG: Json = {
    "value": 7, "unit": "words", "checked": 1 << 26, "first": 0, "method": "x", "tool": "x", "how": "measured",
}  # fmt: skip
NAMES = open_source("k80-x8").names(MODULE)
MODULES = [] if isinstance(NAMES, Missing) else [*NAMES]


def told(
    folder: Path, check: str, ends: tuple[str, str], facts: dict[str, Json], add: dict[str, Json]
) -> tuple[str, str]:
    """Message and remedy of the pair, for which the driver finds no way, or data came out wrong."""
    a, b = ends
    if check == STATUS:
        facts = facts | {
            f"nvml nvmlDeviceGetP2PStatus {one} {way}": 1 for one in (f"{a} {b}", f"{b} {a}") for way in (0, 1)
        }
    else:
        add = add | {f"measure p2p-integrity {a} {b}": WRONG}
    path = folder / "fault.json"
    document = {"schema": "dgxcheck/overlay/1", "base": "k80-x8", "facts": facts, "add": add}
    path.write_text(json.dumps(document), encoding="utf-8")
    (found,) = [
        each for each in findings(box(str(path)), check)
        if each.subject.bdf == a and each.subject.peer is not None and each.subject.peer.bdf == b
    ]  # fmt: skip
    assert found.status is Status.FAIL
    return found.judgement.message, found.judgement.remedy


CASES: dict[str, tuple[dict[str, Json], dict[str, Json], str, str]] = {
    "ACS": (REDIRECTS, {}, f"ACS of {PORT}", f"setpci -s {PORT} ECAP_ACS+0x6.w=0:3c"),
    "IOMMU": (GROUPED, {TYPE: "DMA\n"}, "IOMMU translation", "iommu=pt"),
    "both, the IOMMU first": (REDIRECTS | GROUPED, {TYPE: "DMA-FQ\n"}, "IOMMU translation", "iommu=pt"),
    "an IOMMU that does not translate": (GROUPED, {TYPE: "identity\n"}, "", "neither ACS nor an IOMMU"),
    "ACS with virtual machines": (
        REDIRECTS | {f"names {MODULE}": [*MODULES, "vfio_pci"]}, {}, f"ACS of {PORT}", "vfio_pci is loaded"),
    "IOMMU with virtual machines": (
        GROUPED | {f"names {MODULE}": [*MODULES, "vfio_pci"]}, {TYPE: "DMA\n"}, "IOMMU translation",
        "leave IOMMU translation enabled"),
    "ACS, and an IOMMU of which nobody knows": (
        REDIRECTS | GROUPED, {TYPE: {"missing": "denied"}}, f"ACS of {PORT}", "do not disable ACS yet"),
    "nothing": ({}, {}, "", "neither ACS nor an IOMMU"),
    "nobody may read it": ({f"data {PCI}/{PORT}/config": {"missing": "denied"}}, {}, "", "as root"),
    "a guest": (GUEST | REDIRECTS, {}, "", "check ACS and the IOMMU on the host"),
}  # fmt: skip
LIFTED = ("ACS",)
"""Where a command is given."""


@pytest.mark.parametrize("check", [STATUS, INTEGRITY])
@pytest.mark.parametrize("case", CASES)
def test_the_setting_and_what_lifts_it_are_named(case: str, check: str, tmp_path: Path) -> None:
    facts, add, by, word = CASES[case]
    if check == STATUS and case == "a guest":
        return  # not judged there
    message, remedy = told(tmp_path, check, BOARD, facts, add)
    assert message.partition("; blocked by ")[2] == by
    assert word in remedy
    assert ("setpci" in remedy) == (case in LIFTED)


@pytest.mark.parametrize(("spared", "firmware"), [((), True), ((PORT,), False), (("0000:84:08.0",), False)])
def test_ports_that_all_redirect_were_set_so_together(spared: tuple[str, ...], firmware: bool, tmp_path: Path) -> None:
    above = {gpu.path[-2] for gpu in box("k80-x8").topology.gpus if isinstance(gpu.path, tuple)}
    facts = {key: value for port in above - {*spared} for key, value in acs(port, 0x1D, "k80-x8").items()}
    of = box(changed(tmp_path, facts, "k80-x8"))
    a, b = (next(gpu for gpu in of.gpus if gpu.bdf == bdf) for bdf in BOARD)
    parts = [(each.kind, each.bdf, each.part) for each in blocking_settings(of, a, b)]
    assert (("host", None, "ACS setting") in parts) is firmware
    assert (("bridge", PORT, "ACS setting") in parts) is (PORT not in spared)


def test_acs_stops_nobody_whose_way_goes_through_a_host_bridge_anyway(tmp_path: Path) -> None:
    port = "0000:84:08.0"
    message, remedy = told(tmp_path, INTEGRITY, ACROSS, acs(port, 0x1D, "k80-x8"), {})
    assert "blocked by" not in message
    assert "setpci" not in remedy


def test_wrong_data_over_nvlink_are_no_matter_of_acs() -> None:
    (found,) = [each for each in findings(box("dgx-1-v100-p2p-silent"), INTEGRITY) if each.status is Status.FAIL]
    assert "Xid 74" in found.judgement.remedy
    assert "ACS" not in found.judgement.remedy


def test_a_remedy_names_the_bits_of_few_ports() -> None:
    of = box("dgx-b300")
    ports = [*acs_rules(of)]
    assert disable_acs(of, *ports[:4]).count("xx000x0@") == 4
    assert "@" not in disable_acs(of, *ports[:5])


def test_a_status_that_the_driver_does_not_know_is_skipped_with_the_question(tmp_path: Path) -> None:
    """The second direction of the second capability."""
    a, b = BOARD
    asked = f"nvml nvmlDeviceGetP2PStatus {b} {a} 1"
    path = tmp_path / "fault.json"
    path.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": "k80-x8", "facts": {asked: 6}}))
    (found,) = [
        each for each in findings(box(str(path)), STATUS)
        if each.subject.bdf == a and each.subject.peer is not None and each.subject.peer.bdf == b
    ]  # fmt: skip
    assert (found.status, found.judgement.reason) == (Status.SKIP, "not-supported")
    assert found.judgement.message == f"nvmlDeviceGetP2PStatus {b} {a} 1: the driver reports U (unknown)"
