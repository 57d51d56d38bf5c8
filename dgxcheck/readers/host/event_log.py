"""The event log of a BMC: ``ipmitool sel list`` and ``sel elist``, one event a line.

Names of events: IPMI 2.0, tables 42-2 and 42-3, as ipmitool words them
(https://github.com/ipmitool/ipmitool/blob/master/include/ipmitool/ipmi_sel.h). The log goes back to the day when
somebody cleared it: what it tells is a warning with its date, and what was deasserted again is over.
"""

from __future__ import annotations

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.tool_outputs import Outcome
from dgxcheck.lazy_pattern import LazyPattern
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
