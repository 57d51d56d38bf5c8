"""InfiniBand and RoCE devices, and the PCI function behind each."""

from __future__ import annotations

from dgxcheck.facts.infiniband import IbDevice
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.sysfs import INFINIBAND, PCI_DEVICES
from dgxcheck.source.protocol import Source
from probes.ask import ask
from probes.fabric.parse_guid import guid, node_type
from probes.parse_scalar import line, natural
from probes.pci.tree import function_behind


def probe(source: Source) -> tuple[IbDevice, ...] | Missing:
    """``/sys/class/infiniband``, ``mlx5_10`` after ``mlx5_9``."""
    names = source.names(INFINIBAND)
    if isinstance(names, Missing):
        return names
    return tuple(_device(source, name) for name in sorted(names, key=natural))


def _device(source: Source, name: str) -> IbDevice:
    base = f"{INFINIBAND}/{name}"
    bdf = function_behind(source, f"{base}/device")
    return IbDevice(
        name=name,
        bdf=bdf,
        is_vf=bdf if isinstance(bdf, Missing) else _is_vf(source, bdf),
        node_guid=ask(source, f"{base}/node_guid", guid),
        fw_ver=ask(source, f"{base}/fw_ver", line),
        hca_type=ask(source, f"{base}/hca_type", line),
        board_id=ask(source, f"{base}/board_id", line),
        sys_image_guid=ask(source, f"{base}/sys_image_guid", guid),
        node_type=ask(source, f"{base}/node_type", node_type),
        node_desc=ask(source, f"{base}/node_desc", line),
    )


def _is_vf(source: Source, bdf: str) -> bool | Missing:
    target = source.link(f"{PCI_DEVICES}/{bdf}/physfn")
    if isinstance(target, Missing):
        return False if target.gap is Gap.ABSENT else target
    return True
