"""The box onto which ``dgxcheck import`` puts facts, and what those contradict of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.assessment.importing.bundle import Opened, as_source
from dgxcheck.facts.bdf import is_bdf
from dgxcheck.facts.cpulist import ranges
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record
from dgxcheck.facts.sysfs import PCI_DEVICES
from dgxcheck.readers.model import HOST, Reports
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


_LASTING = frozenset((
    "state", "phys_state", "rate", "link_layer", "current_link_width", "max_link_width", "max_link_speed", "numa_node",
    "cpulist", "class", "vendor", "device", "product_name",
))  # fmt: skip
"""What does not change by itself from one minute to the next; identities are pseudonyms of either side."""
_NO_STATES = ("", "")
_ANSWERS = {
    "nvmlSystemGetDriverVersion": ("driver version", _NO_STATES), "nvmlDeviceGetName": ("model", _NO_STATES),
    "nvmlDeviceGetVbiosVersion": ("VBIOS", _NO_STATES), "nvmlDeviceGetEccMode": ("ECC mode", ("off", "on")),
    "nvmlDeviceGetMigMode": ("MIG mode", ("off", "on")), "nvmlDeviceGetCurrPcieLinkWidth": ("PCIe width", _NO_STATES),
    "nvmlDeviceGetMaxPcieLinkWidth": ("highest PCIe width", _NO_STATES),
    "nvmlDeviceGetNvLinkState": ("NVLink state", ("down", "up")),
    "nvmlDeviceGetBoardPartNumber": ("part number", _NO_STATES),
}  # fmt: skip
"""Functions of NVML that answer the same from one minute to the next: what they answer, and the words for 0 and 1."""
_MAKER = "NVIDIA "
"""Begins the names of newer drivers alone."""
_HCAS = "/sys/class/infiniband/"


_NUMBERS = ("width", "numa_node", "vendor", "device")
_WITH_UNIT = ("speed", "rate")


def contradictions(imported: Mapping[str, Json], own: Mapping[str, Json]) -> dict[str, Json]:
    """A result for every such file or answer whose values differ, about the device that it is of.

    Where they stand for the same value in other words (``8 GT/s``, ``8.0 GT/s PCIe``), or one of them for none, they
    contradict nothing.
    """
    reports = Reports("import")
    for key, fact in imported.items():
        kind, _, path = key.partition(" ")
        name = path.rpartition("/")[2]
        before = own.get(key)
        if kind == "nvml":
            _answer(reports, path, before, fact)
        if kind != "text" or name not in _LASTING or not isinstance(fact, str) or not isinstance(before, str):
            continue
        old, new = _value(name, before), _value(name, fact)
        if old is not None and new is not None and old != new:
            text = f"{path} is {before.strip()} on the box, {fact.strip()} in the imported output"
            reports.add(_subject(path, own), name.replace("_", "-"), "warn", Fault.CONTRADICTION, text)
    return reports.facts()


def _value(name: str, text: str) -> float | str | None:
    """What a file's text stands for, whoever wrote it; None for no value: an unknown speed, no node, no link."""
    words = text.split()
    first = words[0].casefold() if words else ""
    try:
        if name.endswith(_WITH_UNIT):
            return float(first)
        if name.endswith(_NUMBERS):
            number = int(first, 0)
            return number if number >= (name != "numa_node") else None
        if name == "class":
            return int(first, 16) >> 8  # lspci without -vv does not show the programming interface
    except ValueError:
        return None
    if name == "cpulist":
        runs = ranges(text.strip())
        return None if runs is None else str(runs)
    return "".join(text.rpartition(":")[2].split()).casefold()


def _subject(path: str, own: Mapping[str, Json]) -> str:
    """The device that a file belongs to; a bus id with colons is a GPU's in results of tools."""
    if path.startswith(_HCAS):
        return path[len(_HCAS) :].partition("/")[0]
    bdf = next((part for part in path.split("/") if is_bdf(part)), None)
    if bdf is None:
        return HOST
    return bdf if str(own.get(f"text {PCI_DEVICES}/{bdf}/class")).startswith("0x03") else bdf.replace(":", ".")


def _answer(reports: Reports, question: str, before: Json, fact: Json) -> None:
    """A result where both answers are known and differ."""
    function, *words = question.split(" ")
    if function not in _ANSWERS or not _differ(before, fact):
        return
    what, states = _ANSWERS[function]
    subject = next((word for word in words if is_bdf(word)), HOST)
    link = f" of link {words[1]}" if function.endswith("NvLinkState") and len(words) > 1 else ""
    old, new = (_state_word(states, each) for each in _pair(before, fact))
    text = f"{what}{link} is {old} on the box, {new} in the imported output"
    reports.add(subject, what.replace(" ", "-").lower(), "warn", Fault.CONTRADICTION, text)


def _differ(before: Json, fact: Json) -> bool:
    """Are both known, and not the same? Of a list each member counts that both have."""
    if isinstance(before, list) and isinstance(fact, list) and len(before) == len(fact):
        return any(_differ(old, new) for old, new in zip(before, fact, strict=True))
    if isinstance(before, str) and isinstance(fact, str):
        return before.strip().removeprefix(_MAKER) != fact.strip().removeprefix(_MAKER)
    return isinstance(before, int) and isinstance(fact, int) and before != fact


def _pair(before: Json, fact: Json) -> tuple[Json, Json]:
    """Both answers; of lists their first members that differ."""
    if isinstance(before, list) and isinstance(fact, list):
        return next(pair for pair in zip(before, fact, strict=True) if _differ(*pair))
    return before, fact


def _state_word(states: tuple[str, str], fact: Json) -> str:
    return states[bool(fact)] if states[1] and isinstance(fact, int) else str(fact).strip()
