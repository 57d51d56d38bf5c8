"""The box onto which ``dgxcheck import`` puts facts, and what those contradict of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from dgxcheck.checks.engine.finding import BAD, Finding
from dgxcheck.difference.facts import RESERVE, pairs
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import DISPLAY
from dgxcheck.facts.infiniband import IbDevice
from dgxcheck.facts.missing import Json, members_of, rows
from dgxcheck.facts.nature import COMPARED, Fact, row
from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.record import Record
from dgxcheck.facts.values import Rows, Value, is_inside, is_of, label, leaves, text
from dgxcheck.readers.model import HOST, Reports
from dgxcheck.readers.onto import nvml_gpus
from dgxcheck.source.protocol import Origin, Source
from dgxcheck.source.recording.anonymize import anonymized
from dgxcheck.source.recording.keys import GroupedFacts, flatten, grouped
from dgxcheck.source.recording.load import shipped
from dgxcheck.source.recording.recorder import RecordingSource
from dgxcheck.source.recording.replay import RecordedSource
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
        groups = members_of(self.head.get("provenance")).get("groups")
        found: dict[str, Json] = {"onto": {"name": self.name, "kind": self.kind}}
        return found | ({"groups": groups} if groups is not None else {})


def base_of(spec: str, source: Source) -> BaseBox:
    """The machine of a source that ``--from`` names so."""
    if isinstance(source, RecordedSource) and source.origin.kind == "recording":
        lines, later, head, kind = source.lines, list(source.moments), source.head, source.origin.provenance
    else:
        recorder = RecordingSource(source)
        survey(recorder, ALL)
        lines, later, head, kind = recorder.lines(), [], {}, source.origin.kind
    name = spec if spec in dict(shipped()) else source.origin.kind  # a file's name may tell whose machine it is
    return BaseBox(spec=spec, name=name, kind=kind, lines=lines, later=later, head=head, gpus=nvml_gpus(flatten(lines)))


_MOVING = frozenset((PciFunction.link_gen,))
"""States that change by themselves from one minute to the next."""
_MAKER = "nvidia"
"""Begins the names of newer drivers alone."""
_ROUNDED = ("bytes", "kB", "MiB")
"""Units of what tools round."""


def stated(imported: Mapping[str, Json], own: Mapping[str, Json]) -> dict[str, Json]:
    """What texts state beside a box that answers otherwise: faults, as the texts have them, and for every other device
    a result for each fact that lasts, by its row, and whose values differ.

    Where they are the same in other words, or one of them stands for none, they contradict nothing.
    """
    answers = {key: fact for key, fact in imported.items() if key.startswith(_ANSWERS) and not is_gap(fact)}
    if all(own.get(key, fact) == fact for key, fact in answers.items()):
        return {}
    boxes = [RecordedSource(grouped(facts), Origin("recording")) for facts in (own, {**own, **answers})]
    before, after = (survey(box, ALL) for box in boxes)
    reports = Reports("import")
    faulty = set()
    told_of = " ".join(key for key, fact in answers.items() if own.get(key) != fact)
    for subject, finding in _faults(boxes[0], boxes[1], told_of):
        faulty |= {subject, subject.partition("/")[0]}
        status, fault = finding.status.value, finding.judgement.fault
        outcome: Literal["fail", "warn"] = "fail" if status == "fail" else "warn"
        reports.add(subject, finding.id.replace(".", "-"), outcome, fault, f"by the text: {finding.judgement.message}")
    for keys, was, now in pairs(before, after, {}):
        old = {name: value for name, _, value in leaves(was, _lasts)}
        for name, of, value in leaves(now, _lasts):
            if name in old and not is_of(of, _MOVING) and not _agree(of, old[name], value):
                words = " ".join((label(of), *(f"of link {keys[key]}" for key in keys if key == "link")))
                texts = (text(of, each) for each in (old[name], value))
                comparison = "{} is {} on the box, {} in the imported output".format(words, *texts)
                topic, subject = label(of).lower().replace(" ", "-"), _subject(after, now, keys)
                if subject not in faulty:
                    reports.add(subject, topic, "warn", Fault.CONTRADICTION, comparison)
    return reports.facts()


def _faults(before: RecordedSource, after: RecordedSource, told_of: str) -> Iterator[tuple[str, Finding]]:
    """Faults that there are with the answers of the texts and not without them, with their subjects; of a pair the end
    that the texts tell of. Settings and versions only differ, and temperatures are of another moment.
    """
    from dgxcheck.assessment.health import assess

    earlier, bad = ({each.key: each for each in assess(box).findings if _is_of_device(each)} for box in (before, after))
    for key, finding in bad.items():
        if key not in earlier:
            ends = [subject for subject in (finding.subject, finding.subject.peer) if subject is not None]
            at = next((subject for subject in ends if subject.bdf is not None and subject.bdf in told_of), ends[0])
            yield at.name if at.kind in ("hca", "port", "host") else _published(at.bdf or at.name, at.kind), finding


def _is_of_device(finding: Finding) -> bool:
    fault = finding.judgement.fault
    broken = fault is not None and fault.category in ("hardware", "environment") and fault not in _COMPARED
    return broken and finding.status in BAD


_COMPARED = frozenset({Fault.HOTTER, Fault.HEAT_SINK})
"""Of a device that may have worked harder than the others."""


_ANSWERS = ("text ", "nvml ")


def is_gap(fact: Json) -> bool:
    return fact is None or (isinstance(fact, dict) and "missing" in fact)


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
    hca = next((device.name for device in rows(facts.infiniband) if device.bdf == bdf), None)
    return hca or _published(bdf, "gpu" if is_gpu else "pci")


def _published(bdf: str, kind: str) -> str:
    return bdf if kind == "gpu" else bdf.replace(":", ".")
