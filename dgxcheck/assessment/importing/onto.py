"""The box onto which ``dgxcheck import`` puts facts, and what those contradict of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.assessment.importing.bundle import Opened, as_source
from dgxcheck.difference.facts import RESERVE, pairs
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import DISPLAY
from dgxcheck.facts.infiniband import IbDevice
from dgxcheck.facts.missing import Json, rows
from dgxcheck.facts.nature import COMPARED, Fact, row
from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.record import Record
from dgxcheck.facts.values import Rows, Value, is_inside, is_of, label, leaves, text
from dgxcheck.readers.model import HOST, Reports
from dgxcheck.readers.onto import nvml_gpus
from dgxcheck.source.protocol import Origin, Source
from dgxcheck.source.recording.anonymize import anonymized
from dgxcheck.source.recording.keys import GroupedFacts, flatten, insert
from dgxcheck.source.recording.recorder import RecordingSource
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.source.recording.shipped import shipped
from dgxcheck.survey import ALL, Snapshot, survey

REPORT = "report"
Moments = list[tuple[float, GroupedFacts]]


class BaseBox(Record):
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


def base_of_bundle(spec: str, found: Opened) -> BaseBox | None:
    """The machine of a bundle that was read; None where nothing was read of it."""
    return base_of(spec, as_source(spec, found)) if found.outputs else None


def base_of(spec: str, source: Source) -> BaseBox:
    """The machine of a source that ``--from`` names so."""
    if isinstance(source, RecordedSource) and source.origin.kind == "recording":
        lines, later, head, kind = source.lines, list(source.moments), source.head, source.origin.provenance
    else:
        recorder = RecordingSource(source)
        survey(recorder, ALL)
        lines, later, head, kind = recorder.lines(), [], {}, source.origin.kind
    name = spec if spec in dict(shipped()) else source.origin.kind  # a file's name may tell whose machine it is
    return BaseBox(spec=spec, name=name, kind=kind, lines=lines, later=later, head=head,
                gpus=nvml_gpus(flatten(lines)))  # fmt: skip


_MOVING = frozenset((PciFunction.link_gen,))
"""States that change by themselves from one minute to the next."""
_MAKER = "nvidia"
"""Begins the names of newer drivers alone."""
_ROUNDED = ("bytes", "kB", "MiB")
"""Units of what tools round."""


def contradictions(imported: Mapping[str, Json], own: Mapping[str, Json]) -> dict[str, Json]:
    """A result for every fact that lasts, by its row, and whose values differ, about the device that it is of.

    Where they are the same in other words, or one of them stands for none, they contradict nothing.
    """
    answers = {key: fact for key, fact in imported.items() if key.startswith(_ANSWERS) and not is_gap(fact)}
    if answers.keys().isdisjoint(own):
        return {}
    before, after = (_surveyed(facts) for facts in (own, {**own, **answers}))
    reports = Reports("import")
    for keys, was, now in pairs(before, after, {}):
        old = {name: value for name, _, value in leaves(was, _lasts)}
        for name, of, value in leaves(now, _lasts):
            if name in old and not is_of(of, _MOVING) and not _agree(of, old[name], value):
                words = " ".join((label(of), *(f"of link {keys[key]}" for key in keys if key == "link")))
                texts = (text(of, each) for each in (old[name], value))
                told = "{} is {} on the box, {} in the imported output".format(words, *texts)
                topic = label(of).lower().replace(" ", "-")
                reports.add(_subject(after, now, keys), topic, "warn", Fault.CONTRADICTION, told)
    return reports.facts()


_ANSWERS = ("text ", "nvml ")


def is_gap(fact: Json) -> bool:
    return fact is None or (isinstance(fact, dict) and "missing" in fact)


def _surveyed(facts: Mapping[str, Json]) -> Snapshot:
    lines: GroupedFacts = {}
    for key, fact in facts.items():
        insert(lines, key, fact)
    return survey(RecordedSource(lines, Origin("recording")), ALL)


def _lasts(row: Fact) -> bool:
    return is_inside(row) or row.nature in COMPARED or "kept" in row.more


def _agree(of: Rows, was: Value, now: Value) -> bool:
    """The same value, or the same as far as the tool shows it; of lists texts show a part."""
    if of[-1] is row(PciFunction.class_code) and isinstance(was, int) and isinstance(now, int):
        return was >> 8 == now >> 8  # lspci without -vv does not show the programming interface
    if isinstance(was, str) and isinstance(now, str):
        old, new = ("".join(value.casefold().removeprefix(_MAKER).split()) for value in (was, now))
        return old == new or not old or not new
    if not isinstance(was, int | float) or not isinstance(now, int | float):
        return True
    if of[-1].unit in _ROUNDED:
        return abs(now - was) <= RESERVE * max(was, now)
    return was == now or min(was, now) < 0 or (of[-1].name.endswith("link_width") and not was * now)


def _subject(facts: Snapshot, record: Record, keys: Mapping[str, str]) -> str:
    """The device that a record is of; a bus id with colons is a GPU's in results of tools."""
    if (bdf := keys.get("bdf")) is None:
        return keys.get("device") or (keys["name"] if isinstance(record, IbDevice) else HOST)
    kinds = {row.bdf: row.class_code for row in rows(facts.pci)}
    code = kinds.get(bdf)
    is_gpu = bdf not in kinds or (isinstance(code, int) and code >> 16 == DISPLAY)
    return bdf if is_gpu else bdf.replace(":", ".")
