"""The fault of an Xid or SXid, by what its table entry asks for; the steps of ``diagnosis.escalation`` follow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.xid.entry import REMEDIES, Response, XidEntry
from dgxcheck.xid.line import ANNOUNCES_RECOVERY, Recovery, recovery_of
from dgxcheck.xid.nvlink5 import decoded

OF_RESPONSE: Mapping[Response, FaultKind] = {
    "off-bus": Fault.GPU_LOST,
    "recovery": Fault.RECOVERY_REQUIRED,
    "fabric-reboot": Fault.NVSWITCH_FATAL,
    "field-diagnostic": Fault.RETIREMENT_FAILED,
    "fabric-reset": Fault.NVSWITCH,
    "vm": Fault.XID_SOFTWARE,
    "nvlink-peer": Fault.XID_PEER,
    "nvlink-signal": Fault.XID_SIGNAL,
    "nvlink-off": Fault.XID_LINK_OFF,
    "pcie": Fault.XID_PCIE,
    "cooling": Fault.NVSWITCH_NOTICE,
    "mechanical": Fault.NVSWITCH_NOTICE,
    "contained": Fault.XID_CONTAINED,
    "repair": Fault.REPAIR_PENDING,
    "update": Fault.XID_SOFTWARE,
    "watch": Fault.XID_NOTICE,
    "report": Fault.XID_NOTICE,
    "follow": Fault.XID_APPLICATION,
    "program": Fault.XID_APPLICATION,
}
"""Every other response asks for a reset of the GPU: Fault.XID."""
_NOT_FATAL = re.compile(r"\bnon-?fatal\b", re.IGNORECASE)
"""In the lines of NVLink 5 units: ``149, NETIR_LINK_DOWN Nonfatal XC0 i0 Link 17 (0x..)``."""
_OF_RECOVERY: Mapping[Recovery, FaultKind] = {
    "gpu-reset": Fault.RESET_REQUIRED,
    "node-reboot": Fault.REBOOT_REQUIRED,
    "drain-p2p": Fault.DRAIN_REQUIRED,
    "drain-and-reset": Fault.RESET_REQUIRED,
    "imex": Fault.IMEX_RECOVERY,
}


def response_of(entry: XidEntry, text: str) -> Response:
    """What to do first about one Xid: of NVLink 5 as the words of its line say; one that is not fatal is watched."""
    if (known := decoded(entry.number, text)) is not None:
        return known[0]
    return "watch" if entry.severity == "text" and _NOT_FATAL.search(text) else entry.response


def most_drastic(responses: Iterable[Response]) -> Response:
    """In the order of ``REMEDIES``; at least one is given."""
    return min(responses, key=[*REMEDIES].index)


def fault_of(entries: Iterable[tuple[XidEntry, str]]) -> FaultKind:
    """Of Xids with the texts of their lines, the fault of the one that asks for most; at least one is given."""
    pairs = [*entries]
    response = most_drastic(response_of(entry, text) for entry, text in pairs)
    if response == "recovery":
        last = [text for entry, text in pairs if entry.number == ANNOUNCES_RECOVERY][-1]
        return _OF_RECOVERY.get(recovery_of(last), Fault.RECOVERY_REQUIRED)
    return OF_RESPONSE.get(response, Fault.XID)
