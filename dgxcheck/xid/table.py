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

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Literal, cast, get_args

from dgxcheck.facts.missing import BadInput, did_you_mean
from dgxcheck.facts.record import Record, replace
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.package_files import table

Severity = Literal["fail", "repeated", "text", "warn", "application", "information"]
"""The worst first. repeated: warns, and fails if it occurs twice. text: the line itself says how severe it is
(``Fatal``, the action that is required). application: a program's own fault, until several programs have it."""
Response = Literal[
    "off-bus", "power", "recovery", "fabric-reboot", "field-diagnostic", "memory", "fabric-reset", "nvlink", "reset",
    "nvlink-peer", "nvlink-signal", "nvlink-off", "vm", "pcie", "cooling", "mechanical", "stalled", "contained",
    "repair", "update", "nvlink-rate", "watch", "report", "follow", "program", "none",
]  # fmt: skip
"""What to do first, the most drastic before the others."""
Part = Literal["", "memory", "NVLink", "PCIe link", "power supply", "InfoROM"]
"""Part of the GPU; empty for the GPU as a whole."""
Fatality = Literal["non-fatal", "fatal", "always-fatal"]
"""Of an SXid: fatal to the NVLinks of one port, or always to the whole fabric."""


class XidEntry(Record, kw_only=False):
    """One Xid on one range of architectures, or one SXid, which has no ``mnemonic``, ``about`` and actions."""

    number: int
    mnemonic: str
    """The driver's, as in nverror.h; empty where it is not public."""
    text: str
    severity: Severity
    response: Response
    about: Part
    action: str = ""
    """NVIDIA's immediate action (``RESET_GPU``); empty where NVIDIA publishes none, and before Ampere."""
    investigation: str = ""
    """NVIDIA's investigatory action, if the first does not help."""
    products: tuple[str, ...] = ()
    """GPUs to which NVIDIA's catalogue applies it; empty where it does not say."""
    causes: tuple[str, ...] = ()
    """Possible causes by NVIDIA's list for GPUs before Ampere."""
    fatality: Fatality | Literal[""] = ""
    """Of an SXid; empty for an Xid."""


RESPONSES: Mapping[Response, Mapping[str, str]] = {
    cast(Response, row["response"]): row for row in table("xid/remedies.tsv")
}
REMEDIES: Mapping[Response, str] = {response: row["text"] for response, row in RESPONSES.items()}
AMPERE = 7
"""``nvmlDeviceArchitecture_t``"""
NAMES: Mapping[str, int] = {
    "kepler": 2, "maxwell": 3, "pascal": 4, "volta": 5, "turing": 6, "ampere": 7, "ada": 8, "hopper": 9,
    "blackwell": 10,
}  # fmt: skip
"""``nvmlDeviceArchitecture_t`` by name."""
BOARDS: Mapping[str, str] = {
    "k40": "kepler", "k80": "kepler", "m40": "maxwell", "m60": "maxwell", "p4": "pascal", "p40": "pascal",
    "p100": "pascal", "v100": "volta", "v100s": "volta", "t4": "turing", "a2": "ampere", "a10": "ampere",
    "a10g": "ampere", "a16": "ampere", "a30": "ampere", "a40": "ampere", "a100": "ampere", "a800": "ampere",
    "l2": "ada", "l4": "ada", "l20": "ada", "l40": "ada", "l40s": "ada", "h20": "hopper", "h100": "hopper",
    "h200": "hopper", "h800": "hopper", "gh200": "hopper", "b100": "blackwell", "b200": "blackwell",
    "b300": "blackwell", "gb200": "blackwell", "gb300": "blackwell",
}  # fmt: skip


_RETAIL = LazyPattern(r"\b(?:gtx|rtx) ?(?P<series>10[1-8]|16[356]|20[678]|[345]0[5-9])0\b|\brtx a\d{4}\b")
_SERIES = {"10": "pascal", "16": "turing", "20": "turing", "30": "ampere", "40": "ada", "50": "blackwell"}


def retail_architecture_of(name: str) -> tuple[str, int]:
    """The same of a GeForce (``RTX 4090``) or workstation card (``RTX A6000``), too."""
    match = _RETAIL.search(name.lower())
    return architecture_of(_SERIES[(match["series"] or "30")[:2]] if match else name)


