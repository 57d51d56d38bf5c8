"""IOMMUs and the groups that GPUs, HCAs and their bridges are in."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class IommuGroup(Record):
    """One ``/sys/kernel/iommu_groups/<number>``."""

    number: int
    type: str | Missing
    """``DMA``, ``DMA-FQ``, ``identity``; the file is absent on older kernels."""


class IommuFunction(Record):
    """A GPU, NVSwitch or HCA, or a bridge above one."""

    bdf: str
    group: IommuGroup | Missing | None
    """None where the function has no ``iommu_group`` link: no IOMMU translates for it."""


class Iommu(Record):
    """The machine's IOMMUs."""

    units: tuple[str, ...] | Missing
    """Names in ``/sys/class/iommu``: ``dmar0``, ``ivhd0``; empty means that there is none in use."""
    functions: tuple[IommuFunction, ...] | Missing
