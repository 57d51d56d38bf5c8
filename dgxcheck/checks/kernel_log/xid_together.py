"""Conclusions from several Xids of one GPU that no single one allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.checks.kernel_log.device_log import DAY_S
from dgxcheck.facts.kernel_log import KernelLog, Xid
from dgxcheck.facts.record import replace
from dgxcheck.xid.entry import XidEntry
from dgxcheck.xid.relations import WINDOW_S

SUSPECT = (
    "several programs fail on this GPU and on no other: run dcgmi diag -r 3 at the next drain; if it finds nothing,"
    " check what these programs share (compute-sanitizer)"
)
_CONTAINED = 94
_UNCORRECTABLE = frozenset({48, 171, 172})
"""Uncorrectable memory errors; whether one is contained, 94 or 95 says."""
_SEVERAL = 3
"""So many programs are unlikely to be faulty each."""


def contained(xids: Sequence[Xid], known: Mapping[int, XidEntry]) -> Mapping[int, XidEntry]:
    """Memory errors that stopped one program alone, as each has an Xid 94 beside it: they ask for what that asks for.

    https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html, error containment
    """
    known_contained = known.get(_CONTAINED)
    if known_contained is None:
        return {}
    times = [each.seconds for each in xids if each.number == _CONTAINED]
    return {
        number: replace(known[number], severity=known_contained.severity, response=known_contained.response)
        for number in _UNCORRECTABLE & known.keys()
        if all(any(abs(each.seconds - at) <= WINDOW_S for at in times) for each in xids if each.number == number)
    }


def processes_of(xids: Sequence[Xid]) -> int:
    """The most processes that had an Xid within one day; an Xid without a process counts for none."""
    of_process = [each for each in xids if each.pid]
    days = ({x.pid for x in of_process if 0 <= x.seconds - first.seconds < DAY_S} for first in of_process)
    return max(map(len, days), default=0)


def fail_here_alone(log: KernelLog, bdf: str, xids: Sequence[Xid]) -> bool:
    """Do programs of several names fail on this GPU and on no other? A single program is probably faulty itself."""
    here = {each.process for each in xids if each.process}
    elsewhere = {each.process for each in log.xids if each.bdf != bdf}
    return len(here - elsewhere) >= _SEVERAL
