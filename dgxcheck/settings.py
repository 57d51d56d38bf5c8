"""Thresholds, and what a site sets in its configuration file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from dgxcheck.facts.record import Record

Severity = Literal["warn", "fail"]


class Threshold(Record, kw_only=False):
    """A number that a check compares with: its default, unit and range, and where the default comes from."""

    value: int | float
    unit: str
    low: float
    high: float
    source: str


THRESHOLDS: Mapping[str, Threshold] = {
    "gpu.memory-size": Threshold(
        2, "%", 0, 50, "drivers up to R470 keep up to 1.6 % of a V100's memory out of the total"
    ),
    "gpu.uniform-memory": Threshold(1, "%", 0, 50, "a display takes 3 MiB of 32 GiB on a DGX Station"),
    "gpu.uniform-display": Threshold(10, "%", 0, 50, "two sizes of one model are further apart"),
    "clock.throttle": Threshold(5, "%", 0, 100, "dgxcheck's own: any growth at all is noise, DCGM issue 285"),
    "power.violation": Threshold(5, "%", 0, 100, "dgxcheck's own: any growth at all is noise, DCGM issue 285"),
    "thermal.margin": Threshold(5, "°C", 0, 50, "a slowdown is near"),
    "thermal.outlier": Threshold(15, "°C", 1, 100, "dgxcheck's own: no vendor gives one"),
    "thermal.warm": Threshold(50, "°C", 0, 100, "idle boards lie up to 22 apart at 22 to 44 (eight A100, driver 535)"),
    "thermal.like-power": Threshold(
        20, "%", 1, 100, "dgxcheck's own: idle GPUs of one box draw within 15 % of each other"
    ),
    "ecc.corrected": Threshold(50, "million corrected errors", 0, 1e9, "Meta GCM fails above 50 million"),
    "ecc.corrected-rate": Threshold(1000, "an hour", 0, 1e9, "dgxcheck's own: no vendor gives one"),
    "ecc.remapped-rows": Threshold(512, "rows", 1, 100000, "DCGM fails from 512; NVIDIA's flag after 512"),
    "ecc.retired-pages-warn": Threshold(10, "pages", 0, 64, "Meta GCM alone; Azure: 62 and one pending fail"),
    "ecc.retired-pages-double": Threshold(15, "pages", 0, 64, "DCGM: more than 15, and more than 1 in a week"),
    "pcie.replay": Threshold(1, "times", 0.1, 1000, "DCGM's rate per generation and lane as it is"),
    "pcie.replay-fail": Threshold(80, "replays", 1, 1000000, "DCGM's diagnostic: more than 80 in a test"),
    "pcie.bar1-small": Threshold(256, "MiB", 1, 65536, "BAR1 of boards before large BARs (K20, K40c)"),
    "pcie.bar1-large": Threshold(16384, "MiB", 256, 1048576, "the smallest large BAR1 on record (K40m, K80)"),
    "gdr.bar1-used": Threshold(90, "%", 1, 100, "dgxcheck's own: no vendor gives one"),
    "gdr.read-request": Threshold(512, "bytes", 128, 4096, "the default of PCI Express; 4096 is usual for HCAs"),
    "nvlink.recoveries": Threshold(2, "recoveries", 1, 1000, "one may be chance; DCGM fails on the first"),
    "nvlink.crc": Threshold(100, "CRC errors a second", 1, 1e9, "DCGM's health watch"),
    "nvlink.ber": Threshold(1e-12, "errors a bit", 0, 1, "DCGM's health watch fails above 1e-12"),
    "nvlink.total": Threshold(100, "a day", 0, 1e9, "dgxcheck's own, since boot: a clean link has next to none"),
    "nvlink.total-crc": Threshold(
        86400, "a day", 0, 1e12, "dgxcheck's own, since boot: one a second, a hundredth of what DCGM fails"
    ),
    "network.errors-warn": Threshold(1, "an hour", 0, 1000000, "dgxcheck's own: a few in a month are noise"),
    "network.errors": Threshold(10, "an hour", 1, 1000000, "ibcheckerrors: 10 since the counters were cleared"),
    "network.transport": Threshold(
        10, "an hour", 0, 1e9, "dgxcheck's own: peers that end leave a few; NVSentinel warns at 1 a second"
    ),
    "network.transport-total": Threshold(
        100, "an hour", 0, 1e9, "dgxcheck's own: ten times the limit of a counter that was seen to grow"
    ),
    "network.fabric": Threshold(
        100, "an hour", 0, 1e9, "infiniband-diags, error_thresholds: 100 since the counters were cleared"
    ),
    "network.programs": Threshold(1000, "an hour", 0, 1e9, "dgxcheck's own: a program that fails leaves a few hundred"),
    "network.carrier": Threshold(5, "a day", 0, 1000000, "Azure's node checks: 5 lost carriers in 24 hours"),
    "ecc.retired-pages-fail": Threshold(63, "pages", 1, 64, "DCGM fails at 63; the table holds 64"),
    "kernel.xid-processes": Threshold(3, "processes", 2, 1000, "dgxcheck's own: one program's fault is not three's"),
    "kernel.corrected-pcie": Threshold(
        100, "corrected errors", 0, 100000, "dgxcheck's own, a day: no vendor gives one"
    ),
    "consistency.memory": Threshold(10, "%", 0, 100, "dgxcheck's own: firmware, kernel and crash kernel reserve some"),
    "host.memory-missing": Threshold(3, "%", 0, 100, "Azure node checks: 3 to 5 %"),
    "kernel.machine-checks": Threshold(10, "a day", 0, 1e9, "dgxcheck's own: no vendor gives one"),
    "kernel.cpu-throttled": Threshold(
        100, "events", 0, 1e9, "dgxcheck's own: short ones at full load are usual, the kernel counts each"
    ),
    "host.edac-corrected": Threshold(10, "a day", 0, 1e9, "dgxcheck's own: no vendor gives one"),
    "measure.slowdown-warn": Threshold(1, "%", 0, 100, "dgxcheck's own: samples of a burn-in, one a second"),
    "measure.slowdown-fail": Threshold(20, "%", 0, 100, "dgxcheck's own: no vendor gives one"),
    "measure.drift": Threshold(10, "%", 1, 100, "dgxcheck's own: rates of sound links repeat within 2 %"),
    "measure.clock": Threshold(15, "%", 1, 100, "dgxcheck's own: boost clocks of one model differ by some bins"),
    "measure.warn": Threshold(90, "%", 1, 100, "dgxcheck's own: good boxes stay within 5 % of each other"),
    "measure.fail": Threshold(75, "%", 1, 100, "dgxcheck's own: a link or lane that is gone takes half or more"),
    "measure.far": Threshold(
        30,
        "%",
        0,
        100,
        "dgxcheck's own: 31 % with memory of the wrong NUMA node (gearshifft PR 82), else 64 % and more",
    ),
    "measure.rings": Threshold(
        40, "%", 1, 100, "dgxcheck's own: how many links a GPU's copy engines drive at once is not published"
    ),
    "measure.derived": Threshold(
        60, "%", 1, 100, "dgxcheck's own: a server of 2016 reaches 64 % of what its PCIe links promise"
    ),
    "measure.symmetry": Threshold(10, "%", 0.1, 100, "dgxcheck's own: directions of good pairs are within 2 %"),
    "measure.directions": Threshold(
        25, "%", 1, 100, "dgxcheck's own: up to 20 % lie between the directions of good hosts"
    ),
    "measure.runs": Threshold(25, "%", 1, 100, "dgxcheck's own: the wrong NUMA node takes 69 % (gearshifft PR 82)"),
    "measure.pinned": Threshold(2, "GB/s", 0.01, 1000, "less than a gen1 x8 link reaches"),
    "measure.p2p-latency": Threshold(60, "%", 1, 100, "0.2 to 0.58 on good boxes, 1 where P2P is not in use"),
    "measure.compute": Threshold(10, "%", 0.1, 100, "dgxcheck's own: no vendor gives one"),
    "host.data-tolerance": Threshold(5, "%", 0, 100, "dgxcheck's own: file systems and controllers take some"),
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
