"""What a PCI function may use: its BARs, and memory through the IOMMU."""

from __future__ import annotations

from dgxcheck.facts.missing import Gap, Missing, need, or_gap
from dgxcheck.facts.pci import ROM, Bar, Iommu, IommuFunction, IommuGroup, PciBars
from dgxcheck.facts.sysfs import PCI_DEVICES
from dgxcheck.source.protocol import Source
from probes.ask import ask, garbled, hexadecimal, is_decimal, line
from probes.pci.tree import roles

# include/linux/ioport.h
_IO, _MEMORY, _PREFETCH, _MEM_64, _UNSET = 0x100, 0x200, 0x2000, 0x100000, 0x20000000


@or_gap
def bars(source: Source) -> tuple[PciBars, ...]:
    """``/sys/bus/pci/devices/<bdf>/resource`` of every GPU, NVSwitch and HCA."""
    return tuple(_device(source, bdf) for bdf in need(roles(source)).devices)


def _device(source: Source, bdf: str) -> PciBars:
    where = f"{PCI_DEVICES}/{bdf}/resource"
    bars = ask(source, where, resource)
    return PciBars(bdf=bdf, bars=bars, bar1=bars if isinstance(bars, Missing) else bar1(bars, where))


def resource(text: str, where: str) -> tuple[Bar, ...] | Missing:
    """The BARs and the ROM in the first seven lines, ``start end flags`` each; SR-IOV and bridge windows follow."""
    found = []
    lines = text.splitlines()[: ROM + 1]
    for number, row in enumerate(lines):
        if isinstance(bar := _bar(number, row, where), Missing):
            return bar
        if bar is not None:
            found.append(bar)
    return tuple(found) if len(lines) >= ROM else garbled(text, where)


def bar1(bars: tuple[Bar, ...], where: str) -> Bar | Missing:
    """The largest 64-bit prefetchable BAR, placed or not."""
    wide = [bar for bar in bars if bar.line < ROM and bar.is_64bit and bar.is_prefetchable]
    if not wide:
        return Missing(Gap.ABSENT, where, "no 64-bit prefetchable BAR")
    return max(wide, key=lambda bar: -1 if isinstance(bar.size, Missing) else bar.size)


def _bar(number: int, line: str, where: str) -> Bar | Missing | None:
    fields = [hexadecimal(field, where) for field in line.split()]
    numbers = [field for field in fields if not isinstance(field, Missing)]
    if len(fields) != 3 or len(numbers) != 3:
        return garbled(f"line {number}: {line}", where)
    start, end, flags = numbers
    if not flags:
        return None if not start and not end else garbled(f"line {number}: {line}", where)
    if end < start:
        return garbled(f"line {number}: {line}", where)
    return Bar(
        line=number,
        assigned=start != 0 and not flags & _UNSET,
        start=start,
        size=end - start + 1 if start or end else Missing(Gap.ABSENT, where, f"line {number}: no size"),
        is_io=bool(flags & _IO) and not flags & _MEMORY,
        is_64bit=bool(flags & _MEM_64),
        is_prefetchable=bool(flags & _PREFETCH),
    )


def iommu(source: Source) -> Iommu:
    """``/sys/class/iommu``, each function's ``iommu_group`` link, each group's ``type``."""
    return Iommu(units=source.names("/sys/class/iommu"), functions=_functions(source))


def group_number(target: str, where: str) -> int | Missing:
    """``../../../../kernel/iommu_groups/27``."""
    name = target.rstrip("/").rpartition("/")[2]
    return int(name) if is_decimal(name) else garbled(target, where)


@or_gap
def _functions(source: Source) -> tuple[IommuFunction, ...]:
    bdfs = need(roles(source)).functions
    numbers = {bdf: _number(source, f"{PCI_DEVICES}/{bdf}/iommu_group") for bdf in bdfs}
    groups = {number: IommuGroup(number=number, type=ask(source, f"/sys/kernel/iommu_groups/{number}/type", line))
              for number in sorted({number for number in numbers.values() if isinstance(number, int)})}  # fmt: skip
    return tuple(IommuFunction(bdf=bdf, group=groups[number] if isinstance(number, int) else number)
                 for bdf, number in numbers.items())  # fmt: skip


def _number(source: Source, where: str) -> int | Missing | None:
    if isinstance(target := source.link(where), Missing):
        return None if target.gap is Gap.ABSENT else target
    return group_number(target, where)
