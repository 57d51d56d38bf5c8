"""IOMMUs and the groups that GPUs, HCAs and their bridges are in."""

from __future__ import annotations

from dataclasses import dataclass

from dgxcheck.reading import Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class IommuGroup:
    """One ``/sys/kernel/iommu_groups/<number>``."""

    number: int
    type: str | Missing
    """``DMA``, ``DMA-FQ``, ``identity``; the file is absent on older kernels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IommuFunction:
    """A GPU, NVSwitch or HCA, or a bridge above one."""

    bdf: str
    group: IommuGroup | Missing | None
    """None where the function has no ``iommu_group`` link: no IOMMU translates for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Iommu:
    """The machine's IOMMUs."""

    units: tuple[str, ...] | Missing
    """Names in ``/sys/class/iommu``: ``dmar0``, ``ivhd0``; empty means that there is none in use."""
    functions: tuple[IommuFunction, ...] | Missing
