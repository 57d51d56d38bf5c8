"""AER: the errors that devices count and the messages that root ports receive, at their thresholds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fabric_box import box, findings, said
from test_checks_pcie import FILE, GAP, GONE, PORT, ROOT, SWITCH, grown
from test_health_checks import GPU2, changed

from dgxcheck.checks.engine.box import NO_GROWTH
from dgxcheck.checks.pcie.aer import messages_from
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.facts.pci import AerDevice, AerErrors, RootPortErrors
from dgxcheck.facts.record import replace
from dgxcheck.settings import Settings


def errors(total: int) -> AerErrors:
    return AerErrors(counts={}, total=total)


def at_port(
    port: int | Missing | None, below: int, before: int | Missing | None = None
) -> tuple[list[AerDevice], list[AerDevice]]:
    """Fatal errors that a root port counts, or the gap; those of the switch below it; and what it counted before."""
    made = [
        [AerDevice(bdf=ROOT, correctable=GAP, nonfatal=GAP, fatal=errors(0),
                   root_port=None if count is None else RootPortErrors(correctable=0, nonfatal=0, fatal=count)),
         AerDevice(bdf=SWITCH, correctable=GAP, nonfatal=GAP, fatal=errors(own), root_port=None)]
        for count, own in ((port, below), (before, 0))
    ]  # fmt: skip
    return made[0], made[1]


@pytest.mark.parametrize(("found", "earlier", "due"), [
    ((3, 0, 1), True, 2), ((3, 2, 1), True, None), ((3, 1, 1), True, 1), ((1, 0, 1), True, None),
    ((GAP, 0, 1), True, None), ((3, 0, GAP), True, None), ((3, 0), False, 3), ((3, 0), True, 3),
    ((None, 0, 1), True, None),
])  # fmt: skip
def test_messages_of_a_root_port(found: tuple[Any, ...], earlier: bool, due: int | None) -> None:
    now, before = at_port(*found)
    topology = box("dgx-1-v100").topology
    assert {port: count for port, (_, count) in messages_from(topology, now, before if earlier else ())} == (
        {ROOT: due} if due else {})


def aer(kind: str, error: str, count: int, bdf: str = GPU2) -> dict[str, Json]:
    return {f"/sys/bus/pci/devices/{bdf}": {"text": {f"aer_dev_{kind}": f"{error} {count}\nTOTAL_ERR {count}\n"}}}


@pytest.mark.parametrize(
    ("later", "bdf", "due"),
    [
        (aer("fatal", "DLP", 1), GPU2, "fail"),
        (aer("nonfatal", "CmpltTO", 1), GPU2, "warn"),
        (aer("correctable", "RxErr", 1), GPU2, "pass"),
        (aer("correctable", "RxErr", 100), GPU2, "pass"),
        (aer("correctable", "RxErr", 101), GPU2, "warn"),
        (aer("correctable", "RxErr", 0), GPU2, "pass"),
        (aer("correctable", "RxErr", 101, SWITCH), SWITCH, "warn"),
        (aer("correctable", "RxErr", 101, "0000:0c:00.0"), "mlx5_1", "warn"),
        ({f"/sys/bus/pci/devices/{GPU2}": {"text": {"aer_dev_fatal": "DLP 0\nTOTAL_ERR 2\n"}}}, GPU2, "fail"),
    ],
)
def test_aer_is_told_where_it_is_counted(later: dict[str, Json], bdf: str, due: str, tmp_path: Path) -> None:
    found = box(grown(tmp_path, later))
    assert said(found, "pcie.aer", bdf) == [due]
    assert [each for each in said(found, "pcie.aer") if each != "pass"] == ([due] if due != "pass" else [])


@pytest.mark.parametrize(
    ("kind", "count", "days", "allowed", "due"),
    [
        ("correctable", 3000, 30, 100, "pass"),
        ("correctable", 3001, 30, 100, "warn"),
        ("correctable", 2, 1, 0, "pass"),  # too few for a rate
        ("correctable", 3, 1, 0, "warn"),
        ("nonfatal", 1, 30, 100, "warn"),
        ("fatal", 1, 30, 100, "fail"),
    ],
)
def test_aer_by_the_day(kind: str, count: int, days: int, allowed: int, due: str, tmp_path: Path) -> None:
    site = Settings(thresholds={"kernel.corrected-pcie": allowed})
    found = box(grown(tmp_path, aer(kind, "RxErr", count)), settings=site, seconds=days * 86400)
    assert said(found, "pcie.aer", GPU2) == [due]


@pytest.mark.parametrize(("count", "seconds", "fault"), [
    (100, 10, None), (101, 10, Fault.AER_STORM),  # a day's number
    (200, 72, Fault.AER_CORRECTABLE), (201, 72, Fault.AER_STORM),  # a hundred times it in an hour
    (1000, 3599, Fault.AER_CORRECTABLE), (1001, 3600, Fault.AER_STORM),  # ten times it
    (2000, 7200, Fault.AER_CORRECTABLE), (2001, 7200, Fault.AER_STORM),  # the same in each hour
])  # fmt: skip
def test_a_storm_of_corrected_errors(count: int, seconds: float, fault: FaultKind | None, tmp_path: Path) -> None:
    found = box(grown(tmp_path, aer("correctable", "RxErr", count)), seconds=seconds)
    (bad,) = [each for each in findings(found, "pcie.aer") if each.subject.bdf == GPU2]
    assert bad.judgement.fault is fault


def test_aer_before_and_without_history(tmp_path: Path) -> None:
    was: dict[str, Json] = {FILE.format(GPU2, "aer_dev_correctable"): "RxErr 9\nTOTAL_ERR_COR 9\n"}
    assert said(box(grown(tmp_path, aer("correctable", "RxErr", 9), was)), "pcie.aer", GPU2) == ["pass"]
    assert said(box(grown(tmp_path, aer("correctable", "RxErr", 2), was)), "pcie.aer", GPU2) == ["skip no-history"]
    still = replace(box("dgx-1-v100"), gpus=box("dgx-1-v100").gpus[2:3])
    assert len(said(still, "pcie.aer")) == 4  # root port, both ports of the switch, the GPU


TOTALS = "text /sys/bus/pci/devices/{}/aer_dev_{}"
TOLD, NONFATAL, FATAL = (f"text /sys/bus/pci/devices/{{}}/aer_rootport_total_err_{kind}"
                         for kind in ("cor", "nonfatal", "fatal"))  # fmt: skip
UP: dict[str, Json] = {"text /proc/uptime": GONE}


@pytest.mark.parametrize(
    ("facts", "subject", "due"),
    [
        ({TOTALS.format(GPU2, "correctable"): "RxErr 1000\n"}, GPU2, []),  # 100 a day in the 10 days since boot
        ({TOTALS.format(GPU2, "correctable"): "RxErr 1001\n"}, GPU2, ["warn"]),
        ({TOTALS.format(PORT, "correctable"): "RxErr 9000\n"}, PORT, ["warn"]),
        ({TOTALS.format(GPU2, "correctable"): "RxErr 1001\n"} | UP, GPU2, ["warn"]),
        ({TOTALS.format(GPU2, "correctable"): "RxErr 1000\n"} | UP, GPU2, []),
        ({TOTALS.format(GPU2, "fatal"): "DLP 1\n"}, GPU2, ["warn"]),
        ({TOTALS.format(GPU2, "fatal"): "SDES 1\n"}, GPU2, []),
        ({TOTALS.format(GPU2, "nonfatal"): "UnsupReq 40\n"}, GPU2, []),
        ({TOTALS.format(GPU2, "nonfatal"): "UnsupReq 40\nCmpltTO 1\n"}, GPU2, ["warn"]),
        ({TOLD.format(ROOT): "5000\n"}, ROOT, ["warn"]),
        ({FATAL.format(ROOT): "1\n"}, ROOT, ["warn"]),
        ({FATAL.format(ROOT): "1\n", TOTALS.format(GPU2, "fatal"): "SDES 1\n"}, ROOT, []),
        ({NONFATAL.format(ROOT): "9\n"}, ROOT, []),
        ({TOLD.format(ROOT): "5000\n", TOTALS.format(GPU2, "correctable"): "RxErr 5000\n"}, ROOT, []),
    ],
)
def test_totals_without_a_second_reading(facts: dict[str, Json], subject: str, due: list[str], tmp_path: Path) -> None:
    once = replace(box(changed(tmp_path, facts)), growth=NO_GROWTH)
    assert said(once, "pcie.aer", subject) == due
    assert ("warn" in said(once, "pcie.aer")) is bool(due) or subject == ROOT


def test_messages_from_below_blame_the_links_there(tmp_path: Path) -> None:
    later: dict[str, Json] = {f"/sys/bus/pci/devices/{ROOT}": {"text": {"aer_rootport_total_err_cor": "500\n"}}}
    (finding,) = [each for each in findings(box(grown(tmp_path, later), seconds=60), "pcie.aer") if each.blames]
    assert finding.subject.bdf == ROOT
    assert {each.bdf for each in finding.blames} >= {SWITCH, GPU2}
    assert {each.kind for each in finding.blames} == {"link"}
