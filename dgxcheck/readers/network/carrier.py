"""Ports and interfaces that lose their carrier, by systemd-networkd, NetworkManager and the kernel.

By the first two of InfiniBand alone: interfaces of containers come and go.
"""

from __future__ import annotations

from dgxcheck.facts.bdf import PATTERN
from dgxcheck.facts.faults import Fault
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.model import Imported, ToolPart
from dgxcheck.readers.values import numbered
from dgxcheck.readers.wording import forms, matched

_WHO = r"(?:.{0,120} )?"
_CARRIER_FORMS = forms("network/lines", "carrier")
"""The last is of RDMA devices, whatever their link layer, and only of ports that were up before (Linux
drivers/infiniband/core/cache.c: ib_cache_update)."""
_OTHERS = LazyPattern(r"(?:.{0,120} )?systemd(?:-networkd)?\[\d{1,9}\]: .{1,300}")
"""What else systemd logs between."""
_ENDED_BOOT = LazyPattern(r"(?:.{0,120} )?(?:reboot: |Linux version \d|-- (?:Reboot|Boot [0-9a-f]{32}) --).{0,300}")
"""What takes every link down."""
_BEGUN = LazyPattern(rf"{_WHO}mlx5_core (?P<bdf>{PATTERN}): firmware version: .{{1,60}}")
"""Its driver, which took its ports down before, takes it over again."""
_FLAPS = 2


def read_carrier(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """An interface that lost its carrier and has none fails; one that lost it and got it again is counted."""
    part = ToolPart("network log")
    events: dict[tuple[str, str], list[bool]] = {}
    for number, text in numbered(lines):
        if match := matched(_CARRIER_FORMS, text):
            up = not match["what"].lower().endswith(("lost", "disconnected", "down"))
            parts = match.groupdict("")
            name = f"{parts['name']}/{parts['port']}" if parts.get("port") else parts["name"]
            events.setdefault((name, parts.get("bdf", "")), []).append(up)
            part.lines.add(number)
        elif _ENDED_BOOT.fullmatch(text):
            events.clear()
        elif begun := _BEGUN.fullmatch(text):
            events = {of: states for of, states in events.items() if of[1] != begun["bdf"]}
        elif _OTHERS.fullmatch(text):
            part.beside.add(number)
    of_rdma = {bdf for name, bdf in events if "/" in name}
    for (name, bdf), states in events.items():
        lost, where = states.count(False), f"{bdf}/{name}" if bdf else name
        if "/" not in name and bdf in of_rdma:
            continue  # the same of its RDMA device
        if not states[-1] and (True in states or name.startswith("ib") or "/" in name):  # a port may be free at first
            times = f"{lost} time{'s' * (lost > 1)}"
            part.add(where, "carrier", "fail", Fault.PORT_DOWN, f"its carrier is lost, {times} in this log")
        elif lost >= _FLAPS and "/" not in name:  # those of RDMA devices are counted by kernel.hca
            part.add(where, "carrier", "warn", Fault.PORT_ERRORS, f"its carrier was lost {lost} times and came back")
    return part.imported()
