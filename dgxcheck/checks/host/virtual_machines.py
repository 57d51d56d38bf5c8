"""Does this host pass devices to virtual machines, or is it one?"""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import Box, guest
from dgxcheck.checks.engine.finding import skip
from dgxcheck.checks.engine.host_limits import KVM, guests_running
from dgxcheck.checks.engine.precondition import Precondition, undetermined
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import replace


def loaded(box: Box, *names: str) -> list[str]:
    """Which of these modules the kernel has."""
    return [module.name for module in box.modules if module.name in names and module.loaded is True]


_OF_VIRTUAL_MACHINES = ("vfio_pci", "mdev", "nvidia_vgpu_vfio")
"""Loaded on purpose, to pass devices to virtual machines; the last two for mediated devices."""


def hypervisor(box: Box) -> str:
    """The sign, in words, that this host passes devices to virtual machines; empty without one."""
    for function in box.topology.functions.values():
        if function.driver == "vfio-pci":
            return f"{function.bdf} is bound to vfio-pci"
    if names := loaded(box, *_OF_VIRTUAL_MACHINES):
        return f"{names[0]} is loaded"
    return guests_running(box)


def hypervisor_gaps(box: Box) -> Iterator[Missing]:
    """Facts that ``hypervisor`` needs and that could not be read; a KVM built into the kernel has no use count."""
    modules = ((row.loaded, row.refcnt if row.name in KVM and row.loaded is True else None) for row in box.modules)
    drivers = (function.driver for function in box.topology.functions.values())
    facts = (box.snapshot.modules, *(fact for both in modules for fact in both), *drivers)
    yield from (fact for fact in facts if isinstance(fact, Missing))


def in_guest(box: Box) -> Precondition | None:
    """What a virtual machine cannot see of its host; None on the host itself."""
    host = box.snapshot.host
    unknown = host if isinstance(host, Missing) else host.vm
    if isinstance(unknown, Missing):
        message = f"this may be a virtual machine: {unknown.where}: {unknown}"
        return Precondition("?", replace(undetermined(unknown).judgement, message=message))
    vm = guest(box)
    if vm is None:
        return None
    return Precondition("?", skip("not-visible", f"a {vm} guest cannot see this setting of its host"))
