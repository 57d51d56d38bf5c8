"""Nodes that a text names by LID alone: the GUID that another text gives them, else one node of that text."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.facts.record import replace
from dgxcheck.readers.fabric.rows import End, PortRow, is_guid

_BY_LID = "lid:"


def identified(texts: Sequence[Sequence[PortRow]]) -> list[Sequence[PortRow]]:
    """The rows of each text. Two subnets give the same LIDs, so that one alone names a node of its text; where another
    text has a GUID for this LID and description it is the same node."""
    if not any(end.guid.startswith(_BY_LID) for rows in texts for row in rows for end in _ends(row)):
        return [*texts]
    guids: dict[tuple[int, str], set[str]] = {}
    for rows in texts:
        for row in rows:
            for end in _ends(row):
                if end.lid and end.description and is_guid(end.guid):
                    guids.setdefault((end.lid, end.description), set()).add(end.guid)

    def named(end: End, number: int) -> End:
        if not end.guid.startswith(_BY_LID):
            return end
        found = guids.get((end.lid or 0, end.description), set())
        return replace(end, guid=min(found) if len(found) == 1 else f"{end.guid} of text {number}")

    return [[replace(row, end=named(row.end, number), peer=row.peer and named(row.peer, number)) for row in rows]
            for number, rows in enumerate(texts)]  # fmt: skip


def _ends(row: PortRow) -> tuple[End, ...]:
    return (row.end,) if row.peer is None else (row.end, row.peer)


def shown_node(node: str) -> str:
    """A GUID; ``LID 5`` of a node that has none."""
    return f"LID {node.removeprefix(_BY_LID).split()[0]}" if node.startswith(_BY_LID) else node
