"""Which GPUs a burn-in loads, with which neighbours, and which files tell of PCIe errors meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.facts.aer import AerDevice, AerErrors
from dgxcheck.frozen import Record
from dgxcheck.measure.plan import cpus
from dgxcheck.reading import Missing
from dgxcheck.topology.model import Device, Topology

_AER = ("correctable", "nonfatal", "fatal")


class Load(Record):
    """One GPU's part of the plan."""

    gpu: str
    peers: tuple[str, ...]
    """Neighbours, those to prefer first."""
    cpus: tuple[int, ...]


def loads(topology: Topology, gpus: Sequence[Device]) -> list[Load]:
    """One per GPU that NVML lists; peers with the most NVLinks first, each GPU begins with the one after it."""
    listed = [gpu for gpu in gpus if gpu.index is not None and gpu.bdf is not None]
    found = []
    for place, gpu in enumerate(listed):
        others = [*listed[place + 1 :], *listed[:place]]
        near = sorted(others, key=lambda other: -_nvlinks(topology, gpu, other))
        found.append(
            Load(gpu=str(gpu.bdf), peers=tuple(str(peer.bdf) for peer in near), cpus=tuple(cpus(gpu.cpu_affinity)))
        )
    return found


def files(root: str, rows: tuple[AerDevice, ...] | Missing) -> dict[str, str]:
    """``0000:06:00.0 fatal`` to the file that counts them, of every device that has one."""
    return {
        f"{row.bdf} {severity}": f"{root}/sys/bus/pci/devices/{row.bdf}/aer_dev_{severity}"
        for row in (() if isinstance(rows, Missing) else rows)
        for severity in _AER
        if isinstance(getattr(row, severity), AerErrors)
    }


def _nvlinks(topology: Topology, a: Device, b: Device) -> int:
    links = topology.link(a, b).nvlinks
    return links if isinstance(links, int) else 0
