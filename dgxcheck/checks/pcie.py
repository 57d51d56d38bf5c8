"""How the PCIe links to each GPU are trained."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.check import Box, Check
from dgxcheck.checks.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.gaps import unjudged
from dgxcheck.reading import Missing
from dgxcheck.topology.paths import Hop, hops_above, sharers

Judged = Iterator[tuple[Subject, Judgement]]


def _width(box: Box) -> Judged:
    for gpu in box.gpus:
        hops = _hops(box, gpu.path)
        if isinstance(hops, Missing):
            yield box.subject(gpu), unjudged(hops)
        elif not hops:
            yield box.subject(gpu), skip("not-visible", "no bridge is visible above it, as in a virtual machine")
        else:
            yield box.subject(gpu), _judged(box, hops[-1])


def _path(box: Box) -> Judged:
    for gpu in box.gpus:
        hops = _hops(box, gpu.path)
        if isinstance(hops, Missing):
            yield box.subject(gpu), unjudged(hops)
            continue
        said = [_judged(box, hop) for hop in hops[:-1] if not hop.unjudged]
        worst = [each for each in said if each.status is Status.WARN]
        unseen = [each for each in said if each.status is not Status.PASS]
        fine = Judgement(Status.PASS, f"links above its own: {len(said)}, none on too few lanes")
        none = skip("not-visible", "no link is visible above its own")
        yield box.subject(gpu), next(iter([*worst, *unseen, fine])) if said else none


def _hops(box: Box, path: tuple[str, ...] | Missing) -> tuple[Hop, ...] | Missing:
    return path if isinstance(path, Missing) else hops_above(path, box.topology.functions)


def _judged(box: Box, hop: Hop) -> Judgement:
    narrow = hop.narrow
    if isinstance(narrow, Missing):
        return unjudged(narrow)
    evidence = tuple(
        Evidence(f"/sys/bus/pci/devices/{bdf}/current_link_width", _width_of(box, bdf))
        for bdf in (hop.port, hop.device)
    )
    shared = sharers(hop, box.topology)
    also = f", shared by {', '.join(shared)}" if len(shared) > 1 else ""
    status = Status.WARN if narrow else Status.PASS
    message = f"link {hop} runs x{hop.width}, both ends can do x{hop.max_width}{also}"
    return Judgement(status, message, _number(hop.width), _number(hop.max_width), "lanes", evidence)


def _width_of(box: Box, bdf: str) -> int | str:
    function = box.topology.functions.get(bdf)
    width = function.link_width if function is not None else "not there"
    return width.reason if isinstance(width, Missing) else width


def _number(width: int | Missing) -> int | None:
    return None if isinstance(width, Missing) else width


CHECKS = (
    Check(
        id="pcie.width",
        rule="Warns where a GPU's own link runs on fewer lanes than both its ends have. On a K80 that is the link"
        " to the switch on the board.",
        source="current_link_width against max_link_width of both ends",
        remedy="power off and reseat the GPU, its tray or riser; then look at the slot's settings in the firmware",
        judge=_width,
    ),
    Check(
        id="pcie.path",
        rule="Warns where a link between a GPU's own and the host bridge runs on fewer lanes than both its ends have,"
        " and names the devices that share it.",
        source="current_link_width against max_link_width of both ends of every hop",
        remedy="power off and reseat the board that carries the switch; the link is named in the finding",
        judge=_path,
    ),
)
