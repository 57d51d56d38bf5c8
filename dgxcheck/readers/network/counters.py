"""Links and counters of ports: ``rdma link``, ``rdma statistic``, perfquery, ibqueryerrors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from dgxcheck.facts.infiniband import counter_row
from dgxcheck.facts.missing import Json
from dgxcheck.facts.sysfs import INFINIBAND
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern
from dgxcheck.readers.model import HOST, Imported, Reports, ToolPart
from dgxcheck.readers.network.files import NAME, PortsPart, lid, physical, state
from dgxcheck.readers.values import bare, integer, numbered, squeezed
from dgxcheck.readers.wording import any_of, rows, words_of

_LINK_ROW = ascii_pattern(
    rf"(?:\d{{1,4}}/\d{{1,3}}: )?(?:link )?({NAME})/(\d{{1,3}}):?"
    r" (.{0,400}\bstate [A-Z_]{2,16} physical_state \w.{0,400})"
)


def read_link(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """State and lids of every port; with a network interface it is one of RoCE or iWARP, with a subnet InfiniBand."""
    part = PortsPart("rdma link")
    for match in part.matches(_LINK_ROW, numbered(lines, bare)):
        words = match[3].split()
        members = dict(zip(words[::2], words[1::2], strict=False))
        layer = "InfiniBand" if "subnet_prefix" in members else "Ethernet" if "netdev" in members else None
        part.add_port(match[1], int(match[2]), {
            "state": state(members.get("state", "")), "phys_state": physical(members.get("physical_state", "")),
            "lid": lid(members.get("lid", "")), "sm_lid": lid(members.get("sm_lid", "")), "link_layer": layer,
        })  # fmt: skip
    return part.imported()


MOST = 1 << 63
_STATISTIC_ROW = ascii_pattern(
    rf"link (?P<device>{NAME})/(?P<port>\d{{1,3}})(?P<rest>(?: [a-z][a-z0-9_]{{1,60}} \d{{1,20}}){{1,200}})"
)
_STATISTIC_COUNTER = ascii_pattern(r"(?P<name>[a-z][a-z0-9_]{1,60}) (?P<count>\d{1,20})(?= |$)")


def read_statistic(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The counters under their names in sysfs; a row with anything else in it is not read."""
    part = PortsPart("rdma statistic")
    for row in part.matches(_STATISTIC_ROW, numbered(lines, squeezed)):
        counters = {match["name"]: integer(match["count"], MOST) for match in _STATISTIC_COUNTER.finditer(row["rest"])}
        base = f"{INFINIBAND}/{row['device']}/ports/{int(row['port'])}/hw_counters"
        part.found[f"names {base}"] = [*sorted(counters)]
        counted = {name: count for name, count in counters.items() if count is not None}
        part.found |= {f"text {base}/{name}": f"{count}\n" for name, count in counted.items()}
        _totals(part, {f"{row['device']}/{int(row['port'])}": counted})
        part.add_port(row["device"], int(row["port"]), {})
    return (*part.imported(), *_ethtool(lines))


_OF_NIC = LazyPattern(
    r"(?:.{0,120}\W)?ethtool (?:-S|--statistics) (?P<port>[A-Za-z][\w.-]{0,14})(?: .{0,80})?"
    rf"|(?P<name>{any_of('network/lines', 'ethtool -S')}): (?P<count>\d{{1,19}})"
)


