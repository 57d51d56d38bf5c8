"""The width and generation of every PCIe link that does not slow down at idle: all but the GPUs' own.

An HCA's own link is judged by gdr.link, a GPU's by pcie.width and pcie.generation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from dgxcheck.checks.engine.box import HOST, Box, pci_subject
from dgxcheck.checks.engine.check import Check, component_of, host_if_all, ruled
from dgxcheck.checks.engine.expected import model_of
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.pcie.gpu_link import (
    both_ends,
    is_outdone,
    port_setting,
    shared_by,
    slow_fault,
    target_evidence,
    trained_width,
)
from dgxcheck.components.component import Component
from dgxcheck.components.locate import link_of
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Missing, need, rows
from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.sysfs import pci_file
from dgxcheck.topology.nvlinks import is_nvswitch
from dgxcheck.topology.paths import Hop, hops_above

_CLASSES = frozenset((0x01, 0x02, 0x0B, 0x12))
"""Storage, network, processor, accelerator: devices whose own links keep their generation."""
_ETHERNET = 0x0200


def links(box: Box) -> dict[str, Hop]:
    """Each physical link once, by its upper end: those above the GPUs asked about, with all GPUs every other device's
    too. Not the own links of GPUs and HCAs, and of other devices only what can be read: virtual functions have none.
    """
    own = {device.bdf for device in box.topology.devices}
    found = {hop.port: hop for gpu in box.gpus for hop in hops_above(rows(gpu.path), box.topology.functions)}
    if len(box.gpus) == len(box.topology.gpus):
        for function in filter(_keeps_its_speed, box.topology.functions.values()):
            for hop in hops_above(rows(function.path), box.topology.functions):
                unread = isinstance(hop.narrow, Missing) or isinstance(hop.slow, Missing)
                if hop.device != function.bdf or not unread:
                    found.setdefault(hop.port, hop)
    return {port: hop for port, hop in found.items() if hop.device not in own and not hop.skip_reason}


def _keeps_its_speed(function: PciFunction) -> bool:
    return function.is_data_direct or function.subclass >> 8 in _CLASSES or is_nvswitch(function)


def _path(box: Box) -> Judged:
    """Warns if a link other than the own ones of GPUs and HCAs (of switches, NVSwitches, disks, network cards) is
    trained at fewer lanes or a lower generation than both its ends support; fails if GPUs are below it and this is also
    less than the profile expects or, without a profile, less than most links to such switches have. Lanes that the
    board may not wire are not judged: of network cards that are no HCAs, and where all devices of a model have as many.
    Unlike a GPU's link these do not slow down when idle. Reported at the lower end of the link, with the devices that
    share it.

    Source: current_link_* against max_link_* of both ends of every hop, and the profile's pcie.link_width and
    pcie.link_gen; Target Link Speed of Link Control 2
    """
    yield from ((box.subject(gpu), unjudged(gpu.path)) for gpu in box.gpus if isinstance(gpu.path, Missing))
    found = links(box)
    for hop in found.values():
        yield pci_subject(hop.device), ruled(_trained, box, hop)
    if not found:
        yield HOST, skip("not-visible", "no link is visible above those of the GPUs themselves")


def _trained(box: Box, hop: Hop) -> Judgement:
    if need(hop.narrow) and _is_wired_so(box, hop):
        message = f"link {hop} trained at x{hop.width}, as boards wire such devices"
        return skip("no-reference", message, Evidence(pci_file(hop.device, "current_link_width"), need(hop.width)))
    if need(hop.narrow) or not need(hop.slow):
        return trained_width(box, hop, _severity(box, hop, "width"))
    fault = slow_fault(box, hop)
    held = ", limited by a setting of the port" if fault is Fault.LINK_LIMITED else ""
    message = f"PCIe gen{hop.gen} instead of gen{hop.max_gen}{held}; link {hop}{shared_by(box, hop)}"
    evidence = (*both_ends(box, hop, "link_gen", "current_link_speed"), *target_evidence(box, hop))
    figures = (need(hop.gen), need(hop.max_gen), "generation")
    return Judgement(_severity(box, hop, "gen"), message, *figures, evidence, fault=fault)


def _is_wired_so(box: Box, hop: Hop) -> bool:
    """May the board lead fewer lanes to a device that no GPU is below? To network cards on it, which are no HCAs, often
    one; of several of a model it is so where all have the same.
    """
    if _is_above_a_gpu(box, hop):
        return False
    others = _alike(box, hop)
    return all(other.width == hop.width for other in others) and (bool(others) or box.subclass(hop.device) == _ETHERNET)


def _is_above_a_gpu(box: Box, hop: Hop) -> bool:
    return any(hop.port in rows(gpu.path) for gpu in box.topology.gpus)


def _severity(box: Box, hop: Hop, what: Literal["gen", "width"]) -> Status:
    """A link above a GPU, both of whose ends support more, is held to the profile, without one to the links that lead
    to switches of its model.
    """
    if not _is_above_a_gpu(box, hop):
        return Status.WARN
    number = box.number(f"pcie.link_{what}")
    if number is None or not any(hop.port in rows(gpu.path) for gpu in box.reference_gpus):
        return Status.FAIL if is_outdone(hop, _alike(box, hop), what) else Status.WARN
    has: int | Missing = getattr(hop, what)
    return Status.FAIL if not isinstance(has, Missing) and has < number.value else Status.WARN


def _alike(box: Box, hop: Hop) -> list[Hop]:
    """Other links that lead to devices of its model."""
    model = model_of(box, hop.device)
    return [other for other in links(box).values() if other != hop and model_of(box, other.device) == model]


def _blames(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The link that ends here; first the setting, where it is what holds the link."""
    hop = next((hop for hop in links(box).values() if hop.device == subject.bdf), None)
    if hop is None:
        yield component_of(box, subject)
        return
    if judgement.fault is Fault.LINK_LIMITED:
        yield port_setting(hop)
    yield link_of(box, hop)


CHECKS = (Check("pcie.path", _path, _blames, host_if_all("PCIe setting")),)
