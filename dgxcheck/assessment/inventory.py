"""What a host has of each kind of device, for the next run to find what is missing on a machine without a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from dgxcheck.checks.by_nature.last_run import kept
from dgxcheck.checks.engine.acknowledgements import today
from dgxcheck.checks.engine.growth import DAY_S
from dgxcheck.facts.host import Host, Storage
from dgxcheck.facts.inventory import Count, Remembered
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import replace
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


def remembered_values(old: Remembered | None, facts: Snapshot, mark: str, date: str, accepted: bool) -> Remembered:
    """What the next run is to expect: what was read before a change for a day after it, then what is read now."""
    now = kept(facts)
    if old is None or old.mark != mark or accepted:
        return Remembered(mark, date, now)
    if now == old.values:
        return replace(old, changed="")
    if old.changed and _days(old.changed, date) >= 1:
        return Remembered(mark, date, now)
    return replace(old, changed=old.changed or date)


def _days(since: str, until: str) -> float:
    """Between two dates as the state file has them; many where one is none."""
    from datetime import datetime

    try:
        began, ended = (datetime.fromisoformat(each.removesuffix("Z")) for each in (since, until))
    except ValueError:
        return inf
    return (ended - began).total_seconds() / DAY_S


def is_accepted(known: Sequence[Acknowledgement], check: str) -> bool:
    """Does the site acknowledge that devices were removed, or what has changed?"""
    return any(entry.check == check and entry.expiry >= today() for entry in known)
