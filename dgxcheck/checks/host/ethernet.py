"""Ethernet: the speed of the fastest interface, how often each lost its carrier; which one, or IPoIB, sent nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from dgxcheck.checks.engine import host_limits
from dgxcheck.checks.engine.box import HOST, Box, Growth, guest
from dgxcheck.checks.engine.check import Check, Judge, remedy_of, ruled, saying
from dgxcheck.checks.engine.expected import expected
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, Subject, counted, judged, skip, unless
from dgxcheck.checks.engine.growth import (
    COMES_UP_S,
    DAY_S,
    counter_growth,
    duration,
    flaps,
    flood,
    log_end,
    rate,
    uptime,
)
from dgxcheck.facts.bdf import card_of
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.host import NetInterface, had_carrier
from dgxcheck.facts.ids import NETWORK
from dgxcheck.facts.kernel_log import HostEvent, is_near
from dgxcheck.facts.missing import Json, Missing, known, need, or_gap, rows
from dgxcheck.xid.relations import WINDOW_S

_ARPHRD_ETHER, _ARPHRD_INFINIBAND = 1, 32
_ETHERNET = 0x0200
"""PCI base class and subclass; Ethernet over USB, as a BMC offers it, has none."""
NO_CARRIER = "no physical Ethernet interface has a carrier"


@or_gap
def connected(box: Box) -> list[NetInterface]:
    """Physical Ethernet interfaces that have a carrier."""
    return [each for each in need(box.snapshot.network) if _physical(box, each) and each.carrier is True]


@or_gap
def gbit_per_s(interface: NetInterface) -> float:
    """Speed of an interface in Gbit/s."""
    return need(interface.speed_mbit) / 1000


def _per_interface(
    rule: Callable[[Box, NetInterface, list[NetInterface]], Judgement],
    chosen: Callable[[Box], list[NetInterface] | Missing] = connected,
) -> Judge:
    def judge(box: Box) -> Judged:
        interfaces = need(chosen(box))
        if not interfaces:
            yield HOST, skip("not-visible", NO_CARRIER)
        functions = Counter(interface.bdf for interface in interfaces)
        for each in interfaces:
            bdf = each.bdf if isinstance(each.bdf, str) else None
            part = each.name if functions[each.bdf] > 1 else ""  # a ConnectX-3 has two ports on one function
            yield Subject(kind="interface", name=each.name, bdf=bdf, part=part), ruled(rule, box, each, interfaces)

    return saying(rule, judge)


def _physical(box: Box, interface: NetInterface) -> bool:
    """Is it Ethernet of a PCI function, not a bridge, a tunnel, IP over InfiniBand or USB?"""
    return interface.type == _ARPHRD_ETHER and box.subclass(known(interface.bdf)) == _ETHERNET


def _speed(box: Box, interface: NetInterface, interfaces: list[NetInterface]) -> Judgement:
    """Warns if no physical Ethernet interface that has a carrier runs at the reference machine's speed, where that is
    not known below {network.ethernet}; the finding is at the fastest of them. A slower interface beside one at full
    speed is not a fault, but one that is slower than in an earlier run is, for a day: then its speed counts as meant.
    A guest's is what its hypervisor calls it.

    Source: speed and carrier of /sys/class/net against the profile; IEEE 802.3: 1000BASE-T needs four pairs of wires,
    100BASE-TX two
    """
    mbit = need(interface.speed_mbit)
    evidence = (Evidence(f"/sys/class/net/{interface.name}/speed", mbit),)
    if isinstance(was := _before(box, interface), int) and mbit < was:
        date = "" if box.kept is None else box.kept.date
        message = f"{mbit / 1000:g} Gbit/s, was {was / 1000:g} Gbit/s in the run of {date}"
        return judged(Fault.ETHERNET_SLOW, message, mbit / 1000, was / 1000, "Gbit/s", evidence, warns=True)
    speeds = {each.name: each.speed_mbit for each in interfaces if not isinstance(each.speed_mbit, Missing)}
    fastest = max(speeds, key=lambda name: speeds[name])
    required = _required(box, speeds[fastest])
    message = f"{mbit / 1000:g} Gbit/s, expected {required:g} Gbit/s"
    if speeds[fastest] / 1000 >= required:
        another = f"; {fastest} has it" if mbit / 1000 < required else ""
        return Judgement(Status.PASS, message + another, mbit / 1000, required, "Gbit/s", evidence)
    if len(speeds) < len(interfaces):
        return skip("dependency-failed", f"{message}; the speed of another interface is not known", *evidence)
    if interface.name != fastest:
        return skip("dependency-failed", f"{message}; see {fastest}, the fastest", *evidence)
    others = f"; fastest of {len(interfaces)} with a carrier" if len(interfaces) > 1 else ""
    figures = (mbit / 1000, required, "Gbit/s")
    return judged(Fault.ETHERNET_SLOW, message + others, *figures, evidence, warns=True)


def _before(box: Box, interface: NetInterface) -> Json:
    """Its speed in Mbit/s in an earlier run on this host, which is kept by PCI function, or where several share one by
    name; None where there is none to compare with."""
    if box.kept is None or host_limits.is_assigned(box):
        return None
    owners = (box.kept.values.get(f"NetInterface {each}", {}) for each in (interface.bdf, interface.name))
    return next((owner["NetInterface.speed_mbit"] for owner in owners if "NetInterface.speed_mbit" in owner), None)


def _required(box: Box, fastest_mbit: int) -> float:
    """Gbit/s of the reference machine; where none is known, those below which any such machine has a bad cable."""
    reference, least = expected(box, "host.ethernet"), box.settings.limit("network.ethernet")
    if isinstance(reference, Judgement):
        unless(reference if fastest_mbit >= least or guest(box) is not None else None)
        return least / 1000
    return reference.value


@or_gap
def _with_cable(box: Box) -> list[NetInterface]:
    """Those that have a carrier; those that had one, or were to send, so that there is a cable, or was one; of IP over
    InfiniBand those that were to send; of a log alone those that sent nothing, where no adapter stands for them.
    """
    if isinstance(gap := box.snapshot.network, Missing):
        stalled = (each.line for each in box.log.hcas if each.trouble == "stalled")
        known = {word.strip(":,()") for line in stalled for word in line.split()}
        silent = dict.fromkeys(each.part for each in box.log.host if each.trouble == "sends nothing")
        read = {"operstate": gap, "carrier": gap, "speed_mbit": gap, "carrier_down_count": gap, "mtu": gap, "type": gap}
        return [NetInterface(name=name, mac=gap, bdf=gap, **read) for name in silent if name not in known] or need(gap)
    up, limit = need(connected(box)), box.settings.limit("network.carrier")
    without = [each for each in rows(box.snapshot.network) if each not in up and _physical(box, each)]
    return [
        *up,
        *(each for each in rows(box.snapshot.network) if _is_ipoib(box, each) and _silent(box, each)),
        *(each for each in without
          if _silent(box, each) or _lost(each) > limit or _flaps(box, each, limit) or _is_unplugged(box, each)),
    ]  # fmt: skip


def _is_ipoib(box: Box, interface: NetInterface) -> bool:
    return interface.type == _ARPHRD_INFINIBAND and box.subclass(known(interface.bdf)) >> 8 == NETWORK


def _is_unplugged(box: Box, interface: NetInterface) -> bool:
    """Has it no carrier, and had one or shares a bond? A port of an RDMA device is network.port-state's."""
    own = interface.bdf not in {device.bdf for device in rows(box.snapshot.infiniband)}
    alone = sum(each.bdf == interface.bdf for each in rows(box.snapshot.network)) == 1  # representors share a function
    meant = _is_bonded(box, interface) or (own and had_carrier(interface))
    return alone and interface.carrier is False and meant


