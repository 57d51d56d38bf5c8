"""``/proc/modules`` and ``lsmod``, as the entries of ``/sys/module``."""

from __future__ import annotations

import re

from dgxcheck.facts.missing import Json
from dgxcheck.readers.model import Imported
from dgxcheck.readers.reports import HOST, Reports
from dgxcheck.readers.values import bounded

TOOL = "lsmod"
_STATES = ("Live", "Loading", "Unloading")
_NAME = re.compile(r"[\w-]{1,64}", re.ASCII)
_COUNT = re.compile(r"-?\d{1,9}", re.ASCII)
_ROW = re.compile(
    r"(?P<name>nvidia(?:_\w{2,20})?|nv_peer_mem|nvidia_peermem|gdrdrv|nouveau|mlx[45]_(?:core|ib)|ib_(?:core|uverbs)|ib_\w{2,12}"
    r"|rdma_\w{2,8}|mlxfw|knem|xpmem) {1,40}\d{3,9} {1,8}-?\d{1,5}(?: {1,4}[\w,-]{1,400})?",
    re.ASCII,
)
"""Of ``lsmod | grep``: the modules that are asked for."""
_HEAD = ["Module", "Size", "Used", "by"]


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """All modules: rows below lsmod's head, or those of the file, which say ``Live``.

    Drivers that are built into the kernel are in ``/sys/module`` alone, so not among these. Rows without a head that
    are not the file's (``lsmod | grep``) tell only that these modules are loaded: what they leave out may be, too.
    """
    return _all(lines) or _some(lines)


def _all(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    facts: dict[str, Json] = {}
    names: list[str] = []
    understood: set[int] = set()
    below = False
    for number, line in enumerate(bounded(lines)):
        words = line.split()
        if words == _HEAD:
            below = True
            understood.add(number)
            continue
        name, size, count, *rest = [*words, "", "", ""]
        state = next((word for word in rest if word in _STATES), "")
        row = _NAME.fullmatch(name) and _COUNT.fullmatch(size) and _COUNT.fullmatch(count) and len(words) < 8
        if not row or not (state or (below and len(words) < 5)):
            below = below and not words
            continue
        understood.add(number)
        names.append(name)
        facts[f"text /sys/module/{name}/refcnt"] = f"{count}\n"
        if state:
            facts[f"text /sys/module/{name}/initstate"] = f"{state.lower()}\n"
        users = [user for user in rest[0].split(",") if _NAME.fullmatch(user) and user != "-"]
        facts[f"names /sys/module/{name}/holders"] = [*sorted(users)]
    if not names:
        return ()
    facts["names /sys/module"] = [*sorted(names)]
    return (Imported(tool=TOOL, facts=facts, understood=frozenset(understood)),)


def _some(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Rows of modules for GPUs and HCAs that were taken out of the list."""
    found: dict[int, str] = {}
    for number, line in enumerate(bounded(lines)):
        if row := _ROW.fullmatch(line.strip()):
            found[number] = row["name"]
    if not found:
        return ()
    reports = Reports(TOOL)
    for name in dict.fromkeys(found.values()):
        reports.add(HOST, "modules", "pass", text=f"{name} is loaded")
    return (Imported(tool=TOOL, facts=reports.facts(), understood=frozenset(found)),)
