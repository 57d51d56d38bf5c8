"""What containers and virtual machines hide: it is neither judged nor reported as missing."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.facts.host import Host
from dgxcheck.facts.missing import Gap, Missing


def in_container(box: Box) -> bool:
    """Is this a container? It sees all GPUs of the host on PCI, also those that are not assigned to it."""
    host = box.snapshot.host
    return isinstance(host, Host) and isinstance(host.container, str)


def gpus_hidden(box: Box) -> str:
    """Why the machine may have more GPUs than are visible; empty on the host itself."""
    if in_container(box):
        return "a container sees only the GPUs assigned to it"
    host = box.snapshot.host
    if isinstance(host, Host) and isinstance(host.vm, str):
        return "a virtual machine sees only the GPUs assigned to it"
    if isinstance(host, Host) and host.gpus_named:
        return "these outputs name GPUs and list none: there may be others"
    return ""


def hcas_hidden(box: Box) -> str:
    """Why ``/sys/class/infiniband`` may be missing on a machine with HCAs; empty if it is present."""
    devices = box.snapshot.infiniband
    absent = isinstance(devices, Missing) and devices.gap is Gap.ABSENT
    return "hidden by a container" if absent and in_container(box) else ""


def cpus_hidden(box: Box) -> str:
    """Why the machine may have more CPUs and memory: LXCFS shows a container its share as if it were the whole."""
    host = box.snapshot.host
    lxc = isinstance(host, Host) and isinstance(host.container, str) and host.container.startswith("lxc")
    return "a container's share of the host" if lxc else ""
