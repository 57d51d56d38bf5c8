"""What findings have in common: what devices share that have the same fault, or that failed in the same moment by the
kernel log."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain

from dgxcheck.checks.engine.box import Box, guest
from dgxcheck.checks.engine.expected import model_of
from dgxcheck.checks.engine.finding import BAD, FAULTY, Finding, Status, Subject
from dgxcheck.components.component import Component, Key, host_part
from dgxcheck.components.containment import BOARDS, NVSWITCHES, above, containing
from dgxcheck.components.locate import far_ends
from dgxcheck.diagnosis.baseboard import board_of, lost_boards, trunk
from dgxcheck.diagnosis.shared_by_many import (
    FEWEST,
    OF_PORTS,
    boards_of,
    is_air_or_power,
    refused,
    shared_by_many,
    times_of,
    with_disks,
    without_memory,
    without_modules,
)
from dgxcheck.facts.bdf import card_of
from dgxcheck.facts.faults import DEVICE_DEAD, Fault
from dgxcheck.facts.ids import PCI_BRIDGE
from dgxcheck.facts.record import replace
from dgxcheck.facts.typical import gathered
from dgxcheck.topology.paths import NEAR
from dgxcheck.xid.relations import WINDOW_S

_POWER = host_part("power supply")
_BELOW_A_GUEST = host_part("physical host")
"""What dead devices of a virtual machine share, whatever it is: power and slots are not seen from there, and the
bridges above them are made up."""
_EMULATED = ("switch", "host-bridge", "socket")
_FED_BY = (_POWER.part, *BOARDS)


def same_moment(box: Box, findings: Sequence[Finding]) -> Iterator[tuple[list[Finding], Component]]:
    """Findings of devices that failed within seconds of each other, with what can have done it.

    Of NVSwitches the fabric that they make up, or the NVLinks between two, and of NVLinks that end at them, where half
    of the GPUs log errors of theirs. Of GPUs and adapters the nearest PCIe switch above all of them, unless all the
    adapters below it respond, or the host bridge or socket if nothing else below it does; else their boards, NVSwitches
    on them that failed in that moment too, or the power supply, which is all that they share. Adapters alone have each
    a cause of its own, for what has power beside them, their GPUs too, still responds.
    """
    failed = [finding for finding in findings if finding.status is Status.FAIL]
    for together in _moments([finding for finding in failed if times_of(finding, "nvswitch")], "nvswitch"):
        yield together, trunk(box, together) or NVSWITCHES
    yield from _through_switches(box, findings)
    dead = [finding for finding in failed if finding.judgement.fault in DEVICE_DEAD]
    gone, unpowered = _gone(findings), _unpowered(findings)
    for together in _moments([finding for finding in dead if times_of(finding, "device")], "device"):
        lost = sorted({finding.subject.bdf or "" for finding in together})
        around = _shared(box, lost, gone) or _adapter_above(box, lost) or board_of(box, lost)
        whole = around if {*lost} - unpowered else _POWER
        if whole is not None or any(finding.subject.kind != "hca" for finding in together):
            those = [finding for finding in dead if finding.subject.bdf in lost]
            of_board = whole is not None and whole.part in BOARDS
            yield [*those, *(_nvswitches_with(failed, those) if of_board else ())], whole or _POWER


def _nvswitches_with(failed: Sequence[Finding], lost: Sequence[Finding]) -> list[Finding]:
    """NVSwitches whose errors began within seconds of the loss of these GPUs: their board feeds them as well."""
    began = [min(times_of(finding, "device")) for finding in lost if times_of(finding, "device")]
    return [each for each in failed if (times := times_of(each, "nvswitch"))
            and any(abs(min(times) - seconds) <= WINDOW_S for seconds in began)]  # fmt: skip


def _through_switches(box: Box, findings: Sequence[Finding]) -> Iterator[tuple[list[Finding], Component]]:
    """NVLink errors of at least three GPUs, and half of them, whose links end at NVSwitches or at unknown devices."""
    bad = [each for each in findings if each.status in FAULTY and times_of(each, "nvlink")]
    if len(bad) < FEWEST or not all(_ends_elsewhere(box, finding) for finding in bad):
        return
    for together in _moments(bad, "nvlink"):
        several = len(together) >= FEWEST and 2 * len(together) >= len(box.topology.gpus)
        if several and not set.intersection(*map(_nvswitches, together)):
            yield together, NVSWITCHES


def _nvswitches(finding: Finding) -> set[Key]:
    """NVSwitches among the possible causes of the finding; one that all findings share is to blame."""
    return {component.key for component in finding.blames if component.kind == "nvswitch"}


def _ends_elsewhere(box: Box, finding: Finding) -> bool:
    gpu = box.topology.device(finding.subject.bdf or "")
    ends = set() if gpu is None else {*far_ends(box, gpu).values()}
    return gpu is not None and ends.isdisjoint(each.bdf for each in box.topology.gpus)


def _moments(findings: Sequence[Finding], kind: str) -> Iterator[list[Finding]]:
    """Findings of several devices whose first events lie within seconds of the first of them."""
    ordered = sorted(findings, key=lambda finding: min(times_of(finding, kind)))
    while ordered:
        begins = min(times_of(ordered[0], kind))
        together = [finding for finding in ordered if min(times_of(finding, kind)) - begins <= WINDOW_S]
        if len({finding.subject.bdf for finding in together}) > 1:
            yield together
        ordered = ordered[len(together) :]


def _unpowered(findings: Sequence[Finding]) -> set[str | None]:
    """Bus ids of the GPUs of which the driver says that they have no auxiliary power, which no slot or switch gives."""
    return {each.subject.bdf for each in findings if each.judgement.fault is Fault.GPU_UNPOWERED}


def _shared(box: Box, lost: Sequence[str], gone: set[str | None]) -> Component | None:
    wholes = [[component for component in above(box, bdf) if component.kind != "link"] for bdf in lost]
    for whole in wholes[0]:
        of_all = all(any(component.key == whole.key for component in others) for others in wholes[1:])
        if of_all and not _works(box, whole, gone, lost):
            return whole
    return None


def _adapter_above(box: Box, lost: Sequence[str]) -> Component | None:
    """The one adapter among the lost devices that is the PCIe switch of all the others: a ConnectX-8 with DMA functions
    beside GPUs is in several PCI domains."""
    devices = [device for bdf in lost if (device := box.topology.device(bdf)) is not None]
    for nic in devices if len(devices) == len(lost) > 1 else ():
        others = [each for each in devices if each is not nic]
        if nic.dma is not None and all(box.topology.link(each, nic).pci in NEAR for each in others):
            return Component(kind="hca", name=nic.name, bdf=nic.bdf, shared_by=tuple(each.name for each in others))
    return None


def _gone(findings: Sequence[Finding]) -> set[str | None]:
    """Bus ids of dead devices, and of switches and links that something else is found of."""
    bad = [finding for finding in findings if finding.status in BAD]
    at = {blame.bdf for finding in bad for blame in finding.blames[:1] if blame.kind in ("link", "switch")}
    return at | {finding.subject.bdf for finding in bad if finding.judgement.fault in DEVICE_DEAD}


def _works(box: Box, whole: Component, gone: set[str | None], lost: Collection[str | None] = ()) -> bool:
    """Does anything respond below a host bridge or at a socket, or every adapter below a switch? What stops no more
    than the GPUs below a switch is rather what feeds GPUs alone; of adapters alone that are lost, does anything?"""
    below = [device for device in box.topology.devices if device.name in whole.shared_by]
    if whole.kind != "switch" or {device.kind for device in below if device.bdf in lost} == {"nic"}:
        return any(device.bdf not in gone for device in below)
    adapters = [device.bdf for device in below if device.kind == "nic"]
    return bool(adapters) and gone.isdisjoint({*adapters, whole.bdf})


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
        those = [each for each in judged if each.status in BAD and each.shared is not None
                 and (each.shared.kind in OF_PORTS or each.shared == NVSWITCHES or is_air_or_power(each.shared))]
        if (shared := shared_by_many(box, those, judged)) is not None:
            add(those, shared)

    unpowered = _unpowered(findings)
    all_asked = len(box.gpus) == len(box.topology.gpus)
    by_check = gathered(((finding.id, finding.subject.peer is not None), finding) for finding in findings
                        if finding.subject.bdf and finding.status in (Status.PASS, *BAD))  # fmt: skip
    unstarted = refused(findings)
    dead = {each.key: each for each in findings if each.judgement.fault in DEVICE_DEAD and each.subject.bdf
            and each.key not in unstarted}  # fmt: skip
    gone, lost_at = _gone(findings), _lost_at(box, findings)
    dead_around = gathered((key, each) for each in dead.values() for key in {whole.key for whole in _around(box, each)})
    for (_, pairs), judged in by_check.items():
        everywhere = _all_bad(judged)
        for alike in _alike(box, judged):
            for finding in alike if all_asked and _all_bad(alike) else ():
                if finding.shared is not None and finding.key not in unstarted:
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
                responds = inside[0].key in dead and _works(box, whole, gone, at_once)
                if responds and all(each.subject.kind == "hca" for each in those):
                    continue
                due = (board_of(box, at_once) or _POWER) if responds else whole
                add(those, due if at_once - unpowered else _POWER)
        add_scattered(judged)
    ports = (each for each in findings if each.subject.kind == "port" and not each.subject.bdf)  # as ibstat names them
    for judged in gathered((each.id, each) for each in ports if each.status in (Status.PASS, *BAD)).values():
        add_scattered(judged)
    found = chain(
        same_moment(box, findings), with_disks(box, [*dead.values()], findings), without_memory(box, findings),
        unstarted.values(), without_modules(findings), _trained_below(box, findings), lost_boards(box, findings),
    )  # fmt: skip
    for together, component in found:
        add(together, component)
    of_host = (each.blames[0] for each in findings if each.status in BAD and each.blames)
    supplies = {each.key for each in chain(of_host, *common.values()) if is_air_or_power(each)}
    unfed = unpowered if len(unpowered) > 1 or _POWER.key in supplies else set()
    for finding in findings:  # one of a host whose fan failed, adapters beside GPUs that lack air, cards without power
        if finding.status in BAD and finding.shared is not None and finding.shared.key in supplies:
            add([finding], finding.shared)
        elif finding.key in dead and finding.subject.bdf in unfed:
            add([finding], _POWER)
    return {key: tuple(components) for key, components in common.items()}


_TRAINED = (Fault.LINK_NARROW, Fault.LINK_SLOW, Fault.LINK_DEGRADED)
_OF_LINKS = ("pcie.width", "pcie.generation", "gdr.link")
"""Checks of the own links of GPUs and adapters."""


def _trained_below(box: Box, findings: Sequence[Finding]) -> Iterator[tuple[list[Finding], Component]]:
    """Findings that the links of all GPUs and adapters below a switch trained below what they can, one narrow and
    another slow, whichever checks judge them, with that switch."""
    of_devices = [each for each in findings if each.subject.kind in ("gpu", "hca") and each.subject.peer is None]
    bad = [each for each in of_devices if each.status in BAD and each.judgement.fault in _TRAINED]
    at = {each.subject.bdf for each in bad}
    good = (each for each in of_devices if each.id in _OF_LINKS and each.status is Status.PASS)
    for whole, inside in _by_container(box, [*bad, *(each for each in good if each.subject.bdf not in at)]):
        if whole.kind == "switch" and _all_bad(inside):
            yield inside, whole


_LATE_S = 600.0
"""A GPU that is lost is noticed when the driver next asks it; monitors do so every minute."""


def _lost_at(box: Box, findings: Sequence[Finding]) -> Mapping[str | None, float]:
    """By bus id when a dead device stopped, in seconds since boot; empty for a log without times."""
    dead = [each for each in findings if each.judgement.fault in DEVICE_DEAD and times_of(each, "device")]
    return {each.subject.bdf: min(times_of(each, "device")) for each in dead} if box.log.timed else {}


def _set_in_several(judged: Sequence[Finding]) -> Iterator[tuple[list[Finding], Component]]:
    """Findings of GPUs that lack the same setting, of which one command sets it in all, with that setting of theirs."""
    lacking = gathered(((each.shared, each.judgement.fault), each) for each in judged
                       if each.status in BAD and each.shared is not None and each.shared.kind == "gpus")  # fmt: skip
    for (setting, _), those in lacking.items():
        if len(names := sorted((each.subject.name for each in those), key=lambda name: (len(name), name))) > 1:
            yield those, replace(setting, name=", ".join(names), shared_by=tuple(names))


def _of_adapters(judged: Sequence[Finding]) -> Iterator[tuple[list[Finding], Component]]:
    """Findings of an adapter whose functions all have one fault or are dead, and what that of the first comes from:
    they share slot, chip and firmware.
    """
    functions = gathered((card_of(each.subject.bdf), each) for each in judged
                         if each.subject.kind == "hca")  # fmt: skip
    for those in functions.values():
        first = min(those, key=lambda each: str(each.subject.bdf))
        dead = all(each.judgement.fault in DEVICE_DEAD for each in those)
        if first.blames and _all_bad(those) and (dead or len({each.judgement.fault for each in those}) == 1):
            yield those, replace(first.blames[0], shared_by=tuple(sorted(each.subject.name for each in those)))


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
    function = box.topology.functions.get(subject.bdf or "") if subject.kind == "pci" else None
    code = None if function is None else function.class_code
    return isinstance(code, int) and code >> 8 == PCI_BRIDGE


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
