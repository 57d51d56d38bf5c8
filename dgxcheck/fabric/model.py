"""Switches, adapters and the cables between them, out of what tools printed of both ends."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from dgxcheck.facts.infiniband import LANE_GBIT, PortState
from dgxcheck.facts.record import Record, replace
from dgxcheck.facts.typical import gathered
from dgxcheck.readers.fabric.any_fabric import Errors, FabricText
from dgxcheck.readers.fabric.rows import End, PortRow, is_guid

Port = tuple[str, int]
"""GUID of a switch, or of the port of an adapter, and the number of the port."""
ANY = 0
"""In place of a port's number: whichever port of that switch."""
Plug = tuple[str, str]
"""Host and adapter: ``("dgx005", "mlx5_1")``."""


class Adapter(Record):
    """One port of an HCA."""

    guid: str
    host: str
    """Empty where the description names none."""
    name: str
    """``mlx5_1``, ``mlx4_0 port 2``; empty as the host is."""
    description: str

    @property
    def shown(self) -> str:
        """``dgx005 mlx5_1``"""
        return f"{self.host} {self.name}" if self.name else f"{self.description or 'adapter'} {_shown_node(self.guid)}"


class Switch(Record):
    guid: str
    name: str
    """The only one of this name."""
    description: str


class Cable(Record, kw_only=False):
    """What joins two ports."""

    end: Port
    peer: Port
    lanes: int
    speed: str
    could: str = ""
    """``could be 4X``, by iblinkinfo."""

    @property
    def ends(self) -> tuple[Port, Port]:
        """Both ports."""
        return self.end, self.peer

    @property
    def gbit(self) -> float:
        """Gbit/s; 0 where it is not told."""
        return self.lanes * LANE_GBIT.get(self.speed, 0.0)

    @property
    def rate(self) -> str:
        """``4x EDR``"""
        return f"{self.lanes}x {self.speed}"


class Fabric(Record):
    """All that was discovered."""

    switches: Mapping[str, Switch]
    adapters: Mapping[str, Adapter]
    cables: tuple[Cable, ...]
    at: Mapping[Port, Cable]
    """Of both of its ends."""
    claimed: Mapping[Port, tuple[Port, ...]]
    """Ports that several others say they are joined with."""
    described: Mapping[str, tuple[str, ...]]
    """Descriptions of a GUID that has several."""
    errors: Mapping[Port, Errors]
    labels: Mapping[Port, str]
    """What is printed on the switches beside the ports, also those without a link."""
    lids: Mapping[Port, int]
    """0 where no subnet manager gave one; without ports of which no text has the LID."""
    states: Mapping[Port, PortState]
    """Of the ports whose state a text has."""
    mtus: Mapping[Port, int]
    """Bytes of the largest frame, of the ports of which a text has it."""
    disabled: frozenset[Port]
    """Ports that were taken down by hand, and are not up in any text."""

    @property
    def nameless(self) -> tuple[Adapter, ...]:
        """Adapters whose description names no host, or another adapter as well."""
        return tuple(adapter for adapter in self.adapters.values() if not adapter.name)

    @property
    def doubled(self) -> Mapping[str, Sequence[Adapter]]:
        """By host, the adapters whose description another one has too."""
        return gathered((host, adapter) for adapter in self.nameless if (host := _named(adapter.description)[0]))

    def far(self, port: Port) -> Port | None:
        """The other end of the cable in it."""
        cable = self.at.get(port)
        return None if cable is None else cable.peer if cable.end == port else cable.end

    def adapter_of(self, cable: Cable) -> Adapter | None:
        """The adapter at an end of it; None between switches."""
        return next((self.adapters[guid] for guid, _ in cable.ends if guid in self.adapters), None)

    def shown(self, port: Port) -> str:
        """``leaf01 port 7``, ``dgx005 mlx5_1``, ``leaf01`` for any port of it"""
        if port[0] in self.adapters:
            return self.adapters[port[0]].shown
        if port[1] == ANY:
            return self.switch(port[0])
        return f"{self.switch(port[0])} {self.labels.get(port) or f'port {port[1]}'}"

    def node(self, port: Port) -> str:
        """Name of the system or switch; empty for an adapter whose description names no host."""
        return self.adapters[port[0]].host if port[0] in self.adapters else self.switch(port[0])

    def switch(self, guid: str) -> str:
        """Its name."""
        return self.switches[guid].name if guid in self.switches else guid


_NUMBER = re.compile(r"\d+", flags=re.ASCII)


def unnumbered(name: str) -> str:
    """``dgx#`` of dgx020 and of dgx021.example.com, ``mlx5_#`` of mlx5_3."""
    return _NUMBER.sub("#", name.partition(".")[0])


def kind_of(host: str, name: str) -> tuple[str, str]:
    """The same for an adapter of that name in all systems whose names differ in numbers alone, or in their domain."""
    return unnumbered(host), name


_OF_HOST = re.compile(r"(?!MT\d{3,6}\s)(?P<host>\S{1,100})\s{1,8}(?P<name>[A-Za-z]\S{0,40}\d)", flags=re.ASCII)
"""Not the model that stands there until rdma-ndd ran: ``MT4129 ConnectX7   Mellanox Technologies``."""
_SWITCH = re.compile(r"(?:MF\d{1,3};)?(?P<name>.+?)(?::[\w.-]+(?:/[A-Z]{1,2}\d{1,3}){1,3})?")
_BY_LID = "lid:"
"""Begins the GUID of a node that a text names by LID alone."""
_INSIDE = "Aggregation Node"
"""SHARP's port inside a switch."""


