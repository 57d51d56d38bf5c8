"""Ports that do not let through what others do: smaller frames, partition keys that they do not have."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.fabric.finding import FabricFinding, at_one
from dgxcheck.fabric.model import Fabric, Port, kind_of
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.infiniband import OF_PARTITION_KEYS
from dgxcheck.facts.typical import gathered, majority
from dgxcheck.settings import Settings

_KEYS = ("compare the partition keys of these ports with those of their switch ports and far ends (smpquery pkeys), and"
         " partitions.conf of the subnet manager; no cable is at fault")  # fmt: skip


def odd_settings(fabric: Fabric) -> Iterator[FabricFinding]:
    """Of the links of adapters; those of one system or switch as one."""
    yield from _of_links(fabric, _small_frames(fabric), Fault.PORT_SETTING.remedy)
    limit = Settings().limit("network.fabric")
    refused: dict[tuple[Port, Port], str] = {}
    for port, counts in fabric.errors.items():
        far = fabric.far(port)
        words = ", ".join(f"{name} {counts[name]}" for name in OF_PARTITION_KEYS if counts.get(name, 0) > limit)
        if words and far is not None and (far, port) not in refused:
            refused[port, far] = f"{words} since the counters were cleared: packets with a partition key of others"
    yield from _of_links(fabric, refused, _KEYS)


def _small_frames(fabric: Fabric) -> dict[tuple[Port, Port], str]:
    """Frames smaller than at most of the same adapters, or of the switch ports before these."""
    groups = gathered(
        ((port == own, kind_of(adapter.host, adapter.name)), (port, far))
        for port in fabric.mtus
        if (far := fabric.far(port)) is not None
        for own in (port, far)
        if (adapter := fabric.adapters.get(own[0])) is not None and adapter.name
    )
    found: dict[tuple[Port, Port], str] = {}
    for links in groups.values():
        usual = majority(fabric.mtus[port] for port, _ in links)
        for port, far in links:
            mtu = fabric.mtus[port]
            if usual is not None and mtu < usual and (far, port) not in found:
                found[port, far] = f"frames of at most {mtu} bytes, {usual} at most others"
    return found


def _of_links(fabric: Fabric, found: dict[tuple[Port, Port], str], action: str) -> Iterator[FabricFinding]:
    fault = Fault.FABRIC_ERRORS if action == _KEYS else Fault.PORT_SETTING
    left = dict.fromkeys(found)
    for name, own in at_one(left, lambda ends: filter(None, map(fabric.node, ends))):
        yield FabricFinding(
            fault=fault, status="warn", ends=(name,), action=action,
            message=f"{name}: {found[own[0]]}; so at {len(own)} links",
        )  # fmt: skip
    for ends in left:
        shown = fabric.shown(ends[0]), fabric.shown(ends[1])
        yield FabricFinding(
            fault=fault, status="warn", ends=shown, message=f"{shown[0]} - {shown[1]}: {found[ends]}", action=action
        )
