"""What can be to blame: a part of the machine, by the names that an admin knows it by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from dgxcheck.checks.engine.check import Box
from dgxcheck.facts.ids import NVIDIA, OTHER_BRIDGE
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record
from dgxcheck.topology.model import Device
from dgxcheck.topology.paths import Hop, hops_above, sharers
from dgxcheck.topology.slots import slot_of

Kind = Literal["gpu", "hca", "port", "link", "switch", "nvlink", "path", "slot", "socket interconnect", "host bridge",
               "driver", "port of a switch", "subnet manager", "fabric", "host", "disk", "interface"]  # fmt: skip
Key = tuple[str, str, str]


class Component(Record):
    """One thing that a cause names."""

    kind: Kind
    name: str
    """``GPU2``, ``mlx5_1/1``, ``0000:00:03.0 - 0000:08:00.0``, ``GPU2 - GPU3``"""
    bdf: str | None = None
    peer_bdf: str | None = None
    """Of what joins two GPUs the other end."""
    part: str = ""
    """Of a GPU or the host what of it: ``memory``, ``cooling``; empty for the whole of it."""
    slot: str | None = None
    serial: str | None = None
    shared_by: tuple[str, ...] = ()
    """Devices whose traffic runs through a link or switch."""

    @property
    def key(self) -> Key:
        """The same for the same thing."""
        return self.kind, "/".join(filter(None, (self.bdf, self.peer_bdf))) or self.name, self.part

    def __str__(self) -> str:
        plain = self.bdf is None or self.bdf in self.name or self.kind in ("nvlink", "path")
        name = self.name if plain else f"{self.name} {self.bdf}"
        thing = f"{_WORDS.get(self.kind, '')} {name}".strip()
        if self.kind == "slot":
            return f"{self.part} {name}".strip()
        return f"{self.part} of {thing}" if self.part else thing


_WORDS: dict[str, str] = {
    "link": "PCIe link", "nvlink": "NVLinks", "port": "port", "hca": "HCA", "driver": "the", "host": "the",
    "disk": "disk", "interface": "interface", "path": "P2P path", "subnet manager": "subnet manager",
    "host bridge": "host bridge", "port of a switch": "switch port", "socket interconnect": "interconnect of",
    "switch": "PCIe switch", "fabric": "the",
}  # fmt: skip
DRIVER = Component(kind="driver", name="NVIDIA driver")


def of_device(box: Box, device: Device, part: str = "") -> Component:
    """A GPU or HCA, or a part of it."""
    kind: Kind = "gpu" if device.kind == "gpu" else "hca"
    slot = slot_of(device, box.snapshot.slots)
    serial = box.subject(device).serial if kind == "gpu" else None
    return Component(
        kind=kind, name=device.name, bdf=device.bdf, part=part, slot=None if isinstance(slot, Missing) else slot,
        serial=serial if isinstance(serial, str) else None,
    )  # fmt: skip


def of_hop(box: Box, hop: Hop) -> Component:
    """A physical PCIe link: the device at its lower end, and whom it serves."""
    return Component(kind="link", name=str(hop), bdf=hop.device, shared_by=sharers(hop, box.topology))


def links_above(box: Box, device: Device) -> Iterator[Component]:
    """The device's own link first, then up to the root."""
    if not isinstance(device.path, Missing):
        yield from (
            of_hop(box, hop) for hop in reversed(hops_above(device.path, box.topology.functions)) if not hop.unjudged
        )


def is_below(device: Device, bridge: str) -> bool:
    """Is the bridge, or host bridge, on the device's way to memory?"""
    return not isinstance(device.path, Missing) and bridge in device.path


def of_nvlinks(box: Box, a: Device, b: Device) -> Component:
    """The NVLinks between two GPUs, in either order."""
    one, other = sorted((a, b), key=box.topology.devices.index)
    return _joining("nvlink", one, other)


def of_path(a: Device, b: Device) -> Component:
    """The way of one GPU into the memory of another."""
    return _joining("path", a, b)


def _joining(kind: Kind, a: Device, b: Device) -> Component:
    return Component(
        kind=kind, name=f"{a.name} - {b.name}", bdf=a.bdf, peer_bdf=b.bdf, shared_by=(a.name, b.name)
    )  # fmt: skip


def of_port_setting(bdf: str) -> Component:
    """ACS of one port."""
    return Component(kind="port of a switch", name=bdf, bdf=bdf, part="ACS setting")


def of_host(part: str) -> Component:
    return Component(kind="host", name="host", part=part)


def of_all_nvlinks(box: Box) -> Component:
    """What keeps those of every GPU down or slow."""
    return of_host("NVSwitches" if has_nvswitches(box) else "NVLink setting")


def has_nvswitches(box: Box) -> bool:
    """Are the GPUs joined through switches, which the fabric manager sets up?"""
    return any(
        each.vendor == NVIDIA and isinstance(each.class_code, int) and each.class_code >> 8 == OTHER_BRIDGE
        for each in box.topology.functions.values()
    )
