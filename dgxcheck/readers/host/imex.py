"""The log, unit and states of IMEX, which joins the NVLinks of several hosts."""

from __future__ import annotations

from dgxcheck.facts.faults import Fault
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.host.services import ERROR_WORDS, LOG_LINE, UNIT_STOPPED, is_of_imex
from dgxcheck.readers.model import HOST, Imported, ToolPart
from dgxcheck.readers.values import numbered

_OF_IMEX = LazyPattern(
    r"(?:.{0,120} )?(?:nv|nvidia)-imex\[\d{1,9}\]: ?(?P<text>.{1,1000})"
    r"|(?:.{0,120} )?systemd\[1\]: (?:nvidia-imex\.service: (?P<unit>.{1,300})|(?P<verb>Start|Stopp|Fail)\w* .{0,120}"
    r"(?:nvidia-imex\.service|NVIDIA IMEX service).{0,80})",
    "-imex",
    "IMEX service",
)
_OF_ITS_START = LazyPattern(r"IMEX Log init|INFO: using stderr for IMEX|WARNING: failed to \w{1,8} IMEX|Connectivity T")
_NODE = LazyPattern(
    r"Node #\d{1,5} {1,8}[*-] (?P<node>\S{1,80}) [ *-]{1,60}(?P<state>[A-Z_]{3,30})(?: {0,40}- Version:(?: .{1,60})?)?",
    "Node #",
)
_DOMAIN = LazyPattern(r"Domain State: (?P<state>[A-Z_]{2,20})", "Domain State: ")
_ROW = LazyPattern(r"\d{1,5} {2,12}(?:(?:[INRDAC]|![VM]!|\d{1,5}|\.{3}) {0,8}){1,600}|[\d/]{8,10} [\d:.]{8,12}")
_LEGEND = LazyPattern(r"(?:[INRDAC]|![VM]!) - [A-Z].{4,120}|Nodes From.{1,4000}")
_MISMATCH = {"!V!": "versions", "!M!": "lists"}
_IN_USE = LazyPattern(r"Imex session, NV_ERR_IN_USE", "NV_ERR_IN_USE")
_APART = Fault.IMEX_NODES


def read_imex(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Its log and unit, and ``nvidia-imex-ctl -N``: nodes that are not ready, and what keeps two apart.

    https://docs.nvidia.com/multi-node-nvlink-systems/imex-guide/cmdservice.html
    """
    part, own = ToolPart("imex"), is_of_imex(lines)
    away, ended, errors = list[str](), list[str](), list[str]()
    domain = "UP"
    for number, text in numbered(lines):
        if match := _OF_IMEX.fullmatch(text):
            began = "Failed to start" if match["verb"] == "Fail" else match["verb"]
            message = match["text"] or match["unit"] or began
            if ERROR_WORDS.search(message) or UNIT_STOPPED.search(message):
                (errors if match["text"] else ended).append(message)
        elif _OF_ITS_START.match(text) or (part.lines and _LEGEND.fullmatch(text)):
            pass
        elif own and (match := LOG_LINE.fullmatch(text)):
            errors += [match["text"]] if match["level"] in ("ERROR", "CRITICAL", "FATAL") else []
        elif match := _NODE.fullmatch(text):
            away += [match["node"]] if match["state"] != "READY" else []
        elif part.lines and _ROW.fullmatch(text):
            for sign, what in _MISMATCH.items():
                if sign in text:
                    part.add(HOST, what, "warn", _APART, f"{what} of nodes differ")
        elif match := _DOMAIN.fullmatch(text):
            domain = match["state"]
        else:
            continue
        part.lines.add(number)
    for text in errors or ended[:1]:
        fault = Fault.IMEX_TWICE if _IN_USE.search(text) else Fault.IMEX_DOWN if ended else _APART
        part.add(HOST, "log", "warn", fault, text)
    if away:
        part.add(HOST, "nodes", "warn", _APART, f"nodes not ready: {len(away)} ({', '.join(away[:4])})")
    if domain != "UP" and not part:
        part.add(HOST, "domain", "warn", _APART, f"domain state: {domain}")
    return part.imported(sound="log")
