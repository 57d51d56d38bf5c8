"""Links below the rate of their kind: each alone, and those that one switch or system slows as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter

from dgxcheck.checks.engine.finding import first_of
from dgxcheck.fabric.finding import FabricFinding
from dgxcheck.fabric.model import Adapter, Cable, Fabric, Port, kind_of
from dgxcheck.fabric.tiers import Tiers
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.sysfs import cpulist, runs_of
from dgxcheck.facts.typical import gathered, majority, median

_MANY = 1 / 3
"""Of two rates that are about as common, the faster is that of at least this share."""
_FEW = 3
"""More slow links of one switch or host have a reason there, if they are most of its own or the others have few."""
_APART = 4
"""Times as many as the others have on average."""
_LINKS = {"host": "links", "below": "links to adapters", "switch": "links to other switches"}
Rate = tuple[float, str]
"""Gbit/s, and as it is shown: ``4x EDR``."""
Group = tuple[str, ...]
"""Links that are compared: ``("adapter", "dgx", "mlx5_3")``, ``("below", GUID)``, ``("between", "0", "dgx", "4x NDR")``
of those from leaves with such adapters."""
Usual = tuple[float, str, str]
"""The rate of a group, and where it is found: ``at most others``."""
_gbit = itemgetter(0)


def slow_links(fabric: Fabric, tiers: Tiers, planned: Mapping[Cable, float]) -> Iterator[FabricFinding]:
    """Below the Gbit/s that are planned, the rate of the same adapter in alike systems, or what iblinkinfo says that
    both ports support; between switches below that of the other links of both, or of those from switches like the lower
    one."""
    cables = [cable for cable in fabric.cables if cable.gbit]
    kinds = {cable: adapter for cable in cables if (adapter := fabric.adapter_of(cable)) is not None}
    usual = _of_adapters(kinds)
    between = _between(cables, kinds, usual, tiers)
    parts = {cable: _parts(cable, kinds.get(cable)) for cable in cables}
    seen = _counted((part, cable) for cable in cables for part in parts[cable])
    usual |= _of_tiers(between) | {part: (*most, "at most others") for part, rates in seen.items()
                                   if (most := majority(rates)) is not None}  # fmt: skip
    slower = {cable: f"{gbit:g} Gbit/s planned" for cable, gbit in planned.items()}
    for cable in cables:
        own = kinds.get(cable)
        of_switches = (_of_both(cable, usual), usual.get(between.get(cable, ())))
        for rate in of_switches if own is None else (usual.get(_group(own)),):
            if rate is not None and rate[0] > cable.gbit:
                slower.setdefault(cable, " ".join(rate[1:]))
    could = {cable: cable.could for cable in cables if cable.could}
    if 2 * len(could) < len(cables):  # most are slower on purpose, or their cables are of another kind than the ports
        slower = could | slower
    return _findings(slower, parts, seen, fabric)


def _group(adapter: Adapter) -> Group:
    return "adapter", *kind_of(adapter.host, adapter.name)


def _parts(cable: Cable, adapter: Adapter | None) -> list[Group]:
    """The host and switches that may be why it is slow."""
    kind = "switch" if adapter is None else "below"
    ends = [(kind, guid) for guid, _ in cable.ends if adapter is None or guid != adapter.guid]
    return [*ends, *([("host", adapter.host)] if adapter is not None and adapter.host else [])]


def _rate(cable: Cable) -> Rate:
    return cable.gbit, cable.rate


def _counted(pairs: Iterable[tuple[Group, Cable]]) -> dict[Group, Counter[Rate]]:
    return {group: Counter(map(_rate, cables)) for group, cables in gathered(pairs).items()}


def _fastest(rates: Counter[Rate]) -> Rate | None:
    """Of those that no few have."""
    return max((rate for rate, count in rates.items() if count >= _MANY * rates.total()), key=_gbit, default=None)


def _of_adapters(kinds: Mapping[Cable, Adapter]) -> dict[Group, Usual]:
    """What most have; the faster of two rates where the other adapters of the slower systems run at it: a switch slows
    half of the systems where they are on two."""
    hosts = _counted((("host", adapter.host), cable) for cable, adapter in kinds.items() if adapter.host)
    found: dict[Group, Usual] = {}
    for group, cables in gathered((_group(adapter), cable) for cable, adapter in kinds.items()).items():
        rates = Counter(map(_rate, cables))
        most, fast = majority(rates), _fastest(rates)
        if most is not None:
            found[group] = *most, "at most others"
        if fast is None or fast == most:
            continue
        others: Counter[Rate] = Counter()
        for cable in cables:
            if cable.gbit < fast[0]:
                others += hosts.get(("host", kinds[cable].host), Counter()) - Counter([_rate(cable)])
        if others and majority(others) == fast:
            found[group] = *fast, "at most other adapters of these systems"
    return found


def _between(
    cables: Sequence[Cable], kinds: Mapping[Cable, Adapter], usual: Mapping[Group, Usual], tiers: Tiers
) -> dict[Cable, Group]:
    """Links to switches a tier up by what is below the lower one; without those to a switch that has far fewer links
    than the others, as it may be of another kind."""
    below: dict[str, Counter[Group]] = {}
    for cable, adapter in kinds.items():
        group = _group(adapter)
        for _, guid in _parts(cable, adapter)[:1]:
            rate = usual[group][1] if group in usual else ""
            below.setdefault(guid, Counter())[group[1], rate] += 1
    found: dict[Cable, tuple[Group, str]] = {}
    for cable in cables:
        lower, upper = sorted((cable.end[0], cable.peer[0]), key=lambda guid: tiers.of.get(guid, -1))
        tier = tiers.of.get(lower, -1)
        if cable not in kinds and tier >= 0 and tiers.of.get(upper) == tier + 1:
            carried = below[lower].most_common(1)[0][0] if lower in below else ("", "")
            found[cable] = ("between", str(tier), *carried), upper
    links = Counter(found.values())
    usually = {group: median(counts) for group, counts in
               gathered((group, count) for (group, _), count in links.items()).items()}  # fmt: skip
    return {cable: group for cable, (group, upper) in found.items() if 2 * links[group, upper] >= usually[group]}


def _of_tiers(between: Mapping[Cable, Group]) -> dict[Group, Usual]:
    found: dict[Group, Usual] = {}
    for group, rates in _counted((group, cable) for cable, group in between.items()).items():
        most, fast = majority(rates), _fastest(rates)
        if most is not None:
            found[group] = *most, "at most others"
        elif fast is not None and fast[1] == group[-1]:
            found[group] = *fast, "at the adapters below"
    return found


def _of_both(cable: Cable, usual: Mapping[Group, Usual]) -> Usual | None:
    """The slower of what its two switches have: each the faster of its links to switches and of those to adapters."""
    ends = [[usual[part, guid] for part in ("switch", "below") if (part, guid) in usual]
            for guid, _ in cable.ends]  # fmt: skip
    return min((max(rates, key=_gbit) for rates in ends if rates), key=_gbit, default=None)


def _findings(
    slower: dict[Cable, str], parts: Mapping[Cable, Sequence[Group]], seen: Mapping[Group, Counter[Rate]],
    fabric: Fabric,
) -> Iterator[FabricFinding]:  # fmt: skip
    shared = gathered((part, cable) for cable in slower for part in parts[cable])
    everywhere = {kind: sum(len(cables) for part, cables in shared.items() if part[0] == kind) for kind in _LINKS}
    number = Counter(part[0] for part in seen)
    left = dict(slower)
    odd: dict[str, list[tuple[Group, list[Cable]]]] = {}
    most = {part: 2 * len(cables) > seen[part].total() for part, cables in shared.items()}
    for part, cables in sorted(shared.items(), key=lambda pair: (not most[pair[0]], -len(pair[1]))):
        own = [cable for cable in cables if cable in left]
        elsewhere = (everywhere[part[0]] - len(cables)) / max(1, number[part[0]] - 1)
        if len(own) > _FEW and (2 * len(own) > seen[part].total() or len(own) >= _APART * elsewhere):
            odd.setdefault(part[1], []).append((part, own))
            for cable in own:
                del left[cable]
    for found in odd.values():
        yield _of_one(found, slower, seen, fabric)
    for cable, usual in left.items():
        yield _slow(fabric, cable, usual)


def _slow(fabric: Fabric, cable: Cable, usual: str) -> FabricFinding:
    """A cable below the rate that ``usual`` tells."""
    ends = fabric.shown(cable.end), fabric.shown(cable.peer)
    return FabricFinding(
        fault=Fault.PORT_SLOW, status="warn", ends=ends, plugs=cable.ends,
        message=f"{ends[0]} - {ends[1]}: {cable.rate}, {usual}", action=Fault.PORT_SLOW.remedy,
    )  # fmt: skip


def _of_one(
    found: Sequence[tuple[Group, Sequence[Cable]]], slower: Mapping[Cable, str], seen: Mapping[Group, Counter[Rate]],
    fabric: Fabric,
) -> FabricFinding:  # fmt: skip
    """Many links of one switch or host; where they are not most of its own, with the numbers of their ports."""
    (kind, own), cables = found[0][0], [cable for _, links in found for cable in links]
    name = own if kind == "host" else fabric.switch(own)
    ends = [end for cable in cables for end in cable.ends]
    counts = []
    for part, links in found:
        total = seen[part].total()
        some = "" if 2 * len(links) > total else f" of {total}"
        at = ports_of([end for end in ends if end[0] == own], fabric) if some and kind != "host" else ""
        counts.append(f"{len(links)}{some} {_LINKS[part[0]]}{at and f' ({at})'}")
    rates = " and ".join(dict.fromkeys(cable.rate for cable in cables))
    adapters = [fabric.shown(end) for end in ends if kind == "host" and end[0] in fabric.adapters]
    return FabricFinding(
        fault=Fault.PORT_SLOW, status="warn", ends=(name, *adapters),
        message=f"{name}: {' and '.join(counts)} at {rates}, {slower[cables[0]]}",
        action="compare the speeds that its ports enable (ibportstate) and the kind of its cables and firmware with"
        " those of the others beside it, before any cable is moved",
    )  # fmt: skip


def ports_of(ports: Sequence[Port], fabric: Fabric) -> str:
    """``ports 1-8`` of one switch; of one ``port 1``"""
    labelled = not fabric.labels.keys().isdisjoint(ports)
    shown = (first_of([fabric.labels.get(port, str(port[1])) for port in ports]) if labelled
             else cpulist(runs_of(sorted(number for _, number in ports))))  # fmt: skip
    return f"port{'s' if len(ports) > 1 else ''} {shown}"
