"""Files of the machine that an imported output gives other values than the box onto which it is put."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.bdf import is_bdf
from dgxcheck.facts.missing import Json
from dgxcheck.readers.reports import HOST, Reports

_LASTING = frozenset((
    "state", "phys_state", "rate", "link_layer", "current_link_width", "max_link_width", "max_link_speed", "numa_node",
    "cpulist", "class", "vendor", "device", "product_name",
))  # fmt: skip
"""What does not change by itself from one minute to the next; identities are pseudonyms of either side."""
_HCAS = "/sys/class/infiniband/"


def contradictions(imported: Mapping[str, Json], own: Mapping[str, Json]) -> dict[str, Json]:
    """A result for every such file, about the device that it is of."""
    reports = Reports("import")
    for key, fact in imported.items():
        kind, _, path = key.partition(" ")
        name = path.rpartition("/")[2]
        before = own.get(key)
        if kind != "text" or name not in _LASTING or not isinstance(fact, str) or not isinstance(before, str):
            continue
        if fact.strip() != before.strip():
            text = f"{path} is {before.strip()} on the box, {fact.strip()} in the imported output"
            reports.add(_subject(path), name.replace("_", "-"), "warn", "contradiction", text)
    return reports.facts()


def _subject(path: str) -> str:
    """The device that a file belongs to."""
    if path.startswith(_HCAS):
        return path[len(_HCAS) :].partition("/")[0]
    return next((part for part in path.split("/") if is_bdf(part)), HOST)
