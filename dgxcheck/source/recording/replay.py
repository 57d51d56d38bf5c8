"""A recorded machine: answers come from one file's lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from dgxcheck.facts.missing import Gap, Missing, gap_from_json, question
from dgxcheck.limits import LOG_LINE_CHARACTERS, NVML_DEPTH
from dgxcheck.source.protocol import Json, Origin, Source
from dgxcheck.source.recording.keys import DEVICE, GroupedFacts, flatten, from_json, numbered, split_path

T = TypeVar("T", str, bool)
Later = Sequence[tuple[float, GroupedFacts]]


class RecordedSource:
    """Answers as the lines hold them; what they never heard is ``unrecorded``."""

    def __init__(
        self, lines: GroupedFacts, origin: Origin, later: Later = (), at_s: float = 0.0,
        head: dict[str, Json] | None = None, first: GroupedFacts | None = None, unheard: str = "",
    ) -> None:  # fmt: skip
        self.lines = lines
        """All facts of this moment, as the file has them."""
        self._first = lines if first is None else first
        """What every later moment was compared with when it was written."""
        self.moments = later
        """What changed afterwards."""
        self._unheard = unheard
        """In words, why a question that the lines do not answer has none; empty for a recording of dgxcheck's own."""
        self.origin = origin
        self.head = head or {}
        """The file's members beside its facts: date, identities, provenance with the sources of each group of facts."""
        self.at_s = at_s
        self._whole: dict[str, Mapping[str, Json] | Missing] = {}
        """The facts of all lines of a kind, once they were looked for."""

    def text(self, path: str) -> str | Missing:
        folder, _, name = path.rpartition("/")
        texts = self.lines.get(folder, {}).get("text")
        text = texts.get(name) if isinstance(texts, dict) else None
        return text if type(text) is str else self._leaf("text", path, str)

    def link(self, path: str) -> str | Missing:
        return self._leaf("link", path, str)

    def opens(self, path: str) -> bool | Missing:
        return self._leaf("opens", path, bool)

    def data(self, path: str) -> bytes | Missing:
        if isinstance(value := self._find("data", path), Missing):
            return value
        from dgxcheck.source.recording.keys import from_rows

        raw = from_rows(value)
        return Missing(Gap.GARBLED, path, "no rows of bytes in the recording") if raw is None else raw

    def names(self, path: str) -> tuple[str, ...] | Missing:
        if (line := self.lines.get(path)) is None or "names" not in line:
            return Missing(Gap.UNRECORDED, path, self._unheard)
        if isinstance(names := from_json(line["names"], path), list):
            texts = tuple(name for name in names if isinstance(name, str))
            if len(texts) == len(names):
                return texts
        return names if isinstance(names, Missing) else Missing(Gap.GARBLED, path, "no list of names in the recording")

    def nvml(self, function: str, subject: str = "", *args: int) -> Json | Missing:
        line = self.lines.get(f"nvml {function} {subject}" if subject else f"nvml {function}")
        entry = " ".join(map(str, args)) if args else ""
        if line is None or entry not in line:
            return Missing(Gap.UNRECORDED, question(function, subject, *args), self._unheard)
        value = line[entry]
        if type(value) is not dict and type(value) is not list:
            return value
        where = question(function, subject, *args)
        if isinstance(value, dict) and "missing" in value:
            return gap_from_json(value, where)
        if not _within(value, NVML_DEPTH):
            return Missing(Gap.GARBLED, where, "nested deeper than any answer of NVML")
        return value

    def name(self, table: str, key: str) -> str | Missing:
        where = f"{table} {key}"
        value = from_json(self.lines.get(f"name {table}", {}).get(key), where)
        return value if isinstance(value, str | Missing) else Missing(Gap.UNRECORDED, where, self._unheard)

    def kernel_log(self) -> tuple[str, ...] | Missing:
        if not (lines := self.lines.get("kmsg")):
            return Missing(Gap.UNRECORDED, DEVICE, self._unheard)
        if isinstance(first := from_json(lines.get("0"), DEVICE), Missing):
            return first
        texts = numbered(lines)
        return Missing(Gap.GARBLED, DEVICE, "no lines of text in the recording") if texts is None else _cut(texts)

    def measured(self) -> Mapping[str, Json] | Missing:
        return self._all("measure")

    def stated(self) -> Mapping[str, Json] | Missing:
        return self._all("stated")

    def later(self, seconds: float) -> Source | Missing:
        """The first recorded moment at or after ``seconds``, else the last one there is."""
        if not self.moments:
            return Missing(Gap.UNRECORDED, "later", "the recording holds one moment only")
        at_s, changed = next(((at, lines) for at, lines in self.moments if at - self.at_s >= seconds), self.moments[-1])
        rest = tuple(moment for moment in self.moments if moment[0] > at_s)
        return RecordedSource(merged(self._first, changed), self.origin, rest, at_s, self.head, self._first)

    def _all(self, kind: str) -> Mapping[str, Json] | Missing:
        if kind not in self._whole:
            lines = {line: group for line, group in self.lines.items() if line.startswith(f"{kind} ")}
            self._whole[kind] = flatten(lines) if lines else Missing(Gap.UNRECORDED, kind, self._unheard)
        return self._whole[kind]

    def _leaf(self, kind: str, path: str, form: type[T]) -> T | Missing:
        if isinstance(value := self._find(kind, path), form):
            return value
        return value if isinstance(value, Missing) else Missing(Gap.GARBLED, path, f"no {kind} in the recording")

    def _find(self, kind: str, path: str) -> Json | Missing:
        head, tail = split_path(path)
        line = self.lines.get(head)
        group = line.get(kind) if line is not None else None
        if not isinstance(group, dict) or tail not in group:
            return Missing(Gap.UNRECORDED, path, self._unheard)
        value = group[tail]
        return from_json(value, path) if isinstance(value, dict) else value


def _cut(lines: tuple[str, ...]) -> tuple[str, ...]:
    """As long as lines of a live machine, with their time before them."""
    return tuple(line[: LOG_LINE_CHARACTERS + 40] for line in lines)


def _within(value: dict[str, Json] | list[Json], depth: int) -> bool:
    inside = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(_within(each, depth - 1) for each in inside if isinstance(each, (dict, list)))


def merged(base: GroupedFacts, changed: GroupedFacts) -> GroupedFacts:
    """GroupedFacts with the changed facts in place of the old ones; neither argument is altered."""
    lines = dict(base)
    for line, group in changed.items():
        new = dict(lines.get(line, {}))
        for kind, facts in group.items():
            old = new.get(kind)
            nested = line.startswith("/") and kind != "names" and isinstance(old, dict) and isinstance(facts, dict)
            new[kind] = old | facts if nested and isinstance(old, dict) and isinstance(facts, dict) else facts
        lines[line] = new
    return lines
