"""What a BMC says: its event log (``ipmitool sel list``, ``sel elist``, ``sel get``, ``ipmi-sel``, ``ipmiutil sel``,
``racadm getsel``, Redfish, the page of its web server), and the health of parts by Redfish.

Names of events: IPMI 2.0, tables 42-2 and 42-3, as ipmitool words them
(https://github.com/ipmitool/ipmitool/blob/master/include/ipmitool/ipmi_sel.h). The log goes back to the day when
somebody cleared it: what it tells is a warning with its date, and what was deasserted again is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import Json, members_of
from dgxcheck.facts.record import Record
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.dcgm.messages import fault_of
from dgxcheck.readers.formats import Document, documents
from dgxcheck.readers.model import HOST, Imported, ToolPart
from dgxcheck.readers.values import numbered
from dgxcheck.readers.wording import any_of, forms, matched, rows, wording, wordings

TOOL = "ipmitool sel"
_ROWS = forms("host/lines", "event log of a BMC")
_HEAD = LazyPattern(r"ID {1,6}\| Date {1,12}\| Time {1,12}\| Name {1,80}\|.{1,120}")
_FIELD = LazyPattern(r"(?P<name>[A-Z][\w ()]{2,30}?) {0,20}: {0,4}(?P<value>.{0,200})")
"""Of ``sel get``, and of ``sel list -v``."""
_SENTENCES = wordings("host/bmc_sentences")
_EVENTS = tuple((LazyPattern(row["sensors"]), wording(row)) for row in rows("host/events"))
"""How the sensor's name begins, and what words of the event stand for."""


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Events that were not deasserted, by sensor and kind, with the date of the last and their number."""
    open_: dict[tuple[str, str], list[str]] = {}
    part = ToolPart(TOOL)
    record: dict[str, str] = {}
    for number, text in numbered(lines):
        field = _FIELD.fullmatch(text) if record or text.startswith("SEL Record ID") else None
        if found := matched(_ROWS, text):
            row = found.groupdict("")
            sensor, way = row.get("sensor", "Memory"), row.get("way", "")
            words = row["event"].strip().removesuffix(" ()")
            date = f", last {row['date']} {row['time']}" if "date" in row else ""
        elif field is None:
            record = record if text else {}
            part.beside.update([number] if _HEAD.fullmatch(text) else [])
            continue
        else:
            record = {} if field["name"] == "SEL Record ID" else record
            record[field["name"]] = field["value"]
            part.lines.add(number)
            if field["name"] != "Description":
                continue
            sensor = f"{record.get('Sensor Type', '')} #0x{record.get('Sensor Number', '')}".removesuffix(" #0x")
            words, way = field["value"], record.get("Event Direction", "")
            date = f", last {record.get('Timestamp', '')}"
        part.lines.add(number)
        key = sensor, words.replace("Fully Redundant", "Redundancy Lost")
        if way.startswith("Deassert") or key[1] != words:  # it is over
            open_.pop(key, None)
        else:
            open_.setdefault(key, []).append(date)
    known = [(rank, *key, dates) for key, dates in open_.items() if (rank := _stands_for(*key)) is not None]
    lost = {_minute(date) for rank, _, _, dates in known if rank == 0 for date in dates}
    for rank, sensor, words, dates in sorted(known, key=itemgetter(0)):
        text = f"{sensor}: {words}{dates[-1]}" + (f", {len(dates)} entries" if dates[1:] else "")
        outcome, fault = _EVENTS[rank][1].outcome, _EVENTS[rank][1].fault
        if fault is Fault.MACHINE_CHECK and lost.issuperset(map(_minute, dates)):
            outcome, fault, text = "note", None, f"{text}, of that memory error"
        part.add(HOST, sensor.partition(" #")[0].split()[0].lower(), outcome, fault, text)
    return part.imported(sound="events")


def _minute(date: str) -> str:
    return date.rpartition(":")[0] or date


def _stands_for(sensor: str, words: str) -> int | None:
    """The row of the table, the worst of a kind of sensor first; None for an event that reports no fault: a boot, a
    login, a presence."""
    told = (sensors.match(sensor) and row.words.search(words) for sensors, row in _EVENTS)
    return next((number for number, found in enumerate(told) if found), None)


def read_redfish(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Entries of a log service, alone or in a collection, and the health of what is not well; a leak by the state of
    its detector, whose health is its own."""
    part = ToolPart("Redfish")
    entries: list[tuple[str, str, str]] = []
    for found, where in documents(lines, lambda found: str(found.get("@odata.type", "")).startswith("#")):
        part.lines.update(where)
        for each, kind in _members(found, str(found.get("@odata.type", ""))):
            status = members_of(each.get("Status"))
            health = status.get("Health") if status.get("State") not in ("Absent", "Disabled") else None
            oem = members_of(each.get("Oem"))
            ilo = members_of(oem.get("Hpe", oem.get("Hp")))
            over = each.get("Resolved") is True or ilo.get("Repaired") is True
            if (leak := each.get("DetectorState")) in ("Critical", "Warning"):
                part.add(HOST, "leak", "warn", Fault.LEAK, f"{each.get('Name') or each.get('Id') or ''}: {leak}")
            elif kind.startswith("#LogEntry.") and not over:
                entries.append((str(each.get("Created", "")), str(each.get("Severity")), str(each.get("Message", ""))))
            elif health in ("Critical", "Warning"):
                what = str(each.get("ProcessorType") or kind.strip("#").partition(".")[0])
                message = f"{what} {each.get('Name') or each.get('Id') or each.get('MemberId') or ''}".strip()
                if what in ("Chassis", "ComputerSystem"):  # the worst health of its parts
                    part.add(HOST, "log", "note", None, f"{message}: health is {health}")
                else:
                    _logged(part, "Critical", f"{message}: health is {health}")
    _stands(part, [Logged(at, severity, text, f", {created}") for at, (created, severity, text)
                   in enumerate(sorted(entries, key=itemgetter(0)))])  # fmt: skip
    return part.imported(sound="log")


