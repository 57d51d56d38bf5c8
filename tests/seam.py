"""What the tests of the seam share: a source made of answers, and the way through a file and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sample import BY_NAME

from dgxcheck.assessment import Request, assess
from dgxcheck.cli import main
from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.profiles import library
from dgxcheck.source.protocol import Origin, Source
from dgxcheck.source.recording.keys import GroupedFacts, nvml_key, to_json
from dgxcheck.source.recording.load import SCHEMA, open_source
from dgxcheck.source.recording.recorder import RecordingSource
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.source.recording.save import written

HEAD: dict[str, Json] = {"schema": SCHEMA, "recorded_at": "2026-01-01T00:00:00Z", "provenance": {"kind": "recorded"}}
Answer = object
Ask = Callable[[Source], Answer]


class Answers:
    """A machine of NVML answers, names and device nodes by key (``nvml F bdf 3``, ``opens /dev/x``); else absent."""

    origin = Origin("live")

    def __init__(self, facts: Mapping[str, Json | Missing], later: Sequence[Answers] = (), at_s: float = 0.0) -> None:
        self._facts = facts
        self._later = later
        self.at_s = at_s

    def _fact(self, key: str, where: str) -> Json | Missing:
        return self._facts.get(key, Missing(Gap.ABSENT, where))

    def _text(self, key: str, where: str) -> str | Missing:
        fact = self._fact(key, where)
        return fact if isinstance(fact, str | Missing) else Missing(Gap.GARBLED, where)

    def text(self, path: str) -> str | Missing:
        return self._text(f"text {path}", path)

    def data(self, path: str) -> bytes | Missing:
        text = self.text(path)
        return text if isinstance(text, Missing) else text.encode()

    def link(self, path: str) -> str | Missing:
        return self._text(f"link {path}", path)

    def names(self, path: str) -> tuple[str, ...] | Missing:
        fact = self._fact(f"names {path}", path)
        return tuple(map(str, fact)) if isinstance(fact, list) else Missing(Gap.ABSENT, path)

    def opens(self, path: str) -> bool | Missing:
        fact = self._fact(f"opens {path}", path)
        return fact if isinstance(fact, bool | Missing) else Missing(Gap.GARBLED, path)

    def nvml(self, function: str, subject: str = "", *args: int) -> Json | Missing:
        key = nvml_key(function, subject, args)
        return self._fact(key, key[5:])

    def name(self, table: str, key: str) -> str | Missing:
        return self._text(f"name {table} {key}", f"{table} {key}")

    def kernel_log(self) -> tuple[str, ...] | Missing:
        lines = [text for key, text in self._facts.items() if key.startswith("kmsg ") and isinstance(text, str)]
        return tuple(lines) or Missing(Gap.ABSENT, "/dev/kmsg")

    def measured(self) -> Mapping[str, Json] | Missing:
        return self._all("measure")

    def stated(self) -> Mapping[str, Json] | Missing:
        return self._all("stated")

    def _all(self, kind: str) -> Mapping[str, Json] | Missing:
        facts = {key: to_json(fact) for key, fact in self._facts.items() if key.startswith(f"{kind} ")}
        return facts or Missing(Gap.UNRECORDED, kind)

    def later(self, seconds: float) -> Source | Missing:
        left = [answers for answers in self._later if answers.at_s > self.at_s]
        if not left:
            return Missing(Gap.UNRECORDED, "later", "no more")
        return Answers(left[0]._facts, self._later, left[0].at_s)


def save(
    path: Path,
    lines: GroupedFacts,
    later: Sequence[tuple[float, GroupedFacts]] = (),
    head: Mapping[str, Json] | None = None,
) -> Path:
    """A recording file."""
    path.write_text(written({**HEAD, **(head or {})}, lines, later), encoding="utf-8")
    return path


def saved(recorder: RecordingSource, path: Path) -> Source:
    """What a recorder holds, from a file again."""
    return open_source(str(save(path, recorder.lines(), recorder.later_lines())))


def heard(source: Source, questions: Sequence[Ask]) -> list[Answer]:
    return [ask(source) for ask in questions]


class Run(NamedTuple):
    """How a command line ended."""

    code: int
    out: str
    err: str


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> Run:
    """One command line in this process."""
    capsys.readouterr()
    code = main(list(argv))
    said = capsys.readouterr()
    return Run(code, said.out, said.err)


_JUDGED: dict[str, object] = {}
"""The last few of what ships, by source and request."""
_MOST_JUDGED = 8


def judge_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on in this test ``health`` judges a box or fault that ships once, for all tests and formats. Where a
    file is read, it judges again each time, for a test may have written it again."""

    def once(source: Source, request: Request, **more: Any) -> object:
        ships = isinstance(source, RecordedSource) and source.origin.name in BY_NAME
        reads = request.baseline or request.kernel_log or request.profile not in ("auto", "none", *library.names())
        if reads or not ships:
            return assess(source, request, **more)
        asked = repr((source.origin, request))
        found = _JUDGED[asked] = _JUDGED.pop(asked, None) or assess(source, request, **more)
        if len(_JUDGED) > _MOST_JUDGED:
            del _JUDGED[next(iter(_JUDGED))]
        return found

    monkeypatch.setattr("dgxcheck.cli.commands.health.assess", once)


def is_one_clear_line(text: str) -> bool:
    """A refusal: who speaks, one line, nothing that a terminal would obey."""
    return (
        text.startswith("dgxcheck: ")
        and text.count("\n") == 1
        and text.endswith("\n")
        and all(char.isprintable() or char == "\N{REPLACEMENT CHARACTER}" for char in text[:-1])
        and "Traceback" not in text
    )


def facts_text(path: Path) -> str:
    """A recording's text without its head."""
    return path.read_text(encoding="utf-8").partition('"facts": ')[2]


def document(path: Path) -> dict[str, Json]:
    found = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found
