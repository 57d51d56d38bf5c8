"""Ports that do not let through what others do: smaller frames, partition keys that they do not have."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.finding import counted
from dgxcheck.fabric.finding import FabricFinding, at_one
from dgxcheck.fabric.model import Fabric, Port, kind_of
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.infiniband import blaming
from dgxcheck.facts.typical import gathered, majority
from dgxcheck.readers.fabric.rows import is_guid
from dgxcheck.settings import Settings

_KEYS = ("compare the partition keys of these ports with those of their switch ports and far ends (smpquery pkeys), and"
         " partitions.conf of the subnet manager; no cable is at fault")  # fmt: skip
_MTU = (
    "compare MtuCap and NeighborMTU of both ends (smpquery portinfo LID PORT): the subnet manager sets the lower of the"
    " two MtuCap, so that firmware or a setting of one end is behind it"
)
Links = dict[tuple[Port, Port], str]
"""What is odd at a port, and the other end of its link."""


def odd_settings(fabric: Fabric) -> Iterator[FabricFinding]:
    """Of the links of adapters; those of one system or switch as one."""
    yield from _of_links(fabric, _small_frames(fabric), Fault.PORT_SETTING)
    limit = Settings().limit("network.fabric")
    refused: Links = {}
    for port, counts in fabric.errors.items():
        far = fabric.far(port)
        words = ", ".join(f"{name} {counts[name]}" for name in blaming("partition keys") if counts.get(name, 0) > limit)
        if words and far is not None and (far, port) not in refused:
            refused[port, far] = f"{words} since the counters were cleared, of packets with another partition key"
    yield from _of_links(fabric, refused, Fault.FABRIC_ERRORS)


def _small_frames(fabric: Fabric) -> Links:
    """Frames smaller than at most of the same adapters, or of the switch ports before these."""
    groups = gathered(
        ((port == own, kind_of(adapter.host, adapter.name)), (port, far))
        for port in fabric.mtus
        if (far := fabric.far(port)) is not None
        for own in (port, far)
        if (adapter := fabric.adapters.get(own[0])) is not None and adapter.name
    )
    found: Links = {}
    for links in groups.values():
        usual = majority(fabric.mtus[port] for port, _ in links)
        for port, far in links:
            mtu = fabric.mtus[port]
            if usual is not None and mtu < usual and (far, port) not in found:
                found[port, far] = f"frames of at most {mtu} bytes, {usual} at most others"
    return found


def _of_links(fabric: Fabric, found: Links, fault: FaultKind) -> Iterator[FabricFinding]:
    groups = [*at_one(found, lambda ends: filter(None, map(fabric.node, ends)))]
    for name, links in (*groups, *(("", {ends: odd}) for ends, odd in found.items())):
        first, odd = next(iter(links.items()))
        shown = (name,) if name else tuple(map(fabric.shown, first))
        where = f"{name}, {counted(len(links), 'link')}" if name else " - ".join(shown)
        example = "for example " if len({*links.values()}) > 1 else ""
        frames = _MTU if is_guid(first[0][0]) else fault.remedy
        yield FabricFinding(
            fault=fault, status="warn", ends=shown, message=f"{where}: {example}{odd}",
            action=_KEYS if fault is Fault.FABRIC_ERRORS else frames,
        )  # fmt: skip
