"""Which device nodes of the NVIDIA driver and of RDMA user space can be opened."""

from __future__ import annotations

from dgxcheck.facts.host import DeviceNode, DeviceNodes
from dgxcheck.facts.missing import Missing
from dgxcheck.source.protocol import Source
from probes.ask import numbered
from probes.pci.roles import roles

_VERBS = "/dev/infiniband"


def probe(source: Source) -> DeviceNodes:
    """``/dev/nvidiactl``, ``/dev/nvidia-uvm``, a ``/dev/nvidia<minor>`` per GPU, ``/dev/infiniband/uverbs*``."""
    return DeviceNodes(
        control=_node(source, "/dev/nvidiactl"),
        uvm=_node(source, "/dev/nvidia-uvm"),
        gpus=_gpus(source),
        verbs=_verbs(source),
    )


def _gpus(source: Source) -> tuple[DeviceNode, ...] | Missing:
    """The driver gives out minor numbers from 0 (``nvidia_frontend.c``)."""
    known = roles(source)
    if isinstance(known, Missing):
        return known
    return tuple(_node(source, f"/dev/nvidia{minor}") for minor in range(len(known.gpus)))


def _verbs(source: Source) -> tuple[DeviceNode, ...] | Missing:
    """``/dev/infiniband`` holds ``umad``, ``issm`` and ``rdma_cm`` too."""
    numbers = numbered(source, _VERBS, "uverbs")
    return numbers if isinstance(numbers, Missing) else tuple(_node(source, f"{_VERBS}/uverbs{n}") for n in numbers)


def _node(source: Source, path: str) -> DeviceNode:
    return DeviceNode(path=path, opens=source.opens(path))
