"""The log, unit and states of IMEX, which joins the NVLinks of several hosts."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json, members_of
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.formats import documents
from dgxcheck.readers.host.services import ERROR_WORDS, LOG_LINE, UNIT_STOPPED, is_of_imex
from dgxcheck.readers.model import HOST, Imported, ToolPart
from dgxcheck.readers.values import numbered
from dgxcheck.readers.wording import any_of

_OF_IMEX = LazyPattern(any_of("host/lines", "journal of IMEX"))
_OF_ITS_START = LazyPattern(r"IMEX Log init|INFO: using stderr for IMEX|WARNING: failed to \w{1,8} IMEX|Connectivity T")
_NODE = LazyPattern(
    r"Node #\d{1,5} {1,8}[*-] (?P<node>\S{1,80}) [ *-]{1,60}(?P<state>[A-Z_]{3,30})(?: {0,40}- Version:(?: .{1,60})?)?"
)
_DOMAIN = LazyPattern(r"Domain State: (?P<state>[A-Z_]{2,20})")
_CELL = r"(?:[INRDAC]|![VM]!|\d{1,5}|\.{3})"
_ROW = LazyPattern(rf"\d{{1,5}} {{2,12}}{_CELL}(?: {{1,8}}{_CELL}){{0,599}}|[\d/]{{8,10}} [\d:.]{{8,12}}")
_LEGEND = LazyPattern(r"(?:[INRDAC]|![VM]!) - [A-Z].{4,120}|Nodes From.{1,4000}")
_MISMATCH = {"!V!": "versions", "!M!": "lists"}
_ASKED = LazyPattern(r"(?:.{0,80}[#$>] ?)?(?:sudo )?nvidia-imex-ctl (?:.{0,80} )?-q\b.{0,80}")
_DAEMON = LazyPattern(
    r"READY|INITIALIZING|STARTING_AUTH_SERVER|WAITING_FOR_(?:PEERS|RECOVERY)|INIT_GPU|SHUTTING_DOWN|UNAVAILABLE"
)
"""Of one node, https://github.com/NVIDIA/DCGM, dcgm_fields.h, DCGM_FI_IMEX_DAEMON_STATUS."""
_UNCONNECTED = ("N", "D", "R", "NEVER_CONNECTED", "DISCONNECTED", "RECOVERING")
_IN_USE = LazyPattern(r"Imex session, NV_ERR_IN_USE")
_NOT_STARTED = LazyPattern("No matching network interface found")
"""It ends with that: https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu/issues/289."""
_APART = Fault.IMEX_NODES


def read_imex(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Its log and unit, and ``nvidia-imex-ctl -N``: nodes that are not ready, and what keeps two apart.

    https://docs.nvidia.com/multi-node-nvlink-systems/imex-guide/cmdservice.html
    """
    part, own = ToolPart("imex"), is_of_imex(lines)
    away, ended, errors, nodes = list[str](), list[str](), list[str](), list[str]()
    apart, differ = dict[str, None](), dict[str, dict[str, None]]()
    domain, asked = "UP", False
    for found, where in documents(lines, lambda each: "connections" in str(each.get("nodes"))):
        domain = status if isinstance(status := found.get("status"), str) else domain
        for node in map(members_of, members_of(found["nodes"]).values()):
            if isinstance(host := node.get("host"), str):
                away += [host] if node.get("status") != "READY" else []
                apart |= _pairs(host, members_of(node.get("connections")).values(), _UNCONNECTED)
        part.lines.update(where)
    for number, text in numbered(lines):
        if match := _OF_IMEX.fullmatch(text):
            message = match["text"] or match["unit"] or match["verb"].replace("Fail", "Failed to start")
            if ERROR_WORDS.search(message) or UNIT_STOPPED.search(message):
                (errors if match["text"] else ended).append(message)
        elif _OF_ITS_START.match(text) or (part.lines and _LEGEND.fullmatch(text)):
            pass
        elif own and (match := LOG_LINE.fullmatch(text)):
            errors += [match["text"]] if match["level"] in ("ERROR", "CRITICAL", "FATAL") else []
        elif match := _NODE.fullmatch(text):
            nodes.append(match["node"])
            away += [match["node"]] if match["state"] != "READY" else []
        elif part.lines and _ROW.fullmatch(text):
            row, *signs = text.split()
            at_row = nodes[int(row)] if row.isdecimal() and int(row) < len(nodes) else ""
            others = zip(nodes, signs, strict=False) if at_row else ()
            ends: list[Json] = [{"host": end, "status": sign} for end, sign in others]
            apart |= _pairs(at_row, ends, _UNCONNECTED)
            for sign in filter(signs.__contains__, _MISMATCH):
                differ[sign] = differ.get(sign, {}) | _pairs(at_row, ends, (sign,))
        elif match := _DOMAIN.fullmatch(text):
            domain = match["state"]
        elif _ASKED.fullmatch(text):
            asked = True
        elif asked and _DAEMON.fullmatch(text):
            if text != "READY":
                fault = Fault.IMEX_DOWN if text == "UNAVAILABLE" else _APART
                part.add(HOST, "daemon", "warn", fault, f"the daemon of this node is {text}")
        else:
            continue
        part.lines.add(number)
    for text in errors or ended[:1]:
        down = ended or _NOT_STARTED.search(text)
        fault = Fault.IMEX_TWICE if _IN_USE.search(text) else Fault.IMEX_DOWN if down else _APART
        part.add(HOST, "log", "warn", fault, text)
    for sign, pairs in differ.items():
        names = f": {', '.join([*pairs][:4])}" if pairs else ""
        part.add(HOST, _MISMATCH[sign], "warn", _APART, f"{_MISMATCH[sign]} of nodes differ{names}")
    if away:
        part.add(HOST, "nodes", "warn", _APART, f"nodes not ready: {len(away)} ({', '.join(away[:4])})")
    elif apart:
        part.add(HOST, "nodes", "warn", _APART, f"nodes not connected: {', '.join([*apart][:4])}")
    if domain != "UP" and not part:
        part.add(HOST, "domain", "warn", _APART, f"domain state: {domain}")
    return part.imported(sound="log")


def _pairs(node: str, connections: Iterable[Json], states: Collection[str]) -> dict[str, None]:
    """This node with each that its connection to is in one of these states; of one that it never asked nothing is
    known."""
    ends = [each.get("host") for each in map(members_of, connections) if each.get("status") in states]
    return dict.fromkeys(" and ".join(sorted((node, end))) for end in ends if isinstance(end, str))
