"""``mlxlink``: state, rate and diagnosis of one port of an adapter, which the command line above it names."""

from __future__ import annotations

import re

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json
from dgxcheck.readers.model import Imported
from dgxcheck.readers.network.files import NAME, listed, physical, port_files, rate, state
from dgxcheck.readers.reports import Reports
from dgxcheck.readers.values import bare, bounded, integer

TOOL = "mlxlink"
_COMMAND = re.compile(
    rf"(?:.{{0,120}}\W)?mlxlink\s.{{0,200}}?(?:-d|--device)[ =](?P<device>{NAME}|[\w./:-]{{4,80}})"
    r"(?P<more>\s.{0,200})?",
    re.ASCII,
)
_PORT = re.compile(r"\s(?:-p|--port)[ =](?P<port>\d{1,2})\b")
_GROUP = re.compile(
    r"(?:Operational|Supported|Troubleshooting|Physical Counters and BER|Module|Serdes .{1,20}|Tool|EYE Opening"
    r"|FEC .{1,20}"
    r"|Show .{1,20}|Link Down|PHY) (?:Info|Information|Histogram)?(?: #| \(.{1,60}\))?"
)
_MEMBER = re.compile(r"(?P<name>[A-Z][\w /().\[\]-]{2,60}?)\s{0,60}: ?(?P<value>.{0,300})")
_JSON_MEMBER = re.compile(r'"(?P<name>[^"]{1,80})" ?: ?"(?P<value>[^"]{0,300})"')
_JSON = tuple('{}[]"0123456789')
"""How the lines of a document begin."""
_HEAD = 6
"""Lines of a document by which the first group of its members has begun."""
_UNUSED = (1, 1024)
"""Status opcodes of a port that was switched off, and of one without a cable."""
_SPEEDS = {"SDR": 2.5, "DDR": 5.0, "QDR": 10.0, "FDR": 14.0, "EDR": 25.0, "HDR": 50.0, "NDR": 100.0, "XDR": 200.0}
_SPEED = re.compile(r"IB-(?P<name>[A-Z]DR)")
_LANES = re.compile(r"(?P<lanes>\d{1,2})x", re.IGNORECASE)
_RULE = re.compile(r"[-=]{3,80}")


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Every port: files if the command line above names its RDMA device, otherwise a result."""
    facts: dict[str, Json] = {}
    ports: dict[str, list[int]] = {}
    reports = Reports(TOOL)
    understood: set[int] = set()
    device, port, inside, in_json = "", 1, False, False
    members: dict[str, str] = {}

    def close() -> None:
        if "State" in members:
            if re.fullmatch(NAME, device):
                ports.setdefault(device, []).append(port)
                facts.update(port_files(device, port, _files(members)))
            _diagnose(reports, re.sub(r"^/dev/mst/|[/:]", "", device) or "HCA", members)
        members.clear()

    for number, raw in enumerate(bounded(lines)):
        line = bare(raw)
        if command := _COMMAND.fullmatch(line) if "mlxlink" in line else None:
            close()
            of_port = _PORT.search(command["more"] or "")
            device, port, inside = command["device"], int(of_port["port"]) if of_port else 1, False
            in_json = False
        elif line[:1] in _JSON and (in_json or (line[0] == "{" and not inside and _begins(lines[number:][:_HEAD]))):
            in_json = True  # line by line, as it may be cut
            for row in _JSON_MEMBER.finditer(line):
                members.setdefault(row["name"], row["value"])
        elif line == "Operational Info":
            inside = True
        elif inside and (member := _MEMBER.fullmatch(line)):
            members.setdefault(member["name"].strip(), member["value"].strip())
        elif not (inside and (_GROUP.fullmatch(line) or _RULE.fullmatch(line))):
            continue
        understood.add(number)
    close()
    if not (ports or reports):
        return ()
    facts |= reports.facts() | listed(ports)
    return (Imported(tool=TOOL, facts=facts, understood=frozenset(understood)),)


def _begins(lines: tuple[str, ...]) -> bool:
    """Is a document mlxlink's?"""
    return any('"Operational Info"' in line for line in lines)


def _files(members: dict[str, str]) -> dict[str, str | None]:
    speed = _SPEED.fullmatch(members.get("Speed", ""))
    lanes = _LANES.fullmatch(members.get("Width", ""))
    lane = _SPEEDS.get(speed["name"]) if speed else None
    return {
        "state": state(members["State"].replace("Polling", "Down").replace("Disable", "Down")),
        "phys_state": physical(members.get("Physical state", "")),
        "link_layer": "InfiniBand" if speed else None,
        "rate": rate(int(lanes["lanes"]), lane) if lanes and lane else None,
    }


def _diagnose(reports: Reports, device: str, members: dict[str, str]) -> None:
    """A report for every status opcode but 0, which means no issue, with the tool's recommendation.

    Without an opcode the state of the port is reported.
    """
    code = integer(members.get("Status Opcode", ""), 1 << 16)
    if code:
        text = f"status {code}: {members.get('Recommendation', '')}"
        reports.add(device, "status", "unknown" if code in _UNUSED else "warn", Fault.PORT_MODULE, text)
    elif members["State"] == "Active":
        reports.add(device, "status", "pass")
    else:
        reports.add(device, "status", "note", text=f"the port is {members['State']}")
