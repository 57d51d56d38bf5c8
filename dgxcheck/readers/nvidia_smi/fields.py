"""Which field of a dump of nvidia-smi, under the names of all driver eras, answers which question to NVML."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from dgxcheck.facts.ids import BRANDS
from dgxcheck.facts.missing import Json
from dgxcheck.facts.nvml import gpu as nvml
from dgxcheck.facts.typical import gathered
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern
from dgxcheck.readers.wording import rows

MOST_PAGES = 512
"""Retired pages; a GPU has room for 64 in its InfoROM."""
_NUMBERS = {
    of: {row["word"]: int(row["number"], 0) for row in those}
    for of, those in gathered((row["of"], row) for row in rows("nvidia_smi/words")).items()
}
WORDS, RECOVERY_ACTIONS = _NUMBERS["field"], _NUMBERS["recovery action"]
SW_THERMAL = 0x20
"""The last but one of the reasons; the last is the setting for displays."""
SLOWDOWNS = 0x8 | SW_THERMAL | 0x40 | 0x80
_INTEGER = ascii_pattern(r"-?\d{1,18}(?!\d)")
_DECIMAL = ascii_pattern(r"\d{1,9}(?:\.\d{1,6})?(?!\d)")


def number(text: str) -> Json:
    match = _INTEGER.match(text)
    return int(match[0]) if match else WORDS.get(text)


def pages(text: str) -> Json:
    """A dump counts the pages and does not name them: each has the address 0."""
    count = number(text)
    return [{"address": 0} for _ in range(count)] if isinstance(count, int) and 0 <= count <= MOST_PAGES else None


def _mib(text: str) -> Json:
    mib = number(text)
    return mib << 20 if isinstance(mib, int) else None


def _milli(text: str) -> Json:
    match = _DECIMAL.match(text)
    return round(float(match[0]) * 1000) if match else None


def _text(text: str) -> Json:
    return None if text in ("ERR!", "Unknown Error") else text[:200]


def _hex(text: str) -> Json:
    return int(text, 16) if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", text) else None


def _recovery(text: str) -> Json:
    """``nvmlDeviceGpuRecoveryAction_t`` in the words of nvidia-smi(1), of several releases."""
    return RECOVERY_ACTIONS.get(text.lower().removeprefix("gpu ").removeprefix("node "))


def _nano(text: str) -> Json:
    """Times are printed in microseconds."""
    time = number(text)
    return time * 1000 if isinstance(time, int) and text.endswith(" us") else None


_READ: Mapping[str, Callable[[str], Json]] = {
    "number": number, "mib": _mib, "milli": _milli, "text": _text, "hex": _hex, "nano": _nano, "pages": pages,
    "recovery": _recovery, "brand": BRANDS.get, "addressing": _NUMBERS["addressing mode"].get,
    "virtualization": _NUMBERS["virtualization mode"].get,
    "pstate": lambda text: number(text.removeprefix("P")),
}  # fmt: skip
_TABLE = (*rows("nvidia_smi/fields"),)
SINGLE = tuple((row["question"], LazyPattern(row["path"]), _READ[row["read"]]) for row in _TABLE if not row["part"])


Part = tuple[LazyPattern, Callable[[str], Json]]
"""The path of a field, and how its text is read."""


def _members(question: str, part: str) -> list[tuple[str, Part]]:
    found = (row for row in _TABLE if row["question"] == question and row["part"] == part)
    return [(row["member"], (LazyPattern(row["path"]), _READ[row["read"]])) for row in found]


STRUCTS = tuple(
    (question, dict(_members(question, "struct")), dict(_members(question, "more")))
    for question in dict.fromkeys(row["question"] for row in _TABLE if row["part"] in ("struct", "more"))
)
"""Structs of numbers (``nvmlEccSramErrorStatus_t``, ``nvmlRowRemapperHistogramValues_t`` ..): the members that a dump
has, and ``more`` that newer drivers print."""
_WHOLE = "whole list"
LISTS = tuple(
    (question, group, kind == _WHOLE, tuple(part for _, part in _members(question, kind)))
    for question, group, kind in dict.fromkeys((row["question"], row["member"], row["part"]) for row in _TABLE)
    if kind in ("list", _WHOLE)
)
"""Lists of numbers; where a dump says that there is no such group, its member is the group. A whole one is none where
a number of it is lacking."""
_GROUPS = "clocks (?:throttle|event) reasons"
THROTTLE = tuple(
    (bit, LazyPattern(f"{_GROUPS}(?:/hw slowdown)?/(?:clocks (?:throttle|event) reason )?(?:{name})"))
    for name, bit in _NUMBERS["clocks event reason"].items()
)


_PREFIX = "fabric/health/"
_BEFORE = (1, 2)
"""NVML_GPU_FABRIC_STATE_NOT_STARTED and _IN_PROGRESS."""
_CODES = {words: code for code, words in nvml.FABRIC_STATUSES.items()}
_FLAGS = {
    "bandwidth": "degraded_bandwidth", "route recovery in progress": "route_recovery",
    "route unhealthy": "route_unhealthy", "access timeout recovery": "access_timeout_recovery",
}  # fmt: skip


def fabric(fields: Mapping[str, str]) -> dict[str, Json] | None:
    """``nvmlGpuFabricInfo``, with the health where the dump has it; None without state or status that is known.

    The status is that of the registration (nvml.h): before it is completed there is none, which a dump says as N/A.
    """
    state, status = WORDS.get(fields.get("fabric/state", "")), fields.get("fabric/status", "")
    code = _CODES.get(status.lower(), 0 if state in _BEFORE else WORDS.get(status))
    if state is None or code is None:
        return None
    answer: dict[str, Json] = {
        "state": state, "status": code, "cliqueId": number(fields.get("fabric/cliqueid", "")),
        "clusterUuid": fields.get("fabric/clusteruuid", "").removesuffix("N/A") or None,
    }  # fmt: skip
    if any(path.startswith(_PREFIX) for path in fields):
        answer["healthMask"] = _mask(fields)
    summary = fields.get(f"{_PREFIX}summary")
    return answer if summary is None else answer | {"healthSummary": _NUMBERS["fabric summary"].get(summary)}


def _mask(fields: Mapping[str, str]) -> int:
    """What is N/A, or in words that are not known, counts as not supported."""
    wrong = fields.get(f"{_PREFIX}incorrect configuration", "n/a").lower()
    codes = _NUMBERS["fabric configuration"]
    mask = next((code for word, code in codes.items() if word in wrong), 0) << nvml.FABRIC_CONFIGURATION
    for name, flag in _FLAGS.items():
        words = _NUMBERS.get(f"fabric {name}", _NUMBERS["fabric flag"])
        mask |= words.get(fields.get(_PREFIX + name, ""), 0) << nvml.FABRIC_FLAGS[flag]
    return mask