def _is_bonded(box: Box, interface: NetInterface) -> bool:
    """Is it a port of an adapter whose ports are one RDMA device, which another of them keeps up?

    Linux drivers/infiniband/hw/mlx5/main.c: mlx5_bond_%d of a LAG.
    """
    card = card_of(interface.bdf) if isinstance(interface.bdf, str) else None
    of_one = any(card_of(str(device.bdf)) == card and device.name.startswith("mlx5_bond_")
                 for device in rows(box.snapshot.infiniband))  # fmt: skip
    beside = (each for each in rows(box.snapshot.network) if card_of(str(each.bdf)) == card)
    return of_one and any(each.carrier is True for each in beside)


def _lost(interface: NetInterface) -> int:
    return known(interface.carrier_down_count) or 0


def _silent(box: Box, interface: NetInterface) -> list[HostEvent]:
    """What the kernel logged of its transmit queues."""
    return [each for each in box.log.host if (each.trouble, each.part) == ("sends nothing", interface.name)]


def _stalled(box: Box, interface: NetInterface, silent: list[HostEvent]) -> Judgement:
    message = f"its transmit queue timed out {counted(len(silent), 'time')}"
    evidence = (Evidence("kernel log", silent[-1].line),)
    locked = [each.seconds for each in box.log.host if each.trouble == "hung" and each.of_cpus]
    if any(is_near(each.seconds, locked, _BESIDE_S) for each in silent):
        return skip("dependency-failed", f"{message} as CPUs locked up; see kernel.hung-task", *evidence)
    adapter = [each.seconds for each in box.log.hcas if each.trouble == "stalled" and each.bdf == interface.bdf]
    if adapter and all(is_near(each.seconds, adapter, WINDOW_S) for each in silent):
        return skip("dependency-failed", f"{message}, as its adapter's driver logged; see kernel.hca", *evidence)
    remedy = remedy_of("host.carrier", "IPoIB stalled" if _is_ipoib(box, interface) else "stalled")
    return judged(Fault.HCA_STALLED, message, len(silent), 0, "", evidence, warns=True, remedy=remedy)


