"""IOMMU units and groups."""

from __future__ import annotations

from fake_source import PCI, FakeSource, function

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import IommuGroup
from probes.pci.functions import iommu


def box(links: dict[str, str | Missing], **types: str) -> FakeSource:
    files = function("0000:06:00.0", class_="0x030200", vendor="0x10de")
    files |= function("0000:07:00.0", class_="0x030200", vendor="0x10de")
    files |= {f"/sys/kernel/iommu_groups/{number[1:]}/type": text for number, text in types.items()}
    return FakeSource(files, links, {"/sys/class/iommu": ("dmar0", "dmar1")})


def groups(source: FakeSource) -> list[IommuGroup | Missing | None]:
    got = iommu(source).functions
    assert not isinstance(got, Missing)
    return [each.group for each in got]


def test_a_group_that_two_functions_share_is_read_once() -> None:
    link = "../../../../kernel/iommu_groups/27"
    source = box({f"{PCI}/0000:06:00.0/iommu_group": link, f"{PCI}/0000:07:00.0/iommu_group": link}, g27="DMA-FQ\n")
    assert groups(source) == [IommuGroup(number=27, type="DMA-FQ")] * 2
    assert source.asked.count("file /sys/kernel/iommu_groups/27/type") == 1
    assert iommu(source).units == ("dmar0", "dmar1")


def test_no_link_is_no_group_and_a_garbled_link_is_a_gap() -> None:
    first, second = groups(box({f"{PCI}/0000:07:00.0/iommu_group": "../../somewhere"}))
    assert first is None
    assert isinstance(second, Missing)
    assert second.gap is Gap.GARBLED


def test_old_kernels_have_no_type() -> None:
    first, _ = groups(box({f"{PCI}/0000:06:00.0/iommu_group": "../../../../kernel/iommu_groups/3"}))
    assert isinstance(first, IommuGroup)
    assert isinstance(first.type, Missing)


def test_nothing_there() -> None:
    got = iommu(FakeSource({}))
    assert isinstance(got.units, Missing)
    assert isinstance(got.functions, Missing)
