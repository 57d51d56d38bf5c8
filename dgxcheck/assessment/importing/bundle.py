"""A bug report or archive as a machine that can be asked: its facts, and the words for what it does not hold."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

from dgxcheck.assessment.importing.texts import of_host
from dgxcheck.checks.engine.finding import first_of
from dgxcheck.facts.missing import BadInput, Json
from dgxcheck.facts.record import Record, replace
from dgxcheck.input_file import CpuTime
from dgxcheck.readers.alarming import alarming
from dgxcheck.readers.bundles.bug_report import with_hosts
from dgxcheck.readers.bundles.contents import Bundle, load
from dgxcheck.readers.bundles.outputs import Found, Output, machine_facts, outputs
from dgxcheck.source.protocol import Origin
from dgxcheck.source.recording.keys import grouped
from dgxcheck.source.recording.load import SCHEMA
from dgxcheck.source.recording.replay import RecordedSource

MOST_NAMED = 3
"""Files in one note."""


class Opened(Record):
    """A bundle, what was read of it, and the facts of its machine by key."""

    bundle: Bundle
    found: Found
    facts: dict[str, Json]
    unowned: tuple[str, ...]
    """Files that belong to none of the several hosts as far as the bundle shows; they are not read."""

    @property
    def outputs(self) -> tuple[Output, ...]:
        """Those of its machine."""
        return self.found.outputs

    @property
    def left(self) -> tuple[str, ...]:
        """Files without known output, and files that were not read because neither name nor content is a tool's."""
        read = {section.file for section in self.bundle.sections if section.lines}
        unknown = (section.file for section in self.bundle.sections if section.size and section.file not in read)
        return tuple(dict.fromkeys((*self.found.nothing, *unknown)))


def opened(spec: str, host: str = "", clock: Callable[[], float] = process_time) -> Opened:
    """The machine of a bundle; of several hosts that of ``host``. BadInput for what cannot be read, and where it is
    not said which host.
    """
    time = CpuTime(clock)
    bundle = load(spec, time)
    labelled = with_hosts(bundle.sections)
    hosts = {section.host for section in labelled} - {""}
    sections = [section for section in of_host(labelled, host) if section.host] if hosts else [*labelled]
    unowned = {section.file for section in labelled if hosts and not section.host}
    found = outputs(sections, time)
    own = found.outputs if hosts else of_host(found.outputs, host)
    facts, refused = machine_facts(own)
    contradicting = f"{first_of(refused, MOST_NAMED)}: left out, because earlier output contradicts"
    notes = tuple(filter(None, (*bundle.notes, contradicting if refused else "", time.exceeded)))
    bundle = replace(bundle, sections=tuple(sections), notes=notes)
    return Opened(bundle=bundle, found=replace(found, outputs=tuple(own)), facts=facts, unowned=tuple(sorted(unowned)))


def open_bundle(spec: str, host: str = "", clock: Callable[[], float] = process_time) -> RecordedSource:
    """The machine of a bundle; of several hosts that of ``host``."""
    return as_source(spec, opened(spec, host, clock))


def as_source(spec: str, found: Opened) -> RecordedSource:
    """A bundle that was read as a machine that can be asked. BadInput where nothing was read of it."""
    if not found.outputs:
        sections = found.bundle.sections
        packed = next((section.file for section in sections if SCHEMA in " ".join(section.lines[:2])), "")
        tree = " and no sys/ directory" if found.bundle.kind == "directory" else ""
        what = f"a recording, {packed}: unpack it first" if packed else f"no output of a supported tool{tree}"
        raise BadInput("; ".join((f"{spec}: contains {what}", *found.bundle.notes[:1])))
    lines = grouped(found.facts)
    alarms = sum(len(alarming(found.found.texts[file], unread)) for file, unread in found.found.unread.items())
    origin = Origin("report", spec, note="; ".join(found.bundle.notes), alarms=alarms)
    head: dict[str, Json] = {"provenance": provenance(found)}
    return RecordedSource(lines, origin, head=head, unheard=f"not in the {found.bundle.kind}")


def provenance(found: Opened) -> dict[str, Json]:
    """What a recording made of it says of its origin; the names of files may tell whose machine it is."""
    tools: list[Json] = [*dict.fromkeys(output.found.tool for output in found.outputs)]
    return {"kind": "imported", "files": [{"file": found.bundle.kind, "tools": tools, "unread": 0}]}
