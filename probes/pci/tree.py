"""PCI functions by name, class and path, before anything else is asked of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar
from weakref import WeakKeyDictionary

from dgxcheck.facts.bdf import is_bdf, is_root_bus
from dgxcheck.facts.ids import DATA_DIRECT, DISPLAY, MELLANOX, NVIDIA, OTHER_BRIDGE
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record
from dgxcheck.facts.sysfs import INFINIBAND, PCI_DEVICES
from dgxcheck.facts.typical import gathered
from dgxcheck.source.protocol import Source
from probes.ask import ask, garbled, hexadecimal

Path = tuple[str, ...]
T = TypeVar("T")

_PATH_MAX = 4096


def once(read: Callable[[Source], T]) -> Callable[[Source], T]:
    """Remembers what several probes ask a source for, while there is that source."""
    known: WeakKeyDictionary[Source, T] = WeakKeyDictionary()

    def remembered(source: Source) -> T:
        if source not in known:
            known[source] = read(source)
        return known[source]

    return remembered


@once
def class_codes(source: Source) -> dict[str, int | Missing] | Missing:
    """``class`` of every PCI function, in the order of the names; without the virtual functions of GPUs, which are for
    virtual machines: NVML lists none of them."""
    if isinstance(names := source.names(PCI_DEVICES), Missing):
        return names
    codes = {name: ask(source, f"{PCI_DEVICES}/{name}/class", hexadecimal) for name in names if is_bdf(name)}
    displays = [bdf for bdf, code in codes.items() if isinstance(code, int) and code >> 16 == DISPLAY]
    first = {bdf.rpartition(":")[0]: bdf for bdf in reversed(displays)}  # of each bus, which is none
    virtual = {bdf for bdf in {*displays} - {*first.values()} if is_vf(source, bdf) is True}
    return {bdf: code for bdf, code in codes.items() if bdf not in virtual}


def is_vf(source: Source, bdf: str) -> bool | Missing:
    """Is it a virtual function, by the link ``physfn``?"""
    if isinstance(target := source.link(f"{PCI_DEVICES}/{bdf}/physfn"), Missing):
        return False if target.gap is Gap.ABSENT else target
    return True


def path_of(source: Source, bdf: str) -> Path | Missing:
    """Root bus, bridges and the function itself, from the link ``/sys/bus/pci/devices/<bdf>``."""
    where = f"{PCI_DEVICES}/{bdf}"
    target = source.link(where)
    return target if isinstance(target, Missing) else path(target, bdf, where)


def path(target: str, bdf: str, where: str) -> Path | Missing:
    """The part of a link's text from the last root bus on: VMD and Hyper-V put other devices above one."""
    parts = target.rstrip("/").split("/") if len(target) < _PATH_MAX else []
    for at in range(len(parts) - 1, -1, -1):
        if is_root_bus(parts[at]):
            if (below := parts[at + 1 :]) and below[-1] == bdf and all(map(is_bdf, below)):
                return tuple(parts[at:])
            break
    return garbled(target, where)


def with_bridges(paths: dict[str, Path | Missing]) -> dict[str, Path | Missing]:
    """The given functions' paths and those of every bridge above them."""
    every = dict(paths)
    for own in paths.values():
        if not isinstance(own, Missing):
            for depth in range(2, len(own)):
                if own[depth - 1] not in every:
                    every[own[depth - 1]] = own[:depth]
    return every


def function_behind(source: Source, where: str) -> str | Missing:
    """The PCI function that a class device's ``device`` link leads to.

    Where that link says ``../..`` alone, as it does in trees made from paths, the entry's own link in the class
    directory names the function.
    """
    if isinstance(target := source.link(where), Missing):
        return target
    if is_bdf(name := target.rstrip("/").rpartition("/")[2]):
        return name
    own = source.link(where.rpartition("/")[0])
    names = [] if isinstance(own, Missing) else [part for part in own.split("/") if is_bdf(part)]
    return names[-1] if names else Missing(Gap.ABSENT, where, f"not a PCI function: {target[:80]}")


@once
def behind_infiniband(source: Source) -> set[str]:
    """The functions behind ``/sys/class/infiniband``, whatever their class: QLogic's has that of a serial bus."""
    if isinstance(names := source.names(INFINIBAND), Missing):
        return set()
    found = (function_behind(source, f"{INFINIBAND}/{name}/device") for name in names)
    return {bdf for bdf in found if not isinstance(bdf, Missing)}


_INFINIBAND_CONTROLLER = 0x0207
_DMA_CONTROLLER = 0x0801


def is_dma_controller(code: int) -> bool:
    """Is it of the class of a ConnectX-8's DMA function?"""
    return code >> 8 == _DMA_CONTROLLER


class Roles(Record):
    """bdfs by role; the paths hold these functions and every bridge above them."""

    gpus: tuple[str, ...]
    nvswitches: tuple[str, ...]
    hcas: tuple[str, ...]
    dma: tuple[str, ...]
    """DMA functions of ConnectX-8."""
    paths: Mapping[str, Path | Missing]

    @property
    def devices(self) -> tuple[str, ...]:
        """GPUs, NVSwitches, HCAs and their DMA functions."""
        return self.gpus + self.nvswitches + self.hcas + self.dma

    @property
    def bridges(self) -> tuple[str, ...]:
        """Every bridge on a path, by bdf."""
        ends = set(self.devices)
        return tuple(sorted(bdf for bdf in self.paths if bdf not in ends))

    @property
    def functions(self) -> tuple[str, ...]:
        """All of these."""
        return self.devices + self.bridges


@once
def roles(source: Source) -> Roles | Missing:
    """Sorts ``/sys/bus/pci/devices``; RoCE HCAs are known by their ``/sys/class/infiniband`` device."""
    if isinstance(codes := class_codes(source), Missing):
        return codes
    behind = behind_infiniband(source)
    found = gathered((_role(source, bdf, code, behind), bdf) for bdf, code in codes.items())
    of = {role: tuple(found.get(role, ())) for role in ("gpus", "nvswitches", "hcas", "dma")}
    paths = with_bridges({bdf: path_of(source, bdf) for bdfs in of.values() for bdf in bdfs})
    return Roles(**of, paths=paths)


def _role(source: Source, bdf: str, code: int | Missing, behind: set[str]) -> str:
    """The field of ``Roles`` that a function is listed in; empty for one of no interest."""
    if bdf in behind:
        return "hcas"
    if isinstance(code, Missing):
        return ""
    if code >> 16 == DISPLAY or code >> 8 == OTHER_BRIDGE:
        of_nvidia = pci_id(source, bdf, "vendor") == NVIDIA
        return "" if not of_nvidia else "gpus" if code >> 16 == DISPLAY else "nvswitches"
    if code >> 8 == _INFINIBAND_CONTROLLER:
        return "hcas"
    is_dma = is_dma_controller(code) and pci_id(source, bdf, "vendor") == MELLANOX
    return "dma" if is_dma and pci_id(source, bdf, "device") == DATA_DIRECT else ""


def pci_id(source: Source, bdf: str, name: str) -> int | Missing:
    return ask(source, f"{PCI_DEVICES}/{bdf}/{name}", hexadecimal)
