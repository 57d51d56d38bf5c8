"""``/proc/modules`` and ``lsmod``, as the entries of ``/sys/module``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dgxcheck.facts.missing import Json

_ROW = re.compile(r"(?P<name>[\w-]{1,64})\s+\d{1,10}\s+(?P<count>-?\d{1,9})\s*(?P<users>[\w,-]*)\s*"
                  r"(?:(?P<state>Live|Loading|Unloading) 0x[0-9a-f]+.*)?", re.ASCII)  # fmt: skip


def read(lines: Sequence[str]) -> dict[str, Json]:
    """Facts by key. Drivers that are built into the kernel are in ``/sys/module`` alone, so not among these."""
    facts: dict[str, Json] = {}
    names: list[str] = []
    for line in lines:
        if (row := _ROW.fullmatch(line.rstrip())) is None:
            continue
        name = row["name"]
        names.append(name)
        facts[f"text /sys/module/{name}/refcnt"] = f"{row['count']}\n"
        if row["state"]:
            facts[f"text /sys/module/{name}/initstate"] = f"{row['state'].lower()}\n"
        users = [user for user in row["users"].split(",") if user not in ("", "-")]
        facts[f"names /sys/module/{name}/holders"] = [*sorted(users)]
    return {**facts, "names /sys/module": [*sorted(names)]} if names else {}
