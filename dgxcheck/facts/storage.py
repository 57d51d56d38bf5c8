"""Disks and software RAID."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class BlockDevice(Record):
    """One ``/sys/class/block/<name>`` that is a whole device; partitions, loop, ram and zram devices are left out."""

    name: str
    size_bytes: int | Missing
    rotational: bool | Missing
    removable: bool | Missing
    model: str | Missing
    vendor: str | Missing


class MdArray(Record):
    """One software RAID array, ``/sys/class/block/<name>/md``."""

    name: str
    level: str | Missing
    state: str | Missing
    """``array_state``: ``clean``, ``active``, ``inactive``, ..."""
    degraded: int | Missing
    """Members that are missing; absent for levels without redundancy."""
    raid_disks: int | Missing
    members: tuple[str, ...] | Missing


class Storage(Record):
    """What ``/sys/class/block`` shows."""

    disks: tuple[BlockDevice, ...] | Missing
    arrays: tuple[MdArray, ...] | Missing