def _ethtool(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """What mlx5_core counts of a port of Ethernet (Documentation/networking/device_drivers: mlx5 counters)."""
    part, port = ToolPart("ethtool -S"), HOST
    counted: dict[str, dict[str, int]] = {}
    for row in part.matches(_OF_NIC, numbered(lines)):
        port = row["port"] or port
        if row["name"]:
            counted.setdefault(port, {})[row["name"]] = int(row["count"])
    _totals(part, counted)
    return part.imported() if counted else ()


_FILE = ascii_pattern(
    rf"(?P<path>{INFINIBAND}/(?P<device>{NAME})/ports/(?P<port>\d{{1,3}})/(?P<name>(?:(?:hw_)?counters/)?\w{{1,60}}))"
    r"(?::|: |=| {1,40})(?P<text>\S.{0,80}?)"
)


def read_files(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The files of ports themselves, as ``grep . /sys/class/infiniband/*/ports/*/counters/*`` shows them."""
    part = PortsPart("files of ports")
    names: dict[str, list[Json]] = {}
    counted: dict[str, dict[str, int]] = {}
    for file in part.matches(_FILE, numbered(lines)):
        part.found[f"text {file['path']}"] = f"{file['text']}\n"
        part.add_port(file["device"], int(file["port"]), {})
        folder, _, name = file["path"].rpartition("/")
        if folder.endswith("counters"):
            names.setdefault(f"names {folder}", []).append(name)
            if (count := integer(file["text"], MOST)) is not None:
                counted.setdefault(f"{file['device']}/{int(file['port'])}", {})[name] = count
    _totals(part, counted)
    return part.imported({key: [*sorted(map(str, each))] for key, each in names.items()})


ERRORS = "ibqueryerrors"
COUNTERS = "stated port-counters"
"""Key of one port's counters with its LID and number: ``{"symbol_error": 3}``, by the names of sysfs."""
_FILES = {name: row["file"] for row in rows("network/counters") for name in row["names"].split()}
"""Both tools' names, which older versions shorten, without ``Counter`` at their end."""
_DETAILS = frozenset(words_of("network/lines", "perfquery -E"))
"""Of ``perfquery -E`` and ``-D``, which no file has."""
_ERRORS = _DETAILS | frozenset(_FILES.values()) - {"port_xmit_wait"}
_HEAD = LazyPattern(
    r"#? ?(?:Port (?:extended )?|Port(?:Rcv|Xmit)\w{2,30} )counters: Lid (?P<lid>\d{1,5})"
    r" port (?P<port>\d{1,3})(?: \(CapMask: .{1,40}\))?"
)
_MEMBER = ascii_pattern(r"(?P<name>[A-Z][A-Za-z0-9]{2,40}):\.{1,60}(?P<value>0x[0-9a-fA-F]{1,16}|\d{1,20})")
_NODE = LazyPattern(r"Errors for (?:0x[0-9a-f]{1,16} )?\"(?P<name>[^\"]{0,100})\"")
_PORT = ascii_pattern(
    r"GUID (?P<guid>0x[0-9a-f]{1,16}) port (?P<port>\d{1,3}|ALL):(?P<counters>(?: {1,4}\[\w{2,40} == \d{1,20}"
    r"(?: \([\d.]{1,12}[kKMGTPE]?\))?\]){1,40})"
)
_PORT_COUNTERS_COUNTER = LazyPattern(r"\[(?P<name>\w{2,40}) == (?P<value>\d{1,20})")
_LID = LazyPattern(rf"text (?P<path>{INFINIBAND}/[^/]{{1,64}}/ports/(?P<port>\d{{1,3}}))/lid")
_HEX = LazyPattern(r"0x[0-9a-f]{1,4}")
_REST = LazyPattern(any_of("network/lines", "ibqueryerrors"))
_NO_NODE = LazyPattern(r"## Summary: [1-9]\d{0,8} nodes checked, 0 bad nodes found")


def read_port_counters(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Counts are from the time when the counters were cleared: alone no fault."""
    return (*_perfquery(lines), *_ibqueryerrors(lines))


def errors_by_lid(lines: Iterable[str]) -> Iterator[tuple[int, int, dict[str, int]]]:
    """Of perfquery: LID, port and the counters of the port by their names in sysfs."""
    for head, counts, _ in _blocks(enumerate(map(bare, lines))):
        yield int(head["lid"]), int(head["port"]), counts


Block = tuple[re.Match[str], dict[str, int], set[int]]


def _blocks(lines: Iterable[tuple[int, str]]) -> list[Block]:
    """Of perfquery: each head, the counters below it by their names in sysfs, and the numbers of its lines."""
    found: list[Block] = []
    for number, line in lines:
        if head := _HEAD.fullmatch(line):
            found.append((head, {}, {number}))
        elif found and (member := _MEMBER.fullmatch(line)):
            _, counts, numbers = found[-1]
            numbers.add(number)
            if (name := file_of(member["name"])) and member["value"].isdecimal():
                counts[name] = int(member["value"])
    return found


def errors_by_guid(lines: Iterable[str]) -> Iterator[tuple[str, int, dict[str, int]]]:
    """Of ibqueryerrors: GUID, port and the counters that it shows of the port, by their names in sysfs; of no port, and
    none, where it found no error."""
    for raw in lines:
        if _NO_NODE.fullmatch(raw.strip()):
            yield "0x0", 0, {}
        match = _PORT.fullmatch(raw.strip().strip("`> "))
        if match is not None and match["port"] != "ALL":
            yield match["guid"], int(match["port"]), _counts(match["counters"])


def _counts(text: str) -> dict[str, int]:
    found = _PORT_COUNTERS_COUNTER.finditer(text)
    return {file_of(match["name"]) or match["name"]: int(match["value"]) for match in found}


def _perfquery(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    part = ToolPart("perfquery")
    found: dict[tuple[int, int], dict[str, int]] = {}
    for head, counts, numbers in _blocks(numbered(lines, bare)):
        found.setdefault((int(head["lid"]), int(head["port"])), {}).update(counts)
        part.lines |= numbers
    for (of_lid, port), counters in found.items():
        if of_files := {name: count for name, count in counters.items() if name not in _DETAILS}:
            part.found[f"{COUNTERS} {of_lid} {port}"] = dict(of_files)
        _note(part, f"lid{of_lid}/{port}", "", counters)
    return part.imported()


def _ibqueryerrors(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    part = ToolPart(ERRORS)
    node = ""
    sums: dict[str, tuple[str, dict[str, int]]] = {}
    of_ports: set[str] = set()
    for number, line in numbered(lines, lambda raw: raw.strip().strip("`> ")):
        if match := _NODE.fullmatch(line):
            node = match["name"]
            part.beside.add(number)
        elif match := _PORT.fullmatch(line):
            counts = _counts(match["counters"])
            if match["port"] == "ALL":
                sums[match["guid"]] = node, counts
            else:
                of_ports.add(match["guid"])
                _note(part, f"{match['guid']}/{match['port']}", node, counts)
            part.lines.add(number)
        elif _NO_NODE.fullmatch(line):
            part.add(HOST, "counters", "pass")
            part.lines.add(number)
        elif _REST.fullmatch(line):
            part.beside.add(number)
    for each, (node, counts) in sums.items():
        if each not in of_ports:  # where the rows of its ports are cut off
            _note(part, f"{each}/ALL", node, counts)
    return part.imported()


def file_of(name: str) -> str | None:
    """The name in sysfs of a counter that a tool calls ``SymbolErrorCounter`` or ``XmtDiscards``."""
    return _FILES.get(name) or _FILES.get(name.removesuffix("Counter")) or (name if name in _DETAILS else None)


def files_of(facts: Mapping[str, Json]) -> dict[str, Json]:
    """The counters as files of the only port that has the LID which they are stated of."""
    ports: dict[str, list[str]] = {}
    for key, fact in facts.items():
        if (match := _LID.fullmatch(key)) and isinstance(fact, str) and _HEX.fullmatch(fact.strip()):
            ports.setdefault(f"{int(fact, 16)} {match['port']}", []).append(match["path"])
    files: dict[str, Json] = {}
    for key, counters in facts.items():
        paths = ports.get(key.removeprefix(f"{COUNTERS} "), []) if key.startswith(f"{COUNTERS} ") else []
        if len(paths) == 1 and isinstance(counters, dict):
            files[f"names {paths[0]}/counters"] = [*sorted(counters)]
            files |= {f"text {paths[0]}/counters/{name}": f"{count}\n" for name, count in counters.items()}
    return files


def _totals(reports: Reports, ports: Mapping[str, Mapping[str, int]]) -> None:
    """A note: totals of an unknown time are no growth."""
    for port, counters in ports.items():
        if events := [f"{name} {count}" for name, count in counters.items()
                      if count and "any" not in counter_row(name).more]:  # fmt: skip
            text = f"{', '.join(events)} in all; read them again in an hour: growth is what counts"
            reports.add(port, "counters", "note", None, text)


def _note(reports: Reports, where: str, node: str, counters: dict[str, int]) -> None:
    events = [f"{name} {count}" for name, count in counters.items() if count and name in _ERRORS]
    if events:
        whose = f" of {node}" if node else ""
        text = f"{', '.join(events)}{whose} since the counters were cleared; clear them and read them again in an hour"
        reports.add(where, "counters", "note", None, text)
    elif counters.keys() & _ERRORS:
        reports.add(where, "counters", "pass")
