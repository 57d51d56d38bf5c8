"""A machine as a recording: all that it says, anonymized."""

from __future__ import annotations

import time
from contextlib import nullcontext

from dgxcheck import __version__
from dgxcheck.assessment.progress import SILENT, Progress
from dgxcheck.facts.missing import BadInput, Json, Missing, text_of
from dgxcheck.facts.record import Record
from dgxcheck.source.protocol import Origin, Source
from dgxcheck.source.recording.anonymize import anonymized
from dgxcheck.source.recording.keys import GroupedFacts
from dgxcheck.source.recording.load import SCHEMA
from dgxcheck.source.recording.recorder import RecordingSource
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.source.recording.save import written
from dgxcheck.source.recording.site_key import mark, site_key
from dgxcheck.survey import ALL, COUNTERS, survey


class Recorded(Record):
    """A recording that is not saved yet."""

    text: str
    facts: int
    """How many it holds."""
    silent: tuple[str, ...]
    """Keys of the questions that were not answered in time."""
    interrupted: bool
    """Ctrl-C came before the counters were read again: it holds them once."""


def record(source: Source, window: float | None, keep_identity: bool, progress: Progress = SILENT) -> Recorded:
    """Ask a source all that there is, and its counters again ``window`` seconds later.

    Without a window, every later moment of a recording is recorded. Identities are replaced by pseudonyms, if they are
    not to be kept. BadInput where the counters cannot be read again.
    """
    recorder = RecordingSource(source)
    begun = time.time()
    survey(recorder, ALL)
    interrupted = False
    if window is not None or isinstance(source, RecordedSource):
        interrupted = not _later(recorder, window, progress)
    lines, later = recorder.lines(), recorder.later_lines()
    identities = _identities(source)
    key_mark = source.head.get("identity_key") if isinstance(source, RecordedSource) else None
    if not keep_identity and identities != "made up":
        key = site_key()
        lines, later = anonymized(lines, later, key)
        # pseudonyms of pseudonyms are comparable with nothing
        key_mark = mark(key) if identities == "kept" else None
        identities = "pseudonyms"
    head: dict[str, Json] = {
        "schema": SCHEMA,
        "machine": _machine(lines),
        **_when(source, begun),
        "tool_version": __version__,
        "identities": identities,
        **({"identity_key": key_mark} if isinstance(key_mark, str) else {}),
        "provenance": _provenance(source),
    }
    facts = recorder.facts.items()
    silent = tuple(key for key, fact in facts if isinstance(fact, dict) and fact.get("missing") == "timeout")
    return Recorded(text=written(head, lines, later), facts=len(recorder.facts), silent=silent, interrupted=interrupted)


def _when(source: Source, begun: float) -> dict[str, Json]:
    """``recorded_at``: now of this machine, the date of a recording; nobody knows that of a directory."""
    live = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begun)) if source.origin.kind == "live" else ""
    recorded_at = source.origin.recorded_at or live
    return {"recorded_at": recorded_at} if recorded_at else {}


def _identities(source: Source) -> str:
    """What the source's identities are as they stand: a recording may hold pseudonyms or made-up ones already."""
    stated = source.head.get("identities") if isinstance(source, RecordedSource) else None
    return stated if isinstance(stated, str) and stated in ("pseudonyms", "made up") else "kept"


def _provenance(source: Source) -> Json:
    """That of the recording that is recorded again, where it has one."""
    if isinstance(source, RecordedSource) and isinstance(source.head.get("provenance"), dict):
        return source.head["provenance"]
    return {"kind": "recorded", "from": "directory"} if source.origin.kind == "directory" else {"kind": "recorded"}


def _machine(lines: GroupedFacts) -> str:
    """What ``dgxcheck recordings`` says of the box: the product that its firmware names."""
    return text_of(RecordedSource(lines, Origin("recording")).text("/sys/class/dmi/id/product_name")).strip()


def _later(recorder: RecordingSource, window: float | None, progress: Progress) -> bool:
    """The counters once more after ``window`` seconds; of a recording without one, at every moment that it holds.

    False if that was interrupted.
    """
    if window is None:
        moment: Source | Missing = recorder.later(0.0)
        while not isinstance(moment, Missing):
            survey(moment, COUNTERS)
            moment = moment.later(0.0)
        return True
    later: Source | Missing
    try:
        with progress.waiting(window) if recorder.origin.kind == "live" else nullcontext():
            later = recorder.later(window)
    except KeyboardInterrupt:
        return False
    if isinstance(later, Missing):
        raise BadInput(f"--window: the counters cannot be read again: {later}")
    survey(later, COUNTERS)
    return True
