"""Which Xids and SXids follow from others: an error that follows is collateral, not a fault of its own.

A number of 10000 or more is an SXid. Two errors are related only if they occur within seconds of each other
(``diagnosis.collateral``), at the place that the relation names.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

from dgxcheck.facts.record import Record
from dgxcheck.xid.table import before_ampere, from_ampere, sxids

Place = Literal["same-gpu", "nvlink-peer", "any-gpu", "nvswitch-to-gpu", "gpu-to-nvswitch", "same-nvswitch"]
"""Where the effect is seen from the cause: on the same GPU; on a GPU joined to it by NVLinks, directly or through
NVSwitches; on any GPU of the host (jobs that use several); on GPUs whose NVLinks end at the NVSwitch that is the cause;
on NVSwitches to which the GPU that is the cause is joined; on the same NVSwitch."""


class Relation(Record):
    """The effect can follow from each of the causes."""

    effect: int
    causes: frozenset[int]
    place: Place
    source: str


_DETAILS = frozenset({45, 154})
"""They report another error and are none themselves."""
_XID_PAGE = "https://docs.nvidia.com/deploy/archive/r555/xid-errors/index.html"
_MEMORY_PAGE = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html"
_CATALOGUE = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"
_FM_GUIDE = "NVIDIA Fabric Manager guide (DU-09883), appendix D"


@cache
def relations() -> tuple[Relation, ...]:
    """All that are known. A GPU that fails as a whole, or is reset, takes its NVLinks down."""
    tables = (from_ampere(), before_ampere())
    others = frozenset(number for table in tables for number in table) - _DETAILS
    gpu_fails = frozenset(
        number
        for table in tables
        for number, entry in table.items()
        if entry.severity == "fail" and entry.response in ("reset", "off-bus")
    )
    fatal = frozenset(number for number, entry in sxids().items() if entry.fatality != "non-fatal")
    dbe = frozenset({48})
    details = [(number, f"{_CATALOGUE}: Xid {number}") for number in (171, 172)]
    details += [(number, _MEMORY_PAGE) for number in (63, 64, 94, 95)]
    return (
        Relation(effect=74, causes=gpu_fails, place="nvlink-peer", source=f"{_XID_PAGE}: Xid 74"),
        Relation(effect=74, causes=frozenset({74}), place="nvlink-peer", source=f"{_XID_PAGE}: Xid 74"),
        Relation(effect=74, causes=fatal, place="nvswitch-to-gpu", source=f"{_FM_GUIDE}.5"),
        Relation(effect=45, causes=others, place="any-gpu", source=f"{_CATALOGUE}: Xid 45"),
        Relation(effect=45, causes=fatal | {11004, 12028}, place="any-gpu", source=f"{_FM_GUIDE}.4"),
        Relation(effect=154, causes=others, place="same-gpu", source=f"{_CATALOGUE}: Xid 154"),
        *(Relation(effect=number, causes=dbe, place="same-gpu", source=source) for number, source in details),
        Relation(effect=19084, causes=fatal, place="same-nvswitch", source=f"{_FM_GUIDE}.4"),
        *(
            Relation(effect=number, causes=gpu_fails, place="gpu-to-nvswitch", source=f"{_FM_GUIDE}.4, D.5")
            for number in (20012, 20034, 22012)
        ),
    )


def places(effect: int, cause: int) -> tuple[Place, ...]:
    """Where an error of the one number can follow from one of the other; empty where it cannot."""
    return tuple(each.place for each in relations() if each.effect == effect and cause in each.causes)
