"""Where the component of a cause is in the picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.components.component import Component
from dgxcheck.components.locate import all_nvlinks
from dgxcheck.diagnosis.model import Cause
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.facts.sysfs import PCI_DEVICES
from dgxcheck.output.health.causes import fru_lines
from dgxcheck.output.health.finding_lines import subject_name, worst_first
from dgxcheck.output.health.problem import problem
from dgxcheck.output.picture.marks import HOST, NVSWITCHES, At, Mark, MarkTone, between, box, ghost, link, node, pair
from dgxcheck.output.topo.picture import down_by_pair
from dgxcheck.topology.model import Topology

_TAGS = {"link": "PCIe link", "nvlink": "NVLinks", "path": "P2P", "port": "port", "slot": "slot"}
_NVSWITCHES = ("missing NVSwitch", "missing NVSwitch bridge", "Fabric Manager", "IMEX")
"""Parts without which they do not work."""
_GHOSTS = {"gpu": "GPU", "hca": "HCA"}
_TONES: dict[Status, MarkTone] = {Status.FAIL: "fail", Status.UNKNOWN: "warn", Status.WARN: "warn"}


def cause_marks(assessment: Assessment) -> list[Mark]:
    """One for each cause, with its number in the report, then one for each finding that no cause explains.

    A cause that is no part of the picture, such as the cooling of the host, is marked at the devices that it affects,
    or at those whose registers show it.
    """
    marks = [_mark(assessment, number, cause) for number, cause in enumerate(assessment.causes, 1)]
    loose = enumerate(worst_first(assessment.unexplained), len(marks) + 1)
    return [*marks, *(_loose(number, finding) for number, finding in loose)]


def at_component(topology: Topology, component: Component, nvswitches: Component) -> Iterator[At]:
    """The parts of the picture that show a component; nothing where it shows none of it."""
    if component.key == nvswitches.key or component.kind == "nvswitch" or component.part in _NVSWITCHES:
        yield NVSWITCHES
    elif component.kind in ("nvlink", "path") and component.bdf and component.peer_bdf:
        yield pair(component.bdf, component.peer_bdf)
    elif component.kind == "link" and component.bdf:
        yield link(component.bdf)
    elif component.kind == "socket" and component.name.isdecimal():
        yield node(int(component.name))
    elif component.kind in ("board", "gpus"):
        yield from (box(gpu.bdf or gpu.name) for gpu in topology.devices if gpu.name in component.shared_by)
    elif component.kind == "socket-interconnect":
        nodes = [int(word) for word in component.name.split() if word.isdecimal()]
        yield from [between(*nodes)] if len(nodes) == 2 else map(node, nodes)
    elif component.kind == "host-bridge":
        yield box(component.name)
    elif component.bdf:
        yield box(component.bdf)
    elif component.kind in ("gpu", "hca", "port"):
        yield box(component.name.partition("/")[0])


def _mark(assessment: Assessment, number: int, cause: Cause) -> Mark:
    component, topology = cause.component, assessment.topology
    explained = assessment.explained(cause)
    at: tuple[At, ...] = ()
    if component.kind == "slot" and component.bdf and (above := _drawn(assessment, component.bdf)):
        what = component.part.removeprefix("missing ")
        absent = 1 if what == "PCIe switch" else max(map(_absent, explained), default=1)
        at = tuple(ghost(above, what, each + 1) for each in range(absent))
    elif component.part in ("missing GPU", "missing HCA"):
        at = (HOST,)  # nobody knows where it was; what it takes with it is not to blame
    elif component.kind in _GHOSTS and topology.functions and component.bdf not in {None, *topology.functions}:
        at = tuple(_below_ports(topology, component, explained))
    at = at or tuple(at_component(topology, component, all_nvlinks(assessment)))
    at = at or tuple(dict.fromkeys(box(finding.subject.bdf) for finding in explained if finding.subject.bdf))
    at = at or tuple(dict.fromkeys(each for finding in explained for each in _registers(finding))) or (HOST,)
    words = "; ".join((problem(assessment, cause), *fru_lines([cause])))
    tag = component.part or _TAGS.get(component.kind) or next((fault.word for fault in cause.faults), "")
    tag = "missing" if any(each[0] == "ghost" for each in at) else tag
    down = max((down_by_pair(topology).get(each, 0) for each in at if each[0] == "pair"), default=0)
    return Mark(number=number, tone=_TONES[cause.severity], sign=cause.severity.value.upper(), tag=tag, words=words,
                at=at, down=down)  # fmt: skip


def _drawn(assessment: Assessment, bridge: str) -> str:
    """The bridge above something that is missing, or the next one that leads to a device; empty where none does."""
    ports = assessment.snapshot.empty_ports
    path = () if isinstance(ports, Missing) else rows(ports.get(bridge, ()))
    leading = {each for device in assessment.topology.devices for each in rows(device.path)[:-1]}
    return next((each for each in (bridge, *reversed(path)) if each in leading), "")


def _below_ports(topology: Topology, component: Component, explained: Sequence[Finding]) -> Iterator[At]:
    """A device that is gone from PCI: below the switch or root bus one of whose ports tells of it; else at the host."""
    buses = {finding.subject.bdf.rpartition(":")[0] for finding in explained if finding.subject.bdf}
    paths = (port.path for bdf, port in topology.functions.items() if bdf.rpartition(":")[0] in buses)
    place = next((path[-2] for path in paths if isinstance(path, tuple)), None)
    yield ghost(place, _GHOSTS[component.kind], 1) if place else HOST


def _registers(finding: Finding) -> Iterator[At]:
    """The functions whose config space is the evidence: ports with ACS, where the host's setting is to blame."""
    for item in finding.judgement.evidence:
        bdf, _, file = item.where.removeprefix(f"{PCI_DEVICES}/").partition("/")
        if file == "config":
            yield box(bdf)


def _absent(finding: Finding) -> int:
    """How many devices are missing; 1 where the finding counts none."""
    measured, expected = finding.judgement.measured, finding.judgement.expected
    if isinstance(measured, int | float) and isinstance(expected, int | float):
        return max(1, int(expected - measured))
    return 1


def _loose(number: int, finding: Finding) -> Mark:
    subject = finding.subject
    peer = subject.peer
    at: tuple[At, ...] = (box(subject.bdf),) if subject.bdf else (HOST,)
    if subject.bdf and peer is not None and peer.bdf:
        at = (pair(subject.bdf, peer.bdf),) if subject.kind == peer.kind == "gpu" else (*at, box(peer.bdf))
    tag = finding.id.partition(".")[0] if subject.bdf else finding.id
    words = f"{finding.id} {subject_name(subject)}: {finding.judgement.message}"
    tone, sign = _TONES[finding.status], finding.status.value.upper()
    return Mark(number=number, tone=tone, sign=sign, tag=tag, words=words, at=at)
