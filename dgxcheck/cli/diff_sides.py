"""The two sides of a comparison: machines and recordings with their facts and findings, or health reports."""

from __future__ import annotations

import os
from math import inf

from dgxcheck.checks.engine.box import NO_GROWTH, Box
from dgxcheck.checks.engine.finding import Finding
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.cli.growth import within
from dgxcheck.cli.live import Live
from dgxcheck.difference.findings import Report, Said
from dgxcheck.difference.health_document import is_report, report_of
from dgxcheck.difference.model import Side
from dgxcheck.facts.record import Record, replace
from dgxcheck.profiles import library
from dgxcheck.score.box import of_box
from dgxcheck.source.protocol import Origin, Source
from dgxcheck.source.recording.anonymize import mark, pseudonym, site_key
from dgxcheck.source.recording.load import members
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.source.recording.shipped import open_source, shipped
from dgxcheck.survey import ALL, survey
from dgxcheck.topology.build import build

LIVE = "live"
KEPT = "kept"


class Looked(Record):
    """One side."""

    origin: Origin
    side: Side | None
    """None for a health report, which holds no facts."""
    report: Report

    def seen_from(self, other: Looked) -> Side:
        """The facts, with identities as the other side calls them where this site's key makes that possible."""
        assert self.side is not None
        return self.side if other.side is None else called_as(self.side, other.side.namespace)


def called_as(side: Side, namespace: str) -> Side:
    """A side whose identities are kept, to be compared with one whose were replaced under this site's key."""
    if side.namespace != KEPT or namespace == KEPT:
        return side
    key = site_key()
    if namespace != mark(key):
        return side
    return replace(side, namespace=namespace, pseudonym=lambda identity: pseudonym(identity, key))


def looked(spec: str, live: Live, deadline: float, profile: str) -> Looked:
    """What OLD or NEW names, asked all that there is; BadInput where it names nothing."""
    if spec != LIVE and (report := _health_report(spec)) is not None:
        return Looked(origin=Origin("health report", spec), side=None, report=report)
    source = live.source(None, "EVERYTHING", deadline) if spec == LIVE else open_source(spec)
    side = side_of(source)
    return Looked(origin=source.origin, side=side, report=_judged(source, side, profile))


def side_of(source: Source) -> Side:
    """All facts of a source."""
    facts = survey(source, ALL)
    topology = build(facts.pci, facts.infiniband, facts.gpu, facts.nvlink, facts.gpu_pairs, facts.numa, facts.stated)
    return Side(snapshot=facts, topology=topology, namespace=namespace(source))


def namespace(source: Source) -> str:
    """What the source's identities are comparable with."""
    if not isinstance(source, RecordedSource):
        return KEPT
    said, key = source.head.get("identities"), source.head.get("identity_key")
    if said == "pseudonyms":
        return key if isinstance(key, str) else ""
    return said if isinstance(said, str) else ""


def _health_report(spec: str) -> Report | None:
    if not os.path.isfile(spec) or spec in dict(shipped()):
        return None
    document = members(spec)
    return report_of(document, spec) if is_report(document, spec) else None


def _judged(source: Source, side: Side, profile: str) -> Report:
    """What health says of it, by a reference machine; of a live one without growth of counters."""
    choice = library.chosen(profile, side.snapshot, side.topology)
    box = Box(
        snapshot=side.snapshot,
        topology=side.topology,
        gpus=side.topology.gpus,
        choice=choice,
        boards={} if profile == "none" else library.boards_for(choice),
        growth=NO_GROWTH if source.origin.kind == "live" else within(source, inf),
    )
    score = of_box(box)
    return Report(
        findings={finding.key: _said(finding) for finding in run(box, CHECKS)},
        score=None if score is None else score.total,
        against=choice.profile.name if choice else "",
    )


def _said(finding: Finding) -> Said:
    subject = finding.subject
    name = f"{subject.name} - {subject.peer.name}" if subject.peer else subject.name
    return Said(status=finding.status.value, device=name, bdf=subject.bdf, message=finding.judgement.message)
