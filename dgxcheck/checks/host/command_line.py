"""Parameters of the kernel command line that switch off what a machine with GPUs needs."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check, host, per_host
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status
from dgxcheck.checks.engine.host_limits import (
    COMMAND_LINE,
    CPU_PARAMETERS,
    MEMORY_PARAMETERS,
    NUMA_PARAMETERS,
    command_line,
)
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import need

_ANY = ""
_EFFECTS: Mapping[str, Mapping[str, str]] = {
    **{name: {_ANY: "limits the number of CPUs"} for name in CPU_PARAMETERS},
    **{name: {_ANY: "limits the memory"} for name in MEMORY_PARAMETERS},
    **{name: {"off": "hides the NUMA nodes"} for name in NUMA_PARAMETERS},
    "pci": {
        "nomsi": "switches off MSI interrupts",
        "noaer": "switches off the reports of PCIe errors",
        "nommconf": "hides the extended PCI configuration space",
        "off": "hides the PCI bus",
        "pcie_bus_peer2peer": "limits PCIe packets to 128 bytes",
    },
    "pcie_ports": {"compat": "switches off hot-plug and the reports of PCIe errors"},
    "pcie_aspm": {"force": "switches on power saving (ASPM) of links that claim not to support it"},
    "mce": {"off": "switches off machine checks"},
    "nomce": {_ANY: "switches off machine checks"},
    "acpi": {"off": "switches off ACPI"},
    "noapic": {_ANY: "switches off the I/O APIC"},
    "nolapic": {_ANY: "switches off the local APIC"},
}
"""By parameter and value, what it does; for any value where the value is empty. Linux
Documentation/admin-guide/kernel-parameters.txt"""


def _effects(box: Box) -> Judgement:
    """Warns about parameters of the kernel that limit CPUs or memory, hide NUMA nodes or PCI configuration space, force
    power saving or small packets on PCIe, or switch off MSI, APIC, ACPI, machine checks or the reports of PCIe errors.

    Source: /proc/cmdline; Linux Documentation/admin-guide/kernel-parameters.txt
    """
    text = need(box.snapshot.known_host.cmdline)
    evidence = (Evidence("/proc/cmdline", text),)
    found: dict[str, str] = {}
    for name, value in command_line(box):
        effects = _EFFECTS.get(name, {})
        effect = effects.get(value) or effects.get(_ANY)
        if effect is not None and (value or name.startswith("no")):
            found[f"{name}={value}" if value else name] = effect
    if not found:
        message = "the kernel command line switches off nothing that is needed"
        return Judgement(Status.PASS, message, evidence=evidence)
    message = "; ".join(f"{parameter} {effect}" for parameter, effect in found.items())
    return Judgement(Status.WARN, message, ", ".join(found), evidence=evidence, fault=Fault.COMMAND_LINE)


CHECKS = (
    Check("host.command-line", per_host(_effects), host(COMMAND_LINE)),
)  # fmt: skip
