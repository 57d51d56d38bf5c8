"""Which nodes stand together: by the site's racks, else by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from dgxcheck.fleet.node_names import folded, unfolded
from dgxcheck.settings import Settings

Racks = Mapping[str, tuple[str, ...]]
"""Nodes by rack, both in the order in which people count."""
_NUMBER = re.compile(r"([0-9]{1,18})")
_OTHERS = "other nodes"


def racks_of(nodes: Iterable[str], settings: Settings) -> Racks:
    """Every node once.

    By ``fleet.racks`` and ``fleet.rack_pattern`` of the site's configuration; nodes that neither names stand by
    themselves. Raises BadInput for a set of nodes that cannot be read.
    """
    left = sorted(dict.fromkeys(nodes), key=_counted)
    found: dict[str, list[str]] = {}
    if settings.racks:
        rack_of = {node: rack for rack, text in settings.racks.items() for node in _members(text)}
        found = {rack: [] for rack in settings.racks}
        for node in left:
            if node in rack_of:
                found[rack_of[node]].append(node)
        left = [node for node in left if node not in rack_of]
    if settings.rack_pattern:
        pattern = re.compile(settings.rack_pattern)
        racks = {node: match[1] for node in left if (match := pattern.search(node)) and match[1]}
        for node, rack in racks.items():
            found.setdefault(rack, []).append(node)
        left = [node for node in left if node not in racks]
    placed = {rack: tuple(members) for rack, members in found.items() if members}
    if placed:
        return placed | ({_OTHERS: tuple(left)} if left else {})
    return _by_name(left)


def _members(text: str) -> tuple[str, ...]:
    if "@" not in text:
        return unfolded(text)
    from dgxcheck.fleet.remote import node_set

    return node_set(text)


def _by_name(nodes: Sequence[str]) -> Racks:
    """By what stands before the last number, or the last but one and so on, until two nodes on average share it."""
    levels = range(1, 1 + max((len(_NUMBER.findall(node)) for node in nodes), default=0))
    for level in levels:
        found: dict[str, list[str]] = {}
        for node in nodes:
            found.setdefault(_before(node, level), []).append(node)
        if 2 * len(found) <= len(nodes) or level == levels[-1]:
            return _labelled(found.values())
    return _labelled([nodes] if nodes else [])


def _labelled(racks: Iterable[Sequence[str]]) -> Racks:
    """By the names of their nodes, folded; names with commas may fold alike."""
    found: dict[str, tuple[str, ...]] = {}
    for members in racks:
        label = folded(members)
        found[label] = (*found.get(label, ()), *members)
    return found


def _before(node: str, level: int) -> str:
    """The name up to the last number but ``level - 1``."""
    parts = _NUMBER.split(node)
    return "".join(parts[: max(1, len(parts) - 2 * level)])


def _counted(name: str) -> list[tuple[int, str]]:
    """Sorts n9 before n10."""
    return [(int(part), "") if part.isascii() and part.isdigit() else (-1, part) for part in _NUMBER.split(name)]
