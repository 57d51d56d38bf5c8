"""Does each GPU, NVSwitch, HCA and NVMe disk have its driver, and what that driver makes of it?

What PCI shows and a layer above does not has the cause that the layers show: another driver, no driver, a module that
is not loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check, component_of, driver, remedy_of, ruled
from dgxcheck.checks.engine.expected import is_for_display, model_of
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.host_limits import guests_running, in_container
from dgxcheck.components.component import Component, host_part
from dgxcheck.components.locate import all_gpus
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.ids import MELLANOX, NVME, OF_THE_KERNEL
from dgxcheck.facts.missing import Gap, Missing, need, rows
from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.record import Record, replace
from dgxcheck.facts.sysfs import INFINIBAND, pci_file
from dgxcheck.package_files import table
from dgxcheck.topology.nvlinks import is_nvswitch

_INFINIBAND, _ETHERNET = 0x0207, 0x0200
_FIRST_WORKING = 0x1000
"""Adapters with a lower id wait for their firmware: network.firmware."""
_RDMA_MODULES = {"mlx5_core": "mlx5_ib", "mlx4_core": "mlx4_ib"}
_ASLEEP = ("D3hot", "D3cold")


class _Kind(Record, kw_only=False):
    """One kind of device, the drivers that it is used with, and the fault where it has none."""

    word: str
    drivers: tuple[str, ...]
    fault: FaultKind = Fault.DRIVER_UNBOUND


_GPU, _HCA, _DISK = _Kind("GPU", ("nvidia",)), _Kind("HCA", tuple(_RDMA_MODULES)), _Kind("NVMe disk", ("nvme",))
_SWITCH = _Kind("NVSwitch", ("nvidia-nvswitch",), Fault.NVSWITCH_DRIVER)


@cache
def models(state: str) -> Mapping[int, str]:
    """By PCI device id adapters of Mellanox that are ``working``, wait for firmware (``recovery``) or ``virtual``."""
    of_state = (row for row in table("checks/driver/adapters.tsv") if row["state"] == state)
    return {int(row["device"], 16): row["name"] for row in of_state}


def is_hca(function: PciFunction) -> bool:
    """Is it an adapter of Mellanox that runs its firmware? Not a virtual function."""
    device = function.device
    return (
        function.vendor == MELLANOX and function.subclass in (_INFINIBAND, _ETHERNET)
        and isinstance(device, int) and device >= _FIRST_WORKING and device not in models("virtual")
    )  # fmt: skip


def _devices(box: Box) -> Iterator[tuple[Subject, _Kind, PciFunction]]:
    yield from ((box.subject(gpu), _GPU, gpu.function) for gpu in box.gpus if gpu.function is not None)
    for bdf, function in box.topology.functions.items():
        if is_nvswitch(function):
            yield box.subject_at(bdf), _SWITCH, function
        elif is_hca(function):
            yield replace(box.subject_at(bdf), kind="hca"), _HCA, function
        elif function.class_code == NVME:
            yield Subject(kind="disk", name=bdf, bdf=bdf), _DISK, function


def _judge(box: Box) -> Judged:
    """Fails if an NVIDIA GPU is bound to a driver of the kernel (nouveau, nova), but for a VGA controller of a model of
    its own beside GPUs that nvidia holds; if no driver is bound to an NVSwitch, or to a GPU or HCA while others of its
    model have one; and if mlx5_core or mlx4_core holds an InfiniBand adapter of which no RDMA device is made; not known
    where it has no network interface either, as in another network namespace. Warns about any other GPU, HCA or NVMe
    disk without a driver, and about a GPU, HCA or NVSwitch that another driver (vfio-pci) sets aside while most of its
    model are in use and no virtual machine runs. Virtual functions and containers are not judged.

    Source: link driver in /sys/bus/pci/devices/BDF, /sys/module, /sys/class/infiniband; rdma-system(8)
    """
    devices = [*_devices(box)]
    yield from ((subject, ruled(_of_device, box, kind, function)) for subject, kind, function in devices)
    if not devices:
        yield HOST, skip("not-visible", "no GPU, NVSwitch, HCA or NVMe disk is shown with its PCI function")


def _of_device(box: Box, kind: _Kind, function: PciFunction) -> Judgement:
    name = need(function.driver)
    evidence = (Evidence(pci_file(function.bdf, "driver"), name or "none"),)
    if name is None:
        return _unbound(box, kind, function, evidence)
    if kind is _GPU and name in OF_THE_KERNEL and is_for_display(box, function.bdf):
        return skip("not-visible", f"bound to {name}, as a GPU for a display may be", *evidence)
    if kind is _GPU and name in OF_THE_KERNEL:
        message, remedy = f"bound to {name}", remedy_of("driver.bound", "of the kernel").format(OF_THE_KERNEL[name])
        return Judgement(Status.FAIL, message, name, "nvidia", "", evidence, remedy=remedy, fault=Fault.NOUVEAU)
    if name not in kind.drivers:
        return _set_aside(box, kind, function, name, evidence)
    if kind is _HCA and _lacks_rdma(box, function):
        return _without_rdma(box, function, name)
    return Judgement(Status.PASS, f"bound to {name}", name, name, evidence=evidence)


def _set_aside(box: Box, kind: _Kind, function: PciFunction, name: str, evidence: tuple[Evidence, ...]) -> Judgement:
    """For virtual machines or user space, which is meant so where they run, or where most of the model are like it.

    Of one that fell off the bus another driver says nothing.
    """
    alike = _like(box, function)
    used = sum(other.driver in kind.drivers for other in alike)
    message, module = f"bound to {name}, not to {kind.drivers[0]}", kind.drivers[0]
    silent = {event.part for event in box.log.host if event.trouble == "silent"}
    has_left = function.bdf in silent.union(gpu.bdf for gpu in box.log.off_bus)
    if kind is _DISK or 2 * used <= len(alike) or has_left or guests_running(box):
        return skip("not-visible", message, *evidence)
    given = [other.bdf for other in alike if other.driver == name]
    case = "set aside" if len(given) == 1 else "several set aside"
    remedy = remedy_of("driver.bound", case).format(" ".join(given), name, module)
    message = f"bound to {name}, {used} others of its model to {module}"
    return Judgement(Status.WARN, message, name, module, evidence=evidence, fault=Fault.DRIVER_OTHER, remedy=remedy)


def _unbound(box: Box, kind: _Kind, function: PciFunction, evidence: tuple[Evidence, ...]) -> Judgement:
    if in_container(box):
        return skip("not-visible", "a container need not see drivers", *evidence)
    bound = {each.driver for each in box.topology.functions.values()}
    if not any(isinstance(name, str) for name in bound):
        return skip("not-recorded", "no driver of any device is shown", *evidence)
    if (reporter := _refused(box, function)) is not None:
        return skip("dependency-failed", f"its driver gave up on it: see {reporter}", *evidence)
    alike, module = [each for _, other, each in _devices(box) if other is kind], kind.drivers[0]
    if kind in (_GPU, _SWITCH) and "nvidia" not in bound:
        return skip("dependency-failed", "no device is bound to the NVIDIA driver: see driver.library", *evidence)
    loaded = True if kind is _SWITCH else _loaded(box, module)  # nvidia's, which holds another device
    why = f"this {kind.word}: the module {module} is not loaded" if loaded is False else f"this {kind.word}"
    if loaded is None and len(alike) > 1 and not any(each.driver in kind.drivers for each in alike):
        loaded = False  # a module that is built in would hold at least one of them
        why = f"any {kind.word}; the module {module} may not be loaded"
    state = next((row.power_state for row in rows(box.snapshot.config_space) if row.bdf == function.bdf), None)
    asleep = f", and it is asleep ({state})" if state in _ASLEEP else ""
    wake = f"wake it (echo on > {pci_file(function.bdf, 'power/control')})" if asleep else ""
    taken = remedy_of("driver.bound", "not loaded" if loaded is False else "not bound").format(module, function.bdf)
    of_switch = "; then ".join(filter(None, (remedy_of("driver.bound", "NVSwitch"), wake)))
    remedy = of_switch if kind is _SWITCH else ", then ".join(filter(None, (wake, taken)))
    others = any(other.driver in kind.drivers for other in _like(box, function))
    status = Status.FAIL if kind is _SWITCH or (others and kind is not _DISK) else Status.WARN
    message = f"no driver is bound to {why}{asleep}"
    fault = Fault.MODULE_NOT_LOADED if loaded is False else kind.fault
    return Judgement(status, message, "none", module, evidence=evidence, fault=fault, remedy=remedy)


def _like(box: Box, function: PciFunction) -> list[PciFunction]:
    """Those of the same model, itself too."""
    model = model_of(box, function.bdf)
    return [other for other in box.topology.functions.values() if model_of(box, other.bdf) == model]


def _refused(box: Box, function: PciFunction) -> str | None:
    """The check that says why the driver of a device gave up on it: the kernel log, or a BAR without an address."""
    bars = next((row for row in rows(box.snapshot.bars) if row.bdf == function.bdf), None)
    if bars is not None and (bars.bars == () or (not isinstance(bars.bar1, Missing) and not bars.bar1.assigned)):
        return "pcie.bar1"
    own = (function.bdf, None) if is_for_display(box, function.bdf) else (function.bdf,)
    if any(event.bdf in own and not event.past for event in box.log.not_started):
        return "kernel.gpu-start"
    adapters = (event.bdf for event in box.log.hcas if event.trouble == "not started" and not event.past)
    return "kernel.hca" if function.bdf in adapters else None


def _loaded(box: Box, module: str) -> bool | None:
    """Is a module loaded? None where that is not known, as of one that may be built into the kernel."""
    return next((row.loaded for row in box.modules if row.name == module and isinstance(row.loaded, bool)), None)


def _lacks_rdma(box: Box, function: PciFunction) -> bool:
    """Is an InfiniBand adapter not in ``/sys/class/infiniband``? Of Ethernet adapters RDMA may be off."""
    devices = box.snapshot.infiniband
    readable = not isinstance(devices, Missing) or devices.gap is Gap.ABSENT
    listed = {device.bdf for device in rows(devices)}
    return readable and function.subclass == _INFINIBAND and function.bdf not in listed


def without_rdma_device(box: Box) -> list[PciFunction]:
    """InfiniBand adapters on PCI that are not in ``/sys/class/infiniband``: they are not missing."""
    return [function for function in box.topology.functions.values() if is_hca(function) and _lacks_rdma(box, function)]


def _without_rdma(box: Box, function: PciFunction, name: str) -> Judgement:
    if in_container(box):
        return skip("not-visible", "a container need not see RDMA devices")
    if (reporter := _refused(box, function)) is not None:
        return skip("dependency-failed", f"its driver gave up on it: see {reporter}")
    module = _RDMA_MODULES[name]
    absent = _loaded(box, module) is False
    why = f": the module {module} is not loaded" if absent else ""
    remedy = remedy_of("driver.bound", "not loaded" if absent else "without RDMA").format(module, function.bdf, name)
    message = f"bound to {name}, but no RDMA device is made of it{why}"
    evidence = (Evidence(INFINIBAND, "absent"),)
    if not absent and _may_be_elsewhere(box, function):
        elsewhere = "nor a network interface: another network namespace may have both (ip netns; rdma system show)"
        return Judgement(Status.UNKNOWN, f"{message}, {elsewhere}", "none", module, evidence=evidence)
    fault = Fault.MODULE_NOT_LOADED if absent else Fault.HCA_UNLISTED
    return Judgement(Status.FAIL, message, "none", module, evidence=evidence, fault=fault, remedy=remedy)


def _may_be_elsewhere(box: Box, function: PciFunction) -> bool:
    """Has it no network interface either, and did its driver log no trouble? Then both may be in another network
    namespace, which RDMA devices go to where that is their mode (rdma-system(8), netns exclusive).
    """
    interfaces = box.snapshot.network
    if isinstance(interfaces, Missing) or any(each.bdf == function.bdf for each in interfaces):
        return False
    return not any(event.bdf == function.bdf and not event.past for event in box.log.hcas)


def _blames(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The driver, which one command binds, or its module, which all devices lack; of an NVSwitch, which may have failed
    to start, itself first.
    """
    if judgement.fault is Fault.MODULE_NOT_LOADED:
        yield host_part(f"module {judgement.expected}")
        return
    if judgement.fault is Fault.NVSWITCH_DRIVER:
        yield Component(kind="nvswitch", name=subject.name, bdf=subject.bdf)
    if subject.kind == "hca" or judgement.fault in (Fault.DRIVER_UNBOUND, Fault.DRIVER_OTHER):
        yield component_of(box, subject, "kernel driver")
    else:
        yield from driver(box, subject, judgement)


def _shared(box: Box, subject: Subject, judgement: Judgement) -> Component | None:
    """GPUs that were set aside alike were so by one setting."""
    alike = subject.kind == "gpu" and judgement.fault is Fault.DRIVER_OTHER
    return all_gpus(box, "kernel driver") if alike else None


CHECKS = (Check("driver.bound", _judge, _blames, _shared),)
