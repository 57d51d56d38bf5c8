"""What a host has of each kind of device, for the next run to find what is missing on a machine without a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.checks.engine.acknowledgements import today
from dgxcheck.checks.placement.missing import CHECK
from dgxcheck.facts.host import Host, Storage
from dgxcheck.facts.inventory import Count
from dgxcheck.facts.missing import Missing
from dgxcheck.settings import Acknowledgement
from dgxcheck.survey import Snapshot
from dgxcheck.topology.model import Topology

_KB_IN_GIB = 1 << 20


def host_mark(facts: Snapshot) -> str:
    """16 hexadecimal digits by which the state file knows this host; empty where its name is not known."""
    host = facts.host
    if not isinstance(host, Host) or isinstance(host.hostname, Missing):
        return ""
    from hashlib import sha256

    names = (host.hostname, host.dmi.sys_vendor, host.dmi.product_name)
    return sha256("\n".join("" if isinstance(name, Missing) else name for name in names).encode()).hexdigest()[:16]


def counts(facts: Snapshot, topology: Topology) -> dict[str, int]:
    """Devices by kind, without kinds that could not be read: GPUs, HCAs and disks; memory in GiB."""
    found: dict[str, int] = {}
    if not isinstance(facts.pci, Missing):
        found["GPU"] = len(topology.gpus)
    if not isinstance(facts.infiniband, Missing):
        found["HCA"] = sum(device.kind == "nic" and device.is_vf is not True for device in topology.devices)
    host, storage = facts.host, facts.storage
    if isinstance(host, Host) and isinstance(host.memory_kb, int):
        found["memory"] = round(host.memory_kb / _KB_IN_GIB)
    disks = storage.disks if isinstance(storage, Storage) else storage
    if not isinstance(disks, Missing):
        # what has a model is a device; device mapper, RAID and virtual disks have none
        found["disk"] = sum(isinstance(disk.model, str) and disk.removable is not True for disk in disks)
    return found


def updated(known: Mapping[str, Count], present: Mapping[str, int], date: str, accepted: bool) -> dict[str, Count]:
    """What the next run is to expect: the most there was, or what there is where the site ``accepted`` that."""
    found = dict(known)
    for kind, number in present.items():
        if accepted or kind not in known or number >= known[kind].number:
            found[kind] = Count(number, date[:10])
    return found


def is_accepted(known: Sequence[Acknowledgement]) -> bool:
    """Does the site acknowledge that devices were removed?"""
    return any(entry.check == CHECK and entry.expiry >= today() for entry in known)
