"""Which PCI functions are NVIDIA GPUs, NVSwitches and HCAs, and which bridges lead to them."""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

from dgxcheck.facts.ids import DISPLAY, NVIDIA, OTHER_BRIDGE
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record
from dgxcheck.facts.sysfs import PCI_DEVICES
from dgxcheck.source.protocol import Source
from probes.ask import ask
from probes.parse_scalar import hexadecimal
from probes.pci.tree import Path, behind_infiniband, class_codes, path_of, with_bridges

_INFINIBAND_CONTROLLER = 0x0207


class Roles(Record):
    """bdfs by role; the paths hold these functions and every bridge above them."""

    gpus: tuple[str, ...]
    nvswitches: tuple[str, ...]
    hcas: tuple[str, ...]
    paths: Mapping[str, Path | Missing]

    @property
    def devices(self) -> tuple[str, ...]:
        """GPUs, NVSwitches and HCAs."""
        return self.gpus + self.nvswitches + self.hcas

    @property
    def bridges(self) -> tuple[str, ...]:
        """Every bridge on a path, by bdf."""
        ends = set(self.devices)
        return tuple(sorted(bdf for bdf in self.paths if bdf not in ends))


_KNOWN: WeakKeyDictionary[Source, Roles | Missing] = WeakKeyDictionary()


def roles(source: Source) -> Roles | Missing:
    """Sorts ``/sys/bus/pci/devices``; RoCE HCAs are known by their ``/sys/class/infiniband`` device.

    Five probes ask for them, so those of a source are remembered while there is that source.
    """
    if source not in _KNOWN:
        _KNOWN[source] = _roles(source)
    return _KNOWN[source]


def _roles(source: Source) -> Roles | Missing:
    codes = class_codes(source)
    if isinstance(codes, Missing):
        return codes
    behind = behind_infiniband(source)
    gpus: list[str] = []
    nvswitches: list[str] = []
    hcas: list[str] = []
    for bdf, code in codes.items():
        if bdf in behind:
            hcas.append(bdf)
        elif isinstance(code, Missing):
            continue
        elif code >> 16 == DISPLAY and _is_nvidia(source, bdf):
            gpus.append(bdf)
        elif code >> 8 == OTHER_BRIDGE and _is_nvidia(source, bdf):
            nvswitches.append(bdf)
        elif code >> 8 == _INFINIBAND_CONTROLLER:
            hcas.append(bdf)
    ends = {bdf: path_of(source, bdf) for bdf in (*gpus, *nvswitches, *hcas)}
    return Roles(gpus=tuple(gpus), nvswitches=tuple(nvswitches), hcas=tuple(hcas), paths=with_bridges(ends))


def _is_nvidia(source: Source, bdf: str) -> bool:
    vendor = ask(source, f"{PCI_DEVICES}/{bdf}/vendor", hexadecimal)
    return not isinstance(vendor, Missing) and vendor == NVIDIA
