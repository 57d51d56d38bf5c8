"""``lspci -t`` with or without ``-v`` and ``-nn``: which bridge leads to which bus."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dgxcheck.facts.record import Record

_BUS = re.compile(r"\[(?:(?P<domain>[0-9a-f]{4,8}):)?(?P<bus>[0-9a-f]{2})(?:-[0-9a-f]{2})?\]", re.ASCII)
_DEVICE = re.compile(r"(?P<device>[01][0-9a-f]\.[0-7])(?=-\[|\s|$)", re.ASCII)
_LINE = re.compile(r"[ |]{0,400}(?:-\[|-\+-|\+-|\\-)")
_NAME = 300
_DRAWING = " |+\\-"

Bus = tuple[str, str]
"""Domain and number, as in a bdf."""


class Tree(Record):
    """What the drawing shows."""

    bridges: dict[Bus, str]
    """bdf of the bridge that leads to each bus."""
    roots: frozenset[Bus]
    bdfs: frozenset[str]
    names: dict[str, str]
    """By bdf, what ``-v`` adds: vendor and device in words; bridges have none."""


def tree(lines: Sequence[str]) -> tuple[Tree, frozenset[int]]:
    """The tree, and the numbers of its lines.

    A line goes on with the bus from which its first branch (``+`` or ``\\``) hangs, known from the branch's column.
    A bus number at the beginning of a line is a root bus, one after a device is the bus behind that bridge.
    """
    bridges: dict[Bus, str] = {}
    roots: set[Bus] = set()
    bdfs: set[str] = set()
    names: dict[str, str] = {}
    understood: set[int] = set()
    by_column: dict[int, Bus] = {}
    for number, line in enumerate(lines):
        if not _LINE.match(line):
            continue
        at, bus, device = 0, None, ""
        while at < len(line):
            if line[at] in _DRAWING:
                if line[at] in "+\\":
                    if bus is not None:
                        by_column[at] = bus
                    else:
                        bus = by_column.get(at)
                at += 1
                continue
            if group := _BUS.match(line, at):
                domain = group["domain"] or (bus[0] if bus is not None else "0000")
                new = (domain, group["bus"])
                if device:
                    bridges.setdefault(new, device)
                else:
                    roots.add(new)
                bus, device, at = new, "", group.end()
            elif bus is not None and (leaf := _DEVICE.match(line, at)):
                device = f"{bus[0]}:{bus[1]}:{leaf['device']}"
                bdfs.add(device)
                understood.add(number)
                at = leaf.end()
                if line[at : at + 2] != "-[":
                    names |= {device: name} if (name := line[at : at + _NAME].strip()) else {}
                    break  # the device's name follows, or nothing
            else:
                break
    return Tree(bridges=bridges, roots=frozenset(roots), bdfs=frozenset(bdfs), names=names), frozenset(understood)
