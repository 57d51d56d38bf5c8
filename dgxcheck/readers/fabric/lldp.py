"""``lldpctl -f json`` of one machine: which port of which switch each of its interfaces hears."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from dgxcheck.facts.missing import Json
from dgxcheck.readers.fabric.rows import End, EndKind, PortRow

_NUMBERS = re.compile(r"\d{1,4}", flags=re.ASCII)


def interfaces(text: str, machine: str, kind: EndKind) -> Iterator[PortRow]:
    """Nothing for what is no such document. ``machine``: whose output it is, which the output does not say."""
    try:
        document: Json = json.loads(text)
    except (ValueError, RecursionError):
        return
    lldp = document.get("lldp") if isinstance(document, dict) else None
    found = lldp.get("interface") if isinstance(lldp, dict) else None
    for entry in found if isinstance(found, list) else [found]:
        for name, facts in (entry.items() if isinstance(entry, dict) else ()):
            chassis, port = (facts.get("chassis"), facts.get("port")) if isinstance(facts, dict) else (None, None)
            if not isinstance(chassis, dict) or not isinstance(port, dict) or not chassis:
                continue
            peer, far = _chassis(chassis), _port(port)
            if peer and far:
                other: EndKind = "adapter" if kind == "switch" else "switch"
                yield PortRow(_end(kind, machine, name), _end(other, peer, far), 0, "")


def _end(kind: EndKind, machine: str, label: str) -> End:
    """An adapter of a host is named as InfiniBand names it: host and device."""
    if kind == "adapter":
        return End(kind, f"lldp:{machine} {label}", 1, f"{machine} {label}")
    return End(kind, f"lldp:{machine}", number_of(label), machine, 0, label)


def _chassis(chassis: dict[str, Json]) -> str:
    """Its name, which is the key of the only member; without one the id."""
    name = next(iter(chassis))
    if name != "id":
        return name
    value = chassis["id"].get("value") if isinstance(chassis["id"], dict) else None
    return value if isinstance(value, str) else ""


def _port(port: dict[str, Json]) -> str:
    """The name of the interface; a MAC address names none, so that the description stands in."""
    number = port.get("id")
    if isinstance(number, dict) and number.get("type") != "mac" and isinstance(number.get("value"), str):
        return str(number["value"])
    described = port.get("descr")
    return described if isinstance(described, str) else ""


def number_of(label: str) -> int:
    """``swp5s1`` as 501: ports in the order of their labels."""
    found = 0
    for part in _NUMBERS.findall(label)[-3:]:
        found = found * 100 + int(part)
    return found
