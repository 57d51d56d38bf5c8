"""The CPU frequency governor."""

from __future__ import annotations

from dgxcheck.checks.engine.blame import host
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check, per_host
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, skip
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import need

_CPUFREQ = "/sys/devices/system/cpu/cpu0/cpufreq"
_SCALING = ("intel_pstate", "amd-pstate", "amd_pstate", "amd-pstate-epp", "amd_pstate_epp")
"""Drivers whose governors only bias what the CPU decides: https://docs.kernel.org/admin-guide/pm/intel_pstate.html"""


def _scaling(box: Box) -> Judgement:
    facts = need(box.snapshot.host)
    driver, governor = need(facts.cpufreq_driver), need(facts.cpufreq_governor)
    evidence = (
        Evidence(f"{_CPUFREQ}/scaling_driver", driver),
        Evidence(f"{_CPUFREQ}/scaling_governor", governor),
    )
    if driver in _SCALING:
        return Judgement(Status.PASS, f"governor {governor} of {driver}, which follows the load", evidence=evidence)
    if driver != "acpi-cpufreq":
        return skip("not-supported", f"governors of {driver} are not judged", *evidence)
    status, fault = (Status.PASS, None) if governor == "performance" else (Status.WARN, Fault.GOVERNOR)
    message = f"governor {governor} of {driver}" + (", expected performance" if fault else "")
    return Judgement(status, message, governor, "performance", "", evidence, fault=fault)


CHECKS = (
    Check(
        id="host.governor",
        rule="With the driver acpi-cpufreq, warns if the governor is not performance. All governors of intel_pstate and"
        " amd-pstate follow the load and pass; other drivers are not judged.",
        source="scaling_driver and scaling_governor of /sys/devices/system/cpu/cpu0/cpufreq",
        remedy="cpupower frequency-set -g performance; make it permanent (tuned-adm profile throughput-performance, or"
        " a boot service)",
        judge=per_host(_scaling),
        blames=host("CPU frequency governor"),
    ),
)
