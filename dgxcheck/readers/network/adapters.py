"""Mellanox's tools for adapters: mlxlink, mst, flint and mlxfwmanager."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.infiniband import LANE_GBIT
from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import majority
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern, caseless_pattern
from dgxcheck.readers.model import Imported, Reports, ToolPart
from dgxcheck.readers.network.files import NAME, PortsPart, device_files, hca_name, listed, physical, rate, state
from dgxcheck.readers.values import bare, bounded, integer, numbered
from dgxcheck.readers.wording import any_of

_MLXLINK_COMMAND = ascii_pattern(
    rf"(?:.{{0,120}}\W)?mlxlink\s.{{0,200}}?(?:-d|--device)[ =](?P<device>{NAME}|[\w./:-]{{4,80}})"
    r"(?P<more>\s.{0,200})?"
)
_PORT = LazyPattern(r"\s(?:-p|--port)[ =](?P<port>\d{1,2})\b")
_GROUP = LazyPattern(any_of("network/lines", "mlxlink"))
_MLXLINK_MEMBER = LazyPattern(r"(?P<name>(?:am)?[A-Z][\w /(),.\[\]-]{2,60}?)\s{0,60}: ?(?P<value>.{0,300})")
_JSON_MEMBER = LazyPattern(r'"(?P<name>[^"]{1,80})" ?: ?"(?P<value>[^"]{0,300})"')
_JSON = tuple('{}[]"0123456789')
"""How the lines of a document begin."""
_MLXLINK_HEAD = 6
"""Lines of a document by which the first group of its members has begun."""
_CLOSED = (1, 18, 21, 22, 1033, 1034)
"""Status opcodes of a port that was switched off, or its module: by a command, key, the subnet manager or a test."""
_NO_INFO = 1023
_UNPLUGGED = 1024
_OF_MODULES = frozenset({16, 20, *range(24, 33), 41, *range(_UNPLUGGED, 2048)})
"""What a cable or module is not fit for, and what the firmware that manages modules reports; others are of the link:
https://docs.nvidia.com/networking/display/nvidianvosusermanualforinfinibandswitchesv25024014/link+diagnostic+per+port
"""
_SPEED = LazyPattern(r"IB-(?P<name>[A-Z]DR)")
_LANES = caseless_pattern(r"(?P<lanes>\d{1,2})x")
_RATES = ("Effective Physical BER", "Symbol BER")
_RATE = LazyPattern(r"\d{1,3}(?:\.\d{1,3})?[Ee]-\d{1,3}")
_MOST_ERRORS = 1e-12
"""Bit errors that error correction leaves: ibdiagnet's default (its user manual, Bit Error Rate, --ber_test)."""
_WITHIN = LazyPattern(
    r"(?P<value>-?\d{1,6}(?:\.\d{1,4})?) \[(?P<low>-?\d{1,6}(?:\.\d{1,4})?)\.\.(?P<high>-?\d{1,6}(?:\.\d{1,4})?)\]"
)
"""``49 [-10..80]``, of a module its alarm thresholds; one without sensors has ``0 [0..0]``."""
_OF_LANES = LazyPattern(r"(?P<values>(?:-?\d{1,4}(?:\.\d{1,4})?,){1,15}-?\d{1,4}(?:\.\d{1,4})?) ?"
                        r"\[(?P<low>-?\d{1,4}(?:\.\d{1,4})?)\.\.(?P<high>-?\d{1,4}(?:\.\d{1,4})?)\]")  # fmt: skip
_POWER = "Rx Power Current [dBm]"
_SOUND = ("0", "", "N/A", "Ready state", "LowPwr state", "PwrUp state", "PwrDn state")
_OF_MODULE = ("Module FW Fault", "DataPath FW Fault", "Tx Fault [per lane]", "Module State")
"""Lanes without signal or lock are no fault: those of a copper cable at work are, and where the other end is off."""


