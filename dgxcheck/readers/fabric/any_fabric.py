"""Which tool printed a text about a fabric, and what it says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dgxcheck.facts.record import Record
from dgxcheck.readers.fabric import db_csv, iblinkinfo, ibnetdiscover, lldp, net_dump
from dgxcheck.readers.fabric.rows import PortRow, digits
from dgxcheck.readers.network.counters import errors_by_guid, errors_by_lid

_READERS = (ibnetdiscover.ports, ibnetdiscover.nodes, iblinkinfo.links, net_dump.switches, db_csv.ports)
Errors = Mapping[str, int]
"""Counts of a port by the names of sysfs."""


class FabricText(Record, kw_only=False):
    """What one file says."""

    rows: tuple[PortRow, ...]
    errors: Mapping[tuple[str, int], Errors]
    """By GUID, or ``lid:NUMBER``, and port."""
    unlisted: int = 0
    """Nodes that ibnetdiscover names at the far end of a link and does not list, as it does with others of the kind."""


def read(text: str, machine: str = "") -> FabricText:
    """Of every tool that is found in it; ``machine`` is whose output of lldpctl it is."""
    if text.lstrip()[:1] == "{":
        return FabricText(tuple(lldp.interfaces(text, machine)), {})
    lines = tuple(text.splitlines())
    rows = tuple(row for reader in _READERS for row in reader(lines))
    if not rows and text[:1].isspace():  # quoted in a page
        lines = tuple(line.strip() for line in lines)
        rows = tuple(row for reader in _READERS for row in reader(lines))
    return FabricText(rows, dict(_errors(lines)), _unlisted(ibnetdiscover.ports(lines), ibnetdiscover.nodes(lines)))


def _unlisted(*readers: Iterable[PortRow]) -> int:
    rows = [row for reader in readers for row in reader]
    listed = {(row.end.kind, row.end.guid) for row in rows}
    kinds = {kind for kind, _ in listed}
    return len({(row.peer.kind, row.peer.guid) for row in rows if row.peer and row.peer.kind in kinds} - listed)


def _errors(lines: tuple[str, ...]) -> Iterator[tuple[tuple[str, int], Errors]]:
    for guid, port, counts in errors_by_guid(lines):
        yield (digits(guid), port), counts
    for guid, port, counts in db_csv.errors(lines):
        yield (guid, port), counts
    for lid, port, counts in errors_by_lid(lines):
        yield (f"lid:{lid}", port), counts
