"""What findings of one check have in common, where all that was looked at is bad: a setting, a switch, the fans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dgxcheck.checks.engine.check import Box
from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.diagnosis.component import Component, is_below, of_all_nvlinks, of_host
from dgxcheck.facts.missing import Missing

BAD = (Status.FAIL, Status.UNKNOWN, Status.WARN)
LINKED = ("pcie.width", "pcie.replay", "pcie.aer", "pcie.generation", "kernel.aer")
"""Found at a device, and about the link above it."""
GONE = ("gpu.lost", "kernel.off-bus", "kernel.gpu-start")
OF_THE_HOST = {
    "cooling": "cooling", "power supply": "power supply", "BAR1": "large BARs",
    "pcie.width": "PCIe setting", "pcie.generation": "PCIe setting",
}  # fmt: skip
"""What of the host has done it, by the part of each GPU or the check."""
OF_EACH = ("persistence mode", "ECC mode", "compute mode", "clock setting", "power limit", "MIG mode", "device node")
"""Settings that one command sets in all GPUs."""
FABRIC = {"network.port-state", "network.port-rate", "network.port-errors"}


def wider(box: Box, findings: Sequence[Finding], parts: Mapping[str, str]) -> Mapping[str, tuple[Component, ...]]:
    """By key of the finding what may be behind it and its like; ``parts`` says what of a GPU each finding is about."""
    found: dict[str, tuple[Component, ...]] = {}
    whole = len(box.gpus) == len(box.topology.gpus)
    for check in {each.id for each in findings}:
        judged = [each for each in findings if each.id == check and each.subject.bdf and _counts(each)]
        if whole and _all_bad(judged):
            for finding in judged:
                found[finding.key] = tuple(_of_box(box, finding, parts.get(finding.key, ""), len(judged)))
        if check in LINKED or check in GONE:
            for switch, below in _by_switch(box, judged).items():
                for finding in below if _all_bad(below) else ():
                    found[finding.key] = (*found.get(finding.key, ()), _switch(box, switch))
    return found


def _counts(finding: Finding) -> bool:
    return finding.subject.peer is None and finding.status in (Status.PASS, *BAD)


def _all_bad(judged: Sequence[Finding]) -> bool:
    """Seen to be: what nobody could read counts for the others."""
    seen = all(each.status in (Status.FAIL, Status.WARN) for each in judged)
    return seen and len({each.subject.bdf for each in judged}) > 1


def _of_box(box: Box, finding: Finding, part: str, number: int) -> Iterator[Component]:
    setting = OF_THE_HOST.get(part) or OF_THE_HOST.get(finding.id)
    if setting is not None:
        yield of_host(setting)
    elif finding.id == "nvlink.state":
        yield of_all_nvlinks(box)
    elif part in OF_EACH:
        yield Component(kind="gpu", name=f"all {number} GPUs", part=part)
    elif finding.id in FABRIC and "no subnet manager" in finding.judgement.message:
        yield Component(kind="subnet manager", name="of the fabric")
    elif finding.id in FABRIC:
        yield Component(kind="fabric", name="InfiniBand fabric")


def _by_switch(box: Box, judged: Sequence[Finding]) -> Mapping[str, list[Finding]]:
    """Findings by the upstream port of the switch that is nearest above their device."""
    found: dict[str, list[Finding]] = {}
    for finding in judged:
        device = box.topology.device(finding.subject.bdf or "")
        # the root bus, the root port, upstream and downstream port of a switch, the device
        if device is not None and not isinstance(device.path, Missing) and len(device.path) > 4:
            found.setdefault(device.path[-3], []).append(finding)
    return found


def _switch(box: Box, bdf: str) -> Component:
    below = tuple(each.name for each in box.topology.devices if is_below(each, bdf))
    return Component(kind="switch", name=bdf, bdf=bdf, shared_by=below)
