"""Lines of ``lspci -vv`` without the line of their device: its PCIe link, as results about a device that is not named.

lspci calls a link downgraded where the device itself supports more (pciutils, ls-caps.c). The slot may have no more,
and GPUs lower the speed of an idle link, so only a width is reported, and never as a fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dgxcheck.readers.lspci.registers import link
from dgxcheck.readers.model import Imported
from dgxcheck.readers.reports import HOST, Reports

TOOL = "lspci -vv"
_DETAIL = re.compile(
    r"(?:Lnk|Dev|Slt|Root)(?:Cap|Ctl|Sta)\d?:.*|(?:UE|CE)(?:Sta|Msk|Svrt?):.*|AERCap:.*|HeaderLog:.*|RootCmd:.*"
    r"|Capabilities: (?:\[[0-9a-f]{2,3}|<access denied>).*|ClockPM[+-].*|ExtSynch[+-].*|TrErr[+-].*|RlxdOrd[+-].*"
    r"|MaxPayload .*|ExtTag[+-].*|AtomicOps.*|10BitTag.*|EmergencyPower.*|FRS[+-].*|Transmit Margin.*|Compliance .*"
    r"|EqualizationPhase.*|Retimer[+-].*|First Error Pointer.*|MultHdrRecCap[+-].*|CorrErr[+-].*"
    r"|Kernel (?:driver|modules).*",
    re.ASCII,
)
_WIDTH = re.compile(r"LnkSta:\s.{0,60}\bWidth x(?P<width>\d{1,2})(?P<narrow> \(downgraded\))?", re.ASCII)
_LINK = ("LnkCap:", "LnkSta:")
MOST = 64
"""Devices of one text."""


def unnamed(lines: Sequence[str], named: frozenset[int]) -> tuple[Imported, ...]:
    """One result for each such device; ``named`` are the lines that belong to a device."""
    reports = Reports(TOOL)
    understood: set[int] = set()
    for block in [*_blocks(lines, named)][:MOST]:
        texts = [lines[at].strip() for at in block]
        words = link(b"", texts)
        status = next((match for text in texts if (match := _WIDTH.match(text))), None)
        if not words:
            continue
        understood.update(block)
        if status is None:
            continue
        speed = words.get("current_link_speed", "").partition(" ")[0].removesuffix(".0")
        most = words.get("max_link_width")
        narrow = status["narrow"] is not None or (most is not None and int(most) > int(status["width"]))
        text = f"a device that the text does not name: link at x{status['width']}, {speed} GT/s"
        if narrow:
            of = "more lanes" if most is None else f"x{most}"
            text = f"{text}; it supports {of}, what its slot supports is not shown"
        reports.add(HOST, "link", "unknown" if narrow else "pass", None, text)
    return (Imported(tool=TOOL, facts=reports.facts(), understood=frozenset(understood)),) if understood else ()


def _blocks(lines: Sequence[str], named: frozenset[int]) -> Iterator[list[int]]:
    """Runs of such lines; a second capability or status of a link is another device's."""
    block: list[int] = []
    seen: set[str] = set()
    for at, line in enumerate(lines):
        text = line.strip()
        begins = next((word for word in _LINK if text.startswith(word)), "")
        if at in named or _DETAIL.fullmatch(text) is None or begins in seen:
            yield from [block] if block else []
            block, seen = [], set()
        if at not in named and _DETAIL.fullmatch(text) is not None:
            block.append(at)
            seen |= {begins} - {""}
    yield from [block] if block else []
