"""``/proc/modules`` and ``lsmod``, as the entries of ``/sys/module``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dgxcheck.facts.missing import Json

_STATES = ("Live", "Loading", "Unloading")
_NAME = re.compile(r"[\w-]{1,64}", re.ASCII)
_COUNT = re.compile(r"-?\d{1,9}", re.ASCII)


def read(lines: Sequence[str]) -> dict[str, Json]:
    """Facts by key. Drivers that are built into the kernel are in ``/sys/module`` alone, so not among these."""
    facts: dict[str, Json] = {}
    names: list[str] = []
    for line in lines:
        name, size, count, *rest = [*line[:4096].split(), "", "", ""]
        if not (_NAME.fullmatch(name) and _COUNT.fullmatch(size) and _COUNT.fullmatch(count)):
            continue
        names.append(name)
        facts[f"text /sys/module/{name}/refcnt"] = f"{count}\n"
        if state := next((word for word in rest if word in _STATES), ""):
            facts[f"text /sys/module/{name}/initstate"] = f"{state.lower()}\n"
        users = [user for user in rest[0].split(",") if _NAME.fullmatch(user) and user != "-"]
        facts[f"names /sys/module/{name}/holders"] = [*sorted(users)]
    return {**facts, "names /sys/module": [*sorted(names)]} if names else {}
