"""What findings have in common: what devices share that have the same fault."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain

from dgxcheck.checks.engine.box import Box, guest
from dgxcheck.checks.engine.expected import model_of
from dgxcheck.checks.engine.finding import BAD, FAULTY, Finding, Status, Subject
from dgxcheck.components.component import Component, Key, host_part
from dgxcheck.components.containment import BOARDS, NVSWITCHES, above, containing
from dgxcheck.diagnosis.lost_together import (
    POWER,
    board_of,
    gone_of,
    lost_boards,
    responds,
    same_moment,
    unpowered_of,
)
from dgxcheck.diagnosis.shared_by_many import (
    OF_PORTS,
    boards_of,
    is_air_or_power,
    is_likelier,
    refused,
    times_of,
    with_disks,
    without_memory,
    without_modules,
)
from dgxcheck.facts.bdf import card_of
from dgxcheck.facts.faults import DEVICE_DEAD, Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.ids import PCI_BRIDGE
from dgxcheck.facts.record import replace
from dgxcheck.facts.typical import gathered
from dgxcheck.topology.nvlinks import nvswitches

_BELOW_A_GUEST = host_part("physical host")
"""What dead devices of a virtual machine share, whatever it is: power and slots are not seen from there, and the
bridges above them are made up."""
_EMULATED = ("switch", "host-bridge", "socket")
_FED_BY = (POWER.part, *BOARDS)


def common_causes(box: Box, findings: Sequence[Finding]) -> Mapping[str, tuple[Component, ...]]:
    """By key of the finding: the setting that all devices of a kind share, the switch, host bridge, socket or adapter
    that all devices below it share, and what those share that failed in the same moment.

    Only where each of them was seen to be bad, and of the box only where all GPUs were asked about: what could not be
    read counts for the others.
    """
    common: dict[str, list[Component]] = {}

    virtual = guest(box) is not None

    def add(those: Sequence[Finding], component: Component) -> None:
        for finding in those:
            of_host = virtual and finding.key in dead and (component.kind in _EMULATED or component.part in _FED_BY)
            common.setdefault(finding.key, []).append(_BELOW_A_GUEST if of_host else component)

    def add_scattered(judged: Sequence[Finding]) -> None:
        sharing = gathered((each.shared, each) for each in judged if each.status in BAD and each.shared is not None)
        for whole, those in sharing.items():
            known = whole.kind in OF_PORTS or whole == NVSWITCHES or is_air_or_power(whole)
            if known and is_likelier(box, whole, those, judged):
                add(those, whole)

    unpowered = unpowered_of(findings)
    all_asked = len(box.gpus) == len(box.topology.gpus)
    by_check = gathered(((finding.id, finding.subject.peer is not None), finding) for finding in findings
                        if finding.subject.bdf and finding.status in (Status.PASS, *BAD))  # fmt: skip
    unstarted = refused(findings)
    dead = {each.key: each for each in findings if each.judgement.fault in DEVICE_DEAD and each.subject.bdf
            and each.key not in unstarted}  # fmt: skip
    gone, lost_at = gone_of(findings), _lost_at(box, findings)
    dead_around = gathered((key, each) for each in dead.values() for key in {whole.key for whole in _around(box, each)})
    for of_one, first in _of_dead_adapters(box, [*dead.values()]):
        add(of_one, first)
    for (_, pairs), judged in by_check.items():
        everywhere = _all_bad(judged)
        for alike in _alike(box, judged):
            for finding in alike if all_asked and _all_bad(alike) else ():
                if finding.shared is not None and finding.key not in unstarted and _are_every(box, finding, alike):
                    add([finding], finding.shared)
            for those, setting in () if _all_bad(alike) else _set_in_several(alike):
                add(those, setting)
        for of_one, first in () if pairs else _of_adapters(judged):
            add(of_one, first)
        of_places = [each for each in judged if each.key not in unstarted]
        for whole, inside in () if pairs else _by_container(box, of_places):
            at = [lost_at[each.subject.bdf] for each in inside if each.key in dead and each.subject.bdf in lost_at]
            if at and max(at) - min(at) > _LATE_S:
                continue
            if not _all_bad(inside) or (everywhere and whole.kind not in ("switch", "hca")):
                continue
            shared = inside[0].shared
            if shared is not None and is_air_or_power(shared):
                if boards_of(box, inside) > 1:
                    add(inside, shared)
                elif whole.kind == "board":
                    add(inside, replace(whole, part=shared.part))
            elif whole.kind != "board" or inside[0].key in dead:
                own = {each.key for each in inside}
                others = dead_around.get(whole.key, ()) if inside[0].key in dead else ()
                those = [*inside, *(other for other in others if other.key not in own)]
                at_once = {each.subject.bdf for each in those}
                alive = inside[0].key in dead and responds(box, whole, gone, at_once)
                if alive and all(each.subject.kind == "hca" for each in those):
                    continue
                lost_with = (board_of(box, at_once) or POWER) if alive else whole
                add(those, lost_with if at_once - unpowered else POWER)
        add_scattered(judged)
    ports = (each for each in findings if each.subject.kind == "port" and not each.subject.bdf)  # as ibstat names them
    for judged in gathered((each.id, each) for each in ports if each.status in (Status.PASS, *BAD)).values():
        add_scattered(judged)
    found = chain(
        same_moment(box, findings), with_disks(box, [*dead.values()], findings), without_memory(box, findings),
        unstarted.values(), without_modules(findings), _links_below(box, findings), lost_boards(box, findings),
        _through_links([*dead.values()]),
    )  # fmt: skip
    for together, component in found:
        add(together, component)
    of_host = (each.blames[0] for each in findings if each.status in BAD and each.blames)
    supplies = {each.key for each in chain(of_host, *common.values()) if is_air_or_power(each)}
    unfed = unpowered if len(unpowered) > 1 or POWER.key in supplies else set()
    for finding in findings:  # one of a host whose fan failed, adapters beside GPUs that lack air, cards without power
        if finding.status in BAD and finding.shared is not None and finding.shared.key in supplies:
            add([finding], finding.shared)
        elif finding.key in dead and finding.subject.bdf in unfed:
            add([finding], POWER)
    return {key: tuple(components) for key, components in common.items()}


def _through_links(dead: Sequence[Finding]) -> Iterator[tuple[list[Finding], Component]]:
    """All that is found of a device that is lost, with the shared links which the kernel log says failed at that
    time: the driver and the PCI tree do not say why it does not answer."""
    for of_one in gathered((each.subject.bdf, each) for each in dead).values():
        failed = dict.fromkeys(blame for each in of_one for blame in each.blames[1:] if blame.kind == "link")
        yield from ((of_one, link) for link in failed if len(link.shared_by) > 1)


_BELOW_A_SWITCH = (
    (((Fault.LINK_NARROW, Fault.LINK_SLOW, Fault.LINK_DEGRADED),), ("pcie.width", "pcie.generation", "gdr.link")),
    (((Fault.AER_CORRECTABLE, Fault.AER_STORM), (Fault.PCIE_REPLAYS,)), ("pcie.aer", "pcie.replay")),
)
"""What the links of devices show alike, by kind, a narrow one and a slow one as well, and the checks that see that they
are sound."""


def _links_below(box: Box, findings: Sequence[Finding]) -> Iterator[tuple[list[Finding], Component]]:
    """Findings that the links of all GPUs and adapters below a switch trained below what they can, or count errors,
    whichever checks judge them, with that switch. Two devices alone must have the same kind of them: replays are those
    of a minute, AER counts since boot."""
    of_devices = [each for each in findings if each.subject.kind in ("gpu", "hca") and each.subject.peer is None]
    for kinds, checks in _BELOW_A_SWITCH:
        bad = [each for each in of_devices
               if each.status in BAD and any(each.judgement.fault in faults for faults in kinds)]  # fmt: skip
        at = {each.subject.bdf for each in bad}
        good = (each for each in of_devices if each.id in checks and each.status is Status.PASS)
        for whole, inside in _by_container(box, [*bad, *(each for each in good if each.subject.bdf not in at)]):
            if whole.kind == "switch" and _all_bad(inside) and _are_alike(inside, kinds):
                yield inside, whole


def _are_alike(bad: Sequence[Finding], kinds: Sequence[Collection[FaultKind]]) -> bool:
    """Are these of more than two devices, or all devices among those of one kind?"""
    devices = {each.subject.bdf for each in bad}
    with_one = ({each.subject.bdf for each in bad if each.judgement.fault in faults} for faults in kinds)
    return len(devices) > _FEW or devices in with_one


_FEW = 2
"""So many devices with errors of different kinds are as likely two links with errors of their own."""


_LATE_S = 600.0
"""A GPU that is lost is noticed when the driver next asks it; monitors do so every minute."""


def _lost_at(box: Box, findings: Sequence[Finding]) -> Mapping[str | None, float]:
    """By bus id when a dead device stopped, in seconds since boot; empty for a log without times."""
    dead = [each for each in findings if each.judgement.fault in DEVICE_DEAD and times_of(each, "device")]
    return {each.subject.bdf: min(times_of(each, "device")) for each in dead} if box.log.timed else {}


def _are_every(box: Box, finding: Finding, alike: Sequence[Finding]) -> bool:
    """Is what it shares found of all NVSwitches, if it is of one? Nothing is found of those that log nothing."""
    if finding.blames[:1] and finding.blames[0].kind == "nvswitch":
        sharing = {each.subject.bdf for each in alike if each.shared == finding.shared}
        every = {each.bdf for each in nvswitches(box.topology)}
        return bool(every) and sharing >= every
    return True


def _set_in_several(judged: Sequence[Finding]) -> Iterator[tuple[list[Finding], Component]]:
    """Findings of GPUs that lack the same setting, of which one command sets it in all, with that setting of theirs."""
    lacking = gathered(((each.shared, each.judgement.fault), each) for each in judged
                       if each.status in BAD and each.shared is not None and each.shared.kind == "gpus")  # fmt: skip
    for (setting, _), those in lacking.items():
        if len(names := sorted((each.subject.name for each in those), key=lambda name: (len(name), name))) > 1:
            yield those, replace(setting, name=", ".join(names), shared_by=tuple(names))


def _of_adapters(judged: Sequence[Finding]) -> Iterator[tuple[list[Finding], Component]]:
    """Findings of an adapter whose functions all have one fault, and what that of the first comes from: they share
    slot, chip and firmware.
    """
    functions = gathered((card_of(each.subject.bdf), each) for each in judged if each.subject.kind == "hca")
    for those in functions.values():
        first = min(those, key=_place)
        if first.blames and _all_bad(those) and len({each.judgement.fault for each in those}) == 1:
            yield those, replace(first.blames[0], shared_by=tuple(sorted(each.subject.name for each in those)))


def _of_dead_adapters(box: Box, dead: Sequence[Finding]) -> Iterator[tuple[list[Finding], Component]]:
    """The same where each of its functions is dead, whichever checks find that."""
    every = gathered((card_of(each.bdf), each.bdf) for each in box.topology.nics)
    found = gathered((card_of(each.subject.bdf), each) for each in dead if each.subject.kind == "hca" and each.blames)
    for card, those in found.items():
        functions = {each.subject.bdf for each in those}
        if len(functions) > 1 and functions.issuperset(every.get(card, ())):
            yield those, min(those, key=_place).blames[0]


def _place(finding: Finding) -> str:
    return str(finding.subject.bdf)


def _alike(box: Box, judged: Sequence[Finding]) -> Collection[list[Finding]]:
    """Findings by kind; of bridges and what they lead to by model, of pairs by whether NVLinks join them."""
    groups = gathered(((each.subject.kind, _within(box, each.subject)), each) for each in judged)
    return groups.values()


def _within(box: Box, subject: Subject) -> object:
    if subject.peer is None:
        return model_of(box, subject.bdf or "") if subject.kind == "pci" else None
    a, b = (box.topology.device(each.bdf or "") for each in (subject, subject.peer))
    return a and b and bool(box.topology.link(a, b).nvlinks)


def _all_bad(judged: Sequence[Finding]) -> bool:
    bad = all(finding.status in FAULTY for finding in judged)
    return bad and len({(finding.subject.bdf, finding.subject.part) for finding in judged}) > 1


def _by_container(box: Box, judged: Sequence[Finding]) -> Collection[tuple[Component, list[Finding]]]:
    """Findings that what is around their device can cause, and passes beside them, by what is around."""
    if not any(_can_be_shared(finding) for finding in judged):
        return ()
    inside: dict[Key, tuple[Component, list[Finding]]] = {}
    for finding in judged:
        if finding.status is Status.PASS and _is_bridge(box, finding.subject):
            continue  # a port that counts no errors can have sent those that the end below it counts
        if finding.status is Status.PASS or _can_be_shared(finding):
            for whole in _around(box, finding):
                inside.setdefault(whole.key, (whole, []))[1].append(finding)
    return inside.values()


def _is_bridge(box: Box, subject: Subject) -> bool:
    return subject.kind == "pci" and box.subclass(subject.bdf) == PCI_BRIDGE


def _around(box: Box, finding: Finding) -> Iterator[Component]:
    """Of a port its adapter; of a GPU or adapter the switches, host bridge and socket above it."""
    if finding.subject.kind == "port":
        port = Component(kind="port", name=finding.subject.name, bdf=finding.subject.bdf)
        yield from (component for component in containing(box, port) if component.kind == "hca")
        return
    yield from (component for component in above(box, finding.subject.bdf or "") if component.kind != "link")


def _can_be_shared(finding: Finding) -> bool:
    """A link or port is to blame, air or power of the host may be, or a device as a whole is dead."""
    if finding.judgement.fault in DEVICE_DEAD or any(each.kind in ("link", "port") for each in finding.blames[:1]):
        return True
    return is_air_or_power(finding.shared)
