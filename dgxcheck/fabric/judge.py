"""What is wrong with a fabric, each finding with both ends and what to do: GUIDs, islands, cabling, rates, errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from dgxcheck.checks.engine.finding import counted, first_of
from dgxcheck.fabric.cabling import as_most_have, as_planned
from dgxcheck.fabric.finding import VERDICTS, FabricFinding, Verdict, at_one, by_severity, handled
from dgxcheck.fabric.intent import Intent, Places, inferred, places_of
from dgxcheck.fabric.model import Cable, Fabric, Port, kind_of
from dgxcheck.fabric.plan import compared
from dgxcheck.fabric.port_settings import odd_settings
from dgxcheck.fabric.rates import slow_links
from dgxcheck.fabric.subnet import unmanaged
from dgxcheck.fabric.tiers import Tiers, tiers_of
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.infiniband import DOWNED, blaming
from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import gathered, median
from dgxcheck.readers.fabric.plan import PlannedCable
from dgxcheck.readers.fabric.rows import is_guid
from dgxcheck.settings import Settings


class Judged(Record):
    """A fabric, what it was meant to be, and what is not so."""

    fabric: Fabric
    tiers: Tiers
    places: Places
    intent: Intent
    findings: tuple[FabricFinding, ...]
    unread: tuple[str, ...]
    """Files that hold nothing of a fabric."""

    @property
    def verdict(self) -> Verdict:
        """The worst; unknown where nothing was to judge, as of adapters without any name, or to read."""
        words = {finding.status for finding in self.findings}
        named = any(adapter.name for adapter in self.fabric.adapters.values()) or not self.fabric.adapters
        words |= {"unknown"} if self.unread or not self.fabric.cables or not named else set()
        return next((word for word in VERDICTS if word in words), "pass")


_MOST_DOWNS = 50
"""Of a link, by reboots alone."""
_AGAIN = "save the counters, clear them, read them again under load; if they grow,"
_OF_ABSENCE = frozenset({Fault.CABLE_MISSING, Fault.UPLINKS_UNEVEN, Fault.SUBNET_SPLIT})
"""Faults that are seen from what an output does not have."""
_OF_PLUGS = frozenset({Fault.CABLE_SWAPPED, Fault.CABLE_MISPLACED})


def judge(
    fabric: Fabric, plan: Sequence[PlannedCable] | None = None, unread: Sequence[str] = (), cut: bool = False
) -> Judged:
    """By the plan, where there is one; else by what most systems do. What is absent from a ``cut`` output is not
    judged.
    """
    tiers = tiers_of(fabric)
    places = places_of(fabric)
    intent = inferred(places)
    found = [*_guids(fabric), *_names(fabric)]
    slower: Mapping[Cable, float] = {}
    if plan is None:
        found += as_most_have(fabric, tiers, places, intent)
    else:
        planned = compared(fabric, tiers, plan)
        intent = Intent(planned=True, schemes=intent.schemes, homes=planned.of_adapters)
        slower = planned.slower
        found += as_planned(fabric, tiers, places, planned)
    elsewhere = {end for finding in found if finding.fault in _OF_PLUGS for end in finding.ends}
    found += [*unmanaged(fabric, tiers), *_islands(fabric, tiers, intent, places, elsewhere)]
    found += [*slow_links(fabric, tiers, slower), *_errors(fabric), *odd_settings(fabric)]
    found = [finding for finding in found if not (cut and finding.fault in _OF_ABSENCE)]
    return Judged(fabric=fabric, tiers=tiers, places=places, intent=intent,
                  findings=by_severity(handled(found, fabric)), unread=tuple(unread))  # fmt: skip


def _guids(fabric: Fabric) -> Iterator[FabricFinding]:
    """One that two devices have: both answer as the same end of two cables, or under two descriptions."""
    guids = gathered((port[0], peer) for port, peers in fabric.claimed.items() for peer in peers)
    doubled = {guid for guid in guids if not all(peer[0] in guids and len(guids[peer[0]]) > 1 for peer in guids[guid])}
    for guid in sorted(doubled | {guid for guid, names in fabric.described.items() if _several(names)}):
        if not is_guid(guid):
            continue
        names = fabric.described.get(guid, ())
        at = [fabric.shown(port) for port in guids.get(guid, ())]
        what = fabric.adapters[guid].shown if guid in fabric.adapters else fabric.switch(guid)
        seen = f"at {first_of(at)}" if at else f"as {first_of(names)}"
        yield FabricFinding(
            fault=Fault.GUID_DUPLICATE, status="fail", ends=(what, *at),
            message=f"{what}: GUID 0x{guid} is seen {seen}: two devices have it, or these outputs are of"
            " different times",
            action="read all outputs again at one time; if it stays, ask the vendor for a GUID of its own",
        )  # fmt: skip


def _names(fabric: Fabric) -> Iterator[FabricFinding]:
    """Adapters of one description: nobody can tell which of them is which, so that none is judged."""
    for host, adapters in fabric.doubled.items():
        names = sorted({adapter.description for adapter in adapters})
        yield FabricFinding(
            fault=Fault.NODE_NAME, status="warn", ends=tuple(adapter.shown for adapter in adapters),
            message=f"{host}: {len(adapters)} adapters have {counted(len(names), 'node description')}, so that their"
            " cables are not judged",
            action=Fault.NODE_NAME.remedy,
        )  # fmt: skip


def _several(names: Sequence[str]) -> bool:
    """Descriptions of one device that differ in more than a host name that is not set yet."""
    return len({name.split()[0] for name in names if "localhost" not in name and "Mellanox" not in name}) > 1


def _islands(
    fabric: Fabric, tiers: Tiers, intent: Intent, places: Places, elsewhere: Collection[str]
) -> Iterator[FabricFinding]:
    """Adapters of one name that do not reach each other, each at its own place; rails and planes are no fault, and
    adapters ``elsewhere`` are found by their cables.

    Hosts alone tell no link between switches (lldpctl).
    """
    if not any(tiers.uplinks.values()):
        return
    systems: dict[tuple[str, str], dict[int, list[str]]] = {}
    for host, adapters in places.items():
        for name, place in adapters.items():
            if f"{host} {name}" in elsewhere:
                continue
            switch = intent.homes.get((host, name), place)[0]
            systems.setdefault(kind_of(host, name), {}).setdefault(tiers.island[switch], []).append(host)
    reported: set[frozenset[str]] = set()
    for (_, name), islands in systems.items():
        largest = max(islands.values(), key=len)
        for island, hosts in islands.items():
            switches = sorted(fabric.switch(guid) for guid, number in tiers.island.items() if number == island)
            if hosts is largest or frozenset(switches) in reported:
                continue
            reported.add(frozenset(switches))
            yield FabricFinding(
                fault=Fault.SUBNET_SPLIT, status="fail", ends=(*switches,),
                message=f"{first_of(switches)} with {name} of {first_of(sorted(hosts))}: no link to the switches of"
                f" {name} of the other {counted(len(largest), 'system')}",
                action=f"look at the uplinks of {first_of(switches)}: cables, ports and power of the switches above",
            )  # fmt: skip


def _errors(fabric: Fabric) -> Iterator[FabricFinding]:
    """Counters of the link itself: those of congestion are no fault of a cable. A cable is named once.

    A reboot takes a link down as well, so that most adapters may have as many of these as a bad one; more than
    reboots explain are a fault of all.
    """
    limits = dict.fromkeys(blaming("cable"), Settings().limit("network.errors"))
    downs = [max(fabric.errors.get(end, {}).get(DOWNED, 0) for end in cable.ends)
             for cable in fabric.cables if fabric.adapters.keys() & {cable.end[0], cable.peer[0]}]  # fmt: skip
    usual = median(downs or [0])
    common = usual > _MOST_DOWNS
    limits[DOWNED] = max(limits[DOWNED], 2 * usual if common else min(2 * usual, _MOST_DOWNS))
    if common:
        yield FabricFinding(
            fault=Fault.PORT_ERRORS, status="warn", ends=(),
            message=f"half of the links of adapters went down {usual:g} times or more since the counters were cleared",
            action=f"{_AGAIN} look at what all links share, as the firmware of switches and adapters, before any cable",
        )  # fmt: skip
    found: dict[tuple[Port, Port], str] = {}
    for port, counts in fabric.errors.items():
        far = fabric.far(port)
        if far is None:
            continue
        bad, beyond = (
            ", ".join(f"{name} {count}" for name, count in each.items() if count > limits.get(name, count))
            for each in (counts, fabric.errors.get(far, {}))
        )
        if bad and (far, port) not in found:
            found[port, far] = f"{bad}{f'; at the other end {beyond}' if beyond else ''}"
    totals = Counter(map(fabric.node, fabric.at))
    for name, own in at_one(found, lambda ends: filter(None, map(fabric.node, ends)), totals):
        yield FabricFinding(
            fault=Fault.PORT_ERRORS, status="warn", ends=(name,),
            message=f"{name}: errors at {len(own)} of {counted(totals[name], 'link')} since the counters were cleared",
            action=f"{_AGAIN} look at what these links share at {name}, as its temperature, power and firmware, before"
            " any cable",
        )  # fmt: skip
    for plugs, bad in found.items():
        ends = fabric.shown(plugs[0]), fabric.shown(plugs[1])
        yield FabricFinding(
            fault=Fault.PORT_ERRORS, status="warn", ends=ends, plugs=plugs,
            message=f"{ends[0]} - {ends[1]}: {bad} since the counters were cleared",
            action=f"{_AGAIN} reseat, then replace this cable",
        )  # fmt: skip
