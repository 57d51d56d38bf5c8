"""What the kernel is set to: the CPUs' frequency governor, and NUMA balancing."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.facts.missing import Missing

Judged = Iterator[tuple[Subject, Judgement]]
_CPUFREQ = "/sys/devices/system/cpu/cpu0/cpufreq"
_SCALING = ("intel_pstate", "amd-pstate", "amd_pstate", "amd-pstate-epp", "amd_pstate_epp")
"""Drivers whose governors only bias what the CPU decides: https://docs.kernel.org/admin-guide/pm/intel_pstate.html"""
_BALANCING = {0: "off", 1: "on", 2: "on, for tiers of memory", 3: "on, for nodes and tiers of memory"}


def _governor(box: Box) -> Judged:
    yield HOST, _governed(box)


def _governed(box: Box) -> Judgement:
    host = box.snapshot.host
    if isinstance(host, Missing):
        return unjudged(host)
    driver, governor = host.cpufreq_driver, host.cpufreq_governor
    if isinstance(driver, Missing):
        return unjudged(driver)
    if isinstance(governor, Missing):
        return unjudged(governor)
    evidence = (
        Evidence(f"{_CPUFREQ}/scaling_driver", driver),
        Evidence(f"{_CPUFREQ}/scaling_governor", governor),
    )
    if driver in _SCALING:
        return Judgement(Status.PASS, f"governor {governor} of {driver}, which follows the load", evidence=evidence)
    if driver != "acpi-cpufreq":
        return skip("not-supported", f"governors of {driver} are not judged", *evidence)
    status = Status.PASS if governor == "performance" else Status.WARN
    return Judgement(status, f"governor {governor} of {driver}", governor, "performance", "", evidence)


def _numa_balancing(box: Box) -> Judged:
    host = box.snapshot.host
    value = host if isinstance(host, Missing) else host.numa_balancing
    if isinstance(value, Missing):
        yield HOST, unjudged(value)
    else:
        evidence = (Evidence("/proc/sys/kernel/numa_balancing", value),)
        message = f"automatic NUMA balancing is {_BALANCING.get(value, value)}"
        yield HOST, Judgement(Status.PASS, message, value, evidence=evidence)


CHECKS = (
    Check(
        id="host.governor",
        rule="With the driver acpi-cpufreq, warns where the governor is not performance. intel_pstate and amd-pstate"
        " follow the load under each of theirs and pass; other drivers are not judged.",
        source="scaling_driver and scaling_governor of /sys/devices/system/cpu/cpu0/cpufreq",
        remedy="cpupower frequency-set -g performance, and have it set at boot",
        judge=_governor,
    ),
    Check(
        id="host.numa-balancing",
        rule="Tells whether the kernel moves pages between NUMA nodes on its own. Passes always: some loads gain, some"
        " lose.",
        source="/proc/sys/kernel/numa_balancing",
        remedy="nothing to do",
        judge=_numa_balancing,
    ),
)
