"""A bug report or archive as a machine that can be asked: its facts, and the words for what it does not hold."""

from __future__ import annotations

from dgxcheck.facts.missing import BadInput, Json
from dgxcheck.facts.record import Record
from dgxcheck.readers.bundles.contents import Bundle, load
from dgxcheck.readers.bundles.machine import machine_facts
from dgxcheck.readers.bundles.outputs import Output, outputs
from dgxcheck.source.protocol import Origin
from dgxcheck.source.recording.keys import GroupedFacts, insert
from dgxcheck.source.recording.replay import RecordedSource


class Opened(Record):
    """A bundle, what was read of it, and the facts of its machine by key."""

    bundle: Bundle
    outputs: tuple[Output, ...]
    facts: dict[str, Json]


def opened(spec: str) -> Opened:
    """BadInput for what cannot be read."""
    bundle = load(spec)
    found = outputs(bundle.sections)
    return Opened(bundle=bundle, outputs=tuple(found), facts=machine_facts(found))


def open_bundle(spec: str) -> RecordedSource:
    """The machine of a bundle."""
    found = opened(spec)
    if not found.outputs:
        tree = " and no sys/ directory" if found.bundle.kind == "directory" else ""
        raise BadInput(f"{spec}: contains no output of a supported tool{tree}")
    lines: GroupedFacts = {}
    for key in sorted(found.facts):
        insert(lines, key, found.facts[key])
    origin = Origin("report", spec, note="; ".join(found.bundle.notes))
    return RecordedSource(
        lines, origin, head={"provenance": provenance(found)}, unheard=f"not in the {found.bundle.kind}"
    )


def provenance(found: Opened) -> dict[str, Json]:
    """What a recording made of it says of its origin; the names of files may tell whose machine it is."""
    tools: list[Json] = [*dict.fromkeys(output.found.tool for output in found.outputs)]
    return {"kind": "imported", "files": [{"file": found.bundle.kind, "tools": tools, "unread": 0}]}
