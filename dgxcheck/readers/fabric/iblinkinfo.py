"""``iblinkinfo``, and with ``-l`` a line per link."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from dgxcheck.facts.record import replace
from dgxcheck.facts.typical import gathered
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern
from dgxcheck.readers.fabric.rows import End, EndKind, PortRow, digits, speed_of_lane
from dgxcheck.readers.network.files import state

_HEAD = LazyPattern(
    r"(?:\d{1,9}[:-])?(?P<kind>CA|Switch|Router):? (?:0x(?P<guid>[0-9a-f]{1,16}) )?(?P<description>.{1,120}):"
)
"""Behind a number as grep -n prints it."""
_LINK = ascii_pattern(
    r".{0,200}?(?:0x(?P<guid>[0-9a-f]{1,16}) {1,12})?(?:\"(?P<description>[^\"]{0,100})\" {1,12})?"
    r"(?<![\w.])(?P<lid>\d{1,5}) {1,12}(?P<port>\d{1,3})\[.{0,8}\] {0,4}"
    r"==\( {0,16}(?:(?P<lanes>\d{1,2})X {1,16}(?P<speed>[\d.]{1,12} Gbps(?: or FDR10)?) {1,8})?"
    r"(?P<state>[A-Za-z]{2,12}) {0,8}/ {0,8}(?P<physical>[A-Za-z ]{4,20}?) {0,4}\)==> {0,20}"
    r"(?:0x(?P<peer_guid>[0-9a-f]{1,16}) {1,12})?(?:(?P<peer_lid>\d{1,5}) {1,12}(?P<peer_port>\d{1,3}))? {0,12}"
    r"\[.{0,8}\] {1,4}\"(?P<peer>[^\"]{0,100})\" {0,4}\( {0,4}(?P<could>[^()]{0,100}?) {0,4}\)"
)


def port_lines(lines: Iterable[str]) -> Iterator[tuple[int, re.Match[str] | None, re.Match[str] | None]]:
    """Number of each line of a port, its members, and the head of its block; of a head itself without members."""
    head: re.Match[str] | None = None
    for number, raw in enumerate(lines):
        line = raw.strip()
        if match := _LINK.fullmatch(line) if "==(" in line else None:
            yield number, match, head
        elif match := _HEAD.fullmatch(line):
            head = match
            yield number, None, head


def links(lines: Iterable[str]) -> Iterator[PortRow]:
    """Both forms. The short one names a port at the other end by LID and description alone: by its own block. Where
    that is not there (--cas-only, --switches-only, the last lines of a page), or its head was filtered out, the node is
    known by its LID; what an adapter is joined with is a switch then. Nodes that have LID 0, as no subnet manager gave
    one, differ by their descriptions, adapters by the port that they are joined with."""
    found: list[tuple[re.Match[str], End]] = []
    for _, match, head in port_lines(lines):
        if match is None:
            continue
        kind: EndKind = "switch" if head is not None and head["kind"] == "Switch" else "adapter"
        description = (match["description"] or "").strip() or (head["description"] if head else "")
        guid = match["guid"] or (head["guid"] if head else "") or ""
        lid = int(match["lid"])
        if guid or lid or description:
            node = digits(guid) if guid else f"lid:{lid}" if lid else f"lid:0 {description}"
            found.append((match, End(kind, node, int(match["port"]), description, lid)))
    switches = _switches(found)
    found = [(match, replace(end, kind="switch" if end.guid in switches else "adapter")) for match, end in found]
    for match, end in found:
        yield _row(match, end, None)
    by_place = _by_place([end for _, end in found])
    own = {end.guid for _, end in found}
    for match, end in found:
        if match["peer_port"]:
            lid, port, name = int(match["peer_lid"]), int(match["peer_port"]), match["peer"].strip()
            known = by_place.get((lid, name, port)) if lid or name else None
            if lid:
                known = known or by_place.get((lid, "", port)) or by_place.get((lid, "", 0))
            known = _alone(end, lid, name) if known is None else known
            guid = digits(match["peer_guid"]) if match["peer_guid"] else known
            if guid:
                beyond = guid in switches or (guid not in own and end.kind == "adapter")
                peer = End("switch" if beyond else "adapter", guid, port, name, lid)
                yield _row(match, end, peer)


def _alone(near: End, lid: int, name: str) -> str:
    """Stands for the GUID of what this port is joined with."""
    return f"lid:{lid}" if lid else f"lid:0 {name if near.kind == 'adapter' else f'{near.guid} {near.port}'}"


def _row(match: re.Match[str], end: End, peer: End | None) -> PortRow:
    named = (state(match["state"]) or "").rpartition(" ")[2]
    could = " ".join(match["could"].split()).replace("Could", "could") if "ould be" in match["could"] else ""
    return PortRow(end, peer, int(match["lanes"] or 0), speed_of_lane(match["speed"] or ""), named,
                   match["physical"] == "Disabled", could)  # fmt: skip


def _switches(found: list[tuple[re.Match[str], End]]) -> frozenset[str]:
    """Lines of the long form do not say what they are of: a node with several ports of one GUID is a switch."""
    ports = gathered((end.guid, end.port) for _, end in found)
    return frozenset({guid for guid, numbers in ports.items() if len({*numbers}) > 1}
                     | {end.guid for _, end in found if end.kind == "switch"})  # fmt: skip


def _by_place(ends: list[End]) -> Mapping[tuple[int | None, str, int], str]:
    """GUIDs by LID, description and port, and by LID alone; empty for those of two nodes."""
    guids = gathered((place, end.guid) for end in ends
                     for place in ((end.lid, end.description, end.port), (end.lid, "", 0)))  # fmt: skip
    return {place: found[0] if len({*found}) == 1 else "" for place, found in guids.items()}
