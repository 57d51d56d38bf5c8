"""The topology of a box: its GPUs and NICs, one link per pair of them, and notes on both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Literal, Protocol, get_args

from dgxcheck.facts.missing import Gap, Missing, need, or_gap, rows
from dgxcheck.facts.pci import PciFunction, Slot
from dgxcheck.facts.record import Record, remembered

if TYPE_CHECKING:
    from dgxcheck.survey import Snapshot

PciClass = Literal["PIX", "PXB", "PHB", "NODE", "SOC"]
PCI_CLASSES: tuple[PciClass, ...] = get_args(PciClass)
"""The nearest first."""


class Device(Record):
    """A GPU or NIC; a field that does not apply to the kind is None."""

    name: str
    """``GPUn`` (NVML's index, or bus order without NVML), ``GPU@<bdf>``, or the InfiniBand name."""
    kind: Literal["gpu", "nic", "nvswitch-bridge"]
    """The last: an adapter that leads to NVSwitches which are not on PCI; in matrices a NIC, but no HCA."""
    bdf: str | None
    """None for an InfiniBand device without a PCI function (``scif0``)."""
    index: int | Missing | None
    """NVML's index, Missing where an imported text does not prove it; None for a GPU that NVML does not list."""
    uuid: str | Missing | None
    numa_node: int | Missing
    """Effective node, see ``classes.numa_node``."""
    cpu_affinity: str | Missing
    """The kernel's ``local_cpulist``."""
    gpu_numa_id: int | Missing | None
    is_vf: bool | Missing | None
    nvlink_positions: int | Missing | None
    """NVLink positions of this GPU that the driver supports, up or down; 0 on a board without NVLink."""
    path: tuple[str, ...] | Missing
    """Root bus, bridges, own bdf."""
    function: PciFunction | None
    dma: PciFunction | None = None
    """The DMA function of a NIC, which stands below the switch of a GPU (Direct NIC)."""
    numa_nodes: str = ""
    """Several nodes as an imported matrix prints them: ``0-1``."""

    @property
    def shown(self) -> str:
        """``GPU0 0000:06:00.0``; the name alone where an imported text has no bus ids."""
        return f"{self.name} {self.bdf}" if self.bdf else self.name


def is_printed(name: str) -> bool:
    """Is this what a matrix without its legend calls a NIC: ``NIC3``?"""
    return name[:3] == "NIC" and name[3:].isascii() and name[3:].isdecimal()


DevicePair = tuple[Device, Device]


class Link(Record):
    """What joins two devices; ``a`` stands before ``b`` in the order of the devices."""

    a: str
    b: str
    pci: PciClass | None
    """Of the way that data takes: of a Direct NIC and its GPU that of the DMA function."""
    pci_reason: str
    """Why ``pci`` is None; else empty."""
    nvlinks: int | None
    """NVLinks up between the two; None where unknown."""
    nvlink_reason: str
    nvlink_generation: int | None
    """Lowest generation among those links; None without links or where the driver does not report it."""
    switched: bool
    """True where the NVLinks run through NVSwitches."""
    printed: PciClass | None = None
    """What nvidia-smi prints instead of ``pci``, which knows neither DMA functions nor, of GPUs whose memory is a NUMA
    node, the node of the CPU; None where it prints the same."""

    @property
    def label(self) -> str:
        """``NV#`` where links are up, else the PCI class, else ``?``."""
        return f"NV{self.nvlinks}" if self.nvlinks else self.pci_label

    @property
    def pci_label(self) -> str:
        """The PCI class as nvidia-smi prints it, else ``?``."""
        return self.printed or self.pci or "?"


class Links:
    """One link per unordered pair of devices, in their order, made when it is asked for.

    A machine of 800 devices has 320,000 pairs, of which most commands need a few.
    """

    def __init__(self, names: Sequence[str], make: Callable[[int, int], Link]) -> None:
        self._place = {name: number for number, name in enumerate(names)}
        self._names = names
        self._make = make
        self._made: dict[tuple[int, int], Link] = {}
        self.given: tuple[Link, ...] = ()
        """Those of an imported matrix, which need not follow from what is known of their ends."""

    @classmethod
    def of(cls, names: Sequence[str], links: Iterable[Link]) -> Links:
        """Links that are given, in the order of their ends."""
        given = tuple(links)
        by_ends = dict(zip(combinations(range(len(names)), 2), given, strict=True))
        made = cls(names, lambda a, b: by_ends[a, b])
        made.given = given
        return made

    def __getitem__(self, ends: tuple[str, str]) -> Link:
        """The link of two different devices, by name; KeyError for a name that no device has."""
        one, other = self._place[ends[0]], self._place[ends[1]]
        return self._at(min(one, other), max(one, other))

    def __iter__(self) -> Iterator[Link]:
        return (self._at(a, b) for a, b in combinations(range(len(self._names)), 2))

    def __len__(self) -> int:
        return len(self._names) * (len(self._names) - 1) // 2

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Links) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def _at(self, a: int, b: int) -> Link:
        if (a, b) not in self._made:
            self._made[a, b] = self._make(a, b)
        return self._made[a, b]


