"""P2P without a status from NVML: what blocks it between two GPUs, and peer access as CUDA reports it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from dgxcheck.checks.engine.box import Box, guest, mig_enabled
from dgxcheck.checks.engine.check import remedy_of
from dgxcheck.checks.engine.expected import between_all, siblings
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, skip
from dgxcheck.checks.engine.host_limits import hypervisor
from dgxcheck.checks.engine.precondition import AS_ROOT
from dgxcheck.checks.pcie.isolation import (
    PASS_THROUGH,
    disable_acs,
    disable_translation,
    group_type,
    redirecting_ports,
)
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Gap, Missing, rows
from dgxcheck.facts.record import Record
from dgxcheck.topology.model import Device, DevicePair
from dgxcheck.topology.paths import NEAR


class Blocker(Record, kw_only=False):
    """The setting that blocks a pair, and its remedy."""

    setting: str
    """``IOMMU translation``, ``ACS of 0000:09:08.0``; empty where none is visible."""
    remedy: str


def blocker(box: Box, a: Device, b: Device) -> Blocker:
    """The IOMMU comes first: while groups translate, the kernel needs the ACS redirection that it enabled.

    No command is given where virtual machines run, which rely on this isolation; a guest cannot see its host's
    settings. ACS does not block GPUs further apart than PCIe switches: their traffic passes the host bridge anyway.
    """
    if (vm := guest(box)) is not None:
        return Blocker("", remedy_of("p2p.status", "guest").format(vm))
    types = (group_type(box, a.bdf), group_type(box, b.bdf))
    translates = any(isinstance(type_, str) and type_ != PASS_THROUGH for type_ in types)
    ports = redirecting_ports(box, a, b) if box.topology.link(a, b).pci in NEAR else []
    if translates:
        setting, ports = "IOMMU translation", []
    elif isinstance(ports, Missing) and ports.gap is Gap.DENIED:
        return Blocker("", remedy_of("p2p.status", "ACS denied").format(AS_ROOT))
    elif isinstance(ports, Missing):
        return Blocker("", remedy_of("p2p.status", "ACS unread"))
    elif ports:
        setting = f"ACS of {', '.join(ports)}"
    else:
        return Blocker("", remedy_of("p2p.status", "not blocked"))
    if reason := hypervisor(box):
        return Blocker(setting, remedy_of("p2p.status", "virtual machines").format(setting, reason))
    if translates:
        return Blocker(setting, remedy_of("p2p.status", "IOMMU").format(disable_translation(box)))
    return Blocker(setting, disable_acs(box, *ports))


Access = Mapping[tuple[str, str], bool]
"""By the bus ids of the GPU that reads and of the one that is read."""
FUNCTION = "cudaDeviceCanAccessPeer"
_FEWEST = 4
"""Other GPUs that must all reach each other before one that none of them reaches is the odd one: the GPUs of a second
socket do not reach the first one's, but there are rarely four on one and a single one on the other."""


def judged(box: Box) -> dict[DevicePair, Judgement]:
    """Every pair for which a tool printed the access in both directions."""
    access = _access(box)
    if not access:
        return {}
    pairs = (pair for pair in combinations(box.topology.gpus, 2) if {*pair} & {*box.gpus})
    return {(a, b): _of_pair(box, access, a, b) for a, b in pairs if None not in _both(access, a, b)}


def _access(box: Box) -> Access:
    every = rows(box.snapshot.measurement)
    return {(row.a, row.b): row.value for row in every if row.kind == "access" and isinstance(row.value, bool)}


def _both(access: Access, a: Device, b: Device) -> tuple[bool | None, bool | None]:
    return access.get((a.bdf or "", b.bdf or "")), access.get((b.bdf or "", a.bdf or ""))


def _of_pair(box: Box, access: Access, a: Device, b: Device) -> Judgement:
    there, back = _both(access, a, b)
    evidence = (Evidence(f"{FUNCTION} {a.bdf} {b.bdf}", there), Evidence(f"{FUNCTION} {b.bdf} {a.bdf}", back))
    if there and back:
        return Judgement(Status.PASS, "CUDA allows peer access in both directions", True, evidence=evidence)
    if there != back:
        one, other = (a, b) if there else (b, a)
        message = f"CUDA allows {one.name} to access {other.name}, and not {other.name} to access {one.name}"
        return _refused(box, a, b, message, evidence, Status.FAIL)
    message = f"CUDA refuses peer access between {a.name} and {b.name}"
    if mig_enabled(box, a.bdf, b.bdf) or guest(box) is not None:
        return skip("not-supported", message, *evidence)
    label = _label(box, a, b)
    if label.startswith("NV"):
        return _refused(box, a, b, f"{message}, which {label} joins", evidence, Status.FAIL)
    if label in NEAR and _alike_with_access(box, access, a, b):
        return _refused(box, a, b, f"{message} ({label}), not between others like them", evidence, Status.FAIL)
    if (odd := next((gpu for gpu in (a, b) if _is_odd_one(box, access, gpu)), None)) is not None:
        return _refused(box, a, b, f"{message}: {odd.name} reaches no other GPU, and all others do", evidence)
    if label == "?" and between_all(box, [gpu.name for gpu in box.topology.gpus]):
        return _refused(box, a, b, f"{message}, which NVSwitches join on boards of their model", evidence)
    return skip("not-supported", message, *evidence)


def _refused(
    box: Box, a: Device, b: Device, message: str, evidence: tuple[Evidence, ...], status: Status = Status.WARN
) -> Judgement:
    by_nvlink = _label(box, a, b).startswith("NV")
    remedy = remedy_of("p2p.status", "CUDA, over NVLink") if by_nvlink else blocker(box, a, b).remedy
    return Judgement(status, message, False, True, evidence=evidence, remedy=remedy, fault=Fault.P2P_BLOCKED)


def _label(box: Box, a: Device, b: Device) -> str:
    """What joins two GPUs; by an imported matrix where the facts of the box do not tell."""
    label, stated = box.topology.link(a, b).label, box.snapshot.stated
    if label != "?" or isinstance(stated, Missing):
        return label
    cells = (matrix.get((a.bdf or "", b.bdf or "")) for matrix in (stated.labels, stated.pci_labels))
    return next((cell for cell in cells if isinstance(cell, str)), label)


def _alike_with_access(box: Box, access: Access, a: Device, b: Device) -> bool:
    """Does another pair of these models with the same connection have access?"""
    of_a, of_b = {a.bdf, *(gpu.bdf for gpu in siblings(box, a))}, {b.bdf, *(gpu.bdf for gpu in siblings(box, b))}
    own = _label(box, a, b)
    return any(
        all(_both(access, one, other)) and _label(box, one, other) == own
        for one, other in combinations(box.topology.gpus, 2)
        if one.bdf in of_a and other.bdf in of_b
    )


def _is_odd_one(box: Box, access: Access, gpu: Device) -> bool:
    """Has it access to none of the GPUs of its model, which all have access to each other?"""
    others = siblings(box, gpu)
    apart = all(_both(access, gpu, other) == (False, False) for other in others)
    joined = all(all(_both(access, one, other)) for one, other in combinations(others, 2))
    return len(others) >= _FEWEST and apart and joined
