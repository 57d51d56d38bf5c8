"""Counters of a GPU that only growth gives a meaning: PCI replays and time lost to limits."""

from __future__ import annotations

from dgxcheck.facts.gpu import GpuCounters
from dgxcheck.facts.missing import Missing
from dgxcheck.source.protocol import Source
from probes.gpu.listing import each
from probes.gpu.values import members, number

POLICIES = range(6)
"""``nvmlPerfPolicyType_t``: power, thermal, sync boost, board limit, low utilisation, reliability."""


def probe(source: Source) -> tuple[GpuCounters, ...] | Missing:
    """``nvmlDeviceGetPcieReplayCounter`` and ``nvmlDeviceGetViolationStatus`` of every GPU."""
    return each(source, _counters)


def _counters(source: Source, bdf: str) -> GpuCounters:
    power, thermal, sync_boost, board_limit, low_utilization, reliability = (
        members(source, "nvmlDeviceGetViolationStatus", bdf, policy, names=("violationTime", "referenceTime"))
        for policy in POLICIES
    )
    return GpuCounters(
        bdf=bdf,
        pcie_replays=number(source, "nvmlDeviceGetPcieReplayCounter", bdf),
        power_ns=power[0],
        thermal_ns=thermal[0],
        sync_boost_ns=sync_boost[0],
        board_limit_ns=board_limit[0],
        low_utilization_ns=low_utilization[0],
        reliability_ns=reliability[0],
        clock_us=power[1],
        reasons_mask=number(source, "nvmlDeviceGetCurrentClocksEventReasons", bdf),
    )