def fabric_of(texts: Iterable[FabricText]) -> Fabric:
    """What all of them say together; of a port that a subnet manager configured in between, the later state."""
    read = [*texts]
    rows = [*chain.from_iterable(_identified([text.rows for text in read]))]
    ends = [end for row in rows for end in row.ends]
    by_port: dict[Port, End] = {}
    for end in ends:
        if end.at not in by_port or not by_port[end.at].description:
            by_port[end.at] = end
    described = gathered((end.guid, end.description) for end in ends if end.description)
    inside = {guid for guid, names in described.items() if any(_INSIDE in name for name in names)}
    joined: dict[Port, dict[Port, tuple[int, str, str]]] = {}
    for row in rows:
        if row.peer is not None:
            a, b = row.end.at, row.peer.at
            joined.setdefault(a, {})[b] = joined.setdefault(b, {})[a] = row.lanes, row.speed, row.could
    claimed = {port: tuple(peers) for port, peers in joined.items() if len(peers) > 1 and port[0] not in inside}
    cables = [
        Cable(a, b, *how)
        for a, peers in joined.items()
        for b, how in peers.items()
        if a < b and not {a[0], b[0]} & inside and a not in claimed and b not in claimed
    ]
    by_lid = gathered((f"{_BY_LID}{end.lid}", end.guid) for end in by_port.values() if end.lid)
    unique = {lid: guids[0] for lid, guids in by_lid.items() if len({*guids}) == 1}
    given = gathered((end.at, end.lid) for end in ends if end.lid is not None)
    shown = gathered((row.end.at, PortState[row.state]) for row in rows if row.state)
    states = {port: max(found) for port, found in shown.items()}
    return Fabric(
        switches=_switches({end.guid: end.description for end in by_port.values() if end.kind == "switch"}),
        adapters=_adapters([end for end in by_port.values() if end.kind == "adapter" and end.guid not in inside]),
        cables=tuple(cables),
        at={port: cable for cable in cables for port in cable.ends},
        claimed=claimed,
        described={guid: tuple(sorted({*names})) for guid, names in described.items() if len({*names}) > 1},
        errors={(unique.get(where, where), port): counts
                for text in read for (where, port), counts in text.errors.items()},
        labels=_labelled({end.at: end.label for end in ends if end.label}),
        lids={port: max(lids) for port, lids in given.items()},
        states=states,
        mtus={end.at: end.mtu for end in ends if end.mtu},
        disabled=frozenset(row.end.at for row in rows
                           if row.state and row.disabled and states[row.end.at] < PortState.INIT),
    )


def _labelled(labels: Mapping[Port, str]) -> Mapping[Port, str]:
    """With ports that have no link: their label is that of the other switches whose labels begin alike."""
    form = {port: _NUMBER.split(label)[0] for port, label in labels.items()}
    usual = gathered(((form[port], port[1]), label) for port, label in labels.items())
    numbers = gathered((begin, number) for begin, number in usual)
    return {(guid, number): usual[begin, number][0] for begin, guid in {(form[port], port[0]) for port in labels}
            for number in numbers[begin] if len({*usual[begin, number]}) == 1} | dict(labels)  # fmt: skip


def _switches(descriptions: Mapping[str, str]) -> dict[str, Switch]:
    short = {guid: match["name"] if (match := _SWITCH.fullmatch(text.strip())) else text or guid
             for guid, text in descriptions.items()}  # fmt: skip
    times = Counter(short.values())
    full = Counter(descriptions.values())
    names = {
        guid: name if times[name] == 1 else descriptions[guid] if full[descriptions[guid]] == 1
        else f"{name} {_shown_node(guid)}"
        for guid, name in short.items()
    }  # fmt: skip
    return {guid: Switch(guid=guid, name=names[guid], description=text) for guid, text in descriptions.items()}


def _adapters(ends: Sequence[End]) -> dict[str, Adapter]:
    """Two of one name have none: nobody can tell which is which."""
    named = [(end, *_named(end.description, end.port)) for end in ends]
    times = Counter((host, name) for _, host, name in named)
    return {
        end.guid: Adapter(guid=end.guid, host=host if alone else "", name=name if alone else "",
                          description=end.description)
        for end, host, name in named
        for alone in (times[host, name] == 1,)
    }  # fmt: skip


def _named(description: str, port: int = 1) -> tuple[str, str]:
    match = _OF_HOST.fullmatch(description)
    if match is None:
        return "", ""
    return match["host"].strip("'"), match["name"] + (f" port {port}" if port > 1 else "")


def _identified(texts: Sequence[Sequence[PortRow]]) -> list[Sequence[PortRow]]:
    """The rows of each text. Two subnets give the same LIDs, so that one alone names a node of its text; where another
    text has a GUID for this LID and description it is the same node."""
    if not any(end.guid.startswith(_BY_LID) for rows in texts for row in rows for end in row.ends):
        return [*texts]
    guids = gathered(((end.lid, end.description), end.guid) for rows in texts for row in rows for end in row.ends
                     if end.lid and end.description and is_guid(end.guid))  # fmt: skip

    def named(end: End, number: int) -> End:
        if not end.guid.startswith(_BY_LID):
            return end
        found = {*guids.get((end.lid or 0, end.description), ())}
        return replace(end, guid=min(found) if len(found) == 1 else f"{end.guid} of text {number}")

    return [[replace(row, end=named(row.end, number), peer=row.peer and named(row.peer, number)) for row in rows]
            for number, rows in enumerate(texts)]  # fmt: skip


def _shown_node(node: str) -> str:
    """A GUID; ``LID 5`` of a node that has none."""
    return f"LID {node.removeprefix(_BY_LID).split()[0]}" if node.startswith(_BY_LID) else node
