"""Xids 144 to 150: the words of the line tell this GPU, its peer, the link's signal and software apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_checks_kernel import logged

from dgxcheck.assessment import Request, assess
from dgxcheck.checks.engine.finding import Status
from dgxcheck.checks.kernel_log.xid_meaning import fault_of, xid_status
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.xid.table import decoded, meaning

LINK_EVENT = 0b0010001
"""The unit's bits in the second layout of intrinfo; the status is in bits 25 to 20."""


def line(status: int, layout: int = LINK_EVENT) -> str:
    return f"NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x{status << 20 | layout:08x} 0x00000000 0x00000000)"


@pytest.mark.parametrize(
    ("status", "fault", "severity"),
    [
        *((status, Fault.XID_SIGNAL, Status.FAIL) for status in (0x02, 0x04, 0x0A, 0x2A, 0x2B)),
        *((status, Fault.XID_LINK_OFF, Status.FAIL) for status in (0x0F, 0x10, 0x11, 0x12, 0x16)),
        *((status, Fault.XID_PEER, Status.FAIL) for status in (0x15, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25)),
        (0x26, Fault.XID_LINK_OFF, Status.WARN), (0x28, Fault.XID_LINK_OFF, Status.WARN),
        (0x00, Fault.XID, Status.FAIL),
    ],
)  # fmt: skip
def test_the_status_of_a_link_event(status: int, fault: FaultKind, severity: Status) -> None:
    known = meaning(149, None)
    for layout in (LINK_EVENT, 0b0111000110):
        assert fault_of([(known, line(status, layout))]) is fault
        assert xid_status(known, line(status, layout), 1) is severity


@pytest.mark.parametrize(
    ("number", "text", "due"),
    [
        (145, "RLW_REMAP Fatal XC1 i0 Link 17 (0x00000004 0x00000040 0x0)", ("nvlink", False)),
        (145, "RLW_REMAP Fatal XC1 i0 Link 17 (0x00000004 0x00000044 0x0)", ("nvlink", False)),
        (145, "RLW_REMAP Nonfatal XC1 i0 Link 17 (0x00000004 0x00000100 0x0)", ("none", True)),
        (144, "SAW_MVB Nonfatal XC0 i0 Link -1 (0x00000001 0x00000001 0x0)", ("watch", True)),
        (149, "NETIR_BER_EVENT Nonfatal XC0 i0 Link 03 (0x00000013 0x00000002)", ("nvlink-rate", True)),
        (149, "NETIR_LINK_EVT Fatal XC0", None), (149, "OTHER Fatal XC0 i0 Link 08 (0x00000011 0x0)", None),
        (74, "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x00000011 0x0)", None),
        (149, "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x03f00011 0x0)", None),
    ],
)  # fmt: skip
def test_words_of_a_line(number: int, text: str, due: tuple[str, bool] | None) -> None:
    assert decoded(number, text) == due


_RECOVERY = "NVRM: Xid (PCI:0000:0f:00): 154, GPU recovery action changed from 0x0 (None) to 0x"


@pytest.mark.parametrize("after", [(), (f"{_RECOVERY}4 (Drain and Reset)",), (f"{_RECOVERY}1 (GPU Reset Required)",)])
def test_the_peer_is_blamed_first_and_this_gpu_is_not_replaced(tmp_path: Path, after: tuple[str, ...]) -> None:
    said = f"NVRM: Xid (PCI:0000:0f:00): 149, {line(0x20)}"
    result = assess(logged(tmp_path, *((100.0, each) for each in (said, *after)), base="dgx-a100"), Request())
    (bad,) = [each for each in result.findings if each.id == "kernel.xid" and each.judgement.fault]
    assert bad.judgement.fault is Fault.XID_PEER
    assert "at link 8" in bad.judgement.message
    assert bad.blames[0].kind in ("nvlink", "nvswitch")
    steps = [action.step for cause in result.causes for action in cause.actions]
    assert "replace" not in steps
    assert next(step for step in steps if step != "drain") == "inspect"


def test_a_reboot_that_the_driver_asks_for_comes_before_the_peer() -> None:
    reboot = (meaning(154, None), "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)")
    assert fault_of([(meaning(149, None), line(0x20)), reboot]) is Fault.REBOOT_REQUIRED
