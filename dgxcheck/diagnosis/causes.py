"""The smallest set of components that explains the findings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from dgxcheck.checks.engine.check import Box
from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.diagnosis.actions import Action, actions
from dgxcheck.diagnosis.candidates import suspects
from dgxcheck.diagnosis.common_cause import BAD, wider
from dgxcheck.diagnosis.component import Component, Key
from dgxcheck.diagnosis.escalation import LOST
from dgxcheck.diagnosis.p2p_settings import SETTINGS
from dgxcheck.diagnosis.preserve import save_first
from dgxcheck.diagnosis.set_cover import Suspected, cover
from dgxcheck.diagnosis.slow_paths import cleared, crossed, is_slow
from dgxcheck.facts.record import Record


class Cause(Record):
    """One component to blame."""

    component: Component
    explains: tuple[str, ...]
    """Keys of the findings."""
    severity: Status
    confidence: str
    """In words, with the reason."""
    lead: str
    """What the worst of the findings says."""
    actions: tuple[Action, ...]
    """From the least disruptive up."""
    again: str
    """What was done already and did not help, where an Xid was there before; else empty."""
    save_first: tuple[str, ...]
    """Commands that keep what the actions destroy."""


class Diagnosis(Record):
    """Every finding that is bad is in one of the two."""

    causes: tuple[Cause, ...]
    unexplained: tuple[str, ...]


def diagnosis(box: Box, findings: Sequence[Finding]) -> Diagnosis:
    """Causes by severity, then by how much they explain; what the site has acknowledged has none.

    Slow figures come last: what is broken anyway explains them where their data crossed it. Else they are explained by
    the one thing that is left when all is taken away that others crossed as fast as they should, or by what several
    slow ones crossed; and not at all where neither is to be found. Settings are not cleared by good figures: they need
    not slow down every pair. What nobody could read blames nothing: it is explained by what is broken anyway, or not.
    """
    bad = {finding.key: finding for finding in findings if finding.status in BAD and not finding.acknowledged}
    slow = {key: crossed(box, finding) for key, finding in bad.items() if is_slow(finding)}
    own = {key: suspects(box, finding) for key, finding in bad.items() if key not in slow}
    common = wider(box, findings, {key: those[0].part for key, those in own.items()})
    unread = {key: own.pop(key) for key, finding in bad.items() if key in own and is_unread(finding)}
    found = cover({key: (*those, *common.get(key, ())) for key, those in own.items()})
    for key, those in unread.items():
        _joins(key, {each.key for each in those}, found)
    good = {check: cleared(box, findings, check) for check in {bad[key].id for key in slow}}
    for key, those in [*slow.items()]:
        way = {each.key for each in those if each.part in SETTINGS or each.key not in good[bad[key].id]}
        if _joins(key, way, found):
            del slow[key]
    left = {key: [each for each in those if each.key not in good[bad[key].id]] for key, those in slow.items()}
    by_figures = {each: keys for each, keys in cover(left).items() if len(keys) > 1 or len(left[keys[0]]) == 1}
    gone = {each.subject.bdf for each in bad.values() if each.id in LOST and each.subject.bdf is not None}
    told = [_cause(box, each, [bad[key] for key in keys], "", gone) for each, keys in found.items()]
    for each, keys in by_figures.items():
        nothing_else = len(keys) == 1 and len(slow[keys[0]]) == 1
        confidence = "" if nothing_else else _eliminated(each, keys, left)
        told.append(_cause(box, each, [bad[key] for key in keys], confidence, gone))
    told.sort(key=lambda cause: (BAD.index(cause.severity), -len(cause.explains)))
    explained = {key for cause in told for key in cause.explains}
    return Diagnosis(causes=tuple(told), unexplained=tuple(key for key in bad if key not in explained))


def _joins(key: str, way: Collection[Key], found: Mapping[Component, list[str]]) -> bool:
    """Is something on the finding's way to blame anyway? Then that explains it too."""
    broken = next((each for each in found if each.key in way), None)
    if broken is not None:
        found[broken].append(key)
    return broken is not None


def is_unread(finding: Finding) -> bool:
    """Did what must answer not, or make no sense? A driver that does not answer is at fault itself."""
    return finding.status is Status.UNKNOWN and not finding.id.startswith("driver.")


def _cause(
    box: Box, component: Component, explained: Sequence[Finding], confidence: str, gone: Collection[str]
) -> Cause:
    worst = min(explained, key=lambda finding: BAD.index(finding.status))
    steps, again = actions(box, component, explained, gone)
    return Cause(
        component=component, explains=tuple(finding.key for finding in explained), severity=worst.status,
        confidence=confidence or _agreed(component, explained), lead=worst.judgement.message,
        actions=steps, again=again, save_first=save_first(box, component),
    )  # fmt: skip


def _agreed(component: Component, explained: Sequence[Finding]) -> str:
    """By what was found at the component or below it."""
    if len(explained) > 1:
        names = {each.subject.name for each in explained}
        well = [name for name in component.shared_by if name not in names] if component.kind == "switch" else []
        if well:
            return f"fair: {len(explained)} findings point to it, but none is about {', '.join(well)}, behind it too"
        return f"high: {len(explained)} findings point to it"
    if component.kind in ("link", "nvlink", "port", "socket interconnect"):
        return "fair: one finding, and either end of the link or what is between can be at fault"
    return "fair: one finding, at the component itself"


def _eliminated(component: Component, keys: Sequence[str], left: Suspected) -> str:
    """By what slow figures have in common; with what else they have in common."""
    if len(keys) == 1:
        return "fair: by elimination, for what else these data cross is as fast as it should be in other figures"
    others = [each for each in left[keys[0]] if all(each in left[key] for key in keys) and each != component]
    if others:
        return f"low: {len(keys)} slow figures have it in common, and {', '.join(map(str, others))} as well"
    return f"fair: {len(keys)} slow figures have it in common, and no good one"