class Topology(Record):
    """The whole box: GPUs, then NICs, and one link per unordered pair of them."""

    devices: tuple[Device, ...]
    links: Links
    headline: str
    """Why NVLink is unknown, as a sentence; else empty."""
    notes: tuple[str, ...]
    gaps: tuple[Missing, ...]
    """Facts that should be available and are not; those of single links are in the links."""
    functions: Mapping[str, PciFunction]
    """Every PCI function by bdf: the bridges of the paths are among them."""

    @property
    def nameless(self) -> Missing | None:
        """Why nobody can tell which functions are GPUs, where a text shows where they are and of none what it is."""
        gaps = [function.vendor for function in self.functions.values() if isinstance(function.class_code, Missing)]
        unknown = [gap for gap in gaps if isinstance(gap, Missing) and gap.gap is Gap.UNRECORDED]
        return unknown[0] if unknown and len(unknown) == len(self.functions) else None

    @property
    def gpus(self) -> tuple[Device, ...]:
        return _index(self).gpus

    @property
    def listed_gpus(self) -> list[Device]:
        """Those that NVML lists at a bus id."""
        return [gpu for gpu in self.gpus if gpu.index is not None and gpu.bdf is not None]

    @property
    def nics(self) -> tuple[Device, ...]:
        """HCAs, virtual functions among them."""
        return tuple(device for device in self.devices if device.kind == "nic")

    @property
    def adapters(self) -> tuple[Device, ...]:
        """HCAs without virtual functions."""
        return tuple(nic for nic in self.nics if nic.is_vf is not True)

    def device(self, name: str) -> Device | None:
        """The device of that name or bdf."""
        return _index(self).named.get(name)

    def below(self, bridge: str) -> tuple[Device, ...]:
        """The devices on whose path to memory a bridge or root bus is, in their order; of a device itself."""
        return _index(self).below.get(bridge, ())

    def link(self, a: Device, b: Device) -> Link:
        """What joins two different devices."""
        return self.links[a.name, b.name]

    def nvlinked(self) -> Iterator[Link]:
        """The links of pairs of GPUs of which one at least is known to have NVLink positions."""
        gpus = self.gpus
        positions = [gpu.nvlink_positions for gpu in gpus]
        wired = [number for number, known in enumerate(positions) if isinstance(known, int) and known]
        pairs = {(min(a, b), max(a, b)) for a in wired for b in range(len(gpus)) if a != b}
        return (self.link(gpus[a], gpus[b]) for a, b in sorted(pairs))


class Surveyed(Protocol):
    """Facts and topology of one machine."""

    @property
    def snapshot(self) -> Snapshot: ...

    @property
    def topology(self) -> Topology: ...


class _Index(Record, kw_only=False):
    """Devices by what they are looked up by: a walk over all of them for each would be quadratic."""

    gpus: tuple[Device, ...]
    named: dict[str, Device]
    below: dict[str, tuple[Device, ...]]


@remembered()
def _index(topology: Topology) -> _Index:
    named: dict[str, Device] = {}
    below: dict[str, list[Device]] = {}
    for device in topology.devices:
        for name in (device.name, device.bdf):
            if name is not None:
                named.setdefault(name, device)
        for bdf in dict.fromkeys(rows(device.path)):
            below.setdefault(bdf, []).append(device)
    gpus = tuple(device for device in topology.devices if device.kind == "gpu")
    return _Index(gpus, named, {bdf: tuple(devices) for bdf, devices in below.items()})


@or_gap
def slot_of(device: Device, slots: tuple[Slot, ...] | Missing) -> str | Missing:
    """The slot of a device, else of the nearest bridge above it: a board may carry a switch of its own (K80)."""
    slots = need(slots)
    for bdf in reversed(need(device.path)[1:]):
        for slot in slots:
            if isinstance(slot.address, str) and bdf.startswith(f"{slot.address}."):
                return slot.name
    unread = (slot.address for slot in slots if isinstance(slot.address, Missing))
    return next(
        unread, Missing(Gap.ABSENT, "/sys/bus/pci/slots", f"the firmware lists no slot for this {_KINDS[device.kind]}")
    )


_KINDS = {"gpu": "GPU", "nic": "NIC", "nvswitch-bridge": "NIC"}
