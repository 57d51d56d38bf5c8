"""Settings of adapters and ports that stand side by side in a text: mlxconfig, mlnx_qos, show_gids, ip link."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.typical import odd_one
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern
from dgxcheck.readers.model import Imported, Reports, ToolPart
from dgxcheck.readers.network.files import NAME, hca_name
from dgxcheck.readers.values import numbered, squeezed
from dgxcheck.readers.wording import any_of

_DIGITS = re.compile(r"\d+")


def _shape(name: str) -> str:
    """``ens#f#np#``: ports of one kind of slot have it in common, those of the board have another."""
    return _DIGITS.sub("#", name)


_NEXT = ascii_pattern(r"Device #\d{1,3}:|Device type: {1,12}(?P<type>(?:ConnectX|BlueField|Connect-IB).{0,30})")
_OF_DEVICE = LazyPattern(r"(?P<name>Name|Description|Device|PCI device|Configurations): {0,60}(?P<value>.{0,300})")
_PARAMETER = ascii_pattern(r"\*? {0,8}(?P<name>[A-Z][A-Z0-9]{1,30}_[A-Z0-9_]{1,60}) {1,60}(?P<value>\S.{0,200})")
_AROUND = LazyPattern(r"-{4,40}|The '\*' shows parameters .{0,100}")
_LINK_TYPES = "LINK_TYPE_P"
_MODEL, _PLACE = "model", "place"
"""Of an adapter beside its parameters, whose names are capitals."""
_MOST_ADAPTERS = 64
"""Of one machine."""


