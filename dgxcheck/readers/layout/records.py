"""Lines that a logger wrapped in JSON, one a record: Docker's file of a container, journald's entry of a program.

https://docs.docker.com/engine/logging/drivers/json-file/; ``journalctl -o json``, systemd.journal-fields(7).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence

from dgxcheck.facts.missing import Json
from dgxcheck.lazy_pattern import ascii_pattern
from dgxcheck.readers.layout.lines import plain

_OF_CONTAINER = frozenset(("log", "stream", "time", "attrs"))
_SIGNS = ('{"log"', '"MESSAGE"')
_MICROSECONDS = ascii_pattern(r"[1-9]\d{14,15}")


def unpacked(lines: Sequence[str]) -> list[str]:
    """Such lines as the time and what was logged, as ``kubectl logs --timestamps`` and journalctl print them."""
    return [_unpacked(line) if any(sign in line for sign in _SIGNS) else line for line in lines]


def _unpacked(line: str) -> str:
    try:
        found = json.loads(line.strip().rstrip(","))
    except (ValueError, RecursionError):
        return line
    logged = (_of_container(found) or _of_journal(found)) if isinstance(found, dict) else ""
    return plain(logged) if logged and "\n" not in logged else line


def _of_container(found: Mapping[str, Json]) -> str:
    text, at = found.get("log"), found.get("time", "")
    if not isinstance(text, str) or not isinstance(at, str) or found.keys() - _OF_CONTAINER:
        return ""
    return f"{at} {text}".strip("\r\n")


def _of_journal(found: Mapping[str, Json]) -> str:
    """A program's entry as a row of ``journalctl -o short-iso``; those of the kernel have a reader of their own."""
    text, program, at = (found.get(name) for name in ("MESSAGE", "SYSLOG_IDENTIFIER", "__REALTIME_TIMESTAMP"))
    of_kernel = found.get("_TRANSPORT", "kernel") == "kernel"
    if of_kernel or not (isinstance(text, str) and program and isinstance(at, str) and _MICROSECONDS.fullmatch(at)):
        return ""
    day = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(int(at) // 1_000_000))
    pid = found.get("_PID") or found.get("SYSLOG_PID") or 0
    return f"{day}+00:00 {found.get('_HOSTNAME') or 'localhost'} {program}[{pid}]: {text}".rstrip()
