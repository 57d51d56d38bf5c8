"""Hundreds of faults are diagnosed in time proportional to their number; it is counted in calls."""

from __future__ import annotations

import cProfile
import json

import pytest
from checkout import ROOT
from sample import swept

from dgxcheck.assessment import assess
from dgxcheck.facts.missing import Json
from dgxcheck.source.protocol import Origin
from dgxcheck.source.recording.keys import GroupedFacts
from dgxcheck.source.recording.replay import RecordedSource

PCI = "/sys/bus/pci/devices"
OF_ONE = ("0000:00:02.0", "0000:02:00.0", "0000:03:08.0", "0000:04:00.0")
"""Root port, both ports of a switch, and the GPU below it in the box that is multiplied."""
LOGGED = (
    "{n}.5;pcieport {gpu}: AER: Uncorrected (Fatal) error received: {gpu}",
    "{n}.6;NVRM: Xid (PCI:{short}): 79, pid=1, GPU has fallen off the bus.",
    "{n}.7;NVRM: Xid (PCI:{short}): 74, pid=1, NVLink: fatal error detected on link 0",
)


def box(count: int, faulty: int) -> GroupedFacts:
    """A host with so many GPUs behind switches of eight, of which the first have narrow links and lines in the log."""
    base = json.loads((ROOT / "fixtures/pcie-x8.json").read_text())["facts"]
    facts: dict[str, Json] = {key: line for key, line in base.items() if not key.startswith(("nvml", f"{PCI}"))}
    link: dict[str, Json] = {}
    log: list[str] = []
    for n in range(count):
        domain, switch, slot = f"{n // 64 + 1:04x}", n % 64 // 8, n % 8
        bus = switch * 16 + 1
        path = (f"{domain}:00:{switch:02x}.0", f"{domain}:{bus:02x}:00.0", f"{domain}:{bus + 1:02x}:{slot:02x}.0",
                f"{domain}:{bus + 2 + slot:02x}:00.0")  # fmt: skip
        for depth, (bdf, like) in enumerate(zip(path, OF_ONE, strict=True)):
            if bdf not in link:
                link[bdf] = f"../../../devices/pci{domain}:00/{'/'.join(path[: depth + 1])}"
                facts[f"{PCI}/{bdf}"] = json.loads(json.dumps(base[f"{PCI}/{like}"]))
        if n < faulty:
            facts[f"{PCI}/{path[3]}"]["text"]["current_link_width"] = "4\n"  # type: ignore[index, call-overload]
            log += [line.format(n=n, gpu=path[3], short=path[3][:-2]) for line in LOGGED]
    numbered: dict[str, Json] = {str(number): line for number, line in enumerate(log)}
    whole: GroupedFacts = {**facts, PCI: {"names": sorted(link), "link": link}, "kmsg": numbered}  # type: ignore[dict-item]
    return whole


def calls(count: int, faulty: int) -> int:
    """Calls of functions that an assessment of such a box takes."""
    source = RecordedSource(box(count, faulty), Origin("recording"))
    profile = cProfile.Profile()
    report = profile.runcall(assess, source)
    bad = {each.subject.bdf for each in report.findings if each.status.value == "fail"} - {None}
    assert len(bad) >= faulty
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.in_ci
@pytest.mark.parametrize(
    ("small", "large", "most"), swept([((128, 32), (128, 64), 1.6), ((64, 64), (128, 128), 2.3)], 2, first=1)
)
def test_twice_the_faults_take_twice_the_time(small: tuple[int, int], large: tuple[int, int], most: float) -> None:
    assert calls(*large) <= most * calls(*small)


def judged(gpus: int, each: int) -> tuple[int, str]:
    """Calls that an assessment of a log takes in which so many GPUs log so many Xids, and what of the rest."""
    numbers = (74, 45, 48, 95, 154, 31)
    lines = [f"{at}.5;NVRM: Xid (PCI:{gpu >> 8:04x}:{gpu & 255:02x}:00): {numbers[at % 6]}, pid=1, Ch {at}"
             for at in range(each) for gpu in range(gpus)]  # fmt: skip
    numbered: dict[str, Json] = {str(number): line for number, line in enumerate(("0;dgxcheck: log begins", *lines))}
    profile = cProfile.Profile()
    report = profile.runcall(assess, RecordedSource({"kmsg": numbered}, Origin("recording")))
    return sum(entry.callcount for entry in profile.getstats()), "".join(
        each.judgement.message for each in report.findings if each.key.startswith("report.complete"))


@pytest.mark.in_ci
def test_a_log_of_more_gpus_than_a_machine_has_is_not_judged_whole() -> None:
    (small, _), (large, cut) = judged(300, 12), judged(1200, 12)
    assert large < 4 * small
    assert cut == "not all of it was read, and the rest is not judged: Xids of more than 128 GPUs or NVSwitches"


def test_twice_the_xids_take_twice_the_time() -> None:
    assert judged(20, 120)[0] <= 2.2 * judged(20, 60)[0]
