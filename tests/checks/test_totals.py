"""Checks that judge totals, on the overlays that ship for them: what is said with and without the time since boot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fabric_box import box as box_of
from fabric_box import findings
from sample import BY_NAME

from dgxcheck.checks.engine.box import NO_GROWTH
from dgxcheck.checks.engine.finding import Status
from dgxcheck.facts.record import replace


@pytest.mark.parametrize(
    ("overlay", "check", "subject"),
    [
        ("pcie-x8-edac-total", "host.edac", "mc3"),
        ("pcie-x8-aer-totals", "pcie.aer", ""),
        ("pcie-x4-replays-total", "pcie.replay", ""),
        ("dgx-1-v100-nvlink-crc-total", "nvlink.errors", "2"),
        ("dgx-a100-transport-totals", "network.transport-errors", "1"),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_a_total_is_judged_with_and_without_the_time_since_boot(
    overlay: str, check: str, subject: str, known: bool, tmp_path: Path
) -> None:
    document = json.loads(Path(BY_NAME[overlay]).read_text(encoding="utf-8"))
    if not known:
        document["facts"]["text /proc/uptime"] = {"missing": "absent"}
    path = tmp_path / "fault.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    whole = box_of(str(path))
    for box in (whole, replace(whole, growth=NO_GROWTH)):
        warned = [each for each in findings(box, check) if each.status is Status.WARN]
        assert warned
        assert {each.subject.part for each in warned} == {subject}
    assert len(warned) == (2 if check == "pcie.aer" else 1)
    boots = "since boot" in warned[0].judgement.message
    assert boots is known or check == "pcie.replay"


@pytest.mark.parametrize(("gpus", "own", "other", "due"), [
    (4, 70000, 0, "GPU1 70000 PCIe replays since driver load, other GPUs have none"),
    (4, 70000, 7000, "GPU1 70000 PCIe replays since driver load, other GPUs have at most 7000"),
    (2, 70000, 7000, "GPU1 70000 PCIe replays since driver load, the other GPU has 7000"),
    (4, 70000, 7001, ""), (2, 70000, 7001, ""), (1, 70000, 0, ""), (4, 80, 0, ""),
])  # fmt: skip
def test_replays_of_one_gpu_are_ten_times_those_of_any_other(
    gpus: int, own: int, other: int, due: str, tmp_path: Path
) -> None:
    document = json.loads(Path(BY_NAME["pcie-x4-replays-total"]).read_text(encoding="utf-8"))
    listed = [gpu.bdf for gpu in box_of("pcie-x4").topology.gpus]
    counts = dict(zip((listed[1], listed[0], *listed[2:]), (own, other, *2 * (min(other, 3),)), strict=True))
    document["facts"] = {f"nvml nvmlDeviceGetPcieReplayCounter {bdf}": count for bdf, count in counts.items()}
    document["drop"] = [bdf for bdf in counts if bdf not in [*counts][:gpus]]
    path = tmp_path / "fault.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    found = [each for each in findings(box_of(str(path)), "pcie.replay") if each.status is not Status.PASS]
    assert " ".join(f"{each.subject.name} {each.judgement.message}" for each in found) == due


def test_clocks_that_are_locked_under_load_are_found() -> None:
    box = box_of("pcie-x8-clocks-locked-under-load")
    (odd,) = [each for each in findings(box, "clock.application") if each.status is not Status.PASS]
    assert (odd.subject.name, odd.judgement.measured) == ("GPU0", 544)
    assert "locked" not in odd.judgement.message  # no clock of a P100 can be locked
    assert odd.judgement.evidence[-1].where == f"nvmlDeviceGetClockInfo {odd.subject.bdf} 0"


def test_an_sxid_names_its_port() -> None:
    (odd,) = [each for each in findings(box_of("dgx-a100-sxid-20009"), "kernel.xid") if each.status is Status.WARN]
    assert [event.link for event in odd.judgement.events] == [12]


def test_links_that_went_down_in_years_are_no_fault(tmp_path: Path) -> None:
    """An adapter in service has a count that says nothing where it is not known for how long."""
    document = json.loads(Path(BY_NAME["dgx-1-v100-port-flapping"]).read_text(encoding="utf-8"))
    path = tmp_path / "fault.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    assert Status.WARN in {each.status for each in findings(box_of(str(path)), "network.port-errors")}
    document["facts"]["text /proc/uptime"] = {"missing": "absent"}
    path.write_text(json.dumps(document), encoding="utf-8")
    assert Status.WARN not in {each.status for each in findings(box_of(str(path)), "network.port-errors")}


ROOT = "0000:00:03.0"


def test_what_a_removed_device_counted_is_gone(tmp_path: Path) -> None:
    """The counters of a device go with it; what its root port received stays."""
    log = {f"kmsg {90 + place}": f"{3600 + place}.000000;pcieport 0000:09:08.0: pciehp: Slot(2): {what}"
           for place, what in enumerate(("Link Down", "Card not present", "Card present", "Link Up"))}  # fmt: skip
    facts = {f"text /sys/bus/pci/devices/{ROOT}/aer_rootport_total_err_fatal": "1\n"}
    document = {"schema": "dgxcheck/overlay/1", "base": "dgx-1-v100", "facts": facts, "add": log}
    path = tmp_path / "removed.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    once = replace(box_of(str(path)), growth=NO_GROWTH)
    (found,) = [each for each in findings(once, "pcie.aer") if each.subject.bdf == ROOT]
    assert found.status is Status.SKIP
