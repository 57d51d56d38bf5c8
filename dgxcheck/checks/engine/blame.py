"""Which components a finding can come from: the forms that most checks share.

``Check.blames`` gives the likeliest first, from subject, fault and evidence of one bad finding. ``Check.shared`` names
what is to blame instead where every device that the check judged has the fault: a setting, the air, the switch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Judgement, Subject
from dgxcheck.components.component import DRIVER, Component, Kind, host_part
from dgxcheck.components.locate import all_gpus, device_part, links_above, links_at
from dgxcheck.facts.ids import PCI_BRIDGE
from dgxcheck.topology.model import Device

Blames = Callable[[Box, Subject, Judgement], Iterable[Component]]
Shared = Callable[[Box, Subject, Judgement], "Component | None"]


def device_of(box: Box, subject: Subject | None) -> Device | None:
    """The GPU or HCA of a subject, where the topology has it; None for ports, bridges, disks and the host."""
    if subject is None or subject.kind not in ("gpu", "hca"):
        return None
    return box.topology.device(subject.bdf or subject.name)


def component_of(box: Box, subject: Subject, part: str = "") -> Component:
    """The subject as a component, or a part of it."""
    if (device := device_of(box, subject)) is not None:
        return device_part(box, device, part)
    kind = _kind_on_pci(box, subject) if subject.kind == "pci" else subject.kind
    return Component(kind=kind, name=subject.name, bdf=subject.bdf, part=part)


def _kind_on_pci(box: Box, subject: Subject) -> Kind:
    function = box.topology.functions.get(subject.bdf or "")
    code = None if function is None else function.class_code
    return "bridge" if isinstance(code, int) and code >> 8 == PCI_BRIDGE else "function"


def itself(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The device, port, disk or interface that the finding is about."""
    yield component_of(box, subject)


def part(name: str) -> Blames:
    """A part or setting of the device that the finding is about; of the host for a finding about the host."""

    def blames(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
        yield component_of(box, subject, name)

    return blames


def host(name: str) -> Blames:
    """A part or setting of the host, whatever device shows it."""

    def blames(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
        yield host_part(name, subject.part if subject.kind == "host" else "")

    return blames


def driver(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The NVIDIA driver."""
    yield DRIVER


def own_link(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The PCIe link directly above a device, or the links that end at a bridge; itself where its path is not known."""
    device = device_of(box, subject)
    links = links_at(box, subject.bdf or "") if device is None else islice(links_above(box, device), 1)
    yield from tuple(links) or (component_of(box, subject),)


def nothing_shared(box: Box, subject: Subject, judgement: Judgement) -> None:
    """The same fault at every device says no more than at one."""


def host_if_all(name: str) -> Shared:
    """Where every device has it, this part or setting of the host has done it."""
    return lambda box, subject, judgement: host_part(name)


def setting_of_all(name: str) -> Shared:
    """Where every GPU has it, one command sets it in all of them."""
    return lambda box, subject, judgement: all_gpus(box, name)
