"""A pasted text with its layout undone, from the outside in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from dgxcheck.facts.record import Record
from dgxcheck.readers.layout import lines as single
from dgxcheck.readers.layout import markdown, prefixes, prompts, records
from dgxcheck.readers.layout.selection import selected
from dgxcheck.readers.values import bounded

_MOST_EMPTY = 2
"""Lines in a row, which separate outputs; more say nothing."""


class Layout(Record):
    """One line for each line that was pasted, so that numbers of lines stay what they are in the file."""

    lines: tuple[str, ...]
    """As the tools printed them; empty where a line held nothing of a tool, or was joined to the one before it."""
    furniture: frozenset[int]
    """Lines, from 0, that belong to the paste and not to an output: fences, prompts, headings of hosts."""
    joined: Mapping[int, int]
    """Continuation of a wrapped line -> the line that it continues."""
    hosts: tuple[str, ...]
    """By line: the host that a prefix, a heading or a prompt names; empty where nothing does."""
    kept: Sequence[int]
    """The lines that are read; of a very long text not all."""

    def is_prose(self, number: int) -> bool:
        """Does a line of words around the outputs name neither a device nor a fault?"""
        return single.is_prose(self.lines[number])

    def accounted(self, understood: frozenset[int]) -> frozenset[int]:
        """All lines that belong to the paste, or to those that a reader understood."""
        return understood | self.furniture | {at for at, head in self.joined.items() if head in understood}

    def by_host(self) -> dict[str, tuple[list[int], list[str]]]:
        """The text once for each host that a prefix, a heading or a prompt names: numbers of its lines, and the lines,
        with an empty one in place of those of others.
        """
        found: dict[str, tuple[list[int], list[str]]] = {}
        empty = 0
        for at in self.kept:
            line = self.lines[at]
            empty = 0 if line else empty + 1
            if empty > _MOST_EMPTY:
                continue
            numbers, lines = found.setdefault(self.hosts[at], ([], []))
            if numbers and numbers[-1] < at - 1 and lines[-1]:
                numbers.append(at - 1)
                lines.append("")
            numbers.append(at)
            lines.append(line)
        return found


T = TypeVar("T")
STEPS = (
    markdown.dedented, markdown.without_column, records.unpacked, prefixes.without_numbers, prefixes.without_times,
    prefixes.without_ranks,
)  # fmt: skip
ROUNDS = 12
"""Layers of quotes, numbers and prefixes around each other."""


def _each(change: Callable[[str], T], lines: Iterable[str]) -> list[T]:
    """What a function makes of each line, computed once for equal ones: most of a long text comes again."""
    lines = [*lines]
    changed = {line: change(line) for line in {*lines}}
    return [changed[line] for line in lines]


def undone(lines: tuple[str, ...]) -> Layout:
    """The text as the tools printed it; a text without any layout is the same lines."""
    kept = selected(lines)
    if len(kept) == len(lines):
        return _undone(lines)
    return _in_place(_undone((*map(lines.__getitem__, kept),)), kept, lines)


def _in_place(layout: Layout, kept: Sequence[int], lines: Sequence[str]) -> Layout:
    """The layout of some lines as that of all, of which the others are empty."""
    texts, hosts = [""] * len(lines), [""] * len(lines)
    for at, line, host in zip(kept, layout.lines, layout.hosts, strict=True):
        texts[at], hosts[at] = line, host
    return Layout(
        lines=tuple(texts), furniture=frozenset(kept[at] for at in layout.furniture),
        joined={kept[at]: kept[head] for at, head in layout.joined.items()}, hosts=tuple(hosts), kept=kept,
    )  # fmt: skip


def _undone(lines: tuple[str, ...]) -> Layout:
    found = _each(single.plain, bounded(lines))
    hosts = [""] * len(found)
    furniture: set[int] = set()
    for _ in range(ROUNDS):
        before = found
        found = _each(markdown.unquoted, _each(single.without_pane, found))
        fences = {at for at, fence in enumerate(_each(markdown.is_fence, found)) if fence}
        furniture |= fences
        found = ["" if at in fences else line for at, line in enumerate(found)]
        for step in STEPS:
            if found == before:
                found = step(found)
        for of_hosts in (prefixes.without_pods, prefixes.without_hosts):
            if found == before:
                found, named = of_hosts(found)
                hosts = [new or old for new, old in zip(named, hosts, strict=True)]
        if found == before:
            break
    found = _each(single.without_remark, _each(markdown.unenclosed, found))
    furniture |= {at for at, line in enumerate(found) if not line.strip() and lines[at].strip()}
    found, rules = markdown.without_tables(found)
    found, joined = single.unwrapped(found)
    calls = prompts.headings(found)
    calls |= {at: call for at, call in enumerate(_each(prompts.prompt, found)) if at not in calls and call}
    drawn = {at for at, is_drawn in enumerate(_each(_is_drawn, found)) if is_drawn}
    furniture = (furniture | rules | drawn | calls.keys()) - joined.keys()
    present = ""
    for at in range(len(found)):
        present = (calls[at].host.partition(".")[0] or present) if at in calls else present
        hosts[at] = hosts[at] or present
        if at in calls:
            found[at] = calls[at].command
    return Layout(
        lines=tuple(found), furniture=frozenset(furniture), joined=joined, hosts=tuple(hosts),
        kept=range(len(found)),
    )  # fmt: skip


def _is_drawn(line: str) -> bool:
    return prompts.is_drawn(line) or single.is_cut(line)
