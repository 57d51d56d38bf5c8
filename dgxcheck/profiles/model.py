"""A reference machine, its boards, and the numbers that they may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from dgxcheck.facts.record import Record
from dgxcheck.topology.model import PciClass

Selection = Literal["named", "product", "gpus"]
"""How a profile was selected: by name, by the DMI product name, or by the GPU model only."""
OF_THE_GPUS = ("gpu", "memory", "nvlink")
"""Areas that belong to the GPUs, whatever machine they are in."""


class NumberRange(Record, kw_only=False):
    """A number that a profile may have: its unit and valid range."""

    unit: str
    low: float
    high: float


FRACTIONS = frozenset({"GB/s", "Gbit/s", "MB/s", "GiB", "MiB", "TB", "W", "MHz", "TFLOP/s"})
"""Units of which a number need not be whole."""
_RATE = NumberRange("GB/s", 0.01, 10000)
_PCI = ("pix", "pxb", "phb", "node", "soc")
MEASURED_KEYS: Mapping[str, NumberRange] = {
    "pcie.host-to-device": _RATE,
    "pcie.device-to-host": _RATE,
    **{f"nvlink.{kind}-nv{links}": _RATE for kind in ("p2p", "p2p-both") for links in (1, 2, 3, 4, 6, 12, 18)},
    **{f"pcie.{kind}-{pci}": _RATE for kind in ("p2p", "p2p-both", "p2p-off", "p2p-off-both") for pci in _PCI},
    **{f"nvlink.all-reduce-{gpus}": _RATE for gpus in (2, 3, 4, 5, 6, 7, 8, 16)},
    **{f"pcie.{op}-2-{pci}": _RATE for op in ("all-reduce", "broadcast", "reduce") for pci in _PCI},
    **{f"nvlink.{op}-8": _RATE for op in ("all-gather", "reduce-scatter", "broadcast", "reduce", "alltoall")},
}
"""Results of measurements on a healthy box: copies by direction, pairs of GPUs by their label (with P2P off by PCI
class), bus bandwidth of NCCL collectives by the number of GPUs, of two GPUs without NVLink by their PCI class."""
BOX_KEYS: Mapping[str, NumberRange] = {
    "gpu.count": NumberRange("GPUs", 1, 64), "gpu.dma": NumberRange("DMA functions", 0, 64),
    "pcie.link_width": NumberRange("lanes", 1, 32), "pcie.link_gen": NumberRange("generation", 1, 7),
    "nvlink.links": NumberRange("links per GPU", 0, 64), "nvlink.generation": NumberRange("generation", 1, 8),
    "nvlink.switches": NumberRange("NVSwitches", 0, 64), "nvlink.bridges": NumberRange("functions", 0, 64),
    "network.hcas": NumberRange("HCAs", 0, 64), "network.rate": NumberRange("Gbit/s", 1, 3200),
    "host.sockets": NumberRange("sockets", 1, 64), "host.cores": NumberRange("cores", 1, 4096),
    "host.memory": NumberRange("GiB", 1, 65536), "host.dimm": NumberRange("GiB", 1, 1024),
    "host.data": NumberRange("TB", 0.01, 10000), "host.ethernet": NumberRange("Gbit/s", 0.01, 800), **MEASURED_KEYS,
}  # fmt: skip
"""Numbers of a box, by area."""
BOARD_KEYS: Mapping[str, NumberRange] = {
    "memory": NumberRange("MiB", 256, 4194304), "bar1": NumberRange("MiB", 1, 4194304),
    "power_limit": NumberRange("W", 10, 5000), "max_graphics_clock": NumberRange("MHz", 100, 10000),
    "max_memory_clock": NumberRange("MHz", 100, 30000), "ecc": NumberRange("", 0, 1),
    "retired_pages": NumberRange("pages", 1, 64), "spare_rows": NumberRange("", 0, 1),
    "device_copy": NumberRange("GB/s", 1, 100000), "nvlinks": NumberRange("positions", 1, 36),
    "nvlink_rate": NumberRange("MB/s", 1000, 1000000), "link_width": BOX_KEYS["pcie.link_width"],
    "link_gen": BOX_KEYS["pcie.link_gen"], "peak_fp32": NumberRange("TFLOP/s", 0.1, 10000),
}  # fmt: skip
"""Numbers of a GPU model; ``ecc`` and ``spare_rows`` are 1 if it has them; ``device_copy`` is read plus write,
``link_width`` and ``link_gen`` are those of a module's PCIe link in any server,
``nvlinks`` counts the positions that NVML lists, wired or not, ``nvlink_rate`` is that of one link and direction,
``peak_fp32`` without tensor cores."""


class Number(Record, kw_only=False):
    """An expected number, in the unit of its key, and where it comes from."""

    value: int | float
    source: str
    floor: int | float | None = None
    """The measured figure below which an operator of such machines takes one out of service; None if none is
    published.
    """


class Board(Record):
    """One GPU model."""

    id: str
    """``vendor:device`` as lspci prints it: ``10de:1db1``."""
    name: str
    numbers: Mapping[str, Number]


class Wiring(Record):
    """How ``gpus`` GPUs of the box reach the others: number of GPUs and HCAs by PCI class."""

    gpus: int
    to_gpus: Mapping[PciClass, int]
    to_hcas: Mapping[PciClass, int]


class Profile(Record):
    """One reference machine."""

    name: str
    title: str
    products: tuple[str, ...]
    """DMI product names without vendor, part number and memory size; see ``library.is_product``."""
    boards: tuple[str, ...]
    """Ids of the GPU models that the machine was sold with."""
    beside: tuple[str, ...] = ()
    """Ids of GPU models that it has besides, as for a display: no number and no wiring counts them."""
    own_boards: Mapping[str, Board] = {}
    """GPU models of this profile by id; they override the shipped ones."""
    numbers: Mapping[str, Number]
    nvlink_graph: str
    """Name of a graph of ``topology.reference``; empty without NVLink."""
    wiring: tuple[Wiring, ...]
    wiring_source: str


class SelectedProfile(Record):
    """The profile that a box is compared with, and how it was selected."""

    profile: Profile
    how: Selection

    def number(self, key: str) -> Number | None:
        """The expected number; None if the profile has none, or is selected by GPU model and the key is not theirs."""
        if self.how == "gpus" and key.partition(".")[0] not in OF_THE_GPUS:
            return None
        return self.profile.numbers.get(key)
