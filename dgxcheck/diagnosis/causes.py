"""The smallest set of components that explains the findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.checks.check import Box
from dgxcheck.checks.finding import Finding, Status
from dgxcheck.diagnosis.actions import Action, actions
from dgxcheck.diagnosis.component import Component
from dgxcheck.diagnosis.suspects import suspects
from dgxcheck.frozen import Record

BAD = (Status.FAIL, Status.UNKNOWN, Status.WARN)
MEASURED = "measure."
OF_ITSELF = ("measure.memory-integrity", "measure.p2p-integrity", "measure.compute", "measure.burn-in")
"""Measured findings that say what is broken; the others say only that something is slow."""


GONE = ("gpu.count", "gpu.lost", "baseline.drift")
"""About a device as a whole: what is wrong with a part of it explains them."""
LOGGED = "kernel."
"""The log says that something was wrong at a device, and less of where."""


class Cause(Record):
    """One component to blame."""

    component: Component
    explains: tuple[str, ...]
    """Keys of the findings."""
    severity: Status
    confidence: str
    """In words, with the reason."""
    actions: tuple[Action, ...]
    """From the least disruptive up."""
    again: str = ""
    """What was done already and did not help, if the same was seen before."""


class Diagnosis(Record):
    """Every finding that is bad is in one of the two."""

    causes: tuple[Cause, ...]
    unexplained: tuple[str, ...]


def diagnosis(box: Box, findings: Sequence[Finding]) -> Diagnosis:
    """Causes by severity, then by how much they explain; what the site has acknowledged has none."""
    bad = [finding for finding in findings if finding.status in BAD and not finding.acknowledged]
    own = {finding.key: suspects(box, finding) for finding in bad}
    seen = {component.key for finding in bad if not _slow(finding) for component in own[finding.key]}
    open_to = {finding.key: _allowed(finding, own[finding.key], seen) for finding in bad}
    found = []
    left = {key for key, components in open_to.items() if components}
    while left:
        component = _best(open_to, left)
        explained = [
            finding
            for finding in bad
            if finding.key in left and _explains(component, open_to[finding.key], finding.id in GONE)
        ]
        left -= {finding.key for finding in explained}
        found.append(_cause(box, component, explained))
    found.sort(key=lambda cause: (BAD.index(cause.severity), -len(cause.explains)))
    explained_keys = {key for cause in found for key in cause.explains}
    return Diagnosis(causes=tuple(found), unexplained=tuple(key for key in own if key not in explained_keys))


def _slow(finding: Finding) -> bool:
    return finding.id.startswith(MEASURED) and finding.id not in OF_ITSELF


def _allowed(finding: Finding, components: Sequence[Component], seen: set[tuple[str, str, str]]) -> list[Component]:
    """A slow figure is explained by structure that something else has found, and by nothing of its own."""
    return [each for each in components if each.key in seen] if _slow(finding) else [*components]


def _explains(component: Component, components: Sequence[Component], whole: bool) -> bool:
    """The component is among the suspects, or, where the ``whole`` device is gone, the one of which it is a part."""
    return any(each.key == component.key or (whole and each.key == (*component.key[:2], "")) for each in components)


def _best(open_to: Mapping[str, Sequence[Component]], left: set[str]) -> Component:
    """That which explains the most; of equal ones the likeliest for its findings, then one that names a part."""
    candidates: dict[tuple[str, str, str], Component] = {}
    for key in open_to:
        for component in open_to[key] if key in left else ():
            candidates.setdefault(component.key, component)

    def rank(component: Component) -> tuple[int, int, int]:
        mine = [key for key in left if _explains(component, open_to[key], key.startswith(GONE))]
        places = [_place(component, open_to[key]) for key in mine if not key.startswith(LOGGED)]
        return -len(mine), sum(places), 0 if component.part else 1

    return min(candidates.values(), key=rank)


def _place(component: Component, components: Sequence[Component]) -> int:
    return next(place for place, each in enumerate(components) if _explains(component, [each], True))


def _cause(box: Box, component: Component, explained: Sequence[Finding]) -> Cause:
    worst = min((finding.status for finding in explained), key=BAD.index)
    steps, again = actions(box, component, explained)
    return Cause(
        component=component, explains=tuple(finding.key for finding in explained), severity=worst,
        confidence=_confidence(component, explained), actions=steps, again=again,
    )  # fmt: skip


def _confidence(component: Component, explained: Sequence[Finding]) -> str:
    if len(explained) > 1:
        return f"high: {len(explained)} findings point to it"
    if component.kind in ("link", "nvlink", "port", "socket interconnect"):
        return "fair: one finding, and either end of the link or what is between can be at fault"
    return "fair: one finding, at the component itself"
