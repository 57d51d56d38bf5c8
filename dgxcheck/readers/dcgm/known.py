"""What dcgmi prints of itself, settings and groups, and its other JSON: known, and of no use to any check."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dgxcheck.facts.missing import Json
from dgxcheck.readers.json_text import documents
from dgxcheck.readers.known_output import Form, recognised
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import bounded

_TABLE = re.compile(r"[|+].{3,300}[|+]?")
_FORMS: Sequence[Form] = (
    Form("dcgmi policy", re.compile(r"\| Policy Information {1,100}\|"), _TABLE),
    Form("dcgmi group", re.compile(r"\| (?:GROUPS?|GROUP INFO) {1,100}\|"), _TABLE),
    Form("dcgmi modules", re.compile(r"\| List Modules.{1,100}\|", re.IGNORECASE), _TABLE),
    Form("dcgmi fieldgroup", re.compile(r"\| FIELD GROUPS? {1,100}\|", re.IGNORECASE), _TABLE),
)
_READ_ELSEWHERE = ("Overall Health",)


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Tables by their heads, JSON by its two members; the health as JSON is read by another reader."""
    lines = bounded(lines)
    found = {number for _, where in documents(lines, _is_other) for number in where if lines[number].strip()}
    json = (Imported(tool="dcgmi -j (not used)", facts={}, understood=frozenset(found)),) if found else ()
    return (*recognised(lines, _FORMS), *json)


def _is_other(found: Mapping[str, Json]) -> bool:
    body = found.get("body")
    known = isinstance(body, dict) and any(name in body for name in _READ_ELSEWHERE)
    return found.keys() == {"body", "header"} and isinstance(body, dict) and not known
