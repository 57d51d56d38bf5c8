"""The box onto which ``dgxcheck import`` puts facts: what ``--onto`` names."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.assessment.bundle import Opened, as_source
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record
from dgxcheck.readers.onto import nvml_gpus
from dgxcheck.source.protocol import Source
from dgxcheck.source.recording.anonymize import anonymized
from dgxcheck.source.recording.keys import GroupedFacts, flatten
from dgxcheck.source.recording.recorder import RecordingSource
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.source.recording.shipped import shipped
from dgxcheck.survey import ALL, survey

REPORT = "report"
Moments = list[tuple[float, GroupedFacts]]


class Base(Record):
    """All facts of a source, and the members beside them."""

    spec: str
    """As ``--onto`` names it."""
    name: str
    kind: str
    """That of its provenance, or that of its source: ``directory``, ``report``."""
    lines: GroupedFacts
    later: Moments
    head: dict[str, Json]
    gpus: tuple[str, ...]
    """bdfs by NVML's index."""

    def with_identities_hidden(self, key: bytes, hosts: Sequence[str]) -> tuple[GroupedFacts, Moments]:
        """Copies of lines and moments; pseudonyms and made-up identities stay as they are."""
        if self.head.get("identities") in ("pseudonyms", "made up"):
            return {line: dict(group) for line, group in self.lines.items()}, self.later
        return anonymized(self.lines, self.later, key, hosts)

    def provenance(self) -> dict[str, Json]:
        """What the provenance of the import says of this box."""
        if self.kind == REPORT:
            return {}
        said = self.head.get("provenance")
        groups = said.get("groups") if isinstance(said, dict) else None
        found: dict[str, Json] = {"onto": {"name": self.name, "kind": self.kind}}
        return found | ({"groups": groups} if groups is not None else {})


def base_of_bundle(spec: str, found: Opened) -> Base | None:
    """The machine of a bundle that was read; None where nothing was read of it."""
    return base_of(spec, as_source(spec, found)) if found.outputs else None


def base_of(spec: str, source: Source) -> Base:
    """The machine of a source that ``--from`` names so."""
    if isinstance(source, RecordedSource) and source.origin.kind == "recording":
        lines, later, head, kind = source.lines, list(source.moments), source.head, source.origin.provenance
    else:
        recorder = RecordingSource(source)
        survey(recorder, ALL)
        lines, later, head, kind = recorder.lines(), [], {}, source.origin.kind
    name = spec if spec in dict(shipped()) else source.origin.kind  # a file's name may tell whose machine it is
    return Base(spec=spec, name=name, kind=kind, lines=lines, later=later, head=head,
                gpus=nvml_gpus(flatten(lines)))  # fmt: skip