def _members(found: Json, kind: str, depth: int = 5) -> Iterator[tuple[Document, str]]:
    """An object and all within it, each with its type or the name of the list that it is in."""
    if isinstance(found, dict):
        kind = str(found.get("@odata.type", kind))
        yield found, kind
        for name, member in found.items() if depth else ():
            yield from _members(member, name, depth - 1)
    elif isinstance(found, list):
        for member in found:
            yield from _members(member, kind, depth)


def of_sentence(message: str) -> FaultKind:
    """The fault by what is said of GPUs, else of the machine's parts; a failed test where neither is named."""
    fault = fault_of(message)
    of_host = next((row.fault for row in _SENTENCES if row.words.search(message)), None)
    return of_host if of_host and (fault is Fault.TEST_FAILED or "GPU" not in message) else fault


def _logged(part: ToolPart, severity: str, message: str) -> None:
    """What a BMC words as a sentence: a warning that names no fault is a note."""
    if severity not in ("Critical", "Warning"):
        return
    fault = of_sentence(message)
    warns = severity == "Critical" or fault is not Fault.TEST_FAILED
    part.add(HOST, "log", "warn" if warns else "note", fault if warns else None, message)


_BEGINS = LazyPattern(r"(?:Record: {1,12}|SeqNumber {1,12}= )(?P<number>\d{1,9})")
_ONE_LINE = LazyPattern(
    r"(?:(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)\S{0,6} )?(?:PCI|CPU|MEM|PSU|FAN|TMP|VLT)\d{4}:? "
    r"(?P<message>[A-Z].{10,300})"
)
"""As Dell's articles show a record: the message id and the message, without a severity."""
_BAD = LazyPattern(r"\b(?:fatal|failed|failure|lost|uncorrectable|critical|multi-bit|outside of range)\b")
_OVER = LazyPattern(r"(?:is|are|has been|have been) (?:restored|operating normally|within range|redundant)\b")
_VERB = LazyPattern(r" (?:is|are|has|have) ")
_SEVERAL = {"fans": "fan redundancy", "power supplies": "power supply redundancy"}
"""Dell writes that a redundancy "is lost" and that the parts "are redundant" again: the same, by other names."""
_MEMBER = LazyPattern(r"(?P<name>[A-Z][\w/ ]{1,30}?)(?: {0,12}=|:) {1,12}(?P<value>\S.{0,600})|-{20,120}")


