"""``nvidia-smi dmon``: samples of power, temperature, clocks and errors, a row for each GPU."""

from __future__ import annotations

from dgxcheck.facts.faults import Fault
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.model import Imported, Reports
from dgxcheck.readers.nvidia_smi.answers import NOWHERE, GpuDump, imported
from dgxcheck.readers.nvidia_smi.query_csv import TAGS
from dgxcheck.readers.values import gpu, number, numbered

DMON_TOOL = "nvidia-smi dmon"
_DMON_HEAD = LazyPattern(
    r"# {0,4}(?:Date +)?(?:Time +)?gpu {1,12}(?P<columns>[a-z0-9]{1,12}(?: {1,12}[a-z0-9]{1,12}){0,31})"
)
_UNITS = LazyPattern(r"# {0,4}(?:YYYYMMDD +)?(?:HH:MM:SS +)?Idx {1,12}[\w%#/ -]{1,200}")
_ROW = LazyPattern(r"(?:\d{8} {1,8})?(?:\d\d:\d\d:\d\d {1,8})?(?P<gpu>\d{1,3})(?P<cells>(?: {1,16}[\d.-]{1,12}){1,32})")
_HEAT = ("gtemp", "temp")
_HELD_DOWN = "tviol"
"""Clocks below the wanted ones because of temperature, as a flag."""
_MOST = 1e6


def read_dmon(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """All samples of a text as one output; columns of memory and encoders are not used."""
    columns: tuple[str, ...] = ()
    hottest: dict[int, dict[str, float]] = {}
    reports = Reports(DMON_TOOL)
    understood: set[int] = set()
    begun: set[int] = set()
    for at, text in numbered(lines, lambda line: line.strip()[:400]):
        if head := _DMON_HEAD.fullmatch(text):
            columns = tuple(head["columns"].split())
            begun = {at} if "type" not in columns else set()
            columns = () if "type" in columns else columns
        elif not columns or not text:
            continue
        elif _UNITS.fullmatch(text):
            begun.add(at)
        elif (row := _ROW.fullmatch(text)) and len(cells := row["cells"].split()) == len(columns):
            if (index := gpu(row["gpu"])) is not None:
                values = {name: value for name, cell in zip(columns, cells, strict=True)
                          if (value := number(cell, _MOST)) is not None}  # fmt: skip
                before = hottest.setdefault(index, values)
                hottest[index] = max(before, values, key=lambda each: max(each.get(name, 0.0) for name in _HEAT))
                if values.get(_HELD_DOWN):
                    reports.add(f"GPU{index}", "tviol", "warn", Fault.THERMAL_SLOWDOWN, "thermal violation (tviol)")
                understood |= begun | {at}
        else:
            columns = ()
    if not hottest:
        return ()
    gpus = [
        GpuDump(NOWHERE, {TAGS[name]: f"{value:g}" for name, value in values.items() if name in TAGS} | {"": ""}, index)
        for index, values in sorted(hottest.items())
    ]
    return (imported(DMON_TOOL, gpus, {}, frozenset(understood), reports=reports),)
