"""What the managers of an InfiniBand subnet log: opensm, and UFM of its events."""

from __future__ import annotations

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.infiniband import DOWNED, blaming
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.model import HOST, Imported, ToolPart
from dgxcheck.readers.network.counters import file_of
from dgxcheck.readers.network.files import node_name
from dgxcheck.readers.values import numbered

_OF_OPENSM = LazyPattern(
    r"(?:.{0,120} )?(?:[Oo]pen(?:SM|sm)\[\d{1,9}\]:|\d{6} \[[0-9A-F]{4,16}\] 0x[0-9a-f]{2} ->) (?P<text>.{1,1000})"
)
_TRAP = LazyPattern(
    r".{0,60}num:(?P<number>\d{1,3}) \((?P<what>[^()]{4,80})\).{0,60} from LID:(?P<lid>\d{1,5}) Port (?P<port>\d{1,3})"
    r".{0,80}"
)
_SUBNET_STATES = ("SUBNET UP", "Errors during initialization", "SM port is down")
_LINK_TRAPS = ("129", "130", "131")
"""Link integrity, buffer overruns, flow control: ports with errors (osm_helper.c, generic traps of a subnet)."""
_CHANGED = LazyPattern(
    r"\w{2,40}: Switch 0x[0-9a-f]{1,16} (?P<node>.{1,120}) port (?P<port>\d{1,3})(?: ?\(.{1,40}\))?"
    r" changed state from [A-Z]{4,8} to (?P<state>[A-Z]{4,8})"
)
_MEMBERSHIP = LazyPattern(
    r"\w{2,40}: (?P<what>Removed|Discovered new) port with GUID:0x(?P<guid>[0-9a-f]{1,16}) LID range \[.{1,20}\]"
    r" of node: ?(?P<node>.{1,120})"
)
"""osm_port_info_rcv.c, osm_drop_mgr.c, osm_state_mgr.c; of every node that is switched off or boots."""


def read_opensm(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Of the subnet manager's syslog or own log: ports that report errors, and its own port that is down; a note for
    each port of a switch that lost its link and has none at the end, and each port that left the subnet."""
    part = ToolPart("opensm")
    last = ""
    downs: dict[str, tuple[int, bool]] = {}
    left: dict[str, str] = {}
    for row in part.matches(_OF_OPENSM, numbered(lines)):
        text = row["text"]
        if (trap := _TRAP.fullmatch(text)) and trap["number"] in _LINK_TRAPS:
            part.add(f"LID{trap['lid']}/{trap['port']}", "trap", "warn", Fault.PORT_ERRORS, trap["what"])
        elif changed := _CHANGED.fullmatch(text):
            where, down = f"{node_name(changed['node'])}/{changed['port']}", changed["state"] == "DOWN"
            downs[where] = downs.get(where, (0, False))[0] + down, down
        elif member := _MEMBERSHIP.fullmatch(text):
            left.pop(member["guid"], None)
            left |= {member["guid"]: member["node"].strip()} if member["what"] == "Removed" else {}
        last = next((words for words in _SUBNET_STATES if words in text), last)
    for where, (count, down) in downs.items():
        if down:
            times = f"{count} time{'s' * (count > 1)}"
            part.add(where, "link", "note", None, f"its link went down, {times} in this log, and was down at its end")
    for guid, node in left.items():
        part.add(HOST, "left", "note", None, f"{node} (0x{guid}) left the subnet and had not come back at its end")
    if last == "Errors during initialization":
        part.add(HOST, "state", "note", None, "the subnet came up with errors, which its log has")
    elif last == "SM port is down":
        part.add(HOST, "port", "warn", Fault.NO_SUBNET_MANAGER, "the port of the subnet manager is down")
    return part.imported(sound="log")


_EVENT = LazyPattern(
    r"(?:.{0,160} )?\[\d{1,12}\] \[\d{1,5}\] (?P<level>[A-Z]{4,8})"
    r" \[[^\]]{2,40}\] [\w ]{2,40} \[(?P<where>[^\]]{1,200})\] \[dev_id: [^\]]{1,40}\]: ?(?P<text>\S.{0,400})"
)
_PLACE = LazyPattern(
    r"(?:.{0,80} / )?(?:Switch|Computer): (?P<node>[^/]{1,80}?)(?: / [^/]{1,20}){0,2} / (?:Port )?(?P<port>\d{1,3})"
)
_THRESHOLD = LazyPattern(
    r"(?P<counter>[A-Z][A-Za-z0-9]{1,40}(?:[ -][A-Za-z0-9]{1,30}){0,4}) counter (?:delta |rate )?threshold exceeded\."
    r" Threshold is .{1,300}"
)
_QUIET = "INFO"


def read_ufm(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Events of UFM (/opt/ufm/files/log/event.log): a warning where a counter of the link of a port passed UFM's
    threshold; a note for what else is no information, a link that went down among them, as at every boot of a host.

    https://docs.nvidia.com/networking/display/ufmenterpriseumv62311, Supported Traps and Events; syslog:
    https://github.com/IBM/CAST, CSM Big Data, UFM
    """
    part = ToolPart("UFM")
    for event in part.matches(_EVENT, numbered(lines)):
        if event["level"] == _QUIET:
            continue
        place = _PLACE.fullmatch(event["where"])
        where = f"{node_name(place['node'])}/{place['port']}" if place else HOST
        limit = _THRESHOLD.fullmatch(event["text"])
        file = file_of(limit["counter"].replace(" ", "").replace("-", "")) if limit else None
        if file in blaming("cable") and file != DOWNED:
            part.add(where, file, "warn", Fault.PORT_ERRORS, event["text"])
        else:
            part.add(where, file or "event", "note", None, event["text"])
    return part.imported(sound="events")