def read_mlxlink(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Every port: files if the command line above names its RDMA device, otherwise a result."""
    part = PortsPart("mlxlink")
    inside = in_json = False
    members: dict[str, str] = {}
    shown = [("", 1, members)]
    for number, line in numbered(lines, bare):
        if command := _MLXLINK_COMMAND.fullmatch(line) if "mlxlink" in line else None:
            of_port = _PORT.search(command["more"] or "")
            members, inside = {}, False
            shown.append((command["device"], int(of_port["port"]) if of_port else 1, members))
        elif line[:1] in _JSON and (in_json or (not inside and _begins(lines[number : number + _MLXLINK_HEAD]))):
            in_json = True  # line by line, as it may be cut
            for row in _JSON_MEMBER.finditer(line):
                members.setdefault(row["name"], row["value"])
        elif line == "Operational Info":
            inside = True
        elif inside and (member := _MLXLINK_MEMBER.fullmatch(line)):
            members.setdefault(member["name"].strip(), member["value"].strip())
        elif not (inside and _GROUP.fullmatch(line)):
            continue
        part.lines.add(number)
    for device, port, members in shown:
        if "State" in members:
            is_named = re.fullmatch(NAME, device) is not None
            if is_named:
                part.add_port(device, port, _files(members))
            _diagnose(part, f"{hca_name(device) or 'HCA'}{f'/{port}' if is_named else ''}", members)
    return part.imported()


def _begins(lines: tuple[str, ...]) -> bool:
    """Does a document of mlxlink begin here?"""
    return lines[0].strip()[:1] == "{" and any('"Operational Info"' in line for line in lines)


def _files(members: dict[str, str]) -> dict[str, str | None]:
    speed = _SPEED.fullmatch(members.get("Speed", ""))
    lanes = _LANES.fullmatch(members.get("Width", ""))
    lane = LANE_GBIT.get(speed["name"]) if speed else None
    return {
        "state": state(members["State"].replace("Polling", "Down").replace("Disable", "Down")),
        "phys_state": physical(members.get("Physical state", "")),
        "link_layer": "InfiniBand" if speed else None,
        "rate": rate(int(lanes["lanes"]), lane) if lanes and lane else None,
    }


def _diagnose(reports: Reports, device: str, members: dict[str, str]) -> None:
    """A report for every status opcode but 0, which means no issue, with the tool's recommendation.

    Without an opcode, or where it says that nothing is available, the state of the port is reported.
    """
    code = integer(members.get("Status Opcode", ""), 1 << 16)
    if code and code != _NO_INFO:
        text = f"status {code}: {members.get('Recommendation', '')}"
        unused = code == _UNPLUGGED or code in _CLOSED
        reports.add(device, "status", "unknown" if unused else "warn", _fault(code, members["State"]), text)
    elif members["State"] == "Active" and code != _NO_INFO:
        reports.add(device, "status", "pass")
    else:
        reports.add(device, "status", "note", text=f"the port is {members['State']}")
    if dark := _dark(members):
        reports.add(device, "dark", "warn", Fault.PORT_ERRORS, dark)
    for name in _RATES:
        rate_of_errors = members.get(name, "")
        if _RATE.fullmatch(rate_of_errors) and float(rate_of_errors) > _MOST_ERRORS:
            down = members.get("Link Down Counter", "0")
            text = f"{name} {rate_of_errors}, behind error correction; link down {down} times since the counters began"
            reports.add(device, "errors", "warn", Fault.PORT_ERRORS, text)
            break
    if wrong := [*_of_module(members)]:
        reports.add(device, "module", "warn", Fault.PORT_MODULE, "; ".join(wrong))


def _dark(members: dict[str, str]) -> str:
    """Lanes without enough light beside others that have it: where none has any the other end may be off. A module of
    two ports may show the lanes of the other one, too."""
    width = _LANES.fullmatch(members.get("Width", ""))
    shown = _OF_LANES.fullmatch(members.get(_POWER, ""))
    powers = [*map(float, shown["values"].split(","))] if shown else []
    if shown is None or (width and int(width["lanes"]) != len(powers)) or max(powers) < float(shown["low"]):
        return ""
    dark = [f"{power:g} at lane {lane}" for lane, power in enumerate(powers, 1) if power < float(shown["low"])]
    return f"{_POWER} {', '.join(dark)}, limits [{shown['low']}..{shown['high']}], light at the others" if dark else ""


def _of_module(members: dict[str, str]) -> Iterator[str]:
    """What is wrong with the cable or module, of the members of ``-m``."""
    for name in ("Temperature [C]", "Voltage [mV]"):
        if shown := _WITHIN.fullmatch(members.get(name, "")):
            value, low, high = map(float, shown.groups())
            if low < high and not low <= value <= high:
                yield f"{name} of the module {shown[0]}"
    for name in _OF_MODULE:
        if any(value.strip() not in _SOUND for value in members.get(name, "").split(",")):
            yield f"{name} {members[name]}"


def _fault(code: int, state: str) -> FaultKind:
    """The port's, its module's, or that of the link between two ends."""
    if code in _CLOSED:
        return Fault.PORT_DISABLED
    if code in _OF_MODULES:
        return Fault.PORT_MODULE
    return Fault.PORT_ERRORS if state == "Active" else Fault.PORT_DOWN


PCI_OF = "stated pci-function"
_ROW = ascii_pattern(
    r"(?P<kind>\S{1,80})\(rev:\w{1,4}\)\s+\S{1,80}\s+(?P<bdf>(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[01][0-9a-f]\.[0-7])"
    r"(?:\s+(?P<name>[a-z]\w{1,63}))?(?:\s.*)?"
)
_MST_HEAD = ascii_pattern(r"(?:MST modules|PCI devices):|-{4,40}|MST PCI(?: configuration)? module (?:is not )?loaded"
                   r"|DEVICE_TYPE\s+MST\s+PCI\s.*")  # fmt: skip


def read_mst(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``stated pci-function NAME`` for every row that names both; adapters without an RDMA device beside others of
    their kind that have one.
    """
    part = ToolPart("mst")
    without: dict[str, str] = {}
    kinds = set[str]()
    for row in part.matches(_ROW, numbered(lines), beside=_MST_HEAD):
        bdf = row["bdf"] if row["bdf"].count(":") == 2 else f"0000:{row['bdf']}"
        if row["name"]:
            kinds.add(row["kind"])
            part.found[f"{PCI_OF} {row['name']}"] = bdf
        else:
            without[bdf] = row["kind"]
    for bdf, kind in without.items():
        if kind in kinds and kind.startswith("ConnectX"):
            text = f"{kind} {bdf} has no RDMA device, others of its kind have"
            part.add(hca_name(bdf), "device", "warn", Fault.HCA_UNLISTED, text)
    return part.imported()


_FIRMWARE_COMMAND = ascii_pattern(
    rf"(?:.{{0,120}}\W)?(?:mst)?flint\s.{{0,80}}?(?:-d|--device)[ =](?P<device>{NAME}|[\w./:-]{{4,80}})\s.{{0,60}}"
    r"\b(?:q|query)\b.{0,60}"
)
_BEGIN = LazyPattern(r"Image type: {1,20}FS\d|Device #\d{1,3}:|Querying Mellanox devices firmware \.{3}")
_FIRMWARE_MEMBER = LazyPattern(
    rf"(?P<name>{any_of('network/lines', 'flint, members')})(?::| {{2,40}})\s{{0,40}}(?P<value>.{{0,300}})"
)
_VERSION = ascii_pattern(r"\d{1,3}\.\d{1,4}\.\d{1,5}")
_PSID = LazyPattern(r"[A-Z]{2,3}_?[0-9A-Z_]{6,14}")
_UNQUERIED = LazyPattern(r"-E- Failed to query (?P<name>\S{4,80}) device, error : (?P<why>\S.{2,120})")
_CHATTER = LazyPattern(any_of("network/lines", "flint"))
_RUNNING = "FW Version(Running)"
"""Only where another version is burned: the adapter runs that from its next reset on."""


class Adapter(Record, kw_only=False):
    """One adapter of a text."""

    name: str
    """The RDMA device or bus id that the tool was asked about; empty where the text does not tell."""
    version: str
    psid: str


def read_firmware(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The files of RDMA devices that are named; for other adapters a result that compares those of one board."""
    found: list[Adapter] = []
    part = ToolPart("flint")
    members: dict[str, str] = {}
    shown: list[tuple[str, dict[str, str]]] = []
    name, inside = "", False
    for number, raw in enumerate(bounded(lines)):
        line = bare(raw)
        if command := _FIRMWARE_COMMAND.fullmatch(line) if "flint" in line else None:
            name, inside = command["device"], False
        elif _BEGIN.fullmatch(line):
            name = "" if line.startswith("Device") else name
            members, inside = {}, True
            shown.append((name, members))
        elif failed := _UNQUERIED.fullmatch(line):
            text = f"its firmware does not answer: {failed['why']}"
            part.add(hca_name(failed["name"]) or "HCA", "query", "unknown", None, text)
        elif inside and (member := _FIRMWARE_MEMBER.fullmatch(line)):
            members.setdefault(member["name"], member["value"].strip())
        elif not (inside and _CHATTER.fullmatch(line)):
            inside = inside and (not line or raw[:1] in " \t-")
            continue
        part.lines.add(number)
    for name, members in shown:
        version = _VERSION.search(members.get("FW Version", "") or members.get("FW", ""))
        running = _VERSION.search(members.get(_RUNNING, ""))
        place, at = name or members.get("PCI Device Name", ""), len(found)
        if version is not None and _PSID.fullmatch(psid := members.get("PSID", "")):
            found.append(Adapter(place, (running or version)[0], psid))
        if version is not None and running is not None and version[0] != running[0]:
            text = f"firmware {running[0]} runs, {version[0]} is burned: it runs once the adapter is reset"
            part.add(hca_name(place) or f"adapter{at}", "burned", "note", None, text)
    if not (found or part):
        return ()
    devices = {adapter.name: adapter for adapter in found if re.fullmatch(NAME, adapter.name, re.ASCII)}
    for device, adapter in devices.items():
        part.found |= device_files(device, {"fw_ver": adapter.version, "board_id": adapter.psid})
    part.found |= listed({device: [] for device in devices}) if found else {}
    _compare(part, [adapter for adapter in found if adapter.name not in devices])
    return part.imported()


def _compare(reports: Reports, adapters: list[Adapter]) -> None:
    """Warns of an adapter whose version is not that of most adapters of its board (PSID), else not the newest."""
    for at, adapter in enumerate(adapters):
        place = hca_name(adapter.name) or f"adapter{at}"
        versions = [other.version for other in adapters if other.psid == adapter.psid]
        usual = majority(versions) or max(versions, key=lambda each: [*map(int, each.split("."))])
        if adapter.version != usual:
            text = f"firmware {adapter.version}, other adapters of board {adapter.psid} run {usual}"
            reports.add(place, "firmware", "warn", Fault.HCA_FIRMWARE, text)
        else:
            reports.add(place, "firmware", "pass")
