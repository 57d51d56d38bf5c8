"""PCIe Advanced Error Reporting counters since the driver core saw the device."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class AerErrors(Record):
    """One ``aer_dev_*`` file."""

    counts: Mapping[str, int]
    """By the short name of newer kernels (``RxErr``, ``BadTLP``), whichever the kernel prints."""
    total: int | Missing
    """The ``TOTAL_ERR_*`` line; it may differ from the sum."""


class RootPortErrors(Record):
    """Messages that a root port received from below, ``aer_rootport_total_err_*``."""

    correctable: int | Missing
    nonfatal: int | Missing
    fatal: int | Missing


class AerDevice(Record):
    """A GPU, NVSwitch or HCA, or a bridge above one."""

    bdf: str
    correctable: AerErrors | Missing
    nonfatal: AerErrors | Missing
    fatal: AerErrors | Missing
    root_port: RootPortErrors | None
    """None for a device that is not a bridge on a root bus."""