def read_mlxconfig(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Parameters in which one adapter alone differs from all others of its model and link types."""
    part = ToolPart("mlxconfig")
    adapters: list[dict[str, str]] = []
    for number, line in numbered(lines):
        if begun := _NEXT.fullmatch(line):
            if not adapters or adapters[-1].keys() - {_MODEL} or (begun["type"] and adapters[-1]):
                adapters.append({})
            adapters[-1] |= {_MODEL: begun["type"]} if begun["type"] else {}
        elif adapters and (of_device := _OF_DEVICE.fullmatch(line)):
            name, value = of_device["name"], of_device["value"].strip()
            adapters[-1] |= {_MODEL: value} if name == "Name" else {}
            adapters[-1] |= {_PLACE: hca_name(value)} if name in ("Device", "PCI device") else {}
        elif adapters and (parameter := _PARAMETER.fullmatch(line)):
            adapters[-1].setdefault(parameter["name"], squeezed(parameter["value"]))
        elif not (adapters and _AROUND.fullmatch(line)):
            continue
        part.lines.add(number)
    alike: dict[tuple[str, ...], dict[str, dict[str, str]]] = {}
    for adapter in adapters:
        model, place = adapter.pop(_MODEL, ""), adapter.pop(_PLACE, "")
        types = [value for name, value in adapter.items() if name.startswith(_LINK_TYPES)]
        alike.setdefault((model, *types), {})[place] = adapter
    for of_kind in alike.values():
        _compare(part, {place: parameters for place, parameters in of_kind.items() if place})
    return part.imported(sound="settings") if any(adapters) else ()


def _compare(reports: Reports, adapters: Mapping[str, Mapping[str, str]]) -> None:
    odd: dict[str, list[str]] = {}
    if len(adapters) > _MOST_ADAPTERS:
        return
    for name in dict.fromkeys(name for parameters in adapters.values() for name in parameters):
        for place, value, usual in odd_one({place: each.get(name, "-") for place, each in adapters.items()}):
            odd.setdefault(place, []).append(f"{name} {value}, {usual} at the others")
    for place, differences in odd.items():
        reports.add(place, "settings", "warn", Fault.PORT_SETTING, "; ".join(differences))


_QOS = ascii_pattern(any_of("network/lines", "mlnx_qos, values"))
_BESIDE_QOS = LazyPattern(any_of("network/lines", "mlnx_qos"))


def read_qos(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The port alone in other flow control than all others of a name like its own; else a note of those that differ:
    they may be of storage."""
    part = ToolPart("mlnx_qos")
    port = ""
    found: dict[str, str] = {}
    for row in part.matches(_QOS, numbered(lines, squeezed), _BESIDE_QOS):
        port = row["port"] or port
        if row["trust"]:
            found[port] = f"trust state {row['trust']}"
        elif row["enabled"] and port in found:
            on = [str(priority) for priority, enabled in enumerate(row["enabled"].split()) if enabled == "1"]
            found[port] = f"{found[port]}, PFC of priority {' '.join(on) or 'none'}"
    is_shown = bool(found)
    found.pop("", None)  # without the command nobody knows whose it is
    alike: dict[str, dict[str, str]] = {}
    for name, value in found.items():
        alike.setdefault(_shape(name), {})[name] = value
    odd = [row for of_shape in alike.values() for row in odd_one(of_shape)]
    for name, value, usual in odd:
        part.add(name, "flow-control", "warn", Fault.PORT_SETTING, f"{value}; {usual} at the other ports")
    if not odd and len({*found.values()}) > 1:
        for name, value in found.items():
            part.add(name, "flow-control", "note", None, f"{value}: not as at the other ports")
    return part.imported(sound="flow-control") if is_shown else ()


_GID = ascii_pattern(
    rf"(?P<device>{NAME}) (?P<port>\d{{1,3}}) \d{{1,3}} (?:[0-9a-f]{{4}}:){{7}}[0-9a-f]{{4}}"
    r"(?P<address> \d{1,3}(?:\.\d{1,3}){3})? (?P<version>v\d)(?: \S{1,32})?"
)
_BESIDE_GIDS = LazyPattern(r"DEV PORT INDEX GID (?:IPv4 )?VER DEV|-{2,16}(?: -{2,16}){3,8}|n_gids_found=\d{1,5}")


def read_gids(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """A note of the port that alone has no address of IPv4 for RoCE v2; a port without a cable has none either."""
    part = ToolPart("show_gids")
    found: dict[str, str] = {}
    for row in part.matches(_GID, numbered(lines, squeezed), _BESIDE_GIDS):
        port = f"{row['device']}/{int(row['port'])}"
        found[port] = "yes" if (row["address"] and row["version"] == "v2") or found.get(port) else ""
    for name, value, _ in odd_one(found):
        if not value:
            text = "no GID of RoCE v2 with an IPv4 address, the other ports have one: see its interface's address"
            part.add(name, "gids", "note", None, text)
    return part.imported(sound="gids")


_INTERFACE = ascii_pattern(
    r"\d{1,5}: (?P<name>[\w.-]{1,32})(?P<above>@\S{1,32})?: <(?P<flags>[A-Z0-9_,-]{0,200})> mtu (?P<mtu>\d{1,6})"
    r" .{0,400}"
)
_ADDRESS = ascii_pattern(r"link/(?P<type>\w{2,20}) .{1,800}")
_COUNTS = ascii_pattern(r"(?P<way>[RT]X):? {1,4}(?:errors: {1,4}length .{0,80}|bytes {1,16}packets .{0,80})")
_NUMBERS = ascii_pattern(r"\d{1,20}(?: \d{1,20}){5,6}")
_BESIDE_LINK = LazyPattern(any_of("network/lines", "ip link"))
_PHYSICAL = LazyPattern(r"(?:en|eth|ib|roce|mlx)\w{0,30}")


def read_ip_link(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``ip link``, ``ip -s link``, ``ip address``: the MTU in which one interface with a link alone differs from all
    others of its kind and of a name like its own; notes of ports that are up without a carrier, and of totals of
    errors."""
    part = ToolPart("ip link")
    mtus: dict[tuple[str, str], dict[str, str]] = {}
    name = mtu = way = ""
    linked = False
    for number, line in numbered(lines, squeezed):
        if interface := _INTERFACE.fullmatch(line):
            physical = not interface["above"] and _PHYSICAL.fullmatch(interface["name"])
            name, mtu, way = interface["name"] if physical else "", interface["mtu"], ""
            flags = interface["flags"].split(",")
            linked = "LOWER_UP" in flags
            if name and "NO-CARRIER" in flags:
                text = "it is up and has no carrier: see whether it is to have a cable"
                part.add(name, "carrier", "note", None, text)
        elif part.lines and (address := _ADDRESS.fullmatch(line)):
            if name and linked:  # a spare port keeps the MTU of its driver
                mtus.setdefault((address["type"], _shape(name)), {})[name] = mtu
        elif part.lines and (counts := _COUNTS.fullmatch(line)):
            way = counts["way"] if "bytes" in line else ""
        elif part.lines and _NUMBERS.fullmatch(line):
            errors = int(line.split()[2])
            if name and way and errors:
                text = f"{way} errors {errors} in all; read them again in an hour: growth is what counts"
                part.add(name, f"{way.lower()}-errors", "note", None, text)
            way = ""
        else:
            part.beside |= {number} if part.lines and _BESIDE_LINK.fullmatch(line) else set()
            continue
        part.lines.add(number)
    for alike in mtus.values():
        for odd, value, usual in odd_one(alike):
            part.add(odd, "mtu", "warn", Fault.PORT_SETTING, f"MTU {value}, {usual} at the others like it")
    return part.imported(sound="links")
