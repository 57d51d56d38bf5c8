"""GPUs that fell off the bus in earlier boots of a log: a fault that comes and goes, or one of the past."""

from __future__ import annotations

from pathlib import Path

import pytest

from dgxcheck.assessment import Assessment, Request, assess
from dgxcheck.checks.kernel_log.device_log import boots_since
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind

BOOT = "[    0.000000] Linux version 6.2\n[  204.{:03}000] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.113.01\n"
LOADED_AGAIN = BOOT.partition("\n")[2].replace("204", "230")
FALL = "[  220.{:03}000] NVRM: GPU 0000:0a:00.0: GPU has fallen off the bus.\n"


def judged(boots: str, folder: Path) -> Assessment:
    """``x`` for a boot in which the GPU fell off the bus, ``.`` for one in which it did not, ``r`` for one in which the
    driver was loaded again after; the last is this one."""
    path = folder / "dmesg.txt"
    texts = {".": BOOT, "x": BOOT + FALL, "r": BOOT + FALL + LOADED_AGAIN}
    path.write_text("".join(texts[boot].format(n, n, n) for n, boot in enumerate(boots)), encoding="utf-8")
    return assess(str(path), Request())


@pytest.mark.parametrize(
    ("boots", "status", "fault", "due"),
    [
        ("..x", "fail", Fault.GPU_LOST, "now"),
        ("x.", "warn", Fault.GPU_LOST_BEFORE, "watch"),
        ("x.....", "pass", None, ""),
        ("r", "pass", None, ""),
        ("xr", "warn", Fault.GPU_LOST, "next-drain"),
        ("x....r", "warn", Fault.GPU_LOST, "next-drain"),
        ("xx.", "warn", Fault.GPU_LOST, "next-drain"),
        ("x.x...", "warn", Fault.GPU_LOST, "next-drain"),
        ("xx....", "warn", Fault.GPU_LOST_BEFORE, "watch"),
        ("x.x.x......", "warn", Fault.GPU_LOST_BEFORE, "watch"),
        ("x.x.x.....x", "fail", Fault.GPU_LOST, "now"),
    ],
)
def test_a_fault_of_the_past_is_watched(
    boots: str, status: str, fault: FaultKind | None, due: str, tmp_path: Path
) -> None:
    found = judged(boots, tmp_path)
    finding = next(each for each in found.findings if each.id == "kernel.off-bus")
    assert (finding.status.value, finding.judgement.fault) == (status, fault)
    urgencies = {action.urgency for cause in found.diagnosis.causes for action in cause.actions}
    assert (due in urgencies) if due else not urgencies


@pytest.mark.parametrize(("boots", "reboots"), [("xx.", 1), ("xxx", 2), ("xx....", None)])
def test_reboots_after_which_it_fell_again(boots: str, reboots: int | None, tmp_path: Path) -> None:
    (cause,) = judged(boots, tmp_path).diagnosis.causes
    assert (None if cause.recurrence is None else cause.recurrence.reboots) == reboots


XID = "[  220.{:03}000] NVRM: Xid (PCI:0000:0a:00): {number}, pid=7, 0cb5(2d50) 00000000 00000000\n"


@pytest.mark.parametrize(
    ("boots", "number", "status"),
    [("x.", 62, "warn"), ("x..", 48, "warn"), ("x.....", 62, "pass"), ("x.", 13, "pass"), ("x.", 31, "pass"),
     ("..", 62, "pass"), ("xx", 62, "fail")],
)  # fmt: skip
def test_xids_of_earlier_boots_are_said(boots: str, number: int, status: str, tmp_path: Path) -> None:
    own, fall = (XID.replace("{number}", str(each)) for each in (number, 79))
    texts = [BOOT + own + fall * (at + 1 < len(boots)) if boot == "x" else BOOT for at, boot in enumerate(boots)]
    path = tmp_path / "dmesg.txt"
    path.write_text("".join(text.format(n, n, n) for n, text in enumerate(texts)), encoding="utf-8")
    found = assess(str(path), Request())
    of_gpu = [each for each in found.findings if each.id == "kernel.xid" and each.subject.bdf == "0000:0a:00.0"]
    assert [each.status.value for each in of_gpu] == ([status] if "x" in boots else [])
    if boots[-1] == "." and of_gpu:
        assert f"Xid {number} (" in of_gpu[0].judgement.message
        assert "in 1 earlier boot of this log, none since" in of_gpu[0].judgement.message
        assert "Xid 79" not in of_gpu[0].judgement.message  # kernel.off-bus has it


@pytest.mark.parametrize(
    ("falls", "since"),
    [
        ((), 0),
        (("-1",), 0),
        (("-4",), 4),
        (("-3", "-1"), 0),
        (("-9", "-5"), 0),
        (("-9", "-6"), 6),
        (("-9", "b1"), 0),
        (("1", "2"), 0),
    ],
)
def test_boots_since_the_last_fall(falls: tuple[str, ...], since: int) -> None:
    """0 where they are fewer than those among which it fell, or where nothing tells their order."""
    assert boots_since(falls) == since
