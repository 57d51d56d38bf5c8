"""Parameters of the kernel command line that switch off what a machine with GPUs needs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check, host, per_host
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status
from dgxcheck.checks.engine.host_limits import (
    COMMAND_LINE,
    command_line,
)
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import need
from dgxcheck.package_files import table


@cache
def _known() -> Mapping[tuple[str, str], str]:
    """What a parameter does, by its name and value; for any value where the value is empty."""
    return {(row["parameter"], row["value"]): row["effect"] for row in table("checks/host/command_line.tsv")}


def _effects(box: Box) -> Judgement:
    """Warns about parameters of the kernel that limit CPUs or memory, hide NUMA nodes or PCI configuration space, force
    power saving or small packets on PCIe, or switch off MSI, APIC, ACPI, machine checks or the reports of PCIe errors.

    Source: /proc/cmdline; Linux Documentation/admin-guide/kernel-parameters.txt
    """
    text = need(box.snapshot.known_host.cmdline)
    evidence = (Evidence("/proc/cmdline", text),)
    found: dict[str, str] = {}
    for name, value in command_line(box):
        effect = _known().get((name, value)) or _known().get((name, ""))
        if effect is not None and (value or name.startswith("no")):
            found[f"{name}={value}" if value else name] = effect
    if not found:
        message = "the kernel command line switches off nothing that is needed"
        return Judgement(Status.PASS, message, evidence=evidence)
    message = "; ".join(f"{parameter} {effect}" for parameter, effect in found.items())
    return Judgement(Status.WARN, message, ", ".join(found), evidence=evidence, fault=Fault.COMMAND_LINE)


CHECKS = (Check("host.command-line", per_host(_effects), host(COMMAND_LINE)),)
