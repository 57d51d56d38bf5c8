"""The fabric: iblinkinfo, ibportstate, sminfo, ibdiagnet and ibping."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dgxcheck.facts.faults import BY_WORD, Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.record import Record, replace
from dgxcheck.facts.tool_outputs import Outcome
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.fabric.iblinkinfo import port_lines
from dgxcheck.readers.model import HOST, Imported, Reports, ToolPart, topic_of
from dgxcheck.readers.network.files import node_name, state
from dgxcheck.readers.values import bare, bounded, numbered
from dgxcheck.readers.wording import any_of, results, rows, wordings


def read_iblinkinfo(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Links below the speed or width that both ends support, and those that wait for a subnet manager.

    A port that is down is one that nothing is plugged into; how many were meant to be up nobody can tell. Both ends of
    a cable are listed.
    """
    part = ToolPart("iblinkinfo")
    heads: set[int] = set()
    odd: set[frozenset[tuple[str | None, ...]]] = set()
    for number, link, head in port_lines(bounded(lines)):
        if link is None:
            heads.add(number)
            continue
        ends = frozenset((link.group("lid", "port"), link.group("peer_lid", "peer_port")))
        if ends not in odd:
            _take(part, link, link["description"] or (head["description"] if head else ""))
        odd |= {ends} if link["could"] and "0" not in link.group("lid", "peer_lid") else set()  # 0: none was given
        part.lines.add(number)
    part.beside = {head for head in heads if head + 1 in part.lines or head + 1 in heads}
    return part.imported()


def _take(reports: Reports, link: re.Match[str], node: str) -> None:
    """``node``: the description of the HCA or switch whose port it is, ``gpu01 mlx5_0``; the lid where that is cut."""
    of_link = state(link["state"])
    words = " ".join(link["physical"].split())
    name = node_name(node, f"lid{link['lid']}")
    where, peer = f"{name}/{link['port']}", f"to {link['peer'] or 'a port without a name'}"
    could = " ".join(link["could"].split())
    runs = f"{link['lanes']}X {link['speed']}" if link["lanes"] else ""
    if of_link in ("2: INIT", "3: ARMED") and words == "LinkUp":
        text = f"the link {peer} is {of_link[3:]}: no subnet manager configured it"
        reports.add(where, "state", "warn", Fault.NO_SUBNET_MANAGER, text)
    elif "ould be" in could:
        text = f"the link {peer} runs at {runs}: {could[0].lower()}{could[1:]}"
        reports.add(where, "rate", "warn", Fault.PORT_SLOW, text)
    elif words in ("LinkErrorRecovery", "Link Error Recovery"):
        reports.add(where, "state", "warn", Fault.PORT_ERRORS, f"the link {peer} is recovering from errors")
    elif of_link == "4: ACTIVE":
        reports.add(HOST, "links", "pass")


_SECTION = LazyPattern(any_of("network/lines", "port of ibportstate"))
_SETTING = LazyPattern(rf"(?P<name>{any_of('network/lines', 'ibportstate')}):\.{{1,60}}(?P<value>.{{0,100}})", ":.")
_OF_PORTINFO = LazyPattern(r"[A-Z][A-Za-z0-9]{2,40}:\.{1,60}.{0,100}", ":.")
"""What ``smpquery portinfo`` has more."""
_WIDTHS = LazyPattern(r"(?P<lanes>\d{1,2})X\b", "X")


