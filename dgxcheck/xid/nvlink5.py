"""Xids 144 to 150 of NVLink 5: what the hexadecimal words of a line say of its cause.

``nvlink5.tsv``: NVIDIA's Xid catalogue, sheet "XID 144-150 Decode",
https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html. A line reads ``149, NETIR_LINK_EVT Fatal XC0 i0
Link 08 (intrinfo status ..)``; the bits of intrinfo are laid out in two ways, by the driver's version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from dgxcheck.facts.record import Record
from dgxcheck.xid.entry import REMEDIES, Response
from dgxcheck.xid.table import table_rows

_LINE = re.compile(
    r"(?P<unit>[A-Z][A-Z0-9_]{2,31})\b[^(]{0,80}\((?P<intrinfo>0x[0-9a-fA-F]{1,8})(?: (?P<status>0x[0-9a-fA-F]{1,8}))?"
)
_FIRST, _LAST = 144, 150
_BY_INVESTIGATION: Mapping[str, Response] = {
    "INVESTIGATE_PEER_DEVICE": "nvlink-peer",
    "INVESTIGATE_LINK_SI": "nvlink-signal",
    "INVESTIGATE_LINK_SI_AND_CABLES": "nvlink-signal",
    "INVESTIGATE_SW_USER": "nvlink-off",
    "INVESTIGATE_SW_USER_LINK_SI": "nvlink-off",
    "INVESTIGATE_HOST": "nvlink-off",
}
_BY_ACTION: Mapping[str, Response] = {"RESET_GPU": "nvlink", "IGNORE": "watch", "XID_154_EVAL": "watch"}


class _Rule(Record, kw_only=False):
    number: int
    units: tuple[str, ...]
    patterns: tuple[str, str]
    status: int
    ignored: bool
    """Is no action due, whatever the line calls it?"""
    response: Response


def decoded(number: int, text: str) -> tuple[Response, bool] | None:
    """What to do first, and whether NVIDIA's immediate action is none; of several rules that hold the most drastic.

    None for another Xid, and for a line without its words.
    """
    match = _LINE.match(text) if _FIRST <= number <= _LAST else None
    if match is None:
        return None
    bits, status = int(match["intrinfo"], 16), match["status"]
    held = [
        rule
        for rule in _rules()
        if rule.number == number and match["unit"] in rule.units and any(_fits(bits, each) for each in rule.patterns)
    ]
    if status is not None:
        held = [rule for rule in held if _has(int(status, 16), rule.status)]
    if not held:
        return None
    first = min(held, key=lambda rule: (rule.ignored, [*REMEDIES].index(rule.response)))
    return first.response, first.ignored


def _fits(bits: int, pattern: str) -> bool:
    """``pattern``: bits from 31 down, ``-`` for any."""
    return all(sign in ("-", bit) for sign, bit in zip(pattern, f"{bits:032b}", strict=True))


def _has(status: int, of_rule: int) -> bool:
    """Each error is a bit of its own; 0 stands for itself."""
    return status == of_rule or (of_rule & (of_rule - 1) == 0 and status & of_rule != 0)


@cache
def _rules() -> tuple[_Rule, ...]:
    return tuple(_each())


def _each() -> Iterator[_Rule]:
    for number, units, first, second, status, _, action, investigation in table_rows("nvlink5.tsv"):
        harmless = action == investigation == "IGNORE"
        response = "none" if harmless else _BY_INVESTIGATION.get(investigation, _BY_ACTION[action])
        yield _Rule(
            int(number), tuple(units.split("/")), (first, second), int(status, 16), action == "IGNORE", response
        )
