"""Functions that come with GPUs, towards a GPU (Direct NIC) or NVSwitches: is one missing, do errors grow?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check, per_host, ruled
from dgxcheck.checks.engine.finding import (
    Evidence,
    Instead,
    Judged,
    Judgement,
    Status,
    Subject,
    counted,
    given,
    judged,
    skip,
)
from dgxcheck.checks.engine.growth import MIN_EVENTS
from dgxcheck.checks.engine.host_limits import is_assigned
from dgxcheck.checks.network.lacking import without_dma
from dgxcheck.checks.network.port_counters import evidence_of, grown_of, of_any
from dgxcheck.checks.network.ports import bridges, port_subject, ports
from dgxcheck.checks.placement.missing import missing
from dgxcheck.components.component import Component
from dgxcheck.components.containment import NVSWITCHES
from dgxcheck.components.locate import off_the_bus
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.infiniband import IbPort
from dgxcheck.facts.missing import Gap, Missing, need, rows
from dgxcheck.facts.sysfs import PCI_DEVICES


def _dma(box: Box) -> list[str]:
    return [function.bdf for function in box.topology.functions.values() if function.is_data_direct]


def _bridges(box: Box) -> list[str]:
    parts = ((row.bdf, row.manages_nvswitches) for row in need(box.snapshot.vpd))
    return [bdf for bdf, leads in parts if not (isinstance(leads, Missing) and leads.gap is Gap.ABSENT) and need(leads)]


FOUND: Mapping[str, Callable[[Box], list[str]]] = {"gpu.dma": _dma, "nvlink.bridges": _bridges}
"""By the key of the profile: bus ids of those that are there."""


def _number(box: Box, key: str, noun: str) -> Judgement:
    number, gpus = box.number(key), box.number("gpu.count")
    if number is None or gpus is None or len(box.reference_gpus) != gpus.value:
        return skip("no-reference", "no reference number of such functions")
    if is_assigned(box):
        return skip("not-visible", "a guest or container sees only the functions assigned to it")
    need(box.snapshot.pci)
    if not off_the_bus(box).keys().isdisjoint(each.bdf for each in box.topology.devices if each.kind != "gpu"):
        return skip("dependency-failed", "an HCA does not respond on PCIe: see pcie.enabled")
    present, expected = FOUND[key](box), int(number.value)
    evidence = Evidence(PCI_DEVICES, ", ".join(present) or "none")
    if not present:
        return skip("not-configured", f"none of {expected} {noun} is there", evidence)
    message = f"{len(present)} of {expected} {noun} found on PCI"
    if key == "gpu.dma" and (alone := without_dma(box.topology.adapters)):
        message += f"; {', '.join(nic.name for nic in alone)} {'has' if len(alone) == 1 else 'have'} none"
    fails = len(present) < expected
    return judged(Fault.FUNCTION_MISSING, message, len(present), expected, "", (evidence,), fails=fails)


def _blames(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    alone = without_dma(box.topology.adapters)
    if len(alone) == 1:
        yield Component(kind="hca", name=alone[0].name, bdf=alone[0].bdf, part="DMA function")
        return
    if not alone:  # it is missing with the adapter that it is a part of
        yield missing(box, "HCA")
    yield Component(kind="slot", name="", part="missing DMA function")


def _switch_ports(box: Box) -> Judged:
    """Warns if an error counter of a port of an adapter that leads to NVSwitches (its vital product data say SW_MNG)
    grew by 3 or more; what programs and the fabric of a network leave behind is not there. The state of these ports is
    not judged.

    Source: /sys/class/infiniband/*/ports/*; Fabric Manager user guide, NVLink Subnet Manager
    """
    if not rows(bridges(box)):
        raise Instead(skip("not-supported", "no adapter leads to NVSwitches"))
    for device, port in given(ports(box, bridges)):
        yield port_subject(device, port), ruled(_port, box, port)


def _port(box: Box, port: IbPort) -> Judgement:
    growth = given(box.growth)
    events, counts = given(grown_of(growth, port, of_any))
    many = {file: more for file, more in events.items() if more >= MIN_EVENTS}
    total, how = sum(many.values()), growth.how
    if not many:
        return Judgement(Status.PASS, f"no new errors {how}", 0, 0, "errors")
    by_name = ", ".join(f"{file.partition('/')[2]} {more}" for file, more in many.items())
    message = f"{counted(total, 'new error')} {how} on the port to the NVSwitches: {by_name}"
    return judged(Fault.NVSWITCH_PORT, message, total, 0, "errors", evidence_of(port, many, counts), warns=True)


def _dma_functions(box: Box) -> Judgement:
    """Fails if some of the DMA functions that ConnectX-8 adapters have beside the GPUs (Direct NIC, 15b3:2100) are
    there, and fewer than in the profile: the traffic of that GPU then goes through the CPU.

    Source: /sys/bus/pci/devices against the profile's gpu.dma; keyword V3 of vital product data
    """
    return _number(box, "gpu.dma", "DMA functions")


def _counted_bridges(box: Box) -> Judgement:
    """Fails if some of the ConnectX-7 functions through which the NVLink Subnet Manager reaches the NVSwitches
    (SMDL=SW_MNG) are there, and fewer than in the profile: Fabric Manager then has not all NVSwitches. Undetermined
    without root.

    Source: vital product data of /sys/bus/pci/devices/*/vpd against the profile's nvlink.bridges; NVIDIA Fabric Manager
    guide, NVLink Subnet Manager
    """
    return _number(box, "nvlink.bridges", "functions towards NVSwitches")


CHECKS = (
    Check("network.dma-functions", per_host(_dma_functions), _blames),
    Check("nvlink.bridges", per_host(_counted_bridges),
        lambda box, at, judgement: (Component(kind="slot", name="", part="missing NVSwitch bridge"),)),
    Check("nvlink.switch-port", _switch_ports, lambda box, at, judgement: (NVSWITCHES,), counters=True),
)  # fmt: skip
