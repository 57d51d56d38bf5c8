"""When a cause is to be dealt with, by the faults of its findings and their severity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.diagnosis.action import Urgency

ORDER: tuple[Urgency, ...] = ("now", "next-drain", "next-maintenance", "watch")
_OF_FAULT: Mapping[Fault, Urgency] = {
    Fault.RETIREMENT_PENDING: "next-drain",
    Fault.REMAP_PENDING: "next-drain",
    Fault.REPAIR_PENDING: "next-drain",
    Fault.DRAIN_REQUIRED: "next-drain",
    Fault.ECC_PENDING: "next-drain",
    Fault.MIG_PENDING: "next-drain",
    Fault.XID_CONTAINED: "next-drain",
    Fault.HOTTER: "next-drain",
    Fault.XID_NOTICE: "watch",
    Fault.NVSWITCH_WATCHED: "watch",
    Fault.ECC_CORRECTED: "watch",
    Fault.PAGES_MANY: "watch",
    Fault.ROWS_LOW: "watch",
    Fault.GPU_STARTED_LATE: "watch",
    Fault.GPU_LOST_BEFORE: "watch",
    Fault.NVLINK_ERRORS: "watch",
    Fault.TRANSPORT_ERRORS: "watch",
    Fault.FABRIC_DEGRADED: "watch",
    Fault.TASKS_HUNG: "watch",
    Fault.HCA_HEALTH: "watch",
    Fault.HCA_STALLED: "watch",
    Fault.IOMMU_BLOCKED: "watch",
    Fault.OUT_OF_MEMORY: "watch",
    Fault.PROGRAM_CRASHED: "watch",
    Fault.LINK_LIMITED: "next-maintenance",
    Fault.LINK_LAYER: "next-maintenance",
    Fault.READ_REQUEST: "next-maintenance",
    Fault.PCIE_REPLAYS: "watch",
    Fault.AER_CORRECTABLE: "watch",
    Fault.PERSISTENCE_UNSET: "next-maintenance",
    Fault.INFOROM: "next-maintenance",
    Fault.HCA_FIRMWARE: "next-maintenance",
    Fault.VERSION: "next-maintenance",
    Fault.UNEQUAL: "next-maintenance",
    Fault.MISPLACED: "next-maintenance",
    Fault.WRONG_MODEL: "next-maintenance",
    Fault.NUMA_UNKNOWN: "next-maintenance",
}
"""A pending row or page works on and is cured by the next reset (A100 memory error guide: "won't affect future work");
counters of corrected errors and replays matter by rate (DCGM_GPU_HARDWARE_LIMITS)."""


def urgency_of(findings: Iterable[Finding]) -> Urgency:
    """The most urgent of the findings; what could not be read makes nothing more urgent.

    An uncorrected error whose row waits for its remapping was contained, and its page is no longer used (Ampere and
    later; https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html); one that was not has an Xid of its own.
    """
    every = [*findings]
    known = [each for each in every if each.judgement.fault is not None]
    if any(each.judgement.fault is Fault.REMAP_PENDING for each in known):
        known = [each for each in known if each.judgement.fault is not Fault.ECC_UNCORRECTED]
    return min(map(_urgency, known or every), key=ORDER.index, default="now")


def _urgency(finding: Finding) -> Urgency:
    fault = finding.judgement.fault
    known = None if fault is None else _OF_FAULT.get(fault)
    if finding.status is Status.WARN:
        return known or "next-drain"
    return "now" if known in (None, "watch") else known
