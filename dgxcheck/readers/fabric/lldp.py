"""``lldpctl -f json`` of one machine: which port of which switch each of its interfaces hears.

``json0`` has a list in place of every object, and names as members; what is in it is the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from dgxcheck.facts.missing import Json, members_of, text_of
from dgxcheck.readers.fabric.rows import End, EndKind, PortRow
from dgxcheck.readers.values import integer

_OF_SWITCH = re.compile(r"(?:swp|Ethernet|Eth|et-|xe-)\d|\d{1,3}/\d", flags=re.ASCII)
"""Ports of Cumulus, SONiC and EOS, Onyx and NX-OS, Junos; a host's are ``eth0``, ``enp27s0np0``, ``rdma0``."""
_MOST_INTERFACES = 16
"""Of a host; a machine that lists more is a switch."""
_MOST_BYTES = 65535
_NUMBERS = re.compile(r"\d{1,4}", flags=re.ASCII)


def interfaces(text: str, machine: str) -> Iterator[PortRow]:
    """Nothing for what is no such document. ``machine``: whose output it is, which the output does not say."""
    try:
        document: Json = json.loads(text)
    except (ValueError, RecursionError):
        return
    listed = members_of(_one(members_of(document).get("lldp"))).get("interface")
    found = [each for entry in (listed if isinstance(listed, list) else [listed]) for each in _named(entry)]
    of_switch = len(found) > _MOST_INTERFACES
    if ports := [(name, facts) for name, facts in found if _OF_SWITCH.match(name)]:
        found, of_switch = ports, True  # without its own management port
    for name, facts in found:
        chassis, port = members_of(_one(facts.get("chassis"))), members_of(_one(facts.get("port")))
        peer, far = _chassis(chassis), _port(port)
        if peer and far:
            other: EndKind = "adapter" if of_switch and not _OF_SWITCH.match(far) else "switch"
            mtu = integer(text_of(_one(port.get("mfs"))), _MOST_BYTES)
            own = _end("switch" if of_switch else "adapter", machine, name)
            yield PortRow(own, _end(other, peer, far, mtu or 0), 0, "")


def _end(kind: EndKind, machine: str, label: str, mtu: int = 0) -> End:
    """An adapter of a host is named as InfiniBand names it: host and device."""
    if kind == "adapter":
        return End(kind, f"lldp:{machine} {label}", 1, f"{machine} {label}", mtu=mtu)
    return End(kind, f"lldp:{machine}", number_of(label), machine, None, label, mtu)


def _one(value: Json) -> Json:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _named(entry: Json) -> Iterator[tuple[str, dict[str, Json]]]:
    if isinstance(entry, dict):
        members = {str(entry["name"]): entry} if isinstance(entry.get("name"), str) else entry
        yield from ((name, facts) for name, facts in members.items() if isinstance(facts, dict))


def _chassis(chassis: dict[str, Json]) -> str:
    """Its name: a member of json0, in json the key of the only member; without one the id."""
    own = {key: _one(value) for key, value in chassis.items()}
    for stated in (own.get("name"), own.get("id")):
        if isinstance(stated, dict) and isinstance(stated.get("value"), str):
            return str(stated["value"])
    name = next(iter(chassis), "")
    return name if name != "id" else ""


def _port(port: dict[str, Json]) -> str:
    """The name of the interface; a MAC address names none, so that the description stands in."""
    number = _one(port.get("id"))
    if isinstance(number, dict) and number.get("type") != "mac" and isinstance(number.get("value"), str):
        return str(number["value"])
    described = _one(port.get("descr"))
    return text_of(described.get("value") if isinstance(described, dict) else described)


def number_of(label: str) -> int:
    """``swp5s1`` as 501: ports in the order of their labels."""
    found = 0
    for part in _NUMBERS.findall(label)[-3:]:
        found = found * 100 + int(part)
    return found