def architecture_of(name: str) -> tuple[str, int]:
    """Name and ``nvmlDeviceArchitecture_t`` of a board or architecture: ``v100``, ``hopper``.

    Product names (``NVIDIA A100-SXM4-80GB``) are searched for a board. Raises BadInput for a name that is neither.
    """
    for word in re.split(r"[^a-z0-9]+", name.lower()):
        architecture = BOARDS.get(word, word)
        if architecture in NAMES:
            return architecture, NAMES[architecture]
    hint = did_you_mean(name.lower(), (*BOARDS, *NAMES), f"give a board or architecture: {', '.join(NAMES)}")
    raise BadInput(f"--gpu {name}: unknown GPU; {hint}")


_SEVERITIES: tuple[Severity, ...] = get_args(Severity)
UNUSED = "unused"
"""Text of a number that NVIDIA reserves and says no driver logs."""
FIRST_SXID = 10000
"""Numbers of SXids begin here; those of Xids are far below."""


def _entries(place: str) -> dict[int, XidEntry]:
    """What a table does not have is empty."""
    return {
        int(row["number"]): XidEntry(
            int(row["number"]), row.get("mnemonic", ""), row["text"], cast(Severity, row["severity"]),
            cast(Response, row["response"]), cast(Part, row.get("about", "")), row.get("action", ""),
            row.get("investigation", ""), tuple(row.get("products", "").split()), tuple(row.get("causes", "").split()),
            cast(Fatality, row.get("fatality", "")),
        )
        for row in table(place)
    }  # fmt: skip


@cache
def from_ampere() -> Mapping[int, XidEntry]:
    """NVIDIA's catalogue for Ampere and later, by number."""
    return _entries("xid/from_ampere.tsv")


@cache
def before_ampere() -> Mapping[int, XidEntry]:
    """NVIDIA's older list, by number."""
    return _entries("xid/before_ampere.tsv")


@cache
def sxids() -> Mapping[int, XidEntry]:
    """The SXids of NVIDIA's Fabric Manager guide, by number."""
    return _entries("xid/sxids.tsv")


def is_listed(number: int) -> bool:
    """Does one of NVIDIA's lists have the Xid?"""
    return number in from_ampere() or number in before_ampere()


def meaning(number: int, architecture: int | None) -> XidEntry:
    """What an Xid means on a GPU of this ``nvmlDeviceArchitecture_t``. One that is logged though NVIDIA's catalogue of
    data-center GPUs calls it unused, as by a display, means what it meant before.

    Where the architecture is not known, the worse of its two meanings, with the texts of both.
    """
    before, later = before_ampere().get(number), from_ampere().get(number)
    if before is None or later is None:
        return before or later or XidEntry(number, "", "not in the catalogue", "warn", "report", "")
    if architecture is not None and architecture >= AMPERE and later.text == UNUSED:
        return replace(later, text=f"{before.text}, unused from Ampere on by NVIDIA's list")
    if architecture is not None:
        return later if architecture >= AMPERE else before
    if before.text == later.text or later.text == UNUSED:
        return before
    worse = min(later, before, key=lambda entry: _SEVERITIES.index(entry.severity))
    return replace(worse, text=f"{before.text} or {later.text}")


_LINE = LazyPattern(
    r"(?P<unit>[A-Z][A-Z0-9_]{2,31})\b[^(]{0,80}\((?P<intrinfo>0x[0-9a-fA-F]{1,8})(?: (?P<status>0x[0-9a-fA-F]{1,8}))?",
    "(0x",
)
_FIRST, _LAST = 144, 150
_BY_INVESTIGATION: Mapping[str, Response] = {
    "INVESTIGATE_PEER_DEVICE": "nvlink-peer", "INVESTIGATE_LINK_SI": "nvlink-signal",
    "INVESTIGATE_LINK_SI_AND_CABLES": "nvlink-signal", "INVESTIGATE_SW_USER": "nvlink-off",
    "INVESTIGATE_SW_USER_LINK_SI": "nvlink-off", "INVESTIGATE_HOST": "nvlink-off",
}  # fmt: skip
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
    held = [rule for rule in _rules() if rule.number == number and match["unit"] in rule.units
            and any(_fits(bits, each) for each in rule.patterns)]
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
    for row in table("xid/nvlink5.tsv"):
        action, investigation = row["action"], row["investigation"]
        harmless = action == investigation == "IGNORE"
        response = "none" if harmless else _BY_INVESTIGATION.get(investigation, _BY_ACTION[action])
        if action == "IGNORE" and response == "nvlink-signal":
            response = "nvlink-rate"
        yield _Rule(
            int(row["number"]), tuple(row["units"].split("/")), (row["first"], row["second"]), int(row["status"], 16),
            action == "IGNORE", response,
        )  # fmt: skip
