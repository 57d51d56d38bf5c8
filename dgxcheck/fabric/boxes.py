"""Where the adapters of a fabric sit in their machines, by recordings of these or of one like them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from dgxcheck.assessment.machine import LAUNCH, Machine, examine
from dgxcheck.checks.engine.finding import counted
from dgxcheck.fabric.finding import FabricFinding, by_severity
from dgxcheck.fabric.intent import Scheme
from dgxcheck.fabric.judge import Judged
from dgxcheck.fabric.model import Adapter, unnumbered
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.infiniband import IbRate, PortState
from dgxcheck.facts.missing import BadInput, rows, text_of
from dgxcheck.facts.record import Record, replace
from dgxcheck.facts.typical import gathered, majority
from dgxcheck.fleet.node_names import counted_order, folded
from dgxcheck.launch import placements
from dgxcheck.topology.model import slot_of


class Seat(Record):
    """One adapter in its machine."""

    name: str
    """As the machine calls it: ``mlx5_3``."""
    guid: str
    """16 digits; empty where it is not known."""
    bdf: str
    slot: str
    """Empty where no slot is named."""
    gpus: tuple[str, ...]
    """Those that no other adapter is nearer to."""
    gbit: float = 0.0
    """Of its InfiniBand ports that were up; 0 where none was."""

    @property
    def shown(self) -> str:
        """``0000:be:00.0, slot 4, next to GPU4 and GPU5``"""
        near = f"next to {' and '.join(self.gpus)}" if self.gpus else ""
        return ", ".join(filter(None, (self.bdf, self.slot and f"slot {self.slot}", near)))


class Boxes(Record):
    """Seats of all machines that were recorded."""

    by_guid: Mapping[str, Seat]
    by_name: Mapping[str, Seat]
    """Where most of the recorded machines have that adapter: they stand for machines like them."""

    def seat(self, adapter: Adapter) -> Seat | None:
        """By its GUID, else by its name as in the recorded machines."""
        return self.by_guid.get(adapter.guid) or self.by_name.get(adapter.name)


def boxes_of(specs: Iterable[str]) -> Boxes:
    """Of recordings, folders of them, and names of those that ship; BadInput for what is none."""
    by_guid: dict[str, Seat] = {}
    by_name: dict[str, Counter[Seat]] = {}
    for spec in specs:
        inside = [os.path.join(spec, name) for name in sorted(os.listdir(spec))] if os.path.isdir(spec) else [spec]
        for path in [spec] if os.path.isdir(os.path.join(spec, "sys")) else inside:
            for seat in seats(examine(path, LAUNCH)):
                by_guid[seat.guid] = seat
                by_name.setdefault(seat.name, Counter())[replace(seat, guid="")] += 1
    by_guid.pop("", None)
    if not by_name:
        raise BadInput("no recording of --boxes has an HCA")
    usual = {name: most for name, found in by_name.items() if (most := majority(found)) is not None}
    return Boxes(by_guid=by_guid, by_name=usual)


def seats(machine: Machine) -> tuple[Seat, ...]:
    """All adapters of one machine that have a place on PCI."""
    snapshot, topology = machine.snapshot, machine.topology
    near = gathered((name, placed.gpu.name) for placed in placements(snapshot, topology)
                    for name in dict.fromkeys(port.partition(":")[0] for port in placed.ports))  # fmt: skip
    guids = {each.name: each.node_guid for each in rows(snapshot.infiniband)}
    gbit = {each.device: max((port.rate.gbit_per_s for port in rows(each.ports) if port.state is PortState.ACTIVE
                            and port.link_layer == "InfiniBand" and isinstance(port.rate, IbRate)), default=0.0)
            for each in rows(snapshot.ib_ports)}  # fmt: skip
    found = []
    for device in topology.nics:
        if device.bdf:
            guid, slot = guids.get(device.name), slot_of(device, snapshot.slots)
            found.append(
                Seat(name=device.name, guid=text_of(guid).replace(":", ""), bdf=device.bdf,
                     slot=text_of(slot), gpus=tuple(near.get(device.name, ())),
                     gbit=gbit.get(device.name, 0.0))
            )  # fmt: skip
    return tuple(found)


def joined(judged: Judged, boxes: Boxes) -> Judged:
    """The findings with the seats of the adapters that they name, and whether the name or the cable is wrong; links
    below what the same adapter ran at there."""
    by_end = {adapter.shown: seat for adapter in judged.fabric.adapters.values()
              if adapter.name and (seat := boxes.seat(adapter)) is not None}  # fmt: skip
    findings = [_joined(finding, by_end, boxes) for finding in judged.findings]
    return replace(judged, findings=by_severity([*findings, *_slower(judged, boxes)]))


def _slower(judged: Judged, boxes: Boxes) -> Iterator[FabricFinding]:
    """All of them may be slow, so that none is below the others; each kind of adapter once."""
    known = {end for finding in judged.findings if finding.fault is Fault.PORT_SLOW for end in finding.ends}
    adapters = judged.fabric.adapters
    found: dict[tuple[str, str, float], list[Adapter]] = {}
    for cable in judged.fabric.cables:
        for own in (adapters[guid] for guid, _ in cable.ends if guid in adapters):
            seat = boxes.seat(own)
            if seat is not None and 0 < cable.gbit < seat.gbit and own.shown not in known:
                found.setdefault((unnumbered(own.host), cable.rate, seat.gbit), []).append(own)
    for (_, rate, gbit), slow in found.items():
        names = sorted({each.name for each in slow}, key=counted_order)
        hosts = folded({each.host for each in slow})
        yield FabricFinding(
            fault=Fault.PORT_SLOW, status="warn", ends=tuple(each.shown for each in slow),
            message=f"{'/'.join(names)} of {hosts}: {counted(len(slow), 'link')} at {rate}, {gbit:g} Gbit/s in the"
            " recordings (--boxes)", action=Fault.PORT_SLOW.remedy,
        )  # fmt: skip


def _joined(finding: FabricFinding, by_end: Mapping[str, Seat], boxes: Boxes) -> FabricFinding:
    found: list[str] = []
    for end in filter(by_end.__contains__, finding.ends):
        seat = by_end[end]
        found.append(f"{end}: {seat.shown}")
        name = end.rpartition(" ")[2]
        if seat.guid and seat.name != name:
            found.append(f"{end}: this machine calls the adapter {seat.name}, so its node description is out of date,"
                         " and the cable may be right")  # fmt: skip
        usual = boxes.by_name.get(name)
        if seat.guid and usual is not None and seat.name == name and usual.bdf != seat.bdf:
            found.append(f"{end}: in other machines {name} is {usual.bdf}, so the card may be in the wrong slot")
    return replace(finding, seats=tuple(found))


def rails(judged: Judged, seats_of_box: Sequence[Seat]) -> dict[str, tuple[int | None, int | None]]:
    """Rail and plane of the adapters of one machine, by name; None where the fabric has no such thing."""
    scheme = _scheme(judged, seats_of_box)
    if scheme is None:
        return {}
    islands = {name: judged.tiers.island[judged.places[host][name][0]] for host in scheme.systems
               for name in scheme.adapters if name in judged.places[host]}  # fmt: skip
    planes = sorted({*islands.values()})
    found: dict[str, tuple[int | None, int | None]] = {}
    for plane in planes:
        blocks = [block for block in scheme.blocks if islands.get(block[0]) == plane]
        for number, block in enumerate(blocks):
            for name in block:
                found[name] = (number if len(blocks) > 1 else None, planes.index(plane) if len(planes) > 1 else None)
    return found


def _scheme(judged: Judged, seats_of_box: Sequence[Seat]) -> Scheme | None:
    """Of the systems that the machine is one of, by GUID, else of the most systems that have its adapters."""
    guids = {seat.guid for seat in seats_of_box}
    hosts = {adapter.host for adapter in judged.fabric.adapters.values() if adapter.guid in guids and adapter.host}
    names = {seat.name for seat in seats_of_box}
    fitting = [scheme for scheme in judged.intent.schemes if scheme.blocks and
               (hosts & {*scheme.systems} or (not hosts and {*scheme.adapters} & names))]  # fmt: skip
    return max(fitting, key=lambda scheme: len(scheme.systems), default=None)
