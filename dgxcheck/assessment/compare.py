"""What changed between two machines, recordings or health reports: facts, findings, score."""

from __future__ import annotations

import os
from math import inf
from typing import TYPE_CHECKING

from dgxcheck.assessment.health import with_growth, within
from dgxcheck.assessment.machine import DEADLINE_S, LIVE, begins_like_text, opened, topology_of
from dgxcheck.checks.engine.box import NO_GROWTH, Box, Growth
from dgxcheck.checks.engine.finding import Finding, Judgement
from dgxcheck.checks.engine.growth import duration
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.diagnosis.causes import diagnose
from dgxcheck.difference import findings
from dgxcheck.difference.compare import compare as compare_facts
from dgxcheck.difference.compare import verdict, worst_first
from dgxcheck.difference.findings import FindingSummary, HealthSummary
from dgxcheck.difference.health_document import is_report, report_of
from dgxcheck.difference.model import Compared, Difference, Side, same_boot
from dgxcheck.facts.missing import BadInput, need, or_none, text_of
from dgxcheck.facts.record import Record, replace
from dgxcheck.profiles import library
from dgxcheck.score.box import score_of
from dgxcheck.source.protocol import Origin, Source
from dgxcheck.source.recording.anonymize import pseudonym
from dgxcheck.source.recording.load import members, shipped
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.source.recording.site_key import mark, site_key
from dgxcheck.source.state_file import is_date
from dgxcheck.survey import ALL, COUNTERS, Snapshot, survey
from dgxcheck.topology.build import NOTHING_STATED

if TYPE_CHECKING:
    from dgxcheck.assessment.machine import Given

KEPT = "kept"
FINDINGS_ALONE = "only findings are compared: a health report contains no facts"


class Look(Record):
    """One side."""

    origin: Origin
    side: Side | None
    """None for a health report, which holds no facts."""
    report: HealthSummary
    """Its findings and its score."""


class Comparison(Record):
    """The differences of two sides, the worst first."""

    old: Look
    new: Look
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    """What could not be compared, and why."""
    verdict: str
    """``worse``, ``better`` or ``same``."""


def compare(
    old: Given, new: Given, profile: str = "auto", *, deadline: float = DEADLINE_S, root: str = "/"
) -> Comparison:
    """What changed from ``old`` to ``new``.

    Each is a machine as ``--from`` takes it, or a file that ``health --format json`` printed. Both are judged by the
    reference machine ``profile``. ``deadline`` (seconds) and ``root`` are for the live machine. Raises ``BadInput``
    where a name stands for nothing.
    """
    before = _look(old, profile, deadline, root)
    after = _look(new, profile, deadline, root, before.side)
    if profile != "auto" and before.side is None and after.side is None:
        raise BadInput("--profile does not apply to two health reports; each keeps its reference machine")
    facts = Compared(differences=(), notes=(FINDINGS_ALONE,))
    if before.side is not None and after.side is not None:
        facts = compare_facts(*_called_alike(before.side, after.side))
    times = [look.origin.recorded_at for look in (before, after) if look.origin.provenance == "recorded"]
    exchanged = len(times) > 1 and all(map(is_date, times)) and times[1] < times[0]
    notes = [f"OLD was recorded after NEW ({times[0]}, {times[1]}); they may be exchanged"] if exchanged else []
    differences = worst_first((*facts.differences, *findings.differences(before.report, after.report)))
    return Comparison(
        old=before, new=after, differences=differences,
        notes=(*notes, *facts.notes, *findings.checks_no_longer_run(before.report, after.report)),
        verdict=verdict(differences),
    )  # fmt: skip


def called_as(side: Side, namespace: str) -> Side:
    """A side whose identities are kept, to be compared with one whose were replaced under this site's key."""
    if side.namespace != KEPT or namespace == KEPT:
        return side
    key = site_key()
    if namespace != mark(key):
        return side
    return replace(side, namespace=namespace, pseudonym=lambda identity: pseudonym(identity, key))


def _called_alike(old: Side, new: Side) -> tuple[Side, Side]:
    return called_as(old, new.namespace), called_as(new, old.namespace)


def _look(given: Given, profile: str, deadline: float, root: str, earlier: Side | None = None) -> Look:
    """One side, asked all that there is; its counters since an ``earlier`` one, where it is of the same boot."""
    if isinstance(given, str | os.PathLike):
        name = os.fspath(given)
        if name != LIVE and (report := _health_report(name)) is not None:
            return Look(origin=Origin("health report", name), side=None, report=report)
    with opened(given, "EVERYTHING", deadline, root) as source:
        side = side_of(source)
        growth: Growth | Judgement | None = None if earlier is None else _since(*_called_alike(earlier, side))
        if growth is None:
            growth = NO_GROWTH if source.origin.kind == "live" else within(source, side.snapshot, inf)
        return Look(origin=source.origin, side=side, report=_summary_of(side, profile, growth))


@or_none
def _since(old: Side, new: Side) -> Growth | None:
    """The counters of both sides, if they are of one boot and driver; None where that or the time between is not known.
    """
    hosts = [side.snapshot.known_host for side in (old, new)]
    begun, ended = (need(host.uptime_s) for host in hosts)
    same = all(need(host.boot_id) for host in hosts) and same_boot(old, new)
    if not same or ended <= begun or old.snapshot.driver_version != new.snapshot.driver_version:
        return None
    was, now = (Snapshot(**{name: getattr(side.snapshot, name) for name in COUNTERS}) for side in (old, new))
    return Growth(old=was, new=now, seconds=ended - begun, how=f"in {duration(ended - begun)}", logged=True)


def side_of(source: Source) -> Side:
    """All facts of a source."""
    facts = survey(source, ALL)
    return Side(snapshot=facts, topology=topology_of(facts), namespace=namespace(source))


def namespace(source: Source) -> str:
    """What the source's identities are comparable with."""
    if not isinstance(source, RecordedSource):
        return KEPT
    identities, key = source.head.get("identities"), source.head.get("identity_key")
    return text_of(key if identities == "pseudonyms" else identities)


def _health_report(spec: str) -> HealthSummary | None:
    if not os.path.isfile(spec) or spec in dict(shipped()) or begins_like_text(spec):
        return None
    document = members(spec)
    return report_of(document, spec) if is_report(document, spec) else None


def _summary_of(side: Side, profile: str, growth: Growth | Judgement) -> HealthSummary:
    """What health says of it, by a reference machine."""
    topology = topology_of(replace(side.snapshot, stated=NOTHING_STATED))
    choice = library.select(profile, side.snapshot, topology)
    box = Box(
        snapshot=side.snapshot, topology=topology, gpus=topology.gpus, choice=choice,
        boards={} if profile == "none" else library.boards_for(choice),
    )  # fmt: skip
    found = run(box := with_growth(box, growth), CHECKS)
    score = score_of(box, diagnose(box, found).causes, found)
    return HealthSummary(findings={finding.key: _finding_summary(finding) for finding in found},
                         score=None if score is None else score.total,
                         against=choice.profile.name if choice else "")


def _finding_summary(finding: Finding) -> FindingSummary:
    subject = finding.subject
    name = f"{subject.name} - {subject.peer.name}" if subject.peer else subject.name
    return FindingSummary(status=finding.status.value, device=name, bdf=subject.bdf, message=finding.judgement.message)
