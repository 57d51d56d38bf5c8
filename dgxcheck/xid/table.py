"""The tables of Xids and SXids, one row a number.

``from_ampere.tsv``: NVIDIA's catalogue for Ampere and later,
https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html (its release 610, 172 numbers); 173 to 176 by
nverror.h of NVIDIA's open-gpu-kernel-modules, 185 by the release notes of driver 620; of these NVIDIA publishes no
action. ``before_ampere.tsv``: NVIDIA's older list,
https://docs.nvidia.com/deploy/archive/r555/xid-errors/index.html, which names possible causes and no actions, without
the numbers that it marks unused or reserved. ``sxids.tsv``: appendix D of NVIDIA's Fabric Manager guide (DU-09883).
Severity, part and response are dgxcheck's own reading of them. They are read when an Xid is first looked up.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import cast, get_args

from dgxcheck.facts.record import Record, replace
from dgxcheck.package_files import FOLDER, read
from dgxcheck.xid.entry import AMPERE, REMEDIES, Fatality, Part, Response, Severity, SXidEntry, XidEntry

_FOLDER = os.path.join(FOLDER, "xid")
_SEVERITIES: tuple[Severity, ...] = get_args(Severity)
UNUSED = "unused"
"""Text of a number that NVIDIA reserves and says no driver logs."""
FIRST_SXID = 10000
"""Numbers of SXids begin here; those of Xids are far below."""


def table_rows(file: str) -> Iterator[list[str]]:
    for line in read(os.path.join(_FOLDER, file)).decode("utf-8").split("\n"):
        if line and not line.startswith("#"):
            yield line.split("\t")


def _xids(file: str, *, actions: bool) -> dict[int, XidEntry]:
    table = {}
    for number, mnemonic, text, severity, response, about, *more in table_rows(file):
        table[int(number)] = XidEntry(
            int(number), mnemonic, text, cast(Severity, severity), cast(Response, response), cast(Part, about),
            action=more[0] if actions else "", investigation=more[1] if actions else "",
            products=tuple(more[2].split()) if actions else (), causes=() if actions else tuple(more[0].split()),
        )  # fmt: skip
    return table


@cache
def from_ampere() -> Mapping[int, XidEntry]:
    """NVIDIA's catalogue for Ampere and later, by number."""
    return _xids("from_ampere.tsv", actions=True)


@cache
def before_ampere() -> Mapping[int, XidEntry]:
    """NVIDIA's older list, by number."""
    return _xids("before_ampere.tsv", actions=False)


@cache
def sxids() -> Mapping[int, SXidEntry]:
    """The SXids of NVIDIA's Fabric Manager guide, by number."""
    return {
        int(number): SXidEntry(
            int(number), text, cast(Fatality, fatality), cast(Severity, severity), cast(Response, response)
        )
        for number, text, fatality, severity, response in table_rows("sxids.tsv")
    }


def is_listed(number: int) -> bool:
    """Does one of NVIDIA's lists have the Xid?"""
    return number in from_ampere() or number in before_ampere()


def meaning(number: int, architecture: int | None) -> XidEntry:
    """What an Xid means on a GPU of this ``nvmlDeviceArchitecture_t``.

    Where the architecture is not known, the worse of its two meanings, with the texts of both.
    """
    before, later = before_ampere().get(number), from_ampere().get(number)
    if before is None or later is None:
        return before or later or XidEntry(number, "", "not in the catalogue", "warn", "report", "")
    if architecture is not None:
        return later if architecture >= AMPERE else before
    if before.text == later.text or later.text == UNUSED:
        return before
    worse = min(later, before, key=lambda entry: _SEVERITIES.index(entry.severity))
    return replace(worse, text=f"{before.text} or {later.text}")


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
