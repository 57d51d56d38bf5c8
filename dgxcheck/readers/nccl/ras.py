"""``ncclras``: what the RAS threads of NCCL (since 2.24) know of a job that runs or hangs.

Its text: https://github.com/NVIDIA/nccl/blob/master/src/ras/client_support.cc.
"""

from __future__ import annotations

import re

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.tool_report import Outcome
from dgxcheck.readers.model import Imported
from dgxcheck.readers.reports import HOST, Reports
from dgxcheck.readers.values import bounded

TOOL = "ncclras"
MOST_NAMED = 4
_SECTION = re.compile(r"(?:#\d{1,6}-\d{1,6} \([0-9a-f]{1,16}\) )?(?P<kind>INCOMPLETE|DEAD|ERROR|MISMATCH|TIMEOUT)")
_WHO = re.compile(
    r"(?:Process \d{1,10} on node (?P<node>[\w.:%-]{1,80}) managing GPUs? (?P<gpus>[\d ,-]{1,60})"
    r"|Rank (?P<rank>\d{1,7})(?: (?P<state>(?:has|reported) .{1,60}?))? -- (?:GPU (?P<gpu>[\w:, -]{1,40}) managed by"
    r" process \d{1,10} on node (?P<home>[\w.:%-]{1,80})|\[.{1,80}\]))"
)
_WHAT = re.compile(
    r"Missing communicator data from \d{1,7} (?:job process|rank)(?:es|s)?"
    r"|\d{1,7} job process(?:es)? (?:is|are) considered dead .{0,60}"
    r"|(?:Initialization|Asynchronous) errors? on \d{1,7} ranks?"
    r"|Communicator ranks have different (?:\w{1,40} operation counts|status)"
    r"|Encountered \d{1,7} communication timeouts? .{0,60}"
)
_GROUP = re.compile(
    r"\d{1,6}(?: {1,12}\d{1,7}){2} {1,12}[\d-]{1,12}(?: {1,12}[\d-]{1,12}){2} {1,12}[A-Z]{2,12}"
    r" {1,12}(?P<errors>[A-Z]{2,12})"
)
_CHATTER = re.compile(
    r"NCCL version \d.{1,60} compiled with CUDA .{1,20}|CUDA runtime version \d{1,6}, driver version \d{1,6}"
    r"|Job summary|={4,20}|(?:Nodes|Group|Processes|Comms).{0,100}|[(#].{0,20}total\).{0,80}|\(total\).{0,80}"
    r"|# {1,12}in group.{0,80}|\d{1,7} ranks have (?:status|launched|not).{0,60}|\d{1,7} ranks reported .{0,80}"
    r"|Communicators\.{3}.{0,60}|Errors|Warnings|\d{1,7}(?: {1,14}\d{1,7}){1,5}"
    r"|\[could not find information .{1,60}\]|The missing (?:rank|process).{0,60}"
    r"|The outlier nodes?:|Node \S{1,80} running process.{0,200}|Gathering data about .{0,80}"
)
_FOUND: dict[str, tuple[Outcome, FaultKind]] = {
    "DEAD": ("fail", Fault.COLLECTIVE_TIMEOUT), "INCOMPLETE": ("warn", Fault.COLLECTIVE_TIMEOUT),
    "ERROR": ("fail", Fault.TOOL_ERROR), "MISMATCH": ("unknown", Fault.COLLECTIVE_TIMEOUT),
}  # fmt: skip
"""A running job shows ranks at different operations for a moment: ask again whether the same ones stay behind."""


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Processes that are dead or do not respond, ranks with errors, and ranks that are behind."""
    reports = Reports(TOOL)
    understood: set[int] = set()
    kind, what, who = "", "", list[str]()

    def close() -> None:
        if kind in _FOUND and (what or who):
            more = f" and {len(who) - MOST_NAMED} more" if len(who) > MOST_NAMED else ""
            named = f": {', '.join(who[:MOST_NAMED])}{more}" if who else ""
            reports.add(HOST, kind.lower(), *_FOUND[kind], f"{_sentence(what)}{named}")

    begun = False
    for number, raw in enumerate(bounded(lines)):
        line = raw.strip()
        if section := _SECTION.fullmatch(line):
            close()
            kind, what, who, begun = section["kind"], "", [], True
        elif kind and (title := _WHAT.fullmatch(line)):
            what = what or title[0]
        elif kind and (match := _WHO.fullmatch(line)):
            who.append(_name(match))
        elif group := _GROUP.fullmatch(line):
            begun = True
            if group["errors"] == "OK":
                reports.add(HOST, "communicators", "pass")
        elif not (line and _CHATTER.fullmatch(line)):
            continue
        understood.add(number)
    close()
    if not begun or not reports:
        return ()
    return (Imported(tool=TOOL, facts=reports.facts(), understood=frozenset(understood)),)


def _sentence(what: str) -> str:
    return what[:1].lower() + what[1:] if what else "see the output"


def _name(match: re.Match[str]) -> str:
    """``rank 21, GPU 5 on node 10.0.0.3``"""
    if match["rank"] is None:
        return f"GPU {match['gpus'].strip()} on node {match['node']}"
    where = f", GPU {match['gpu']} on node {match['home']}" if match["home"] else ""
    state = f" {match['state']}" if match["state"] else ""
    return f"rank {match['rank']}{state}{where}"
