"""What agents on a node print of it: Azure's healthagent (``health -s | jq``) and the fabric table of ``gpud scan``.

https://github.com/Azure/cyclecloud-healthagent; https://github.com/leptonai/gpud, the component of the fabric state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.host.schedulers import Entry, of_nodes
from dgxcheck.readers.model import HOST, Imported, ToolPart
from dgxcheck.readers.values import bounded, numbered

_CHECK = LazyPattern(r"\"(?P<name>\w{2,60}Health ?[Cc]hecks\w{0,4})\": \{")
_MEMBER = LazyPattern(r"\"(?P<name>status|message|description|details|last_update)\": \"(?P<value>.{0,4000})\",?")
_MOST_OF_A_CHECK = 64
"""Details of one check: a box has some for each of its GPUs."""


def read_healthagent(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Every detail of a check that is not OK; its text is that of dcgmi health."""
    return of_nodes("healthagent", _checks(bounded(lines)))


def _checks(lines: tuple[str, ...]) -> Iterator[Entry]:
    name, members, seen = "", dict[str, str](), list[int]()
    for number, line in enumerate((*lines, "}")):
        text = line.strip()
        if name and (member := _MEMBER.fullmatch(text)):
            members[member["name"]] = member["value"]
        elif begins := _CHECK.fullmatch(text):
            yield from _details(name, members, seen)
            name, members, seen = begins["name"], {}, []
        else:
            yield from _details(name, members, seen) if text[:1] == "}" else ()
            name = "" if text[:1] == "}" else name
            continue
        seen.append(number)


def _details(name: str, members: Mapping[str, str], seen: list[int]) -> Iterator[Entry]:
    if not name or "status" not in members:
        return
    said = members.get("details") or members.get("description", "")
    good = members["status"] == "OK"
    for text in [""] if good else said.split("\\n")[:_MOST_OF_A_CHECK]:
        yield Entry("", tuple(seen), name.lower(), "" if good else text or f"{name} is {members['status']}")


_UUID = LazyPattern(r"\| GPU UUID {1,60}\| (?P<uuid>GPU-[0-9a-f-]{36}|[0-9a-f-]{36}) {0,40}\|")
_ROW = LazyPattern(r"\| (?P<name>[A-Z][\w ]{3,40}?) {1,60}\| (?P<value>\S.{0,120}?) {0,80}\|")
_RULE = LazyPattern(r"\+-{3,80}\+-{3,160}\+|.{0,10}checked fabric state|. \S{1,60} checked fabric state")
_PLACE = ("uuid", "Clique ID", "Cluster UUID")
_STATES = ("Completed", "Not Supported", "Not Started", "In Progress")


def read_gpud_fabric(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """A GPU whose registration with the fabric did not end well, or whose health is bad."""
    part, rows = ToolPart("gpud"), dict[str, str]()
    tables = [rows]
    for number, text in numbered(lines):
        if uuid := _UUID.fullmatch(text):
            rows = {"uuid": uuid["uuid"]}
            tables.append(rows)
        elif rows and (row := _ROW.fullmatch(text)):
            rows[row["name"]] = row["value"]
        elif _RULE.fullmatch(text):
            part.beside.add(number)
            continue
        else:
            rows = {}
            continue
        part.lines.add(number)
    for rows in tables:
        if (fault := _fault(rows)) is not None:
            shown = ", ".join(f"{name} {value}" for name, value in rows.items() if name not in _PLACE)
            part.add(HOST, "fabric", "warn", fault, f"GPU {rows['uuid'].removeprefix('GPU-')}: {shown}")
    return part.imported(sound="fabric")


def _fault(rows: Mapping[str, str]) -> FaultKind | None:
    state = rows.get("State", _STATES[1])
    if state in _STATES[2:] or (state == _STATES[0] and rows.get("Status", "Success") != "Success"):
        return Fault.FABRIC_FAILED
    if rows.get("Health Summary") == "Unhealthy" or rows.get("Route Unhealthy") == "True":
        return Fault.FABRIC_UNHEALTHY
    recovers = any(rows.get(name) == "True" for name in ("Route Recovery", "Access Timeout", "Access Timeout Recovery"))
    reduced = rows.get("Bandwidth") == "Degraded" or rows.get("Health Summary") == "Limited Capacity"
    return Fault.FABRIC_DEGRADED if recovers or reduced else None
