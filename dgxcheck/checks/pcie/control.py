"""Are memory space and bus mastering on in GPUs, NVSwitches and HCAs that a driver uses, and in the bridges above?"""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check, component_of, remedy_of, ruled
from dgxcheck.checks.engine.expected import NO_DATA_CENTER, model_family
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, Subject, judged, of_gaps, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.components.component import Component, host_part
from dgxcheck.components.locate import off_the_bus
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import CONTROLLER_3D, OF_THE_KERNEL
from dgxcheck.facts.missing import Gap, Missing, need, rows
from dgxcheck.facts.nvml.gpu import GpuModes
from dgxcheck.facts.pci import ConfigSpace
from dgxcheck.facts.sysfs import pci_file
from dgxcheck.topology.nvlinks import is_nvswitch

PASSED_ON = frozenset(("vfio-pci", "pci-stub", "xen-pciback", *OF_THE_KERNEL))
"""Drivers that leave a device to a guest, or need not start it."""
AWAKE = "D0"


def _control(box: Box) -> Judged:
    """Fails if memory space or bus mastering is off in a GPU, NVSwitch or HCA that its driver uses, or in a bridge
    above one: it cannot transfer data; and if all of an HCA's config space reads ones: it is off the bus. Warns if such
    an NVSwitch, or a data-center GPU in persistence mode, is asleep. Virtual functions, and other devices that are left
    to virtual machines or asleep, are not judged. Undetermined without root.

    Source: Command register in /sys/bus/pci/devices/*/config
    """
    in_use = _in_use(box)
    judged = [row for row in need(box.snapshot.config_space) if row.bdf in in_use]
    gaps = [row.control for row in judged if isinstance(row.control, Missing)]
    if len(gaps) == len(judged):
        nothing = Missing(Gap.ABSENT, "/sys/bus/pci/devices", "no GPU, NVSwitch or HCA with a driver")
        yield HOST, unjudged(gaps[0] if gaps else nothing)
    else:
        yield from ((box.subject_at(row.bdf), ruled(_enabled, box, row)) for row in judged)


def _in_use(box: Box) -> set[str]:
    """Bdfs of functions with a driver that uses them, and of all bridges above these and their DMA functions.

    Not of virtual functions, whose memory space bit is always 0, nor of GPUs that NVML does not list.
    """
    read = {row.bdf for row in rows(box.snapshot.config_space)}
    left_out = {device.bdf for device in box.topology.devices if device.is_vf is not False and device.kind == "nic"}
    left_out |= {gpu.bdf for gpu in box.topology.gpus if gpu.index is None or gpu not in box.gpus}
    ends = [
        function for function in box.topology.functions.values()
        if function.bdf in read - left_out and (is_nvswitch(function) or box.topology.device(function.bdf) is not None)
        and isinstance(function.driver, str) and function.driver not in PASSED_ON
    ]  # fmt: skip
    apart = [device.dma for device in box.topology.devices if device.dma is not None and device.bdf not in left_out]
    above = {bdf for function in (*ends, *apart) for bdf in rows(function.path)[1:-1]}
    return {function.bdf for function in ends} | above


def _enabled(box: Box, row: ConfigSpace) -> Judgement:
    where = pci_file(row.bdf, "config")
    if isinstance(row.power_state, str) and row.power_state not in (AWAKE, "unknown"):
        evidence = (Evidence(pci_file(row.bdf, "power_state"), row.power_state),)
        why, case, file = "persistence mode keeps it awake", "asleep", "power_state"
        if not _is_kept_awake(box, row.bdf):
            if not _is_nvswitch(box, row.bdf):
                return skip("not-supported", f"asleep: {row.power_state}")
            why, case, file = "its driver uses it", "NVSwitch asleep", "power/control"
        message = f"asleep ({row.power_state}) though {why}"
        remedy = remedy_of("pcie.enabled", case).format(pci_file(row.bdf, file))
        return judged(Fault.DEVICE_DISABLED, message, row.power_state, AWAKE, "", evidence, warns=True, remedy=remedy)
    lost, device = off_the_bus(box).get(row.bdf), box.topology.device(row.bdf)
    if lost is not None and device is not None and device.kind != "gpu":
        message = "fell off the bus: its config space reads all ones"
        return Judgement(Status.FAIL, message, evidence=of_gaps([lost]), fault=Fault.HCA_LOST)
    control = need(row.control)
    bits = {"memory space": control.memory_space, "bus mastering": control.bus_master}
    off = [name for name, enabled in bits.items() if not enabled]
    memory, master = ("+" if enabled else "-" for enabled in bits.values())
    evidence = (Evidence(where, f"Command Mem{memory} BusMaster{master}"),)
    if not off:
        return Judgement(Status.PASS, "memory space and bus mastering are on", evidence=evidence)
    message = f"{' and '.join(off)} off, {'no DMA reaches memory' if control.memory_space else 'nothing can access it'}"
    return Judgement(Status.FAIL, message, "off", "on", evidence=evidence, fault=Fault.DEVICE_DISABLED)


def _is_kept_awake(box: Box, bdf: str) -> bool:
    """Does persistence mode hold a GPU of a data center (3D controller), which its driver never powers down? Those of
    laptops have the same class, and sleep in spite of it (NVIDIA driver README, PCI-Express runtime D3).
    """
    modes, gpu = box.gpu(bdf).modes, box.topology.device(bdf)
    if gpu is None or NO_DATA_CENTER.search(model_family(box, gpu)):
        return False
    return isinstance(modes, GpuModes) and modes.persistence is True and box.subclass(bdf) == CONTROLLER_3D


def _is_nvswitch(box: Box, bdf: str) -> bool:
    function = box.topology.functions.get(bdf)
    return function is not None and is_nvswitch(function)


def _blame(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    if judgement.fault is Fault.HCA_LOST:
        yield component_of(box, at)
    elif judgement.measured != "off" and _is_nvswitch(box, at.bdf or ""):
        yield Component(kind="nvswitch", name=at.name, bdf=at.bdf, part="power state")
    else:
        yield component_of(box, at, "Command register" if judgement.measured == "off" else "power state")


CHECKS = (
    Check("pcie.enabled", _control, _blame,
        lambda _, __, judgement: host_part("Command registers") if judgement.measured == "off" else None),
)  # fmt: skip
