"""Lines that a logger wrapped in JSON, one a record: Docker's file of a container, journald's entry of a program.

https://docs.docker.com/engine/logging/drivers/json-file/; ``journalctl -o json``, systemd.journal-fields(7).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence

from dgxcheck.facts.missing import Json, members_of
from dgxcheck.lazy_pattern import ascii_pattern
from dgxcheck.readers.kernel_log.stamps import holds_kernel_message
from dgxcheck.readers.layout.lines import plain

_OF_CONTAINER = frozenset(("log", "stream", "time", "attrs"))
_SIGNS = ('{"log"', '"MESSAGE"')
_MICROSECONDS = ascii_pattern(r"[1-9]\d{14,15}")
_IDENTIFIER = ascii_pattern(r"[\w./-]{1,60}")
_HOST = ascii_pattern(r"[A-Za-z0-9][\w.-]{0,63}")
_PID = ascii_pattern(r"\d{1,9}")


def unpacked(lines: Sequence[str]) -> list[str]:
    """Such lines as the time and what was logged, as ``kubectl logs --timestamps`` and journalctl print them.

    Entries of the kernel, or under its name, or which hold a message of its, and messages with the end of a line within
    stay JSON: nothing behind a prefix may become a row of the kernel's log.
    """
    return [_unpacked(line) if any(sign in line for sign in _SIGNS) else line for line in lines]


def _unpacked(line: str) -> str:
    try:
        found = members_of(json.loads(line.strip().rstrip(",")))
    except (ValueError, RecursionError):
        return line
    logged = _of_container(found) or _of_program(found)
    return plain(logged) if logged and "\n" not in logged else line


def _of_container(found: Mapping[str, Json]) -> str:
    text, at = found.get("log"), found.get("time", "")
    if not isinstance(text, str) or not isinstance(at, str) or found.keys() - _OF_CONTAINER:
        return ""
    return f"{at} {text}".strip("\r\n")


def _of_program(found: Mapping[str, Json]) -> str:
    """A program's entry as a row of ``journalctl -o short-iso``; those of the kernel have a reader of their own.

    Any program chooses its identifier, which may therefore be nothing but a name.
    """
    text, at = found.get("MESSAGE"), found.get("__REALTIME_TIMESTAMP")
    program, host = found.get("SYSLOG_IDENTIFIER"), found.get("_HOSTNAME") or "localhost"
    pid = found.get("_PID") or found.get("SYSLOG_PID") or "0"
    of_kernel = found.get("_TRANSPORT", "kernel") == "kernel" or program == "kernel"
    fields = ((_MICROSECONDS, at), (_IDENTIFIER, program), (_HOST, host), (_PID, pid))
    if of_kernel or not isinstance(text, str) or not isinstance(at, str) or holds_kernel_message(text):
        return ""
    if not all(isinstance(field, str) and pattern.fullmatch(field) for pattern, field in fields):
        return ""
    day = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(int(at) // 1_000_000))
    return f"{day}+00:00 {host} {program}[{pid}]: {text}".rstrip()
