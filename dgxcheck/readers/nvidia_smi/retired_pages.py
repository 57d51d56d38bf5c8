"""``nvidia-smi --query-retired-pages=.. --format=csv``: one row a page, with its address and the cause."""

from __future__ import annotations

import re

from dgxcheck.facts.bdf import as_bdf, nameless
from dgxcheck.facts.missing import Json
from dgxcheck.readers.listing import WITHOUT_NUMBER
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import bounded

TOOL = "nvidia-smi --query-retired-pages"
_NAMES = r"gpu_name|gpu_bus_id|gpu_serial|gpu_uuid|timestamp|(?:retired_pages\.)?(?:address|cause|timestamp)"
_HEAD = re.compile(rf"(?:(?:{_NAMES})(?:, ?|$)){{2,8}}")
_COMMAND = re.compile(rf"--query-retired-pages[= ]['\"]?(?P<names>(?:(?:{_NAMES}),?){{1,8}})")
_SEPARATOR = re.compile(r", ?")
_ADDRESS = re.compile(r"0x[0-9a-f]{1,16}", re.IGNORECASE)
_CAUSES = (("single", 0), ("double", 1))
"""A word of the cause, and ``nvmlPageRetirementCause_t``."""
_GET = "nvml nvmlDeviceGet"
_NAMED = {"gpu_name": "Name", "gpu_serial": "Serial", "gpu_uuid": "UUID"}


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The pages of each GPU by cause; a GPU without retired pages has no row, so its number is not known to be 0."""
    columns: tuple[str, ...] = ()
    facts: dict[str, Json] = {}
    pages: dict[str, list[Json]] = {}
    gpus: dict[str, str] = {}
    understood: set[int] = set()
    head: set[int] = set()
    for number, line in enumerate(bounded(lines)):
        text = line.strip()
        if command := _COMMAND.search(text):
            columns, head = tuple(filter(None, command["names"].split(","))), {number}
        elif _HEAD.fullmatch(text) and ("retired_pages" in text or (columns and "address" in text)):
            columns, head = tuple(_SEPARATOR.split(text)), head | {number}
        elif columns and text and len(cells := _SEPARATOR.split(text)) == len(columns):
            row = {name.removeprefix("retired_pages."): cell.strip() for name, cell in zip(columns, cells, strict=True)}
            cause = next((code for word, code in _CAUSES if word in row.get("cause", "").lower()), None)
            bdf = _bdf(row, gpus)
            if bdf is None or cause is None or not _ADDRESS.fullmatch(row.get("address", "")):
                continue
            for name, question in _NAMED.items():
                if row.get(name):
                    facts[f"{_GET}{question} {bdf}"] = row[name]
            page: Json = {"address": int(row["address"], 16)}
            pages.setdefault(f"{_GET}RetiredPages {bdf} {cause}", []).append(page)
            understood |= head | {number}
    facts |= {f"{WITHOUT_NUMBER} {bdf}": True for bdf in gpus.values()}
    return (Imported(tool=TOOL, facts={**facts, **pages}, understood=frozenset(understood)),) if pages else ()


def _bdf(row: dict[str, str], gpus: dict[str, str]) -> str | None:
    """The bus id of the row, or what stands for that of a GPU known by its UUID or serial number."""
    if "gpu_bus_id" in row:
        bdf = as_bdf(row["gpu_bus_id"])
        return gpus.setdefault(bdf, bdf) if bdf is not None else None
    name = row.get("gpu_uuid") or row.get("gpu_serial") or ""
    return gpus.setdefault(name, nameless(len(gpus)))
