"""Does an Ethernet interface run at the speed of the reference machine's?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.expected import expected
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.facts.host import NetInterface
from dgxcheck.facts.missing import Missing

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
    return [each for each in interfaces if _physical(box, each) and each.carrier is True]


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
    for each in found:
        bdf = each.bdf if isinstance(each.bdf, str) else None
        part = each.name if functions[each.bdf] > 1 else ""  # a ConnectX-3 has two ports on one function
        yield Subject(kind="interface", name=each.name, bdf=bdf, part=part), _judged(box, each, found)


def _physical(box: Box, interface: NetInterface) -> bool:
    """Is it Ethernet of a PCI function, not a bridge, a tunnel, IP over InfiniBand or USB?"""
    if isinstance(interface.bdf, Missing) or interface.type != _ARPHRD_ETHER:
        return False
    function = box.topology.functions.get(interface.bdf)
    return (
        function is not None and not isinstance(function.class_code, Missing) and function.class_code >> 8 == _ETHERNET
    )


def _judged(box: Box, interface: NetInterface, cabled: list[NetInterface]) -> Judgement:
    speed, due = interface.speed_mbit, expected(box, "host.ethernet")
    if isinstance(speed, Missing):
        return unjudged(speed)
    if isinstance(due, Judgement):
        return due
    evidence = (Evidence(f"/sys/class/net/{interface.name}/speed", speed),)
    speeds = {each.name: each.speed_mbit for each in cabled if not isinstance(each.speed_mbit, Missing)}
    fastest = max(speeds, key=lambda name: speeds[name])
    message = f"runs at {speed / 1000:g} Gbit/s, {due.value:g} Gbit/s expected"
    if speeds[fastest] / 1000 >= due.value:
        beside = f" and had by {fastest}" if speed / 1000 < due.value else ""
        return Judgement(Status.PASS, message + beside, speed / 1000, due.value, "Gbit/s", evidence)
    if len(speeds) < len(cabled):
        return skip("dependency-failed", f"{message}; the speed of another is not known", *evidence)
    if interface.name != fastest:
        return skip("dependency-failed", f"{message}: told at {fastest}, the fastest", *evidence)
    others = f", by none of {len(cabled)} with a carrier" if len(cabled) > 1 else ""
    return Judgement(Status.WARN, f"{message}{others}", speed / 1000, due.value, "Gbit/s", evidence)


CHECKS = (
    Check(
        id="host.ethernet",
        rule="Warns where no physical Ethernet interface that has a carrier runs at the reference machine's speed, at"
        " the fastest of them; a slower one beside one that does is no fault.",
        source="speed and carrier of /sys/class/net against the profile",
        remedy="change the cable, look at the switch port's speed and at ethtool INTERFACE for what was advertised",
        judge=_ethernet,
    ),
)