def read_port_states(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Links of fewer lanes than both ends have enabled. Of one whose other end is not shown nobody knows."""
    part = ToolPart("ibportstate")
    where, of_peer = "", False
    runs = 0
    enabled: list[int] = []
    for number, text in numbered(lines):
        if section := _SECTION.fullmatch(text):
            of_peer = bool(section["peer"]) or (of_peer and not section["port"])
            if not of_peer:
                _narrow(part, where, runs, enabled)
                runs, enabled = 0, []
                where = f"LID{section['lid']}/{section['port']}" if section["lid"] and section["port"] else ""
        elif setting := _SETTING.fullmatch(text):
            lanes = [int(width) for width in _WIDTHS.findall(setting["value"])]
            if lanes and setting["name"] == "LinkWidthEnabled":
                enabled.append(max(lanes))
            elif lanes and setting["name"] == "LinkWidthActive" and not of_peer:
                runs = lanes[0]
        elif not (part.lines and _OF_PORTINFO.fullmatch(text)):
            continue
        part.lines.add(number)
    _narrow(part, where, runs, enabled)
    return part.imported(sound="states")


def _narrow(reports: Reports, where: str, runs: int, enabled: Sequence[int]) -> None:
    if len(enabled) > 1 and 0 < runs < min(enabled):
        reports.add(where or HOST, "width", "warn", Fault.PORT_SLOW, f"the link runs at {runs}X of {min(enabled)}X")


SMINFO, IBDIAGNET = "sminfo", "ibdiagnet"
_SUBNET_MANAGER = wordings("network/results", SMINFO)
_TIMEOUT = LazyPattern(r"ibwarn: \[\d{1,10}\] \w{2,40}: .{1,200}")
_SUBNET_HEAD = LazyPattern(r"(?:-I- )?Stage\s{1,40}Warnings\s{1,12}Errors(?:\s{1,20}Comment)?")
_STAGE = LazyPattern(
    r"(?:-[IWE]- )?(?P<stage>[A-Z][\w /().-]{2,40}?)\s{2,60}(?P<warnings>\d{1,9})\s{2,14}(?P<errors>\d{1,9})"
    r"(?:\s{1,20}\S.{0,120})?"
)
_LINE = LazyPattern(r"-(?P<kind>[EW])- (?P<text>\S.{2,300})")
_OF_PORT = LazyPattern(
    r"(?P<name>[a-z][a-z_]{6,40}) {0,40}: (?P<value>0x[0-9a-f]{1,16}.{0,20}|\d{1,20})(?: {1,60}\([\w= .]{1,40}\))?",
    ": ",
)
"""A counter below the port that a warning names, in newer releases with its threshold."""
_HEADING = LazyPattern(r"[A-Z][\w /()-]{2,40}")
"""The name of a stage, above what is logged of it."""
_ENDED = LazyPattern(r" finished with (?:errors|warnings)")
_CHATTER = LazyPattern(any_of("network/lines", "ibdiagnet"))
_TABLE = (*rows("network/stages"),)
_STAGES = tuple((row["word"], BY_WORD[row["fault"]]) for row in _TABLE)
"""Words of a stage's name, and what an error in it stands for."""
_BY_WARNINGS = frozenset(BY_WORD[row["fault"]] for row in _TABLE if row["by_warnings"])
"""Of those that ibdiagnet only warns of: a link below what both its ends can do."""


class _Logged(Record, kw_only=False):
    """An error or warning above the summary."""

    stage: str
    """The last heading above it."""
    kind: str
    text: str


def read_subnet(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """All three tools."""
    sminfo = results(SMINFO, _SUBNET_MANAGER, numbered(lines, bare), beside=_TIMEOUT)
    return (*sminfo, *_ibdiagnet(lines), *_ibping(lines))


_PING_HEAD = LazyPattern(r"--- .{0,100}\((?P<whom>.{1,100})\) ibping statistics ---")
_PING = LazyPattern(r"(?P<sent>\d{1,12}) packets transmitted, (?P<got>\d{1,12}) received, \d{1,3}% packet loss.{0,40}")
_PONG = LazyPattern(r"Pong from .{1,200}|rtt min/avg/max = .{1,60}")


def _ibping(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Pings that stayed without an answer; none at all has a node on which no ``ibping -S`` runs (ibping(8))."""
    part, whom = ToolPart("ibping"), ""
    for number, line in numbered(lines):
        if head := _PING_HEAD.fullmatch(line):
            whom = head["whom"]
        elif whom and (ping := _PING.fullmatch(line)):
            sent, got = int(ping["sent"]), int(ping["got"])
            outcome: Outcome = "pass" if got >= sent > 0 else "warn" if got else "unknown"
            text = f"{got} of {sent} pings to {whom} were answered" + ("" if got else "; does ibping -S run there?")
            fault = None if got >= sent > 0 else Fault.TRANSFER_UNANSWERED
            part.add(HOST, "ping", outcome, fault, text)
            whom = ""
        else:
            part.beside |= {number} if _PONG.fullmatch(line) or _TIMEOUT.fullmatch(line) else set()
            continue
        part.lines.add(number)
    return part.imported()


def _ibdiagnet(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The stages of its summary; where the summary is cut off, the errors and warnings that are logged above it."""
    part = ToolPart(IBDIAGNET)
    logged: list[_Logged] = []
    stages: list[re.Match[str]] = []
    below, heading = False, ""
    for number, line in numbered(lines):
        if _SUBNET_HEAD.fullmatch(line):
            below = True
        elif below and (stage := _STAGE.fullmatch(line)):
            stages.append(stage)
        elif row := _LINE.fullmatch(line):
            logged.append(_Logged(heading, row["kind"], row["text"]))
        elif logged and (counter := _OF_PORT.fullmatch(line)):
            logged[-1] = replace(logged[-1], text=f"{logged[-1].text}, {counter['name']} {counter['value']}")
        else:
            heading = line if _HEADING.fullmatch(line) else heading
            part.beside |= {number} if _CHATTER.fullmatch(line) else set()
            below = below and bool(line)
            continue
        part.lines.add(number)
    first: dict[tuple[str, str | FaultKind], str] = {}
    for each in (each for each in logged if stages and not _ENDED.search(each.text)):
        first.setdefault((each.kind, each.stage), each.text)
        first.setdefault((each.kind, _fault(each.text)), each.text)
    for stage in stages:
        _judge(part, stage["stage"].strip(), int(stage["warnings"]), int(stage["errors"]), first)
    if not part:
        begun = any(raw.strip().startswith("-I- ") for raw in lines) or any("_counter" in each.text for each in logged)
        for each in ([each for each in logged if not _ENDED.search(each.text)] or logged) if begun else ():
            fault = _fault(each.text) if each.kind == "E" else None
            part.add(HOST, "line", "warn" if fault else "note", fault, each.text)
    return part.imported() if part else ()


def _judge(
    reports: Reports, stage: str, warnings: int, errors: int, first: Mapping[tuple[str, str | FaultKind], str]
) -> None:
    """With the first error or warning that is logged of the stage, or the first error of its fault."""
    both = (errors, "error"), (warnings, "warning")
    counts = [f"{count} {noun}{'s' * (count > 1)}" for count, noun in both if count]
    fault = _fault(stage)
    bad = bool(errors or (warnings and fault in _BY_WARNINGS))
    outcome: Outcome = "warn" if bad else "note" if counts else "pass"
    logged = first.get(("E", stage), first.get(("E", fault), "")) if errors else first.get(("W", stage), "")
    text = "; ".join(filter(None, (f"{stage}: {', '.join(counts)}", logged))) if counts else ""
    reports.add(HOST, topic_of(stage), outcome, fault if bad else None, text)


def _fault(words: str) -> FaultKind:
    return next((fault for word, fault in _STAGES if word in words.lower()), Fault.TEST_FAILED)
