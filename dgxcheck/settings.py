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


def _own(value: int | float, unit: str, low: float, high: float, why: str) -> Threshold:
    return Threshold(value, unit, low, high, f"dgxcheck's own{'' if why[0] == ',' else ': '}{why}")


THRESHOLDS: Mapping[str, Threshold] = {
    "gpu.memory-size": Threshold(2, "%", 0, 50,
                                 "drivers up to R470 keep up to 1.6 % of a V100's memory out of the total"),
    "gpu.memory-held": Threshold(4096, "MiB", 64, 1 << 20, "above the driver's own reserve"),
    "gpu.uniform-memory": Threshold(1, "%", 0, 50, "a display takes 3 MiB of 32 GiB on a DGX Station"),
    "gpu.uniform-display": Threshold(10, "%", 0, 50, "two sizes of one model are further apart"),
    "clock.throttle": _own(5, "%", 0, 100, "any growth at all is noise, DCGM issue 285"),
    "power.violation": _own(5, "%", 0, 100, "any growth at all is noise, DCGM issue 285"),
    "power.limit": Threshold(25, "%", 0, 100, "GB200 with 1000 and with 1200 W are in service: makers choose"),
    "thermal.margin": Threshold(5, "°C", 0, 50, "a slowdown is near"),
    "thermal.hot": Threshold(90, "°C", 50, 150, "boards from K80 to A100 slow down at 82 to 89"),
    "thermal.outlier": _own(15, "°C", 1, 100, "no vendor gives one"),
    "thermal.warm": Threshold(50, "°C", 0, 100, "idle boards lie up to 22 apart at 22 to 44 (eight A100, driver 535)"),
    "thermal.fans": _own(75, "°C", 40, 120, "fans that rest at idle turn from 50 to 65 on"),
    "thermal.like-power": _own(20, "%", 1, 100, "idle GPUs of one box draw within 15 % of each other"),
    "ecc.corrected": Threshold(50, "million corrected errors", 0, 1e9, "Meta GCM fails above 50 million"),
    "ecc.corrected-rate": _own(1000, "an hour", 0, 1e9, "no vendor gives one"),
    "ecc.remapped-rows": Threshold(512, "rows", 1, 100000, "DCGM fails from 512; NVIDIA's flag after 512"),
    "ecc.retired-pages-warn": Threshold(10, "pages", 0, 64, "Meta GCM alone; Azure: 62 and one pending fail"),
    "ecc.retired-pages-near": Threshold(60, "pages", 0, 64, "the limit of DCGM before it was 63"),
    "ecc.retired-pages-double": Threshold(15, "pages", 0, 64, "DCGM: more than 15, and more than 1 in a week"),
    "pcie.replay": Threshold(1, "times", 0.1, 1000, "DCGM's rate per generation and lane as it is"),
    "pcie.replay-fail": Threshold(80, "replays", 1, 1000000, "DCGM's diagnostic: more than 80 in a test"),
    "pcie.bar1-small": Threshold(256, "MiB", 1, 65536, "BAR1 of boards before large BARs (K20, K40c)"),
    "pcie.bar1-large": Threshold(16384, "MiB", 256, 1048576, "the smallest large BAR1 on record (K40m, K80)"),
    "gdr.bar1-used": _own(90, "%", 1, 100, "no vendor gives one"),
    "gdr.read-request": Threshold(512, "bytes", 128, 4096, "the default of PCI Express; 4096 is usual for HCAs"),
    "nvlink.recoveries": Threshold(2, "recoveries", 1, 1000, "one may be chance; DCGM fails on the first"),
    "nvlink.crc": Threshold(100, "CRC errors a second", 1, 1e9, "DCGM's health watch"),
    "nvlink.ber": Threshold(1e-12, "errors a bit", 0, 1, "DCGM's health watch fails above 1e-12"),
    "nvlink.total": _own(100, "a day", 0, 1e9, ", since boot: a clean link has next to none"),
    "nvlink.total-crc": _own(86400, "a day", 0, 1e12, ", since boot: one a second, a hundredth of what DCGM fails"),
    "network.errors-warn": _own(1, "an hour", 0, 1000000, "a few in a month are noise"),
    "network.errors": Threshold(10, "an hour", 1, 1000000, "ibcheckerrors: 10 since the counters were cleared"),
    "network.transport": _own(10, "an hour", 0, 1e9, "peers that end leave a few; NVSentinel warns at 1 a second"),
    "network.transport-often": _own(3600, "an hour", 0, 1e9, "NVSentinel's limit, 1 a second: due at the next drain"),
    "network.transport-total": _own(100, "an hour", 0, 1e9, "ten times the limit of a counter that was seen to grow"),
    "network.fabric": Threshold(100, "an hour", 0, 1e9,
                                "infiniband-diags, error_thresholds: 100 since the counters were cleared"),
    "network.programs": _own(1000, "an hour", 0, 1e9, "a program that fails leaves a few hundred"),
    "network.carrier": Threshold(5, "a day", 0, 1000000, "Azure's node checks: 5 lost carriers in 24 hours"),
    "network.flaps": Threshold(2, "a day", 0, 1000000, "gpud: three in 12 hours are a flap"),
    "ecc.retired-pages-fail": Threshold(63, "pages", 1, 64, "DCGM fails at 63; the table holds 64"),
    "kernel.xid-processes": _own(3, "processes", 2, 1000, "one program's fault is not three's"),
    "kernel.corrected-pcie": _own(100, "corrected errors", 0, 100000, ", a day: no vendor gives one"),
    "consistency.memory": _own(10, "%", 0, 100, "firmware, kernel and crash kernel reserve some"),
    "host.memory-missing": Threshold(3, "%", 0, 100, "Azure node checks: 3 to 5 %"),
    "kernel.machine-checks": _own(10, "a day", 0, 1e9, "no vendor gives one"),
    "kernel.cpu-throttled": _own(100, "events", 0, 1e9, "short ones at full load are usual, the kernel counts each"),
    "host.edac-corrected": _own(10, "a day", 0, 1e9, "no vendor gives one"),
    "measure.slowdown-warn": _own(1, "%", 0, 100, "samples of a burn-in, one a second"),
    "measure.slowdown-fail": _own(20, "%", 0, 100, "no vendor gives one"),
    "measure.drift": _own(10, "%", 1, 100, "rates of sound links repeat within 2 %"),
    "measure.clock": _own(15, "%", 1, 100, "boost clocks of one model differ by some bins"),
    "measure.warn": _own(90, "%", 1, 100, "good boxes stay within 5 % of each other"),
    "measure.fail": _own(75, "%", 1, 100, "a link or lane that is gone takes half or more"),
    "measure.far": _own(30, "%", 0, 100,
                        "31 % with memory of the wrong NUMA node (gearshifft PR 82), else 64 % and more"),
    "measure.rings": _own(40, "%", 1, 100, "how many links a GPU's copy engines drive at once is not published"),
    "measure.derived": _own(60, "%", 1, 100, "a server of 2016 reaches 64 % of what its PCIe links promise"),
    "measure.symmetry": _own(10, "%", 0.1, 100, "directions of good pairs are within 2 %"),
    "measure.unlike": _own(80, "%", 1, 100, "14 of 48 GB/s is the least that a sound DGX-1 has between two GPUs"),
    "measure.directions": _own(25, "%", 1, 100, "up to 20 % lie between the directions of good hosts"),
    "measure.runs": _own(25, "%", 1, 100, "the wrong NUMA node takes 69 % (gearshifft PR 82)"),
    "measure.pinned": Threshold(2, "GB/s", 0.01, 1000, "less than a gen1 x8 link reaches"),
    "measure.p2p-latency": Threshold(60, "%", 1, 100, "0.2 to 0.58 on good boxes, 1 where P2P is not in use"),
    "measure.compute": _own(10, "%", 0.1, 100, "no vendor gives one"),
    "host.data-tolerance": _own(5, "%", 0, 100, "file systems and controllers take some"),
}  # fmt: skip
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
