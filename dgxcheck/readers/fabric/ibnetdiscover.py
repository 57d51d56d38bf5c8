"""``ibnetdiscover -p``, a line per port, and its full form, a block per node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dgxcheck.facts.infiniband import LANE_GBIT
from dgxcheck.lazy_pattern import ascii_pattern
from dgxcheck.readers.fabric.rows import End, EndKind, PortRow, digits

_KINDS: dict[str, EndKind] = {"CA": "adapter", "SW": "switch", "RT": "adapter", "H": "adapter", "S": "switch",
                              "R": "adapter"}  # fmt: skip
_RATE = r"(?P<lanes>\d{1,2})x ?(?P<speed>[A-Z]{2,4}\d{0,2}|\?{1,6}|undefined \(\d{1,3}\))"
_PORT = ascii_pattern(
    rf"(?P<kind>CA|SW|RT) {{1,8}}(?P<lid>\d{{1,5}}) {{1,4}}(?P<port>\d{{1,3}}) 0x(?P<guid>[0-9a-f]{{16}}) {_RATE}"
    r" {1,40}(?:- (?P<peer_kind>CA|SW|RT) {1,8}(?P<peer_lid>\d{1,5}) {1,4}(?P<peer_port>\d{1,3})"
    r" 0x(?P<peer_guid>[0-9a-f]{16}) )?"
    r"(?:\( '(?P<both>.{0,200})' \)|'(?P<own>.{0,100})')\s{0,8}"
)


def ports(lines: Iterable[str]) -> Iterator[PortRow]:
    """Of ``ibnetdiscover -p``; a row without a peer is a port without a link."""
    for line in lines:
        match = _PORT.fullmatch(line)
        if match is None:
            continue
        own, _, far = (match["both"] or match["own"] or "").partition("' - '")
        end = End(_KINDS[match["kind"]], match["guid"], int(match["port"]), own, int(match["lid"]))
        peer = None
        if match["peer_guid"]:
            peer = End(_KINDS[match["peer_kind"]], match["peer_guid"], int(match["peer_port"]), far,
                       int(match["peer_lid"]))  # fmt: skip
        yield PortRow(end, peer, int(match["lanes"]), match["speed"] if match["speed"] in LANE_GBIT else "")


_NODE = ascii_pattern(
    r"(?P<kind>Switch|Ca|Rt)\s{1,8}\d{1,4}\s{1,8}\"[SHR]-(?P<guid>[0-9a-f]{16})\"\s{1,40}"
    r"# \"(?P<description>.{0,100}?)\"(?: (?:base|enhanced) port 0 lid (?P<lid>[-\d]{0,5}).{0,40})?"
)  # fmt: skip
_LINK = ascii_pattern(
    r"\[(?P<port>\d{1,3})\](?:\[.{0,20}\])?(?:\((?:0x)?(?P<guid>[0-9a-f]{1,16})\))?\s{1,8}"
    r"\"(?P<peer_kind>[SHR])-(?:0x)?(?P<peer_node>[0-9a-f]{16})\"\[(?P<peer_port>\d{1,3})\](?:\[.{0,20}\])?"
    r"(?:\((?:0x)?(?P<peer_guid>[0-9a-f]{1,16})\))?\s{1,40}"
    r"#(?: lid (?P<lid>[-\d]{0,5}) lmc \d)? \"(?P<peer>.{0,100}?)\" lid (?P<peer_lid>[-\d]{0,5})"
    rf"(?: {_RATE})?.{{0,60}}"
)  # fmt: skip


def nodes(lines: Iterable[str]) -> Iterator[PortRow]:
    """Of the full form: the ports that have a link. What follows a head that cannot be read is of no node."""
    node: re.Match[str] | None = None
    for line in lines:
        if line.startswith(("Switch", "Ca", "Rt")):
            node = _NODE.fullmatch(line.rstrip())
            continue
        link = _LINK.fullmatch(line.rstrip())
        if link is None or node is None:
            continue
        kind: EndKind = "switch" if node["kind"] == "Switch" else "adapter"
        guid = digits(link["guid"]) if kind == "adapter" and link["guid"] else node["guid"]
        end = End(kind, guid, int(link["port"]), node["description"],
                  _lid(link["lid"] if node["lid"] is None else node["lid"]))  # fmt: skip
        peer_kind = _KINDS[link["peer_kind"]]
        peer_guid = digits(link["peer_guid"]) if peer_kind == "adapter" and link["peer_guid"] else link["peer_node"]
        peer = End(peer_kind, peer_guid, int(link["peer_port"]), link["peer"], _lid(link["peer_lid"]))
        speed = link["speed"] or ""
        yield PortRow(end, peer, int(link["lanes"] or 0), speed if speed in LANE_GBIT else "")


def _lid(text: str | None) -> int | None:
    """0 where no subnet manager has given one: nothing is printed, or -1."""
    return None if text is None else int(text) if text.isdecimal() else 0
