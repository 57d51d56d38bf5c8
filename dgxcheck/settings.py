"""Thresholds, and what a site sets in its configuration file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from dgxcheck.facts.record import Record
from dgxcheck.package_files import table

Severity = Literal["warn", "fail"]


class Threshold(Record, kw_only=False):
    """A number that a check compares with: its default, unit and range, and where the default comes from."""

    value: int | float
    unit: str
    low: float
    high: float
    source: str


def _number(cell: str) -> int | float:
    return int(cell) if cell.isdecimal() else float(cell)


THRESHOLDS: Mapping[str, Threshold] = {
    row["name"]: Threshold(
        _number(row["default"]), row["unit"], _number(row["lowest"]), _number(row["highest"]), row["source"]
    )
    for row in table("thresholds.tsv")
}
"""By name, which begins with the subject of the check that compares."""


class Acknowledgement(Record):
    """A finding that a site knows of."""

    check: str
    device: str
    """Bus id, serial number or UUID; empty for the host."""
    ceiling: int | float | None
    """The worst measured value up to which it holds; None where it holds for any."""
    reason: str
    expiry: str
    """The last day on which it holds: ``2027-01-31``."""
    lapsed: str = ""
    """Why it does not hold for a finding; empty where it does."""


class Settings(Record):
    """What a site decides; empty means the defaults."""

    thresholds: Mapping[str, int | float] = {}
    severities: Mapping[str, Severity] = {}
    """How a check that is not content ends at this site, by its id."""
    ports: tuple[str, ...] = ()
    """Ports of HCAs that are cabled here and must be up: ``mlx5_0/1``."""
    driver: tuple[str, ...] = ()
    """Driver versions that this site runs."""
    vbios: tuple[str, ...] = ()
    hca_firmware: tuple[str, ...] = ()
    racks: Mapping[str, str] = {}
    """Nodes by rack, as ``dgx[001-016]`` or a group of ClusterShell, ``@rack1``."""
    rack_pattern: str = ""
    """A regular expression for names of nodes; its group is the rack."""
    acknowledged: tuple[Acknowledgement, ...] = ()
    path: str = ""
    """The file that says so."""

    def limit(self, name: str) -> int | float:
        """The threshold of that name: the site's, else the default."""
        return self.thresholds.get(name, THRESHOLDS[name].value)
