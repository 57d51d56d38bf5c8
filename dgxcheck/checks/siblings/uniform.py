"""Is a device like the others of its kind and role? Everything that is no identity, load or counter is compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from dgxcheck.checks.engine.box import HOST, Box, gpu_unavailable
from dgxcheck.checks.engine.check import Check, component_of, remedy_of
from dgxcheck.checks.engine.expected import is_coherent
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, Subject, counted, first_of, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.siblings.compare import Comparison, Odd, compared
from dgxcheck.checks.siblings.kinds import Kind
from dgxcheck.components.component import Component, host_part
from dgxcheck.components.locate import links_at, switch_setting
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.host import BlockDevice, NetInterface
from dgxcheck.facts.infiniband import IbDevice
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.nvml.readings import GpuPcie
from dgxcheck.facts.pci import ConfigSpace, PciFunction
from dgxcheck.facts.record import replace
from dgxcheck.facts.typical import gathered
from dgxcheck.facts.values import UNREAD, is_of, label, option, text

MOST = 3
"""Differences of one device that its message names; all of them are evidence."""
PART = "versions and settings"
NOUNS: Mapping[str, str] = {
    "gpu": "GPU", "nvlink": "NVLink", "hca": "HCA", "port": "port", "interface": "interface", "bridge": "PCIe port",
    "function": "PCIe device", "disk": "disk", "memory-controller": "memory controller", "node": "NUMA node",
}  # fmt: skip
_FIELDS: Mapping[Kind, str] = {
    "gpu": "gpu", "nvlink": "nvlink", "hca": "infiniband", "port": "ib_ports", "interface": "network",
    "bridge": "pci", "function": "pci", "disk": "storage", "memory-controller": "edac", "node": "numa_memory",
}  # fmt: skip
"""Fields of the snapshot that list the devices."""
_OF_MEMORY = ("memory-controller", "node")


def _gpus(box: Box) -> Judged:
    """Warns if a GPU differs from most others of its model in a version, capability, limit or setting, in memory by
    more than {gpu.uniform-memory} (with a display {gpu.uniform-display}), in its PCIe link by more than its slot
    explains, or one of its NVLinks from most others of the model; warns for the host if no value has a majority. What
    another check reports, and what differs by nature (identity, load, counters, place), is left out.

    Source: every fact of the device that dgxcheck reads, against the value that more than half of its siblings have;
    machines in service with two VBIOS versions; https://github.com/NVIDIA/DCGM/issues/2

    A judgement for each GPU asked about, and for each of its NVLinks that differs; all GPUs are compared.
    """
    found = compared(box, ["gpu"])
    for gpu in box.gpus:
        subject = box.subject(gpu)
        yield subject, gpu_unavailable(box, gpu) or _judgement(box, found, subject)
    links = compared(box, ["nvlink"])
    asked = {gpu.bdf for gpu in box.gpus}
    yield from ((at, _judgement(box, links, at)) for at in links.odd if _alone(links, at) and at.bdf in asked)
    yield from _without_majority(box, {**found.odd, **links.odd})


def _devices(box: Box, *kinds: Kind) -> Judged:
    """A judge that reports each device of these kinds that differs; the host passes where none does."""
    found = compared(box, kinds)
    others = {gpu.bdf for gpu in box.topology.gpus} - {gpu.bdf for gpu in box.gpus}
    alone = [subject for subject in found.odd if _alone(found, subject) and subject.bdf not in others]
    split = [*_without_majority(box, found.odd)]
    yield from ((subject, _judgement(box, found, subject)) for subject in alone)
    yield from split
    if not alone and not split:
        yield HOST, _unread(box, kinds, bool(found.alike)) or _all_alike(found)


def _unread(box: Box, kinds: Collection[Kind], any_compared: bool) -> Judgement | None:
    """The skip if devices of these kinds could not be read, which other checks report.

    That a machine has none of one kind is a reason only where nothing of another kind was compared.
    """
    gaps = [row for kind in kinds if isinstance(row := getattr(box.snapshot, _FIELDS[kind]), Missing)]
    judged = [unjudged(gap) for gap in gaps]
    if (unknown := next((judgement for judgement in judged if judgement.status is Status.UNKNOWN), None)) is not None:
        return skip("dependency-failed", "the devices to compare could not be read", *unknown.evidence)
    return judged[0] if judged and not any_compared else None


def _alone(found: Comparison, subject: Subject) -> list[Odd]:
    return [each for each in found.odd.get(subject, ()) if each.majority]


def _judgement(box: Box, found: Comparison, subject: Subject) -> Judgement:
    """Of the facts of one device."""
    if odd := _alone(found, subject):
        alike = gathered((f"{text(each.rows, each.value)}, others {text(each.rows, each.usual)}", each) for each in odd)
        labels = {values: [*dict.fromkeys(label(each.rows) for each in those)] for values, those in alike.items()}
        shown = [f"{labels[values][0]} {values}{_likewise(labels[values][1:])}" for values in [*alike][:MOST]]
        left = sum(len(labels[values]) for values in [*alike][MOST:])
        more = [f"and {counted(left, 'other fact')}"] if left else []
        kind = odd[0].sibling.kind
        prefix = f"NVLink {subject.part}: " if kind == "nvlink" else f"{subject.part}: " if kind in _OF_MEMORY else ""
        unread = all(each.value == UNREAD for each in odd)
        status, fault = (Status.UNKNOWN, None) if unread else (Status.WARN, Fault.UNEQUAL)
        evidence = tuple(each.evidence for each in odd)
        message = prefix + "; ".join((*shown, *more)) + _below(box, odd)
        return Judgement(status, message, evidence=evidence, fault=fault, remedy=remedy(odd))
    if subject not in found.alike:
        return skip("no-reference", "no other device of its kind reports comparable values")
    return Judgement(Status.PASS, "the same as the others of its kind")


def _likewise(labels: Sequence[str]) -> str:
    """Of facts that differ in the same way as the one before: one by its name, more by their number."""
    return f" ({labels[0] if len(labels) == 1 else counted(len(labels), 'other fact')} likewise)" if labels else ""


def _all_alike(found: Comparison) -> Judgement:
    kinds = Counter(found.alike.values())
    if not kinds:
        return skip("no-reference", "no two devices of one kind and role to compare")
    numbers = ", ".join(counted(number, NOUNS[kind], _plural(kind)) for kind, number in kinds.items())
    return Judgement(Status.PASS, f"{numbers}: each the same as the others of its kind")


def _without_majority(box: Box, odd: Mapping[Subject, Iterable[Odd]]) -> Judged:
    """Values that differ while none is that of more than half: every device is named, none is blamed. Memory that is
    soldered differs by no choice of modules.
    """
    coherent = is_coherent(box)
    undecided = [each for each in chain.from_iterable(odd.values()) if not each.majority]
    for kind, same in gathered((each.sibling.kind, each) for each in undecided).items():
        facts = gathered((each.leaf[0], each) for each in same)
        first = next(iter(facts.values()))
        holders = gathered((text(each.rows, each.value), _name(each.sibling.subject)) for each in first)
        values = first_of([f"{value} ({first_of(names)})" for value, names in holders.items()])
        names = first_of([*dict.fromkeys(label(fact[0].rows) for fact in facts.values())])
        message = f"{_plural(kind)} of one kind differ in {names}, and no value has a majority: {values}"
        message += _below(box, same)
        evidence = tuple(each.evidence for differing in facts.values() for each in differing)
        subject = HOST if kind == "gpu" else replace(HOST, part=kind)
        advice = _advice([*chain.from_iterable(facts.values())])
        fault = Fault.MEMORY_MISSING if coherent and kind in _OF_MEMORY else Fault.UNEQUAL
        yield subject, Judgement(Status.WARN, message, evidence=evidence, fault=fault, remedy=advice)


_LINK = frozenset((
    PciFunction.link_width, PciFunction.link_gen, PciFunction.max_link_gen, PciFunction.max_link_width,
    GpuPcie.link_width, GpuPcie.max_link_gen, GpuPcie.max_link_width,
))  # fmt: skip
_ADVICE = (
    (_LINK, "pcie.uniform", "link"),
    (frozenset((ConfigSpace.control, ConfigSpace.express)), "pcie.uniform", "control words"),
    (frozenset((IbDevice.board_id,)), "network.uniform", "board"),
    (frozenset((NetInterface.mtu,)), "network.uniform", "MTU"),
    (frozenset((BlockDevice.size_bytes, BlockDevice.rotational)), "host.uniform", "size"),
)
"""Whose case it is where all facts that differ are of these: lspci(8), ip-link(8), hdparm(8)."""


_OF_SLOT = frozenset((PciFunction.link_width, PciFunction.max_link_width))


def _has_own_width(odd: Collection[Odd]) -> bool:
    """Are these ports whose links have all the lanes that the ports support?"""
    widths = gathered((each.sibling.subject, each.value) for each in odd)
    ports = all(each.sibling.kind == "bridge" and is_of(each.rows, _OF_SLOT) for each in odd)
    return ports and all(len(own) == len(_OF_SLOT) and len({*own}) == 1 for own in widths.values())


def _below(box: Box, odd: Collection[Odd]) -> str:
    """Of ports with fewer lanes than the GPUs below them: what those support; empty for all else."""
    if not _has_own_width(odd):
        return ""
    lanes: dict[int, list[str]] = {}
    for gpu in box.topology.gpus:
        most = gpu.function.max_link_width if gpu.function is not None else None
        own = (each.value for each in odd if gpu.bdf in each.sibling.below)
        if isinstance(most, int) and any(isinstance(value, int) and value < most for value in own):
            lanes.setdefault(most, []).append(gpu.name)
    verbs = {most: "supports" if len(names) == 1 else "support" for most, names in lanes.items()}
    return "".join(f"; {first_of(names)} below {verbs[most]} x{most}" for most, names in lanes.items())


def remedy(odd: Collection[Odd]) -> str:
    """How a device is made like its siblings again; empty where the remedy of the check serves."""
    fixes = [option(each.rows, "fix") for each in odd]
    if all(isinstance(fix, str) for fix in fixes):
        commands = (f"nvidia-smi -i {each.sibling.subject.bdf} {fix}" for fix, each in zip(fixes, odd, strict=True))
        filled = (command.format(each.usual) for command, each in zip(commands, odd, strict=True))
        return f"if this was not intended, set it as on the others: {', '.join(dict.fromkeys(filled))}"
    return _advice(odd)


def _advice(odd: Collection[Odd]) -> str:
    if _has_own_width(odd):
        return remedy_of("pcie.uniform", "slot")
    cases = (case for facts, *case in _ADVICE if all(is_of(each.rows, facts) for each in odd))
    return next((remedy_of(*case) for case in cases), "")


def _name(subject: Subject) -> str:
    if subject.kind == "gpu" and subject.part:
        return f"{subject.name} link {subject.part}"
    return subject.part if subject.kind == "host" else subject.name


def _plural(kind: str) -> str:
    return f"{NOUNS[kind]}s"


def _blame(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """Versions and settings of the device; no hardware is blamed for being different, but a link both of whose ends
    are.
    """
    if subject.kind != "host":
        yield component_of(box, subject, PART)
        if all("_link_" in evidence.where for evidence in judgement.evidence):
            yield from links_at(box, subject.bdf or "")
    elif not subject.part:
        yield host_part("VBIOS and settings of GPUs")
    elif subject.part in NOUNS and subject.part not in _OF_MEMORY:
        yield host_part(f"{PART} of {_plural(subject.part)}")
    else:
        yield host_part("memory" if judgement.fault is Fault.MEMORY_MISSING else "memory modules")


def _network(box: Box) -> Judged:
    """Warns if an HCA, an active port of one or its network interface differs from most others of the same model and
    use (near a GPU or not; InfiniBand or Ethernet). What another check reports, and what differs by nature (identity,
    load, counters, place), is left out.

    Source: every fact of the device that dgxcheck reads, against the value that more than half of its siblings have
    """
    return _devices(box, "hca", "port", "interface")


def _pcie(box: Box) -> Judged:
    """Warns if a PCIe port above a GPU or HCA differs from most ports of the same kind with the same devices below, or
    an NVSwitch, storage controller or network adapter from most others of its model and slot. What another check
    reports, and what differs by nature (identity, load, counters, place), is left out.

    Source: every fact of the device that dgxcheck reads, against the value that more than half of its siblings have
    """
    return _devices(box, "bridge", "function")


def _host(box: Box) -> Judged:
    """Warns if a disk differs from most others of its model, a memory controller from most others in size, or a NUMA
    node with CPUs from most others in memory (by more than {consistency.memory}) or distances. What another check
    reports, and what differs by nature (identity, load, counters, place), is left out.

    Source: every fact of the device that dgxcheck reads, against the value that more than half of its siblings have
    """
    return _devices(box, "disk", "memory-controller", "node")


CHECKS = (
    Check("gpu.uniform", _gpus, _blame, last=True),
    Check("network.uniform", _network, _blame, last=True),
    Check("pcie.uniform", _pcie, _blame, lambda box, at, judgement: switch_setting(box, at.bdf, PART), last=True),
    Check("host.uniform", _host, _blame, last=True),
)  # fmt: skip
