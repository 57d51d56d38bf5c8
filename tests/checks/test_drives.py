"""Drives against the volumes that stand in their place; vendor and model as lsscsi and nvme list print them."""

from __future__ import annotations

import pytest

from dgxcheck.checks.siblings.kinds import is_drive
from dgxcheck.facts.host import BlockDevice
from dgxcheck.facts.missing import Gap, Missing

NO_FILE = Missing(Gap.ABSENT, "file")


@pytest.mark.parametrize(
    ("vendor", "model", "drive"),
    [
        ("ATA     ", "SAMSUNG MZ7KM1T9", True),
        ("SEAGATE ", "ST1200MM0099    ", True),
        (NO_FILE, "Dell Express Flash NVMe P4610 1.6TB SFF", True),
        (NO_FILE, "INTEL SSDPE2KX040T8", True),
        (NO_FILE, "SAMSUNG MZWLJ3T8HBLS-00007", True),
        (NO_FILE, NO_FILE, True),
        ("AVAGO   ", "MR9361-8i       ", False),
        ("DELL    ", "PERC H730 Mini  ", False),
        ("HP      ", "LOGICAL VOLUME  ", False),
        ("LSI     ", "SMC3108         ", False),
        ("QEMU    ", "QEMU HARDDISK   ", False),
        ("Msft    ", "Virtual Disk    ", False),
        (NO_FILE, "Amazon Elastic Block Store", False),
        (NO_FILE, "nvme_card-pd", False),
    ],
)
def test_drives_and_volumes(vendor: str | Missing, model: str | Missing, drive: bool) -> None:
    disk = BlockDevice(
        name="sda", size_bytes=1, rotational=False, removable=False, model=model, vendor=vendor
    )  # fmt: skip
    assert is_drive(disk) is drive
