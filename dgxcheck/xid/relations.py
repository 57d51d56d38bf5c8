"""Which Xids and SXids follow from others: an error that follows is collateral, not a fault of its own.

A number of 10000 or more is an SXid. Two errors are related only if they occur within ``WINDOW_S`` of each other, at
the place that the relation names. And what the SXids of an NVSwitch ask for.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Literal

from dgxcheck.facts.faults import BY_WORD
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.record import Record
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.xid.table import RESPONSES, Response, before_ampere, from_ampere, sxids

Recovery = Literal["none", "gpu-reset", "node-reboot", "drain-p2p", "drain-and-reset", "imex", "other"]
FATAL = LazyPattern(r"(?<![\w-])Fatal\b")
"""In the line of a number whose text says how severe it is."""
_TO = LazyPattern(r"\bto 0x[0-9a-fA-F]+ \(([^)]*)\)")
_RECOVERIES: dict[str, Recovery] = {
    "none": "none", "gpu reset required": "gpu-reset", "node reboot required": "node-reboot",
    "drain p2p": "drain-p2p", "drain and reset": "drain-and-reset", "recover imex domain": "imex",
    "bus reset": "gpu-reset", "system reboot": "node-reboot", "pf flr": "gpu-reset",
}  # fmt: skip
"""By the names of nvmlDeviceGpuRecoveryAction_t in nvml.h."""
_LINK = LazyPattern(r"\blink (\d+)\b", flags=re.IGNORECASE)


def link_of(text: str) -> int | None:
    """The NVLink of a GPU that an Xid's text names, or the port of an NVSwitch: ``Link 28 LTSSM Fault Up``."""
    named = _LINK.search(text)
    return None if named is None else int(named[1])


def recovery_of(text: str) -> Recovery:
    """Of an Xid 154: ``GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)``."""
    return _RECOVERIES.get(recovery_words(text), "other")


def recovery_words(text: str) -> str:
    """``node reboot required``; empty for none that nvml.h names."""
    named = _TO.search(text)
    return named[1].lower() if named and named[1].lower() in _RECOVERIES else ""


WINDOW_S = 10.0
"""NVLink and PCIe time out, and the driver logs, within seconds; before or after, for what is noticed first varies."""
LATE_S = 60.0
"""An NVSwitch gives up on the links of a GPU that is lost a while after: 12 s in a public log."""
Place = Literal["same-gpu", "nvlink-peer", "any-gpu", "nvswitch-to-gpu", "gpu-to-nvswitch", "same-nvswitch"]
"""Where the effect is seen from the cause: on the same GPU; on a GPU joined to it by NVLinks, directly or through
NVSwitches; on any GPU of the host (jobs that use several); on GPUs whose NVLinks end at the NVSwitch that is the cause;
on NVSwitches to which the GPU that is the cause is joined; on the same NVSwitch."""


class Relation(Record, kw_only=False):
    """The effect can follow from each of the causes."""

    effect: int
    causes: frozenset[int]
    place: Place
    source: str


DETAILS = frozenset({45, 154})
"""They report another error and are none themselves."""
_OF_THE_LINK, _OF_ITS_TRAFFIC = frozenset({149, 150}), frozenset({144, 145, 146, 147, 148})
"""NVLink 5: NETIR and MSE run the link itself (NVML_NVLINK_FIRMWARE_UCODE_TYPE_NETIR_UPHY); the other units report, at
both ends and at other GPUs, what no longer comes through."""
_LEFT_BY_A_GPU = frozenset({11004, 12028, 14017, 20012, 20034, 22012, 24007})
"""SXids of a port whose GPU stopped: requests without an answer, and the link that goes down."""
_XID_PAGE = "https://docs.nvidia.com/deploy/archive/r555/xid-errors/index.html"
_MEMORY_PAGE = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html"
_CATALOGUE = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"
_FM_GUIDE = "NVIDIA Fabric Manager guide (DU-09883), appendix D"


@cache
def relations() -> tuple[Relation, ...]:
    """All that are known. A GPU that fails as a whole, or is reset, takes its NVLinks down."""
    tables = (from_ampere(), before_ampere())
    rows = [(number, entry) for table in tables for number, entry in table.items()]
    others = frozenset(number for number, _ in rows) - DETAILS
    nvlink = frozenset(number for number, entry in rows if entry.response == "nvlink")
    gpu_fails = frozenset(number for number, entry in rows
                          if entry.severity == "fail" and entry.response in ("reset", "memory", "off-bus"))  # fmt: skip
    of_others = {number: nvlink - _OF_ITS_TRAFFIC if number in _OF_THE_LINK else nvlink for number in sorted(nvlink)}
    fatal = frozenset(number for number, entry in sxids().items() if entry.fatality != "non-fatal")
    details = [(number, f"{_CATALOGUE}: Xid {number}") for number in (171, 172)]
    details += [(number, _MEMORY_PAGE) for number in (63, 64, 94, 95)]
    failed = f"{_XID_PAGE}: Xid 74"
    return (
        *(Relation(number, gpu_fails, "nvlink-peer", failed) for number in sorted(nvlink)),
        *(Relation(number, gpu_fails, "same-gpu", failed) for number in sorted(nvlink)),
        *(Relation(number, causes, "nvlink-peer", failed) for number, causes in of_others.items()),
        *(Relation(number, fatal, "nvswitch-to-gpu", f"{_FM_GUIDE}.5") for number in sorted(nvlink)),
        Relation(45, others, "any-gpu", f"{_CATALOGUE}: Xid 45"),
        Relation(45, fatal | {11004, 12028}, "any-gpu", f"{_FM_GUIDE}.4"),
        Relation(154, others, "same-gpu", f"{_CATALOGUE}: Xid 154"),
        *(Relation(number, frozenset({48}), "same-gpu", source) for number, source in details),
        Relation(19084, fatal, "same-nvswitch", f"{_FM_GUIDE}.4"),
        *(Relation(number, gpu_fails, "gpu-to-nvswitch", f"{_FM_GUIDE}.4, D.5") for number in sorted(_LEFT_BY_A_GPU)),
    )


def window_s(place: Place) -> float:
    """Within how many seconds of each other the two occur."""
    return LATE_S if place == "gpu-to-nvswitch" else WINDOW_S


@lru_cache(maxsize=1 << 16)
def places(effect: int, cause: int) -> tuple[Place, ...]:
    """Where an error of the one number can follow from one of the other; empty where it cannot."""
    return tuple(relation.place for relation in relations() if relation.effect == effect and cause in relation.causes)


def xid_fault(response: Response) -> FaultKind:
    """The fault of a GPU by what the table asks for."""
    return BY_WORD[RESPONSES[response]["gpu"]]


def sxid_fault(response: Response) -> FaultKind:
    """The fault of an NVSwitch by the same."""
    return BY_WORD[RESPONSES[response]["nvswitch"]]


def sxid_response(number: int, fatal: bool | None) -> Response:
    """What the guide asks for; of an error that is not fatal here no reset, and of a fatal one at least that.

    ``fatal``: as its line says, None where it does not say.
    """
    entry = sxids().get(number)
    response = "report" if entry is None or entry.response == "none" else entry.response
    if fatal:
        return "fabric-reset" if response in ("report", "stalled") else response
    resets = response in ("fabric-reset", "fabric-reboot")
    return "report" if resets and (fatal is False or entry is None or entry.fatality == "non-fatal") else response
