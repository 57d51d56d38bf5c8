"""IOMMU units, and the group and its type for each GPU, NVSwitch, HCA and bridge above them."""

from __future__ import annotations

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import Iommu, IommuFunction, IommuGroup
from dgxcheck.facts.sysfs import PCI_DEVICES
from dgxcheck.source.protocol import Source
from probes.ask import ask
from probes.parse_scalar import garbled, is_decimal, line
from probes.pci.roles import roles

_UNITS = "/sys/class/iommu"
_GROUPS = "/sys/kernel/iommu_groups"


def probe(source: Source) -> Iommu:
    """``/sys/class/iommu``, each function's ``iommu_group`` link, each group's ``type``."""
    return Iommu(units=source.names(_UNITS), functions=_functions(source))


def group_number(target: str, where: str) -> int | Missing:
    """``../../../../kernel/iommu_groups/27``."""
    name = target.rstrip("/").rpartition("/")[2]
    return int(name) if is_decimal(name) else garbled(target, where)


def _functions(source: Source) -> tuple[IommuFunction, ...] | Missing:
    known = roles(source)
    if isinstance(known, Missing):
        return known
    bdfs = (*known.devices, *known.bridges)
    numbers = {bdf: _number(source, f"{PCI_DEVICES}/{bdf}/iommu_group") for bdf in bdfs}
    groups = {
        number: IommuGroup(number=number, type=ask(source, f"{_GROUPS}/{number}/type", line))
        for number in sorted({number for number in numbers.values() if isinstance(number, int)})
    }
    return tuple(
        IommuFunction(bdf=bdf, group=groups[number] if isinstance(number, int) else number)
        for bdf, number in numbers.items()
    )


def _number(source: Source, where: str) -> int | Missing | None:
    target = source.link(where)
    if isinstance(target, Missing):
        return None if target.gap is Gap.ABSENT else target
    return group_number(target, where)
