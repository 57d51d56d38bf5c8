"""The table that ``nvidia-smi`` without options prints: two lines for each GPU.

It cuts long names short (``Tesla V100-SXM2...``): such a name is left out.
"""

from __future__ import annotations

import re

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.readers.model import Imported
from dgxcheck.readers.nvidia_smi.answers import NOWHERE, Section, imported
from dgxcheck.readers.nvidia_smi.matrix import plain
from dgxcheck.readers.values import bounded

TOOL = "nvidia-smi"
LONGEST = 240
"""Characters of a line; the widest tables have 115."""
_HEAD = re.compile(r"\| NVIDIA-SMI \S+ +Driver Version: (?P<driver>\S+)(?: +CUDA Version: (?P<cuda>\S+))? +\|")
_FIRST = re.compile(
    r"\| +(?P<index>\d{1,3}) +(?P<name>\S.{0,64}?) {1,64}(?P<persistence>On|Off|N/A|ERR!) +\|"
    r" (?P<bdf>[0-9A-Fa-f:.]{7,16}) +(?P<display>On|Off|N/A|ERR!) +\| +(?P<ecc>\S+) +\|"
)
_SECOND = re.compile(
    r"\| *(?P<fan>\S+%?) +(?P<temp>\S+) +(?P<pstate>\S+) +(?P<power>\S+) ?/ +(?P<cap>\S+) +\|"
    r" *(?P<used>\S+) ?/ *(?P<total>\S+) +\| +(?P<busy>\S+) +(?P<mode>\S.{0,64}?) {1,64}\|"
)
_THIRD = re.compile(r"\| +\| +\| +(?P<mig>N/A|Enabled\*?|Disabled\*?|ERR!)? *\|")
_FRAME = re.compile(r"[+|][-=+]+[+|]|\| GPU  .*\||\| Fan  .*\||\|[\s|]+MIG M\. \|")
_CLOCK = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]?\d \d\d:\d\d:\d\d \d{4}")
_PROCESSES = re.compile(r"\| Processes: .*\|")
_COMMAND = re.compile(r"(?:^|[\s/])nvidia-smi$")


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """All tables of a text; a head or an index that comes again begins another."""
    tables: list[Imported] = []
    gpus: list[Section] = []
    system: dict[str, str] = {}
    understood: set[int] = set()
    chatter: set[int] = set()
    wanted = False
    processes = False
    for number, line in enumerate((*bounded(lines), "| NVIDIA-SMI end Driver Version: end |")):
        text = plain(line[:LONGEST]).strip()
        if head := _HEAD.fullmatch(text):
            if gpus:
                tables.append(imported(TOOL, gpus, system, frozenset(understood)))
            gpus, understood, wanted, processes = [], {number, *chatter}, False, False
            system = {"driver version": head["driver"], "cuda version": head["cuda"] or ""}
            chatter = set()
        elif first := _FIRST.fullmatch(text):
            gpus.append(Section(as_bdf(first["bdf"]) or NOWHERE, _first(first)))
            understood.add(number)
            wanted = True
        elif wanted and (second := _SECOND.fullmatch(text)):
            gpus[-1].fields.update(_second(second))
            understood.add(number)
            wanted = False
        elif _PROCESSES.fullmatch(text):
            processes = True
            understood.add(number)
        elif _FRAME.fullmatch(text) or (gpus and _THIRD.fullmatch(text)) or (processes and text.startswith("|")):
            (understood if gpus else chatter).add(number)
            if not gpus:
                understood.add(number)
        elif _CLOCK.fullmatch(text) or _COMMAND.search(text):
            chatter.add(number)
        elif text:
            processes = False
    return tuple(tables)


def _first(row: re.Match[str]) -> dict[str, str]:
    fields = {
        "persistence mode": row["persistence"],
        "display active": row["display"],
        "ecc errors/volatile/double bit/total": row["ecc"],
    }
    return fields if row["name"].endswith("...") else {"product name": row["name"], **fields}


def _second(row: re.Match[str]) -> dict[str, str]:
    return {
        "performance state": row["pstate"],
        "temperature/gpu current temp": row["temp"],
        "power readings/power draw": row["power"],
        "power readings/enforced power limit": row["cap"],
        "fb memory usage/total": row["total"],
        "fb memory usage/used": row["used"],
        "compute mode": row["mode"],
    }
