"""Do the Ethernet interfaces with a cable run at their speed?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dgxcheck.checks.check import HOST, Box, Check
from dgxcheck.checks.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.gaps import unjudged
from dgxcheck.checks.reference import expected
from dgxcheck.facts.network import NetInterface
from dgxcheck.profiles.model import Number
from dgxcheck.reading import Missing

Judged = Iterator[tuple[Subject, Judgement]]
_ARPHRD_ETHER = 1
_ETHERNET = 0x0200
"""PCI base class and subclass; Ethernet over USB, as a BMC offers it, has none."""


NONE = "no physical Ethernet interface has a carrier"


def cabled(box: Box) -> list[NetInterface] | Missing:
    """Physical Ethernet interfaces that have a carrier."""
    interfaces = box.snapshot.network
    if isinstance(interfaces, Missing):
        return interfaces
    return [each for each in interfaces if _chip(box, each) is not None and each.carrier is True]


def gbit_per_s(interface: NetInterface) -> float | Missing:
    """What an interface runs at."""
    speed = interface.speed_mbit
    return speed if isinstance(speed, Missing) else speed / 1000


def _ethernet(box: Box) -> Judged:
    found = cabled(box)
    if isinstance(found, Missing):
        yield HOST, unjudged(found)
        return
    if not found:
        yield HOST, skip("not-visible", NONE)
    functions = Counter(each.bdf for each in found)
    chips = [(each, _chip(box, each)) for each in found]
    for each, chip in chips:
        bdf = each.bdf if isinstance(each.bdf, str) else None
        part = each.name if functions[each.bdf] > 1 else ""  # a ConnectX-3 has two ports on one function
        siblings = [other for other, its in chips if its == chip and other != each]
        yield Subject(kind="interface", name=each.name, bdf=bdf, part=part), _judged(box, each, siblings)


def _chip(box: Box, interface: NetInterface) -> tuple[int | Missing, int | Missing] | None:
    """PCI vendor and device of a physical Ethernet interface; None for bridges, tunnels, IP over InfiniBand, USB."""
    if isinstance(interface.bdf, Missing) or interface.type != _ARPHRD_ETHER:
        return None
    function = box.topology.functions.get(interface.bdf)
    if function is None or isinstance(function.class_code, Missing) or function.class_code >> 8 != _ETHERNET:
        return None
    return function.vendor, function.device


def _judged(box: Box, interface: NetInterface, siblings: list[NetInterface]) -> Judgement:
    speed = gbit_per_s(interface)
    if isinstance(speed, Missing):
        return unjudged(speed)
    due = {other.name: its for other in siblings if not isinstance(its := gbit_per_s(other), Missing)}
    reference = expected(box, "host.ethernet")
    if isinstance(reference, Number) and box.choice is not None:
        due[box.choice.profile.name] = reference.value
    evidence = (Evidence(f"/sys/class/net/{interface.name}/speed", round(speed * 1000)),)
    who = max(due, key=lambda name: due[name], default="")
    if isinstance(reference, Judgement) and speed >= due.get(who, 0):
        return reference  # two that are equally slow prove nothing
    status = Status.WARN if speed < due[who] else Status.PASS
    message = f"runs at {speed:g} Gbit/s, {who} at {due[who]:g} Gbit/s"
    return Judgement(status, message, speed, due[who], "Gbit/s", evidence)


CHECKS = (
    Check(
        id="host.ethernet",
        rule="Warns where a physical Ethernet interface that has a carrier runs slower than the reference machine's, or"
        " than another with the same chip.",
        source="speed and carrier of /sys/class/net against the profile",
        remedy="change the cable, look at the switch port's speed and at ethtool INTERFACE for what was advertised",
        judge=_ethernet,
    ),
)
