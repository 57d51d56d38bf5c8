"""Network interfaces: ``ethtool``, and ``ethtool -m`` of their transceivers."""

from __future__ import annotations

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.typical import odd_one
from dgxcheck.lazy_pattern import LazyPattern, caseless_pattern
from dgxcheck.readers.model import Imported, ToolPart
from dgxcheck.readers.values import numbered
from dgxcheck.readers.wording import any_of

_FAR = 100
_OF_DATA = 25_000
"""Mbit/s; slower ports may well serve different networks."""
_PARTNER = "Link partner advertised"
_OF_INTERFACE = LazyPattern(any_of("network/lines", "ethtool"))


def read_settings(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Links slower than the fastest mode that both ends advertise; what one end offers alone is a fault from a
    hundredfold on: pairs of a copper cable that are broken leave 100 Mbit/s; and the only one below the others that
    advertise the same."""
    part = ToolPart("ethtool")
    name = whose = ""
    alike: dict[frozenset[int], dict[str, int]] = {}
    rates: dict[str, set[int]] = {}
    for number, text in numbered(lines):
        if (row := _OF_INTERFACE.fullmatch(text)) is None or not (name or row["name"]):
            continue
        part.lines.add(number)
        if row["name"]:
            name, whose, rates = row["name"], "", {}
            continue
        if not row["speed"]:
            whose = row["whose"] or row["other"] or whose
            modes = (row["modes"] or "").split()
            rates.setdefault(whose, set()).update(int(mode.partition("base")[0]) for mode in modes)
            continue
        own, speed = rates.get("Advertised", set()), int(row["speed"])
        both = max(own & rates.get(_PARTNER, set()), default=0)
        most = both if both or max(own, default=0) < _FAR * speed else max(own)
        if own:
            alike.setdefault(frozenset(own), {})[name] = max(speed, most)  # not twice
        if most > speed:
            whom = "both ends advertise" if both else "the port advertises"
            text = f"the link runs at {speed / 1000:g} Gbit/s, {whom} {most / 1000:g}"
            part.add(name, "speed", "warn", Fault.PORT_SLOW, text)
    for speeds in alike.values():
        for name, speed, usual in odd_one(speeds, fewest=2):
            if speed < usual >= _OF_DATA:
                text = f"the link runs at {speed / 1000:g} Gbit/s, those of the ports like it at {usual / 1000:g}"
                part.add(name, "speed", "warn", Fault.PORT_SLOW, text)
    return part.imported(sound="links")


_MODULE_COMMAND = LazyPattern(r"(?:.{0,120}\W)?ethtool (?:-m|--module-info) (?P<name>[A-Za-z][\w.-]{0,31})")
_MODULE = LazyPattern(r"Identifier\s{1,60}: 0x[0-9a-f]{2} \(.{1,100}\)")
_LIGHT = caseless_pattern(r"rx power low alarm")
_MODULE_ROW = LazyPattern(r"(?P<name>[A-Z][\w /(),.+-]{1,70}?)\s{0,60}: ?(?P<value>.{0,200})")


def read_module(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Alarms of a transceiver, from ``ethtool -m``: heat, and lanes without light beside others that have it; without
    any it may be the other end that is off."""
    part = ToolPart("ethtool -m")
    name, inside = "HCA", False
    lit: dict[str, dict[str, bool]] = {}
    for number, line in numbered(lines):
        row = _MODULE_ROW.fullmatch(line) if inside else None
        if command := _MODULE_COMMAND.fullmatch(line):
            name, inside = command["name"], False
            part.beside.add(number)
        elif row or _MODULE.fullmatch(line):
            part.lines.add(number)
            if row and " alarm" in row["name"] and row["value"].startswith(("On", "Off")):
                lit.setdefault(name, {})[row["name"]] = row["value"].startswith("Off")
            inside = True
        else:
            inside = False
    for name, alarms in lit.items():
        of_light = [off for alarm, off in alarms.items() if _LIGHT.search(alarm)]
        for alarm in (alarm for alarm, off in alarms.items() if not off):
            dark = Fault.PORT_ERRORS if _LIGHT.search(alarm) and any(of_light) else None
            fault = Fault.PORT_MODULE if "temperature" in alarm else dark
            part.add(name, "alarm", "warn" if fault else "note", fault, f"transceiver: {alarm}")
    return part.imported(sound="module")
