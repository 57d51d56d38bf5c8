"""A text with the output of other tools as a machine that can be asked, without an import before it."""

from __future__ import annotations

from dgxcheck.assessment.import_hosts import SHOWN
from dgxcheck.assessment.import_text import facts_of, read
from dgxcheck.assessment.import_texts import texts
from dgxcheck.checks.engine.wording import counted
from dgxcheck.readers.alarming import alarming
from dgxcheck.source.protocol import Origin
from dgxcheck.source.recording.keys import GroupedFacts, insert
from dgxcheck.source.recording.replay import RecordedSource


def open_text(path: str, host: str = "") -> RecordedSource | None:
    """The machine that a text describes, possibly without any facts; None if it holds no tool's output.

    BadInput where it holds several hosts and ``host`` names none of them.
    """
    reading = read(texts((path,)), host=host)
    if not reading.parts:
        return None
    lines: GroupedFacts = {}
    facts = facts_of(reading.combined, None)
    for key in sorted(facts):
        insert(lines, key, facts[key])
    left = sum(map(len, reading.unread.values()))
    others = {host for text in reading.texts for host in reading.of_others(text.name)}
    whose = f", some of another host ({', '.join(sorted(others)[:SHOWN])})" if others else ""
    refused = len(reading.combined.refused)
    said = [f"{counted(left, 'line')} not recognised{whose}"] if left else []
    said += [f"{counted(refused, 'output')} left out because of contradictions"] if refused else []
    unread = f"{', '.join(said)}: see dgxcheck import --show" if said else ""
    alarms = sum(len(alarming(text.lines, reading.unread[text.name])) for text in reading.texts)
    origin = Origin("report", path, provenance="imported", unread=unread, alarms=alarms)
    return RecordedSource(lines, origin, head={"provenance": {"kind": "imported"}}, unheard="not in the text")
