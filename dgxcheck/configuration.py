"""What a site sets in its configuration file: thresholds, severities, cabled ports, pinned versions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import date, datetime
from typing import Any, get_args

from dgxcheck.facts.missing import did_you_mean, is_number
from dgxcheck.input_file import check_keys, load, plain, refuse, shown
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.settings import THRESHOLDS, Acknowledgement, Settings, Severity

KEYS: Mapping[str, tuple[str, ...]] = {
    "thresholds": tuple(THRESHOLDS),
    "severities": (),
    "network": ("ports",),
    "versions": ("driver", "vbios", "hca_firmware"),
    "fleet": ("racks", "rack_pattern"),
    "acknowledged": ("check", "device", "ceiling", "reason", "expiry"),
}
"""The tables of the file and what each may hold; ``severities`` holds ids of checks."""
ACKNOWLEDGED = "acknowledged"
"""An array of tables."""
_NEEDED = ("check", "reason", "expiry")
_DATE = "a date such as 2027-01-31"
_SEVERITIES: Mapping[str, Severity] = {word: word for word in get_args(Severity)}
_PORT = LazyPattern(r"[\w.:-]+/[1-9][0-9]{0,2}", flags=re.ASCII)
MOST = 1e18
"""A ceiling that is larger is none."""


def of_file(path: str, checks: Collection[str]) -> Settings:
    """The settings in a TOML file; ``checks`` are the ids that there are."""
    return settings(load(path), path, checks)


def settings(document: Mapping[str, Any], path: str, checks: Collection[str]) -> Settings:
    """The settings that a TOML document holds; ``checks`` are the ids that there are."""
    check_keys(document, KEYS, path, "")
    tables = {name: _table(document, name, path, checks) for name in document if name != ACKNOWLEDGED}
    network, versions, fleet = (tables.get(name, {}) for name in ("network", "versions", "fleet"))
    ports = _texts(network, "ports", path, "network")
    for port in ports:
        if not _PORT.fullmatch(port):
            refuse(path, "network.ports", f"{shown(port)} is not a port; write it as 'mlx5_0/1'")
    return Settings(
        thresholds={name: _number(name, value, path) for name, value in tables.get("thresholds", {}).items()},
        severities={name: _severity(name, value, path) for name, value in tables.get("severities", {}).items()},
        ports=ports,
        driver=_texts(versions, "driver", path, "versions"),
        vbios=_texts(versions, "vbios", path, "versions"),
        hca_firmware=_texts(versions, "hca_firmware", path, "versions"),
        racks=_racks(fleet.get("racks", {}), path),
        rack_pattern=_pattern(fleet.get("rack_pattern", ""), path),
        acknowledged=_acknowledged(document.get(ACKNOWLEDGED, []), path, checks),
        path=path,
    )


def _acknowledged(entries: object, path: str, checks: Collection[str]) -> tuple[Acknowledgement, ...]:
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        refuse(path, ACKNOWLEDGED, f"must be an array of tables, [[{ACKNOWLEDGED}]]")
    return tuple(_acknowledgement(entry, f"{ACKNOWLEDGED}[{n}]", path, checks) for n, entry in enumerate(entries, 1))


def _acknowledgement(entry: dict[str, Any], where: str, path: str, checks: Collection[str]) -> Acknowledgement:
    check_keys(entry, KEYS[ACKNOWLEDGED], path, where)
    for key in (key for key in _NEEDED if key not in entry):
        refuse(path, f"{where}.{key}", "is missing")
    for key in ("check", "device", "reason"):
        if key in entry and not (isinstance(entry[key], str) and entry[key].strip()):
            refuse(path, f"{where}.{key}", f"{shown(entry[key])} is not a non-empty string")
    check = entry["check"].strip()
    if check not in checks:
        hint = did_you_mean(check, checks, "list the checks with 'dgxcheck health -H'")
        refuse(path, f"{where}.check", f"unknown check {shown(check)}; {hint}")
    ceiling = entry.get("ceiling", 0)
    if not is_number(ceiling) or not abs(ceiling) <= MOST:
        refuse(path, f"{where}.ceiling", f"{shown(ceiling)} is not a number of at most {MOST:g}")
    return Acknowledgement(check=check, device=entry.get("device", "").strip(),
                           ceiling=ceiling if "ceiling" in entry else None, reason=entry["reason"].strip(),
                           expiry=_day(entry["expiry"], f"{where}.expiry", path))


def _day(value: object, where: str, path: str) -> str:
    """A date of TOML, or one as text."""
    text = str(value) if isinstance(value, date | str) else ""
    try:
        as_written = date.fromisoformat(text).isoformat() == text  # from 3.11 on it takes 20270131 too
    except ValueError:
        as_written = False
    if not as_written:
        refuse(path, where, f"{text if isinstance(value, datetime) else shown(value)} is not {_DATE}")
    return text


def _table(document: Mapping[str, Any], name: str, path: str, checks: Collection[str]) -> dict[str, Any]:
    if not isinstance(table := document[name], dict):
        refuse(path, name, f"must be a table, [{name}]")
    found: dict[str, Any] = {}
    for key, value in _dotted(table) if name in ("thresholds", "severities") else table.items():
        if key in found:
            refuse(path, f"{name}.{plain(key)}", "is set twice")
        found[key] = value
    is_of_checks = name == "severities"
    check_keys(found, checks if is_of_checks else KEYS[name], path, name, "check" if is_of_checks else "key")
    return found


def _dotted(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names with a dot: quoted they are one key for TOML, unquoted a table in a table; both mean the same here."""
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from ((f"{key}.{inner}", below) for inner, below in value.items())
        else:
            yield key, value


def _number(name: str, value: object, path: str) -> int | float:
    limit = THRESHOLDS[name]
    allowed = f"a number from {limit.low:g} to {limit.high:g} {limit.unit}"
    if not is_number(value):
        refuse(path, f"thresholds.{name}", f"{shown(value)} is not {allowed}")
    if not limit.low <= value <= limit.high:
        refuse(path, f"thresholds.{name}", f"{shown(value)} is out of range; must be {allowed}")
    return value


def _severity(name: str, value: object, path: str) -> Severity:
    found = _SEVERITIES.get(value) if isinstance(value, str) else None
    if found is None:
        refuse(path, f"severities.{name}", f"{shown(value)} is not one of {', '.join(map(repr, _SEVERITIES))}")
    return found


def _texts(table: Mapping[str, Any], key: str, path: str, where: str) -> tuple[str, ...]:
    """A text or a list of texts; each once."""
    given = table.get(key, [])
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not all(isinstance(text, str) and text.strip() for text in texts):
        refuse(path, f"{where}.{key}", f"{shown(given)} is not a string or a list of strings")
    return tuple(dict.fromkeys(text.strip() for text in texts))


def _racks(table: object, path: str) -> dict[str, str]:
    if not isinstance(table, dict):
        refuse(path, "fleet.racks", "must be a table, [fleet.racks]")
    for rack, nodes in table.items():
        if not isinstance(nodes, str) or not nodes.strip():
            refuse(path, f"fleet.racks.{plain(rack)}", f"{shown(nodes)} is not a set of nodes: 'dgx[001-016]'")
    return table


def _pattern(text: object, path: str) -> str:
    """A regular expression with one group, which is the rack."""
    if text == "":
        return ""
    try:
        groups = re.compile(text).groups if isinstance(text, str) else 0
    except re.error:
        groups = 0
    if not isinstance(text, str) or groups != 1:
        refuse(path, "fleet.rack_pattern", f"{shown(text)} is not a regular expression with one group for the rack")
    return text
