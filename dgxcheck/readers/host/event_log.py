"""What a BMC tells: its event log (``ipmitool sel list``, ``sel elist``, Redfish) and its sensors.

Names of events: IPMI 2.0, tables 42-2 and 42-3, as ipmitool words them
(https://github.com/ipmitool/ipmitool/blob/master/include/ipmitool/ipmi_sel.h). The log goes back to the day when
somebody cleared it: what it tells is a warning with its date, and what was deasserted again is over.
"""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.tool_outputs import Outcome
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.dcgm.diag import fault_of
from dgxcheck.readers.formats import documents
from dgxcheck.readers.model import HOST, Imported, ToolPart
from dgxcheck.readers.values import bounded

TOOL = "ipmitool sel"
_ROW = LazyPattern(
    r"(?P<id>[0-9a-f]{1,4}) \| (?P<date>\d\d/\d\d/\d{2,4}|Pre-Init) {0,2}\| {0,2}(?P<time>\d\d:\d\d:\d\d|\d{1,12})"
    r"(?: [AP]M)?(?: [A-Z]{3,4})? {0,2}\| (?P<sensor>[^|]{1,80}?) \| (?P<event>[^|]{1,100}?) \|"
    r" (?P<way>Asserted|Deasserted)(?: \|(?P<more>.{0,100}))?",
    "sserted",
)
_FAULTS: tuple[tuple[str, str, Outcome, FaultKind | None], ...] = (
    ("Memory", r"Uncorrectable|Memory Parity|Multi-bit", "warn", Fault.DIMM_ERRORS),
    ("Memory", r"logging limit reached|Memory Device Disabled|Transition to (?:Critical|Non-recoverable)", "warn",
     Fault.DIMM_ERRORS),
    ("Memory", r"Correctable", "note", None),
    ("Processor", r"IERR|Machine Check|Uncorrectable|FRB\d|Configuration Error", "warn", Fault.MACHINE_CHECK),
    ("Processor", r"Thermal Trip", "warn", Fault.OVERHEATING),
    ("Temperature", r"Upper (?:Critical|Non-recoverable)|to Critical|to Non-recoverable", "warn", Fault.OVERHEATING),
    ("Critical Interrupt|PCI", r"Fatal|Uncorrectable|SERR|PERR", "warn", Fault.AER_UNCORRECTABLE),
    ("Critical Interrupt|PCI", r"Correctable", "note", None),
    ("Power Supply|Power Unit", r"Fail|lost|out-of-range|Config Error|Redundancy (?:Lost|Degraded)", "warn",
     Fault.POWER_SUPPLY),
    ("Fan", r"Lower (?:Critical|Non-recoverable)|Fail|Redundancy (?:Lost|Degraded)|to Critical", "warn",
     Fault.FAN),
    ("Drive Slot|Drive Bay", r"Fault|Failed|In Critical Array|Predictive Failure", "warn", Fault.DISK),
    ("Watchdog", r"reset|Power (?:down|cycle)|expired", "note", None),
)  # fmt: skip
"""How the sensor's name begins, words of the event, and what they stand for."""
SENSORS_TOOL, REDFISH_TOOL = "ipmitool sdr", "Redfish"
_SENSOR = LazyPattern(
    r"(?P<name>[^|]{2,40}?) {0,30}\|(?: [0-9A-F]{2}h \|)? (?P<before>[^|]{1,60}(?:\|[^|]{1,60})?\|)? {0,4}"
    r"(?P<state>ok|ns|nc|cr|nr) {0,8}(?P<after>\|.{0,200})?"
)
_UNITS: Mapping[str, FaultKind] = {"degrees C": Fault.OVERHEATING, "RPM": Fault.FAN, "Volts": Fault.POWER_SUPPLY}
_READING = LazyPattern(
    r"\b(?P<unit>degrees C|RPM|Volts|Watts|Amps|percent|discrete)\b|0x[0-9a-f]{2}|[Nn]o [Rr]eading|[Dd]isabled"
)
_COMPILED = tuple(
    (LazyPattern(sensors), LazyPattern(words), outcome, fault) for sensors, words, outcome, fault in _FAULTS
)


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Events that were not deasserted, by sensor and kind, with the date of the last and their number."""
    open_: dict[tuple[str, str], list[str]] = {}
    part = ToolPart(TOOL)
    for number, line in enumerate(bounded(lines)):
        row = _ROW.fullmatch(line.strip())
        if row is None:
            continue
        part.lines.add(number)
        key = row["sensor"], row["event"]
        if row["way"] == "Deasserted":
            open_.pop(key, None)
        else:
            open_.setdefault(key, []).append(f"{row['date']} {row['time']}")
    for (sensor, words), dates in open_.items():
        text = f"{sensor}: {words}, last {dates[-1]}" + (f", {len(dates)} times" if dates[1:] else "")
        if found := _stands_for(sensor, words):
            part.add(HOST, sensor.partition(" #")[0].split()[0].lower(), *found, text)
    return part.imported(sound="events")


def _stands_for(sensor: str, words: str) -> tuple[Outcome, FaultKind | None] | None:
    """None for an event that reports no fault: a boot, a login, a presence."""
    stands = ((outcome, fault) for sensors, form, outcome, fault in _COMPILED
              if sensors.match(sensor) and form.search(words))  # fmt: skip
    return next(stands, None)


def read_sensors(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``ipmitool sdr``, ``sdr elist`` and ``sensor``: a reading beyond a critical threshold, for each sensor."""
    part = ToolPart(SENSORS_TOOL)
    for number, line in enumerate(bounded(lines)):
        row = _SENSOR.fullmatch(line.strip())
        value = row and _READING.search(f"{row['before']} {row['after']}")
        if not (row and value):
            continue
        part.lines.add(number)
        if row["state"] in ("cr", "nr"):
            shown = " ".join(f"{row['before'] or row['after']}".replace("|", " ").split())
            fault = _UNITS.get(value["unit"] or "")
            part.add(HOST, "sensor", "warn" if fault else "note", fault, f"{row['name']}: {shown} ({row['state']})")
    return part.imported(sound="sensors")


def read_redfish(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Entries of a log service, alone or in a collection: those with a severity, by their words."""
    part = ToolPart(REDFISH_TOOL)
    for found, where in documents(lines, lambda found: str(found.get("@odata.type", "")).startswith("#LogEntry")):
        part.lines.update(where)
        severity, message = found.get("Severity"), f"{found.get('Message', '')}, {found.get('Created', '')}"
        if severity not in ("Critical", "Warning") or found.get("Resolved") is True:
            continue
        fault = fault_of(message)
        warns = severity == "Critical" or fault is not Fault.TEST_FAILED
        part.add(HOST, "log", "warn" if warns else "note", fault if warns else None, message)
    return part.imported(sound="log")
