"""What several devices share that have the same fault, or that failed in the same moment."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import BAD, Finding, Status
from dgxcheck.components.component import Component, Key
from dgxcheck.components.containment import above, board, containing
from dgxcheck.diagnosis.same_moment import same_moment
from dgxcheck.facts.faults import DEVICE_DEAD
from dgxcheck.facts.record import replace

_AIR_AND_POWER = ("cooling", "power supply")
"""Of the host: fans and supplies serve a part of it each."""
_FEWEST_PORTS = 3
"""So many ports of a machine, if also half of all, point to the fabric rather than to a bad cable each."""
_AT_LEAST = {"power supply": 0.0, "cooling": 0.5}
"""Share of the GPUs, wherever they are, from which the host is blamed: the power brake is a signal of the system, not
of a board, and fans cool rows of cards that the PCI tree does not show."""


def common_causes(box: Box, findings: Sequence[Finding]) -> Mapping[str, tuple[Component, ...]]:
    """By key of the finding: the setting that all devices of the box share, the switch, host bridge, socket or adapter
    that all devices below it share, and what those share that failed in the same moment.

    Only where each of them was seen to be bad, and of the box only where all GPUs were asked about: what could not be
    read counts for the others.
    """
    common: dict[str, list[Component]] = {}

    def add(those: Sequence[Finding], component: Component) -> None:
        for each in those:
            common.setdefault(each.key, []).append(component)

    all_asked = len(box.gpus) == len(box.topology.gpus)
    by_check: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.subject.bdf and finding.subject.peer is None and finding.status in (Status.PASS, *BAD):
            by_check.setdefault(finding.id, []).append(finding)
    dead = {each.key: each for each in findings if each.judgement.fault in DEVICE_DEAD and each.subject.bdf}
    dead_around: dict[Key, list[Finding]] = {}
    for each in dead.values():
        for key in {whole.key for whole in _around(box, each)}:
            dead_around.setdefault(key, []).append(each)
    for judged in by_check.values():
        everywhere = _all_bad(judged)
        if all_asked and everywhere:
            for finding in judged:
                if finding.shared is not None:
                    add([finding], finding.shared)
        for whole, inside in _by_container(box, judged):
            if not _all_bad(inside) or (everywhere and whole.kind not in ("switch", "hca")):
                continue
            shared = inside[0].shared
            if shared is not None and _is_air_or_power(shared):
                if _boards(box, inside) > 1:
                    add(inside, shared)
                elif whole.kind == "board":
                    add(inside, replace(whole, part=shared.part))
            elif whole.kind != "board":
                own = {each.key for each in inside}
                others = dead_around.get(whole.key, ()) if inside[0].key in dead else ()
                add([*inside, *(each for each in others if each.key not in own)], whole)
        scattered = [each for each in judged if each.status in BAD and _is_environment(each.shared)]
        if (shared := _environment_of_many(box, scattered, len(judged))) is not None:
            add(scattered, shared)
    for together, component in same_moment(box, findings):
        add(together, component)
    return {key: tuple(components) for key, components in common.items()}


def _environment_of_many(box: Box, bad: Sequence[Finding], judged: int) -> Component | None:
    """The shared cooling, power supply or fabric, if so many devices are affected that it is the likelier cause."""
    shared = {each.shared.key: each.shared for each in bad if each.shared is not None}
    if len(shared) != 1:
        return None
    (whole,) = shared.values()
    if whole.kind == "fabric":
        return whole if len(bad) >= _FEWEST_PORTS and 2 * len(bad) >= judged else None
    return whole if _boards(box, bad) > 1 and len(bad) >= _AT_LEAST[whole.part] * judged else None


def _all_bad(judged: Sequence[Finding]) -> bool:
    bad = all(finding.status in (Status.FAIL, Status.WARN) for finding in judged)
    return bad and len({(finding.subject.bdf, finding.subject.part) for finding in judged}) > 1


def _by_container(box: Box, judged: Sequence[Finding]) -> Collection[tuple[Component, list[Finding]]]:
    """Findings that what is around their device can cause, and passes beside them, by what is around."""
    if not any(_can_be_shared(finding) for finding in judged):
        return ()
    inside: dict[Key, tuple[Component, list[Finding]]] = {}
    for finding in judged:
        if finding.status is Status.PASS or _can_be_shared(finding):
            for whole in _around(box, finding):
                inside.setdefault(whole.key, (whole, []))[1].append(finding)
    return inside.values()


def _around(box: Box, finding: Finding) -> Iterator[Component]:
    """Of a port its adapter; of a GPU or adapter the switches, host bridge and socket above it."""
    if finding.subject.kind == "port":
        port = Component(kind="port", name=finding.subject.name, bdf=finding.subject.bdf)
        yield from (each for each in containing(box, port) if each.kind == "hca")
        return
    yield from (each for each in above(box, finding.subject.bdf or "") if each.kind != "link")


def _can_be_shared(finding: Finding) -> bool:
    """A link or port is to blame, air or power of the host may be, or a device as a whole is dead."""
    if finding.judgement.fault in DEVICE_DEAD or any(each.kind in ("link", "port") for each in finding.blames[:1]):
        return True
    return _is_air_or_power(finding.shared)


def _is_environment(shared: Component | None) -> bool:
    return _is_air_or_power(shared) or (shared is not None and shared.kind == "fabric")


def _is_air_or_power(shared: Component | None) -> bool:
    return shared is not None and shared.kind == "host" and shared.part in _AIR_AND_POWER


def _boards(box: Box, judged: Sequence[Finding]) -> int:
    """How many boards these GPUs are on: the two of a K80 have one heat sink."""
    devices = [box.topology.device(finding.subject.bdf or "") for finding in judged]
    return len({board(box, device) for device in devices if device is not None})
