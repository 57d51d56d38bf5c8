"""A part of the machine that can be to blame, as data; ``output`` makes its name in English."""

from __future__ import annotations

from typing import Literal

from dgxcheck.facts.record import Record, replace

Kind = Literal[
    "gpu", "gpus", "hca", "port", "link", "switch", "board", "nvlink", "nvswitch", "path", "slot",
    "socket-interconnect", "host-bridge", "socket", "driver", "bridge", "function", "subnet-manager", "fabric", "host",
    "disk", "interface",
]  # fmt: skip
"""``link``: a PCIe link; ``path``: peer access of two GPUs; ``bridge``: one PCI bridge port; ``function``: what else
is on PCI, or what that is not known of; ``gpus``: all of them."""
Key = tuple[str, str, str]


class Component(Record):
    """One thing that a cause names."""

    kind: Kind
    name: str
    """``GPU2``, ``mlx5_1/1``, ``0000:00:03.0 - 0000:08:00.0``, ``GPU2 - GPU3``"""
    bdf: str | None = None
    """Of a link that of the device at its lower end."""
    peer_bdf: str | None = None
    """Of what joins two GPUs the other end."""
    part: str = ""
    """What of the device: ``memory``, ``cooling``; empty for the whole of it."""
    position: str = ""
    """Which one of several such parts: a memory controller (``mc2``), a NUMA node; of an NVSwitch its ports."""
    slot: str | None = None
    serial: str | None = None
    shared_by: tuple[str, ...] = ()
    """Names of the devices whose traffic crosses a link, switch or pair."""

    @property
    def key(self) -> Key:
        """The same for the same thing in every run: kind, bus ids or name, part."""
        # two ports may be on one PCI function (ConnectX-3)
        port = self.name.rpartition("/")[2] if self.kind == "port" and self.bdf else ""
        whose = "/".join(filter(None, (self.bdf, self.peer_bdf, port))) or self.name
        return self.kind, whose, "/".join(filter(None, (self.part, self.position if self.part else "")))

    @property
    def id(self) -> str:
        """The key in one word: ``gpu/0000:0a:00.0``."""
        return "/".join(filter(None, self.key))

    @property
    def whole(self) -> Component:
        """The device that this is a part of; itself where it is no part."""
        return replace(self, part="", position="") if self.part else self


SETTINGS = ("IOMMU setting", "ACS setting")
"""Parts that keep GPUs from each other, and need not slow down every pair."""
EVERY_GPU = "GPUs"
"""The name of a setting's component where it is that of all GPUs; of several their names."""
PEER_TRAFFIC = "peer traffic"
"""Part of a host bridge: what devices below different ports of it send each other."""
DRIVER = Component(kind="driver", name="NVIDIA driver")
HOST = Component(kind="host", name="host")
FABRIC_MANAGER = replace(HOST, part="Fabric Manager")
"""The service that sets up NVSwitches and the NVLinks that lead to them."""
SUBNET_MANAGER = Component(kind="subnet-manager", name="of the fabric")
INFINIBAND_FABRIC = Component(kind="fabric", name="InfiniBand fabric")
ETHERNET_FABRIC = Component(kind="fabric", name="Ethernet fabric")


def host_part(part: str, position: str = "") -> Component:
    """A part or setting of the host: ``memory``, ``IOMMU setting``."""
    return replace(HOST, part=part, position=position)
