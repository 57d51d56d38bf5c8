"""Network interfaces that lose their carrier, by systemd-networkd, NetworkManager and the kernel.

Interfaces of InfiniBand alone: those of containers come and go.
"""

from __future__ import annotations

import re

from dgxcheck.facts.faults import Fault
from dgxcheck.readers.model import Imported
from dgxcheck.readers.reports import Reports
from dgxcheck.readers.values import bounded

TOOL = "network log"
_NAME = r"(?P<name>ib[a-z0-9_]{1,14})"
_WHO = r"(?:.{0,120} )?"
_FORMS = (
    re.compile(rf"{_WHO}systemd-networkd\[\d{{1,9}}\]: {_NAME}: (?P<what>[Ll]ost|[Gg]ained) carrier"),
    re.compile(
        rf"{_WHO}NetworkManager\[\d{{1,9}}\]: .{{0,80}}\({_NAME}\): (?P<what>carrier: link \w{{1,20}}).{{0,80}}"
    ),
    re.compile(rf"{_WHO}mlx5_core \S{{12,16}} {_NAME}: (?P<what>Link (?:up|down))"),
)
_OTHERS = re.compile(r"(?:.{0,120} )?systemd(?:-networkd)?\[\d{1,9}\]: .{1,300}")
"""What else systemd logs between."""
_FLAPS = 2


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """An interface that lost its carrier and has none fails; one that lost it and got it again is counted."""
    reports = Reports(TOOL)
    understood: set[int] = set()
    others: set[int] = set()
    events: dict[str, list[bool]] = {}
    for number, line in enumerate(bounded(lines)):
        text = line.strip()
        match = next((match for form in _FORMS if (match := form.fullmatch(text))), None)
        if match is not None:
            up = not match["what"].lower().endswith(("lost", "disconnected", "down"))
            events.setdefault(match["name"], []).append(up)
            understood.add(number)
        elif _OTHERS.fullmatch(text):
            others.add(number)
    for name, states in events.items():
        lost = states.count(False)
        if not states[-1]:
            reports.add(name, "carrier", "fail", Fault.PORT_DOWN, f"its carrier is lost, {lost} times in this log")
        elif lost >= _FLAPS:
            reports.add(name, "carrier", "warn", Fault.PORT_ERRORS, f"its carrier was lost {lost} times and came back")
    if not understood:
        return ()
    return (Imported(tool=TOOL, facts=reports.facts(), understood=frozenset(understood | others)),)