_BESIDE_S = 300.0


def _carrier(box: Box, interface: NetInterface, _: list[NetInterface]) -> Judgement:
    """Warns if an Ethernet interface lost its carrier more than {network.carrier} over the whole time since boot,
    whether it has one now or not, which RoCE and storage feel as stalls; not judged where more were lost and that time
    is not known, nor where the kernel log goes back so far and has fewer links down of a driver that logs them
    (mlx5_core, ixgbe, i40e, ice, bnxt_en, tg3), which takes the carrier away when its settings are changed, too. Warns
    if it has none, but lost one twice, so that it had one. InfiniBand counts the same in link_downed. Warns also if so
    many were lost between two readings or, by the kernel log, within the last day (the first minutes after boot apart,
    and not of an interface that was set down; those within half a minute are one), and if that log says that its
    transmit queue timed out while no CPU locked up, that of IP over InfiniBand, too; and of an adapter whose ports are
    bonded if one has none.

    Source: carrier_down_count of /sys/class/net since Linux 4.16; threshold of Azure's node checks; kernel log
    (net/sched/sch_generic.c; mlx5 en_main.c and others)
    """
    if silent := _silent(box, interface):
        return _stalled(box, interface, silent)
    if _is_unplugged(box, interface) and _lost(interface) <= box.settings.limit("network.carrier"):
        where = (Evidence(f"/sys/class/net/{interface.name}/carrier", False),)
        message = f"no carrier, and it had one since boot (lost {_lost(interface)} times)"
        if _is_bonded(box, interface):
            message = "no carrier, and its adapter is bonded: the bond lacks this link"
        remedy = remedy_of("host.carrier", "no carrier")
        return judged(Fault.ETHERNET_DOWN, message, evidence=where, warns=True, remedy=remedy)
    limit = box.settings.limit("network.carrier")
    if lost_at := _flaps(box, interface, limit):
        when = f"within {duration(lost_at[-1].seconds - lost_at[0].seconds)}"
        return _often(interface, len(lost_at), limit, when, Evidence("kernel log", lost_at[-1].line))
    lost = need(interface.carrier_down_count)
    evidence = Evidence(f"/sys/class/net/{interface.name}/carrier_down_count", lost)
    if (grown := _grown(box, interface)) is not None and rate(*grown, DAY_S) > limit:
        number, growth = grown
        logged = _logged(box, interface, growth.seconds) if growth.logged else None
        if logged is None or rate(logged, growth, DAY_S) > limit:
            return _often(interface, number, limit, _by_whom(growth.how, logged), evidence)
    since, logged = flood(box, lost, None, limit, DAY_S), _logged(box, interface, uptime(box))
    if since is not None and (logged is None or flood(box, logged, None, limit, DAY_S)):
        return _often(interface, lost, limit, _by_whom(since, logged), evidence)
    if since is not None:
        message = f"lost its carrier {counted(lost, 'time')}, {logged} of them by the link, as its driver logs those"
        return Judgement(Status.PASS, message, logged, limit, "a day", (evidence,))
    if lost > limit and uptime(box) is None:
        return skip("no-history", f"lost its carrier {lost} times, and the time since boot is not known", evidence)
    return Judgement(Status.PASS, f"lost its carrier {counted(lost, 'time')}", lost, limit, "a day", (evidence,))


