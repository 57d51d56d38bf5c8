"""Names of machines: folded into ranges, and which of them share a rack."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from dgxcheck.facts.node_lists import unfolded
from dgxcheck.facts.sysfs import runs_of
from dgxcheck.facts.typical import gathered
from dgxcheck.input_file import CpuTime
from dgxcheck.settings import Settings

_LAST_NUMBER = re.compile(r"(?P<before>.*?)(?P<number>[0-9]{1,9})(?P<after>[^0-9]*)", re.DOTALL)


def folded(names: Iterable[str]) -> str:
    """Names that differ in their last number as one, in order: ``dgx[001-003,100],login``.

    Numbers with leading zeros go with those of the same length; ``dgx1`` and ``dgx01`` are different names.
    """
    found = {name: _LAST_NUMBER.fullmatch(name) for name in names}
    padded = {(match["before"], len(match["number"]), match["after"]) for match in found.values()
              if match is not None and match["number"][0] == "0"}  # fmt: skip
    groups: dict[tuple[str, int, str], list[int]] = {}
    for name, match in found.items():
        if match is None:
            groups[name, 0, ""] = []
            continue
        before, digits, after = match["before"], match["number"], match["after"]
        width = len(digits) if (before, len(digits), after) in padded else -1
        groups.setdefault((before, width, after), []).append(int(digits))
    return ",".join(_folded(*alike, numbers) for alike, numbers in sorted(groups.items()))


def _folded(before: str, width: int, after: str, numbers: list[int]) -> str:
    if not numbers:
        return before
    ranges = ["-".join(f"{number:0{max(width, 1)}}" for number in dict.fromkeys((run[0], run[-1])))
              for run in runs_of(sorted(numbers))]  # fmt: skip
    return f"{before}{ranges[0]}{after}" if len(numbers) == 1 else f"{before}[{','.join(ranges)}]{after}"


Racks = Mapping[str, tuple[str, ...]]
"""Nodes by rack, both in the order in which people count."""
_NUMBER = re.compile(r"([0-9]{1,18})")


def racks_of(nodes: Iterable[str], settings: Settings) -> Racks:
    """Every node once.

    By ``fleet.racks`` and ``fleet.rack_pattern`` of the site's configuration; nodes that neither names stand by
    themselves. Raises BadInput for a set of nodes that cannot be read.
    """
    left = sorted(dict.fromkeys(nodes), key=counted_order)
    found: dict[str, list[str]] = {}
    if settings.racks:
        rack_of = {node: rack for rack, text in settings.racks.items() for node in members(text)}
        own = gathered((rack_of[node], node) for node in left if node in rack_of)
        found = {rack: own.get(rack, []) for rack in settings.racks}
        left = [node for node in left if node not in rack_of]
    if settings.rack_pattern:
        search = re.compile(settings.rack_pattern).search
        matches = CpuTime().whole("fleet.rack_pattern", lambda: [*map(search, left)])
        racks = {node: match[1] for node, match in zip(left, matches, strict=True) if match and match[1]}
        for node, rack in racks.items():
            found.setdefault(rack, []).append(node)
        left = [node for node in left if node not in racks]
    if placed := {rack: tuple(names) for rack, names in found.items() if names}:
        return placed | ({"other nodes": tuple(left)} if left else {})
    return _by_name(left)


def members(text: str) -> tuple[str, ...]:
    """The names that a text stands for; groups are those of ClusterShell."""
    if "@" not in text:
        return unfolded(text)
    from dgxcheck.fleet.remote import node_set

    return node_set(text)


def _by_name(nodes: Sequence[str]) -> Racks:
    """By what stands before the last number, or the last but one and so on, until two nodes on average share it."""
    levels = range(1, 1 + max((len(_NUMBER.findall(node)) for node in nodes), default=0))
    for level in levels:
        parts = [_NUMBER.split(node) for node in nodes]
        starts = ("".join(each[: max(1, len(each) - 2 * level)]) for each in parts)
        found = gathered(zip(starts, nodes, strict=True))
        if 2 * len(found) <= len(nodes) or level == levels[-1]:
            return _labelled(found.values())
    return _labelled([nodes] if nodes else [])


def _labelled(racks: Iterable[Sequence[str]]) -> Racks:
    """By the names of their nodes, folded; names with commas may fold alike."""
    found: dict[str, tuple[str, ...]] = {}
    for names in racks:
        label = folded(names)
        found[label] = (*found.get(label, ()), *names)
    return found


def counted_order(name: str) -> list[tuple[int, str]]:
    """Sorts n9 before n10."""
    return [(int(part), "") if part.isascii() and part.isdigit() else (-1, part) for part in _NUMBER.split(name)]