class Logged(Record, kw_only=False):
    """One record of an iDRAC's log."""

    at: int
    """Its place in the order of time."""
    severity: str
    text: str
    date: str = ""

    def of(self) -> str:
        """The part that it speaks of: ``power input for power supply 1``."""
        part = _VERB.split(self.text)[0].lower().removeprefix("the ")
        return _SEVERAL.get(part, part)


def read_idrac(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``racadm getsel`` and ``racadm lclog view`` of Dell's iDRAC."""
    part = ToolPart("racadm")
    severity = date = ""
    record = 0
    logged: list[Logged] = []
    short: list[tuple[str, str]] = []
    for number, text in numbered(lines):
        if begins := _BEGINS.fullmatch(text):
            record = int(begins["number"])
        elif line := _ONE_LINE.fullmatch(text):
            short.append((line["time"] or "", line["message"]))
        elif part.lines and (member := _MEMBER.fullmatch(text)):
            name, value = member["name"], member["value"]
            if name == "Severity":
                severity = "Warning" if value == "Non-Critical" else value
            elif name in ("Date/Time", "Timestamp"):
                date = value
            elif name in ("Description", "Message"):
                logged.append(Logged(record, severity, value, f", {date}"))
                severity = ""
        else:
            continue
        part.lines.add(number)
    logged += (Logged(at, "Warning" if _BAD.search(text) else "", text) for at, text in enumerate(_oldest_first(short)))
    _stands(part, logged)
    return part.imported(sound="log")


def _stands(part: ToolPart, logged: list[Logged]) -> None:
    """What is logged and not over: a later record says of the same part that it is well again."""
    over: dict[str, int] = {}
    for each in logged:
        if each.severity not in ("Critical", "Warning") and _OVER.search(each.text):
            over[each.of()] = max(each.at, over.get(each.of(), each.at))
    for each in logged:
        of = each.of()  # a power supply that operates has its input too
        if each.at >= max(over.get(name, each.at) for name in (of, of.removeprefix("power input for "))):
            _logged(part, each.severity, each.text + each.date)


def _oldest_first(rows: list[tuple[str, str]]) -> list[str]:
    """The messages in the order of their times, else as they stand."""
    if rows and all(time for time, _ in rows):
        rows = sorted(rows[::-1] if rows[0][0] > rows[-1][0] else rows, key=itemgetter(0))
    return [text for _, text in rows]


_CRITICAL = LazyPattern(rf"(?:.{{0,200}}\W)?(?P<message>(?:{any_of('host/lines', 'HPE IML')})\)).{{0,120}}")
_REPAIRED = LazyPattern(r"(?:\d{1,9} {1,8})?Repaired\b")
_IML_HEAD = LazyPattern(r"(?:ID {1,8})?Severity {1,12}Class {1,40}(?:Last )?\w.{0,120}")


def read_iml(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """HPE's Integrated Management Log: faults that stopped the machine, with the board, slot or CPU that they name."""
    part = ToolPart("HPE IML")
    for match in part.matches(_CRITICAL, numbered(lines), beside=_IML_HEAD):
        if not _REPAIRED.match(match[0]):
            _logged(part, "Critical", match["message"])
    return part.imported(sound="log")
