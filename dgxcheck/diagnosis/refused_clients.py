"""Errors of programs that start the driver for themselves, beside a GPU or driver that does not work.

A client of NVML or CUDA enumerates all GPUs when it starts: one that fell off the bus makes it fail or time out, and
nothing can be started while no driver is there (https://docs.nvidia.com/deploy/xid-errors/, Xid 79).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.components.component import Component
from dgxcheck.facts.faults import GPU_DEAD, Fault

_LEADING = GPU_DEAD | {
    Fault.LIBRARY_MISSING, Fault.LIBRARY_BROKEN, Fault.DRIVER_NOT_LOADED, Fault.DRIVER_MISMATCH, Fault.NOUVEAU,
}  # fmt: skip
_DRIVER = frozenset({Fault.DRIVER_FAILED, Fault.DRIVER_UNRESPONSIVE})


def refused_clients(
    bad: Mapping[str, Finding], blamed: Mapping[str, Sequence[Component]]
) -> Mapping[str, tuple[Component, ...]]:
    """By key of a finding of the host: the dead GPUs and the driver that it follows from."""
    leading = [
        key for key in blamed if bad[key].status is Status.FAIL and bad[key].judgement.fault in _LEADING and blamed[key]
    ]
    components = tuple(dict.fromkeys(blamed[key][0] for key in leading))
    following = [key for key in blamed if key not in leading and _is_of_client(bad[key])] if components else []
    return dict.fromkeys(following, components)


def _is_of_client(finding: Finding) -> bool:
    """Of a container runtime only the errors that it got: that it does not know NVIDIA's GPUs fails by itself."""
    fault = finding.judgement.fault
    refused = fault is Fault.CONTAINER_RUNTIME and finding.status is Status.WARN
    return finding.subject.kind == "host" and (fault in _DRIVER or refused)
