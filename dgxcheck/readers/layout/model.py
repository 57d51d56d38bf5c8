"""A pasted text with its layout undone."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.record import Record


class Layout(Record):
    """One line for each line that was pasted, so that numbers of lines stay what they are in the file."""

    lines: tuple[str, ...]
    """As the tools printed them; empty where a line held nothing of a tool, or was joined to the one before it."""
    furniture: frozenset[int]
    """Lines, from 0, that belong to the paste and not to an output: fences, prompts, headings of hosts."""
    prose: frozenset[int]
    """Lines of words around the outputs, that name neither a device nor a fault."""
    joined: Mapping[int, int]
    """Continuation of a wrapped line -> the line that it continues."""
    hosts: tuple[str, ...]
    """By line: the host that a prefix, a heading or a prompt names; empty where nothing does."""

    def accounted(self, understood: frozenset[int]) -> frozenset[int]:
        """All lines that need no reader, or belong to those that a reader understood."""
        return understood | self.furniture | self.prose | {at for at, head in self.joined.items() if head in understood}
