"""Does this host run virtual machines, or is it one? Both need ACS and the IOMMU, or hide them."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import Box, guest
from dgxcheck.checks.engine.finding import skip
from dgxcheck.checks.engine.precondition import Precondition, undetermined
from dgxcheck.checks.host.modules import loaded
from dgxcheck.facts.host import Modules
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import replace

_OF_VIRTUAL_MACHINES = ("vfio_pci", "mdev", "nvidia_vgpu_vfio")
"""Loaded by who gives devices to virtual machines, never by itself; of mediated devices the last two."""
_KVM = ("kvm_intel", "kvm_amd")


def hypervisor(box: Box) -> str:
    """How it shows that virtual machines run here, which need ACS and IOMMU; empty where nothing does."""
    for function in box.topology.functions.values():
        if function.driver == "vfio-pci":
            return f"{function.bdf} is bound to vfio-pci"
    if names := loaded(box, *_OF_VIRTUAL_MACHINES):
        return f"{names[0]} is loaded"
    modules = box.snapshot.modules
    for each in modules.modules if isinstance(modules, Modules) else ():
        if each.name in _KVM and isinstance(each.refcnt, int) and each.refcnt > 0:
            return f"{each.name} is in use"
    return ""


def unseen_of_virtual_machines(box: Box) -> Iterator[Missing]:
    """What ``hypervisor`` would have to see and cannot: a KVM built into the kernel does not count its users."""
    modules = box.snapshot.modules
    yield from (modules,) if isinstance(modules, Missing) else ()
    for each in () if isinstance(modules, Missing) else modules.modules:
        for said in (each.loaded, each.refcnt if each.name in _KVM and each.loaded is True else None):
            yield from (said,) if isinstance(said, Missing) else ()
    for function in box.topology.functions.values():
        yield from (function.driver,) if isinstance(function.driver, Missing) else ()


def in_guest(box: Box) -> Precondition | None:
    """What a virtual machine cannot see of its host; None on the host itself."""
    host = box.snapshot.host
    unknown = host if isinstance(host, Missing) else host.vm
    if isinstance(unknown, Missing):
        judgement = undetermined(unknown).judgement
        return Precondition("?", replace(judgement, message=f"this may be a virtual machine: {judgement.message}"))
    vm = guest(box)
    if vm is None:
        return None
    return Precondition("?", skip("not-visible", f"{vm} decides about it and hides it from its guest"))
