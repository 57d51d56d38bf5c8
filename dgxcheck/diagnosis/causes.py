"""From findings to causes: the fewest components that explain them. No check is known here by name, no message read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import BAD, Finding, Status
from dgxcheck.components.component import DRIVER, HOST, SETTINGS, Component, Key, Kind
from dgxcheck.components.containment import NVSWITCHES, containers, frus
from dgxcheck.components.locate import links_at, switches_at
from dgxcheck.diagnosis.action import ORDER, urgency_of
from dgxcheck.diagnosis.actions import actions
from dgxcheck.diagnosis.collateral import collateral
from dgxcheck.diagnosis.common_cause import common_causes
from dgxcheck.diagnosis.confidence import Confidence, by_agreement, by_elimination
from dgxcheck.diagnosis.form_factor import has_fabric_elsewhere
from dgxcheck.diagnosis.lost_together import rest_responds
from dgxcheck.diagnosis.model import Cause, Diagnosis
from dgxcheck.diagnosis.preserve import preserve_evidence
from dgxcheck.diagnosis.set_cover import set_cover
from dgxcheck.diagnosis.shared_by_many import with_places
from dgxcheck.diagnosis.waiting import OF_JOBS, ended_jobs, in_its_moment, refused_clients
from dgxcheck.facts.bdf import card_of, nameless
from dgxcheck.facts.faults import DEVICE_ABSENT, GPU_DEAD, SILENT, Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import rows
from dgxcheck.facts.record import replace
from dgxcheck.facts.typical import gathered

Causes = dict[Component, list[str]]
"""Components to blame, with the keys of the findings that each explains."""


def diagnose(box: Box, findings: Sequence[Finding]) -> Diagnosis:
    """Causes by severity, by when they are due, then by how much they explain.

    First what the findings blame themselves, and of errors in the kernel log what they follow within seconds. A reset
    that the driver asks for is for what else is wrong with its GPU. What could not be read blames nothing: it joins a
    device that is to blame anyway. Slow figures come last: they join what
    is broken on their path, else what is left on it once all that good figures crossed is exonerated, or what several
    slow figures share; else they stay unexplained.
    """
    bad = {each.key: each for each in findings if each.counts}
    slow = [each for each in bad.values() if is_slow(each)]
    unread = [each for each in bad.values() if is_unread(each)]
    common = common_causes(box, findings)
    asked = _asked_for(bad)
    apart = {*(each.key for each in (*slow, *unread)), *asked}
    others = {key: finding for key, finding in bad.items() if key not in apart}
    blamed = {key: (*finding.blames, *common.get(key, ())) for key, finding in others.items()}
    for followed in (
        collateral(box, bad, blamed), refused_clients(box, bad, blamed),
        in_its_moment(bad, blamed) if box.log.timed else {}, ended_jobs(bad, blamed),
    ):  # fmt: skip
        blamed = {key: (*components, *followed.get(key, ())) for key, components in blamed.items()}
    causes = explain(box, bad, blamed)
    for key, reasons in asked.items():
        next(keys for keys in causes.values() if reasons[0] in keys).append(key)
    for finding in unread:
        around = {key for blame in finding.blames for key in (blame.key, blame.whole.key, *containers(box, blame))}
        around |= {switch.key for blame in finding.blames for switch in switches_at(box, blame)}
        bdf = finding.subject.bdf or ""
        ends = {link.key for link in links_at(box, bdf)}
        having_bridge = {each.key for each in causes if _has_bridge(box, each, bdf, ends)}
        _attribute(finding.key, around - {HOST.key}, causes, by_device=True, having_bridge=having_bridge)
    paths = candidates(findings, slow)
    for finding in slow:
        _attribute(finding.key, {path.key for path in paths[finding.key]}, causes)
    explained = {key for keys in causes.values() for key in keys}
    open_paths = {key: paths[key] for key in paths if key not in explained}
    crossed = {key: {each.key for each in path} for key, path in open_paths.items()}
    left = set_cover(open_paths, crossed, frozenset())
    eliminated = {each: keys for each, keys in left.items()
                  if len(keys) > 1 or _is_one(open_paths[keys[0]], alone=len(left) == 1)}  # fmt: skip
    dead = frozenset(each.subject.bdf for each in bad.values() if each.judgement.fault in GPU_DEAD)
    judged = [_cause(box, each, [bad[key] for key in keys], None, dead) for each, keys in causes.items()]
    for component, keys in eliminated.items():
        only_one = len(keys) == 1 and len(bad[keys[0]].crossed) == 1
        confidence = None if only_one else by_elimination(component, keys, open_paths)
        judged.append(_cause(box, component, [bad[key] for key in keys], confidence, dead))
    judged.sort(key=lambda cause: _order(cause, [bad[key] for key in cause.explains]))
    _dead_first(judged, {cause.component: _order(cause, [bad[key] for key in cause.explains])[:3] for cause in judged})
    explained |= {key for keys in eliminated.values() for key in keys}
    return Diagnosis(causes=tuple(judged), unexplained=tuple(key for key in bad if key not in explained))


def _is_one(path: Sequence[Component], alone: bool) -> bool:
    """Did a transfer cross one component? Parts of one device are, unless other transfers were slow too: what they
    share may be at none of their ends."""
    return len(path) == 1 or (alone and len({each.whole.key for each in path}) == 1)


def _asked_for(bad: Mapping[str, Finding]) -> Mapping[str, Sequence[str]]:
    """By key of a finding that the driver asks for the reset of a GPU: the findings of what it asks that for, an error
    that it logged first. Without those of which there are none, and without the link and settings of the GPU."""
    of_gpus = gathered((each.subject.bdf, each) for each in bad.values() if each.subject.kind == "gpu" and each.blames
                       and not is_slow(each) and not is_unread(each) and each.blames[0].part not in _SET)  # fmt: skip
    found = {}
    for key, finding in bad.items():
        if finding.judgement.fault in _ACTIONS and finding.witness == "state":
            beside = [each for each in of_gpus.get(finding.subject.bdf, ()) if _is_reason(each)]
            if beside:
                found[key] = [each.key for each in sorted(beside, key=lambda each: each.witness != "log")]
    return found


def _is_reason(finding: Finding) -> bool:
    """Can what is found of a GPU be why the driver asks for its reset?"""
    logged = finding.witness == "log" and finding.status is Status.FAIL
    own = finding.blames[0].whole.bdf == finding.subject.bdf and finding.blames[0].kind == "gpu"
    return logged or (own and finding.judgement.fault not in _ACTIONS)


def _order(cause: Cause, explained: Sequence[Finding]) -> tuple[int, bool, int, bool, int]:
    """The worst first, then what is due first; a setting comes behind what is broken, whatever it explains, and one
    that is a matter of taste behind all else."""
    urgency = ORDER.index(urgency_of(explained))
    optional = {*cause.faults} == {Fault.PERSISTENCE_UNSET}
    return BAD.index(cause.severity), optional, urgency, cause.component.part in _SET, -len(cause.explains)


def _dead_first(causes: list[Cause], due: Mapping[Component, object]) -> None:
    """Of GPUs that are due alike the dead before those that a reset repairs, in the places that GPUs have."""
    of_gpus = [n for n, cause in enumerate(causes) if cause.component.kind == "gpu"]
    for _, places in gathered((due[causes[n].component], n) for n in of_gpus).items():
        ordered = sorted((causes[n] for n in places), key=lambda cause: GPU_DEAD.isdisjoint(cause.faults))
        for n, cause in zip(places, ordered, strict=True):
            causes[n] = cause


def is_unread(finding: Finding) -> bool:
    """Did what must answer not answer, or make no sense? It says of nothing that it is broken."""
    return finding.status is Status.UNKNOWN and finding.judgement.fault is None


def explain(box: Box, bad: Mapping[str, Finding], blamed: Mapping[str, Sequence[Component]]) -> Causes:
    """The set cover under the rules of containment.

    A component explains a finding that can come from it. A part that is broken explains that its device is dead,
    missing, to be reset or failed a test (``a broken part joins its device``), and a device that is dead explains what
    is found of its parts and of NVLinks that end at it; so does what explains that it is dead. One of several such
    parts explains what does not say which of them it is of.
    """
    dead: dict[Key, set[Key]] = {}
    for key, components in blamed.items():
        if components and _is_dead(bad[key]):
            dead.setdefault(components[0].key, set()).update(component.key for component in components)
    own: dict[str, set[Key]] = {key: {component.key for component in components} for key, components in blamed.items()}
    inside: dict[str, set[Key]] = {
        key: {container for each in _inner(components) for container in containers(box, each)} if dead else set()
        for key, components in blamed.items()
    }
    every = {*chain(*blamed.values())}
    chips = gathered((card_of(component.bdf), component.key) for component in every
                     if component.kind == "hca" and component.bdf and component.key in dead)  # fmt: skip
    for key in inside:
        if bad[key].subject.kind == "port":  # one chip serves the ports of all its functions
            inside[key] |= {*chips.get(card_of(bad[key].subject.bdf), ())}

    parts = gathered((each.whole.key, each.key) for each in every if each.part not in _SET)
    named = [each for each in every if (each.kind != "host" or each.position) and each.part not in _SET]

    def explainers(key: str) -> set[Key]:
        joined = _is_dead(bad[key]) or bad[key].judgement.fault in _WHOLE
        joining = {part for whole in own[key] for part in parts.get(whole, ())} if joined else set()
        words, fault = next(iter(blamed[key]), DRIVER), bad[key].judgement.fault
        if fault is not None and fault in _VAGUE and words.kind == "host":
            joining |= {one.key for one in named if _can_mean(fault, words, one, dead)}
        elif words.bdf == nameless(0):
            kinds = ("gpu", "nvlink", "nvswitch") if words.part == "NVLink" else ("gpu",)
            joining |= {one.key for one in named if one.kind in kinds and one.part in ("", words.part)}
        return own[key].union(joining, *(dead[whole] for whole in inside[key] & dead.keys()))

    imprecise = frozenset(key for key in blamed if bad[key].witness == "log")
    return set_cover(blamed, {key: explainers(key) for key in blamed}, imprecise)


_ACTIONS = frozenset({
    Fault.RESET_REQUIRED, Fault.REBOOT_REQUIRED, Fault.RECOVERY_REQUIRED, Fault.DRAIN_REQUIRED, Fault.DRAIN_AND_RESET,
})  # fmt: skip
"""What the driver asks for, of a GPU."""
_WHOLE = DEVICE_ABSENT | _ACTIONS | {Fault.DRIFT, Fault.TEST_FAILED}
"""About a device as a whole, and silent about what of it."""
_ON_PCIE: tuple[Kind, ...] = ("link", "switch", "function")
_VAGUE: Mapping[FaultKind, tuple[Kind, ...]] = {
    Fault.DIMM_ERRORS: (), Fault.MACHINE_CHECK: (), Fault.CPU_OFFLINE: (), Fault.DISK: ("disk",),
    Fault.AER_UNCORRECTABLE: _ON_PCIE,
    Fault.TEST_FAILED: ("gpu", "hca", "port", "link", "switch", "board", "nvlink", "nvswitch", "disk"),
}  # fmt: skip
"""Of the host, as a BMC or another tool says it, and CPUs that are offline: the kinds of devices that it can be of,
which it does not name."""


def _can_mean(fault: FaultKind, words: Component, one: Component, dead: Collection[Key]) -> bool:
    """Is it a device that such words can mean, or what they say of a part of the host, with its place?"""
    of_pcie = fault is Fault.AER_UNCORRECTABLE and one.key in dead
    return one.kind in _VAGUE[fault] or of_pcie or replace(one, position="").key == words.key


_SET = (
    "MIG mode", "ECC mode", "clock setting", "compute mode", "persistence mode", "power limit", "firmware", "model",
    "versions and settings", "MaxPayload",
)  # fmt: skip
"""Parts that are set or written: they neither stop their device nor ask for its reset."""


def _inner(components: Sequence[Component]) -> list[Component]:
    """The likeliest, and NVLinks: one that ends at a dead device is down."""
    return [each for number, each in enumerate(components) if not number or each.kind == "nvlink"]


def _is_dead(finding: Finding) -> bool:
    return finding.judgement.fault in SILENT


def _attribute(
    key: str, components: Collection[Key], causes: Causes, by_device: bool = False,
    having_bridge: Collection[Key] = (),
) -> None:  # fmt: skip
    """Add a finding to a component that is to blame anyway and lies on its path, or is its device or a part of it, or
    is a link or board, no part of one, that its bridge belongs to (``having_bridge``)."""
    for component, keys in causes.items():
        on_path = component.key in components or (by_device and component.whole.key in components)
        if on_path or component.key in having_bridge:
            keys.append(key)
            return


def _has_bridge(box: Box, component: Component, bdf: str, ends: Collection[Key]) -> bool:
    """Is the bridge a part of this board, at or below the nearest bridge that leads to all its GPUs, or an end of this
    link or below it? Their cooling and settings have no bridges. ``ends``: the links that it is an end of."""
    function = box.topology.functions.get(bdf)
    if component.part or function is None or not box.topology.below(bdf):
        return False
    if component.kind == "link":
        return component.bdf in rows(function.path) or component.key in ends
    gpus = [rows(each.path) for each in box.topology.gpus if each.name in component.shared_by]
    common = [level[0] for level in zip(*gpus, strict=False) if len({*level}) == 1]
    return component.kind == "board" and bool(common[1:]) and common[-1] in rows(function.path)


def _cause(
    box: Box, component: Component, findings: Sequence[Finding], confidence: Confidence | None,
    dead: Collection[str | None],
) -> Cause:  # fmt: skip
    def rank(finding: Finding) -> tuple[bool, int, bool]:
        own = _is_dead(finding) and finding.subject.bdf in {component.bdf} - {None}
        return finding.judgement.fault in OF_JOBS, BAD.index(finding.status), not own

    ordered = sorted(findings, key=rank)
    faults = tuple(dict.fromkeys(each.judgement.fault for each in ordered if each.judgement.fault is not None))
    steps, recurrence = actions(box, component, ordered, dead)
    return Cause(
        component=_of_the_rack(box, with_places(component, ordered)),
        explains=tuple(finding.key for finding in ordered),
        faults=faults,
        severity=min((finding.status for finding in findings), key=BAD.index),
        confidence=confidence or rest_responds(box, component, findings) or by_agreement(component, findings),
        actions=steps,
        recurrence=recurrence,
        preserve=preserve_evidence(box, component, faults),
        frus=frus(box, component) if any(action.step in _TO_THE_PART for action in steps) else (),
    )


_TO_THE_PART = ("reseat", "replace", "contact-vendor")


def is_slow(finding: Finding) -> bool:
    """Does the finding say that something is slow and not what?"""
    return finding.judgement.fault is Fault.SLOW and bool(finding.crossed)


def exonerated(findings: Sequence[Finding], slow: Finding) -> set[Key]:
    """What good figures crossed that can be compared with a slow one: large copies with large copies alone.

    A setting is not exonerated: it need not slow down every pair.
    """
    good = (finding for finding in findings if finding.status is Status.PASS and not finding.subject.part)
    return {
        component.key
        for finding in good
        if finding.traffic == slow.traffic or (finding.traffic == "memory" and slow.traffic == "copies")
        for component in finding.crossed
        if component.part not in SETTINGS
    }


def candidates(findings: Sequence[Finding], slow: Collection[Finding]) -> Mapping[str, Sequence[Component]]:
    """By key of each slow finding: the components on its path that no good figure exonerates."""
    good = {finding.traffic: exonerated(findings, finding) for finding in slow}
    return {each.key: [one for one in each.crossed if one.key not in good[each.traffic]] for each in slow}


def _of_the_rack(box: Box, component: Component) -> Component:
    """A compute tray has no NVSwitches: they are in trays of their own."""
    elsewhere = component.key == NVSWITCHES.key and has_fabric_elsewhere(box)
    return replace(component, slot="rack") if elsewhere else component
