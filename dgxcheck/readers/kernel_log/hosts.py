"""Whose rows they are in a log that several hosts write: that of a syslog server, or excerpts one after the other."""

from __future__ import annotations

import re
from collections.abc import Sequence

ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
SYSLOG = r"[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d(?:\.\d{1,9})?"
"""Dates of journalctl and of rsyslog, of which the second kind is that of RFC 3164."""
_OWNER = re.compile(rf"(?:{ISO}|{SYSLOG}) {{1,2}}(?P<host>[A-Za-z0-9][\w.-]{{0,254}}) kernel:")
_ANYBODY = frozenset(("host", "localhost"))
"""What stands in place of a name, as early in a boot."""
Rows = Sequence[tuple[int, str]]


def by_host(rows: Rows) -> dict[str, list[tuple[int, str]]]:
    """Rows by the first label of their host; all under an empty name where they are of one host or of none.

    A row that names nobody belongs to the host of the row before it.
    """
    found: dict[str, list[tuple[int, str]]] = {}
    owner = ""
    for number, row in rows:
        match = _OWNER.match(row)
        name = match["host"].partition(".")[0] if match else ""
        owner = name if name and name not in _ANYBODY else owner
        found.setdefault(owner, []).append((number, row))
    if len(found.keys() - {""}) > 1:
        return found
    return {"": [*rows]}
