"""How the PCIe links to each GPU are trained."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.under_load import under_load
from dgxcheck.facts.missing import Missing
from dgxcheck.topology.model import Device
from dgxcheck.topology.paths import Hop, hops_above, sharers

Judged = Iterator[tuple[Subject, Judgement]]


def own_hop(box: Box, path: tuple[str, ...] | Missing) -> Hop | Judgement:
    """The link that ends at a device, or why there is none to judge."""
    hops = _hops(box, path)
    if isinstance(hops, Missing):
        return unjudged(hops)
    return hops[-1] if hops else skip("not-visible", "no bridge is visible above it, as in a virtual machine")


def bridge(bdf: str) -> Subject:
    """A port of a root complex or switch."""
    return Subject(kind="pci", name=bdf, bdf=bdf)


def _width(box: Box) -> Judged:
    for gpu in box.gpus:
        hop = own_hop(box, gpu.path)
        yield box.subject(gpu), hop if isinstance(hop, Judgement) else _under_load(box, gpu, _own(box, hop))


def _under_load(box: Box, gpu: Device, said: Judgement) -> Judgement:
    """A link that is wide at rest may lose lanes while copies run."""
    loaded = under_load(box, gpu.bdf, "link_width")
    if loaded is None or said.status is not Status.PASS or not isinstance(said.measured, int):
        return said
    if loaded[0] >= said.measured:
        return said
    width, seen = loaded
    held = box.choice is not None and box.choice.number("pcie.link_width") is not None
    message = f"link runs x{width} while copies are measured, x{said.measured} before"
    status = Status.FAIL if held else Status.WARN
    return Judgement(status, message, width, said.measured, "lanes", (*said.evidence, seen))


def _own(box: Box, hop: Hop) -> Judgement:
    due = box.choice.number("pcie.link_width") if box.choice else None
    if due is None or hop.unjudged or isinstance(hop.width, Missing):
        return _judged(box, hop, Status.WARN)
    status = Status.FAIL if hop.width < due.value else Status.PASS
    message = f"link {hop} runs x{hop.width}, x{due.value:g} expected, both ends can do x{hop.max_width}"
    return Judgement(status, message, hop.width, due.value, "lanes", _evidence(box, hop))


def _path(box: Box) -> Judged:
    shared: dict[str, Hop] = {}
    for gpu in box.gpus:
        hops = _hops(box, gpu.path)
        if isinstance(hops, Missing):
            yield box.subject(gpu), unjudged(hops)
        else:
            shared |= {hop.device: hop for hop in hops[:-1] if not hop.unjudged}
    for hop in shared.values():
        yield bridge(hop.device), _judged(box, hop, _severity(box, hop))
    if not shared:
        yield HOST, skip("not-visible", "no link is visible above those of the GPUs themselves")


def _severity(box: Box, hop: Hop) -> Status:
    """A link that others were wired to share is held to the profile only where it could do more than it does."""
    due = box.choice.number("pcie.link_width") if box.choice else None
    below = due is not None and not isinstance(hop.width, Missing) and hop.width < due.value
    return Status.FAIL if below else Status.WARN


def _hops(box: Box, path: tuple[str, ...] | Missing) -> tuple[Hop, ...] | Missing:
    return path if isinstance(path, Missing) else hops_above(path, box.topology.functions)


def _judged(box: Box, hop: Hop, severity: Status) -> Judgement:
    narrow = hop.narrow
    if isinstance(narrow, Missing):
        return unjudged(narrow)
    names = sharers(hop, box.topology)
    also = f", shared by {', '.join(names)}" if len(names) > 1 else ""
    message = f"link {hop} runs x{hop.width}, both ends can do x{hop.max_width}{also}"
    status = severity if narrow else Status.PASS
    return Judgement(status, message, _number(hop.width), _number(hop.max_width), "lanes", _evidence(box, hop))


def _evidence(box: Box, hop: Hop) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(f"/sys/bus/pci/devices/{bdf}/current_link_width", _width_of(box, bdf))
        for bdf in (hop.port, hop.device)
    )


def _width_of(box: Box, bdf: str) -> int | str:
    function = box.topology.functions.get(bdf)
    width = function.link_width if function is not None else "not there"
    return width.reason if isinstance(width, Missing) else width


def _number(width: int | Missing) -> int | None:
    return None if isinstance(width, Missing) else width


CHECKS = (
    Check(
        id="pcie.width",
        rule="Fails where a GPU's own link runs on fewer lanes than the profile says; without a profile warns where it"
        " runs on fewer than both its ends have; likewise where it loses lanes while copies are measured."
        " On a K80 that is the link to the switch on the board.",
        source="current_link_width against the profile's pcie.link_width, else max_link_width of both ends",
        remedy="power off and reseat the GPU, its tray or riser; then look at the slot's settings in the firmware",
        judge=_width,
    ),
    Check(
        id="pcie.path",
        rule="Warns where a link between a GPU's own and the host bridge runs on fewer lanes than both its ends have,"
        " fails where that is below the profile's width. Named at the lower end of the link, with the devices that"
        " share it.",
        source="current_link_width against max_link_width of both ends of every hop, and the profile's pcie.link_width",
        remedy="power off and reseat the board that carries the switch; the link is named in the finding",
        judge=_path,
    ),
)
