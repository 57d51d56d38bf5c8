"""What containers and virtual machines hide of the machine that they run on: it is not judged and not missed."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.facts.host import Host
from dgxcheck.facts.missing import Gap, Missing


def in_container(box: Box) -> bool:
    """Are we in a container, which sees the GPUs of the host on the PCI tree, given to it or not?"""
    host = box.snapshot.host
    return isinstance(host, Host) and isinstance(host.container, str)


def gpus_hidden(box: Box) -> str:
    """Why the machine may have more GPUs than are seen; empty on the host itself."""
    if in_container(box):
        return "a container sees the GPUs that it was given"
    host = box.snapshot.host
    if isinstance(host, Host) and isinstance(host.vm, str):
        return "a virtual machine sees the GPUs that it was given"
    return ""


def hcas_hidden(box: Box) -> str:
    """Why ``/sys/class/infiniband`` may not be there though the machine has HCAs; empty where it is there."""
    devices = box.snapshot.infiniband
    absent = isinstance(devices, Missing) and devices.gap is Gap.ABSENT
    return "hidden by a container" if absent and in_container(box) else ""


def cpus_hidden(box: Box) -> str:
    """Why the machine may have more CPUs and memory: LXCFS shows a container its part of them as if it were all."""
    host = box.snapshot.host
    lxc = isinstance(host, Host) and isinstance(host.container, str) and host.container.startswith("lxc")
    return "a container's share of the host" if lxc else ""
