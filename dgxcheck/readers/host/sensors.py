"""Sensors of a BMC (``ipmitool sdr``, ``sensor``, ``check_ipmi_sensor``) and of the kernel's drivers (lm-sensors)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.lazy_pattern import LazyPattern, caseless_pattern
from dgxcheck.readers.model import HOST, Imported, ToolPart
from dgxcheck.readers.values import numbered
from dgxcheck.readers.wording import any_of, wordings

_SENSOR = LazyPattern(
    r"(?P<name>[^|]{2,40}?) {0,30}\|(?P<address> [0-9A-F]{2}h \|)? (?P<before>[^|]{1,60}(?:\|[^|]{1,60})?\|)? {0,4}"
    r"(?P<state>ok|ns|[lu]?(?:nc|cr|nr)) {0,8}(?P<after>\|.{0,200})?"
)
_UNITS: Mapping[str, FaultKind] = {"degrees C": Fault.OVERHEATING, "RPM": Fault.FAN, "Volts": Fault.POWER_SUPPLY}
_READING = LazyPattern(
    r"\b(?P<unit>degrees C|RPM|Volts|Watts|Amps|percent|discrete)\b|0x[0-9a-f]{2}|[Nn]o [Rr]eading|[Dd]isabled"
)
_LOST = LazyPattern(rf"(?:{any_of('host/lines', 'state of a sensor')})(?! (?:detected )?[Dd]easserted)")
"""States of a sensor without thresholds, whose row says ok."""
_NAMED = wordings("host/sensors")
"""How such a sensor is named."""
_SUPPLY = caseless_pattern(
    r"(?P<name>(?:STATUS_)?PSU?\d{1,2}(?:[ _]Status)?) {0,30}\| (?:0x[0-9a-f]{1,2} {1,9}\| discrete {1,4}\| )?"
    r"(?P<state>0x0[3579bdf])(?: {1,20}\| ok|[0-9a-f]{2}\|.{0,120})"
)
"""Present (bit 0) and failed, predicted to fail or without input (bits 1 to 3: IPMI 2.0, table 42-3), which
``ipmitool sdr`` calls ok and ``sensor`` shows as a number."""
_MEMBER = LazyPattern(rf"(?P<label>{any_of('host/lines', 'ipmitool sdr -v')}) {{0,24}}: ?(?P<value>.{{0,160}})")
"""Of ``ipmitool sdr -v`` and ``sensor get``."""
_LM = LazyPattern(
    r"(?P<name>\w[\w .+()-]{0,40}): {1,24}\+(?P<now>\d{1,3}\.\d)\W{0,3}C {1,6}\(.{0,60}?crit = \+(?P<limit>\d{1,3}\.\d)"
    r"\W{0,3}C.{0,80}"
)
_LM_AROUND = LazyPattern(any_of("host/lines", "sensors"))
_NAGIOS = LazyPattern(r"(?:\S.{0,200} )?IPMI Status: (?:OK|Warning|Critical)(?: \[| \||$).{0,8000}")
_ENTRY = LazyPattern(r"\((?P<name>[^()=,]{2,60}) = (?:Warning|Critical), (?P<event>[^()=]{2,120})\)")
"""Of ``check_ipmi_sensor`` (Thomas-Krenn): a sensor and an entry of the event log."""
_BEYOND = LazyPattern(r"(?:Upper|Lower) (?:Critical|Non-Recoverable)")


def read_sensors(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Readings beyond a critical threshold: of ``ipmitool sdr`` and ``sensor``, as lists or in full, and of ``sensors``
    (lm-sensors), by its figures, for some chips keep their alarms."""
    return (*_of_bmc(lines), *_of_chips(lines), *_of_nagios(lines))


def _of_nagios(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    part = ToolPart("check_ipmi_sensor")
    for row in part.matches(_NAGIOS, numbered(lines)):
        for entry in _ENTRY.finditer(row[0]):
            text = f"{entry['name']}: {entry['event']}"
            _add(part, _named(text), text)
    return part.imported(sound="sensors")


def _named(text: str) -> FaultKind | None:
    return next((row.fault for row in _NAMED if row.words.search(text)), None)


def _add(part: ToolPart, fault: FaultKind | None, text: str) -> None:
    part.add(HOST, "sensor", "warn" if fault else "note", fault, text)


def _of_chips(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    part = ToolPart("sensors")
    for row in part.matches(_LM, numbered(lines), beside=_LM_AROUND):
        if float(row["now"]) >= float(row["limit"]):
            _add(part, Fault.OVERHEATING, f"{row['name']}: {row['now']} °C (critical at {row['limit']} °C)")
    return part.imported(sound="sensors")


def _of_bmc(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    part = ToolPart("ipmitool sdr")
    members: dict[str, str] = {}
    for at, line in numbered(lines):
        if member := _MEMBER.fullmatch(line) if members or "Sensor ID" in line else None:
            members = {} if member["label"] == "Sensor ID" else members
            members[member["label"]] = member["value"]
            if member["label"] == "Status" and _BEYOND.fullmatch(member["value"]):
                unit = _READING.search(shown := members.get("Sensor Reading", ""))
                text = f"{members['Sensor ID'].partition(' (')[0]}: {shown} ({member['value'].lower()})"
                _add(part, _beyond(members["Sensor ID"], unit), text)
        elif supply := _SUPPLY.fullmatch(line):
            _add(part, Fault.POWER_SUPPLY, f"{supply['name']}: failure or no input ({supply['state']})")
        elif row := _SENSOR.fullmatch(line):
            value = _READING.search(f"{row['before']} {row['after']}")
            if not (value or row["address"]):
                continue
            if lost := _LOST.search(row["after"] or ""):
                message = f"{row['name']}: {lost[0]}"
                _add(part, _named(message), message)
            elif row["state"][-2:] in ("cr", "nr"):
                shown = " ".join(f"{row['before'] or row['after']}".replace("|", " ").split())
                _add(part, _beyond(row["name"], value), f"{row['name']}: {shown} ({row['state']})")
        else:
            continue
        part.lines.add(at)
    return part.imported(sound="sensors")


def _beyond(name: str, unit: re.Match[str] | None) -> FaultKind | None:
    """The fault by the unit of a sensor that is beyond its threshold."""
    fault = _UNITS.get((unit["unit"] if unit else None) or "")
    return Fault.BATTERY if fault is Fault.POWER_SUPPLY and _named(name) is Fault.BATTERY else fault
