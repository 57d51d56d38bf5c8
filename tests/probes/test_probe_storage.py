"""Disks and software RAID arrays."""

from __future__ import annotations

from fake_source import FakeSource

from dgxcheck.facts.host import BlockDevice, MdArray
from dgxcheck.facts.missing import Gap, Missing
from probes.host.host import storage, whole_devices

BLOCK = "/sys/class/block"


def test_whole_devices() -> None:
    disks = ("dm-0", "md0", "md127", "mmcblk0", "nvme0n1", "pmem0.1", "sda", "sdb", "sr0", "vda1")
    others = ("loop0", "md0p1", "mmcblk0p2", "nvme0c0n1", "nvme0n1p1", "nvme10c11n2", "ram3", "sda1", "sda15", "zram0")
    assert whole_devices(disks + others) == disks


def test_a_disk_and_an_array() -> None:
    files: dict[str, str | bytes | Missing] = {
        f"{BLOCK}/sda/size": "937703088\n",
        f"{BLOCK}/sda/queue/rotational": "0\n",
        f"{BLOCK}/sda/removable": "0\n",
        f"{BLOCK}/sda/device/model": "SAMSUNG MZ7LM480\n",
        f"{BLOCK}/sda/device/vendor": "ATA     \n",
        f"{BLOCK}/sda1/size": "1\n",
        f"{BLOCK}/md0/size": "garbled",
        f"{BLOCK}/md0/md/level": "raid0\n",
        f"{BLOCK}/md0/md/array_state": "clean\n",
        f"{BLOCK}/md0/md/raid_disks": "4\n",
        f"{BLOCK}/md0/slaves/sdb": "",
        f"{BLOCK}/md0/slaves/sdc": "",
    }
    got = storage(FakeSource(files))
    assert not isinstance(got.disks, Missing)
    assert [each.name for each in got.disks] == ["md0", "sda"]
    assert got.disks[1] == BlockDevice(
        name="sda",
        size_bytes=480103981056,
        rotational=False,
        removable=False,
        model="SAMSUNG MZ7LM480",
        vendor="ATA",
    )
    assert isinstance(got.disks[0].size_bytes, Missing)
    assert got.arrays == (
        MdArray(
            name="md0",
            level="raid0",
            state="clean",
            degraded=Missing(Gap.ABSENT, f"{BLOCK}/md0/md/degraded"),
            raid_disks=4,
            members=("sdb", "sdc"),
        ),
    )


def test_no_block_class() -> None:
    got = storage(FakeSource({}))
    assert isinstance(got.disks, Missing)
    assert isinstance(got.arrays, Missing)
