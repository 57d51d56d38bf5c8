"""Recording is a tee: another source's answers pass through and every one of them is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from dgxcheck.facts.missing import Missing
from dgxcheck.source.protocol import Json, Source
from dgxcheck.source.recording.keys import GroupedFacts, grouped, nvml_key, to_json, to_rows

T = TypeVar("T", bound="Json | Missing")


class RecordingSource:
    """Passes questions on and remembers the answers, gaps included."""

    def __init__(self, inner: Source) -> None:
        self._inner = inner
        self.origin, self.at_s = inner.origin, inner.at_s
        self.facts: dict[str, Json] = {}
        self.moments: list[RecordingSource] = []
        """What ``later`` gave, in order."""

    def text(self, path: str) -> str | Missing:
        return self._keep(f"text {path}", self._inner.text(path))

    def data(self, path: str) -> bytes | Missing:
        answer = self._inner.data(path)
        self.facts[f"data {path}"] = to_json(answer) if isinstance(answer, Missing) else to_rows(answer)
        return answer

    def link(self, path: str) -> str | Missing:
        return self._keep(f"link {path}", self._inner.link(path))

    def names(self, path: str) -> tuple[str, ...] | Missing:
        answer = self._inner.names(path)
        self.facts[f"names {path}"] = to_json(answer) if isinstance(answer, Missing) else list(answer)
        return answer

    def opens(self, path: str) -> bool | Missing:
        return self._keep(f"opens {path}", self._inner.opens(path))

    def nvml(self, function: str, subject: str = "", *args: int) -> Json | Missing:
        return self._keep(nvml_key(function, subject, args), self._inner.nvml(function, subject, *args))

    def name(self, table: str, key: str) -> str | Missing:
        return self._keep(f"name {table} {key}", self._inner.name(table, key))

    def kernel_log(self) -> tuple[str, ...] | Missing:
        if isinstance(answer := self._inner.kernel_log(), Missing):
            self.facts["kmsg 0"] = to_json(answer)
        else:
            for number, line in enumerate(answer):
                self.facts[f"kmsg {number}"] = line
        return answer

    def measured(self) -> Mapping[str, Json] | Missing:
        return self._keep_all(self._inner.measured())

    def stated(self) -> Mapping[str, Json] | Missing:
        return self._keep_all(self._inner.stated())

    def later(self, seconds: float) -> Source | Missing:
        if isinstance(answer := self._inner.later(seconds), Missing):
            return answer
        self.moments.append(RecordingSource(answer))
        return self.moments[-1]

    def lines(self) -> GroupedFacts:
        """All that was heard, in the lines of a recording."""
        return grouped(self.facts)

    def later_lines(self) -> list[tuple[float, GroupedFacts]]:
        """Per later moment: seconds since the first answers, and the facts that are not the first ones."""
        return [
            (moment.at_s, grouped({k: v for k, v in moment.facts.items() if (k, v) not in self.facts.items()}))
            for moment in self._all_moments()
        ]

    def _all_moments(self) -> Iterator[RecordingSource]:
        for moment in self.moments:
            yield moment
            yield from moment._all_moments()

    def _keep_all(self, answer: Mapping[str, Json] | Missing) -> Mapping[str, Json] | Missing:
        if not isinstance(answer, Missing):
            self.facts.update(answer)
        return answer

    def _keep(self, key: str, fact: T) -> T:
        self.facts[key] = to_json(fact)
        return fact
