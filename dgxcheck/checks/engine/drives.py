"""Drives, as against the volumes that a RAID controller or a hypervisor shows in their place."""

from __future__ import annotations

import re

from dgxcheck.facts.host import BlockDevice

_CONTROLLERS = re.compile(
    r"(AVAGO|LSI|BROADCOM|ADAPTEC|ASR|ARECA|AMCC|3WARE|FTS|CISCO|LENOVO|DELL|HPE?|IBM|INTEL)\b", re.IGNORECASE
)
"""SCSI vendors of RAID controllers, as lsscsi(8) prints them for their volumes; drives behind a plain SATA or NVMe
adapter have the vendor ``ATA`` or none, SAS drives that of their maker."""
_VIRTUAL = re.compile(
    r"QEMU|VBOX|VMware|Msft|Virtual|PERC|MegaRAID|MR\d{4}|LOGICAL VOLUME|ServeRAID|RAID|Elastic Block Store"
    r"|PersistentDisk|card-pd",
    re.IGNORECASE,
)


def is_drive(disk: BlockDevice) -> bool:
    """Is it one physical drive? A disk without a model is taken for one."""
    vendor, model = (text.strip() if isinstance(text, str) else "" for text in (disk.vendor, disk.model))
    return not _CONTROLLERS.match(vendor) and not _VIRTUAL.search(f"{vendor} {model}")