def _often(interface: NetInterface, number: int, limit: float, when: str, evidence: Evidence) -> Judgement:
    message = f"lost its carrier {counted(number, 'time')} {when} ({limit:g} a day allowed)"
    facts, remedy = (number, limit, "a day", (evidence,)), remedy_of("host.carrier")
    return judged(Fault.PORT_ERRORS, message, *facts, warns=True, remedy=remedy)


def _grown(box: Box, interface: NetInterface) -> tuple[int, Growth] | None:
    """How often it lost its carrier between two readings; None where it was not read twice, or its driver was loaded
    in between.
    """
    growth = box.growth
    if isinstance(growth, Judgement):
        return None
    read = (each.carrier_down_count for facts in (growth.old, growth.new)
            for each in rows(facts.network) if each.name == interface.name)  # fmt: skip
    grown = counter_growth(*counts) if len(counts := [*read]) == 2 else None
    return (grown, growth) if isinstance(grown, int) else None


def _flaps(box: Box, interface: NetInterface, limit: float) -> list[HostEvent]:
    """What its driver logged; none of an interface that was set down."""
    if isinstance(interface.carrier, Missing):
        return []
    own = [each for each in box.log.host if (each.trouble, each.part) == ("link down", interface.name)]
    return flaps(box, own, limit)


def _logged(box: Box, interface: NetInterface, seconds: float | None) -> int | None:
    """How often the link went down in so many seconds before the log was read, as its driver logs it; None where the
    log does not go back so far, or the driver may log nothing.

    mlx5 takes the carrier away for a new MTU, ring or number of channels, too, and then logs nothing (en_main.c).
    """
    function = box.topology.functions.get(interface.bdf) if isinstance(interface.bdf, str) else None
    if function is None or function.driver not in _LOGGING or seconds is None or not box.log.timed:
        return None
    since = log_end(box) - seconds
    if isinstance(box.log.begins, Missing) or box.log.begins > max(since, COMES_UP_S):
        return None
    return sum(each.trouble == "link down" and each.seconds >= since
               and (each.part == interface.name or function.bdf in each.line) for each in box.log.host)  # fmt: skip


def _by_whom(when: str, logged: int | None) -> str:
    return when if logged is not None else f"{when}, by the link or its driver"


_LOGGING = frozenset({"mlx5_core", "ixgbe", "i40e", "ice", "bnxt_en", "tg3"})
"""Drivers that log each time that the link goes down in the words of kernel_messages/host.py, and take the carrier away
for other reasons."""


CHECKS = (
    Check("host.ethernet", _per_interface(_speed)),
    Check("host.carrier", _per_interface(_carrier, _with_cable)),
)  # fmt: skip
