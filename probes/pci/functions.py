"""PCI functions: ids, links, names, slots, vital product data; what they may use: BARs, and memory
through the IOMMU."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.bdf import is_bdf
from dgxcheck.facts.firmware import PURPOSE, UUID, keywords
from dgxcheck.facts.ids import DATA_DIRECT, DISPLAY, MELLANOX, NVIDIA, OTHER_BRIDGE, PCI_BRIDGE
from dgxcheck.facts.missing import Gap, Missing, need, or_gap
from dgxcheck.facts.pci import ROM, Bar, Iommu, IommuFunction, IommuGroup, PciBars, PciFunction, Slot, Vpd
from dgxcheck.facts.sysfs import PCI_DEVICES, PCI_SLOTS
from dgxcheck.limits import GPUS
from dgxcheck.source.protocol import Source
from probes.ask import ask, cpulist, files, garbled, hexadecimal, is_decimal, line, natural, one_of, signed
from probes.pci.tree import (
    Path,
    behind_infiniband,
    class_codes,
    is_dma_controller,
    once,
    path_of,
    pci_id,
    roles,
    with_bridges,
)

_ENDS = frozenset((0x01, 0x02, 0x03, 0x0B, 0x12))  # storage, network, display, processor, accelerator


@or_gap
def pci(source: Source) -> tuple[PciFunction, ...]:
    """``/sys/bus/pci/devices``: class first for all, the rest only of functions of interest, in the names' order."""
    codes, (vendors, paths) = need(class_codes(source)), need(_paths(source))
    order = [bdf for bdf in codes if bdf in paths] + [bdf for bdf in paths if bdf not in codes]
    return tuple(_function(source, bdf, paths[bdf], codes.get(bdf), vendors.get(bdf)) for bdf in order)


@once
@or_gap
def _paths(source: Source) -> tuple[dict[str, int | Missing], dict[str, Path | Missing]]:
    """Vendors of what may be of interest; paths of what is, and of the bridges above it."""
    codes, hcas = need(class_codes(source)), behind_infiniband(source)
    vendors: dict[str, int | Missing] = {}
    for bdf, code in codes.items():
        if (isinstance(code, Missing) or code >> 16 in _ENDS or code >> 8 == OTHER_BRIDGE or bdf in hcas
                or is_dma_controller(code)):  # fmt: skip
            vendors[bdf] = ask(source, f"{PCI_DEVICES}/{bdf}/vendor", hexadecimal)
    of_nvidia = (codes[bdf] for bdf, vendor in vendors.items() if vendor == NVIDIA)
    gpus = sum(isinstance(code, Missing) or code >> 16 == DISPLAY for code in of_nvidia)
    need(Missing(Gap.GARBLED, PCI_DEVICES, f"{gpus} GPUs, more than {GPUS}") if gpus > GPUS else gpus)
    ends = {bdf: path_of(source, bdf) for bdf, vendor in vendors.items() if bdf in hcas or _wanted(codes[bdf], vendor)}
    return vendors, with_bridges(ends)


@or_gap
def empty_ports(source: Source) -> Mapping[str, Path | Missing]:
    """The paths of bridges that lead to no function of interest: one may have stood there."""
    used = need(_paths(source))[1]
    codes = need(class_codes(source)).items()
    bridges = (bdf for bdf, code in codes if isinstance(code, int) and code >> 8 == PCI_BRIDGE)
    return {bdf: path_of(source, bdf) for bdf in bridges if bdf not in used}


def _wanted(code: int | Missing, vendor: int | Missing) -> bool:
    """A function without a readable class may be anything, so it is shown."""
    if isinstance(code, Missing) or code >> 16 in _ENDS:
        return True
    return vendor == (MELLANOX if is_dma_controller(code) else NVIDIA)


def _function(
    source: Source, bdf: str, path: Path | Missing, code: int | Missing | None, vendor: int | Missing | None
) -> PciFunction:
    base = f"{PCI_DEVICES}/{bdf}"
    return PciFunction(
        bdf=bdf,
        path=path,
        class_code=ask(source, f"{base}/class", hexadecimal) if code is None else code,
        vendor=ask(source, f"{base}/vendor", hexadecimal) if vendor is None else vendor,
        driver=_driver(source, f"{base}/driver"),
        **files(source, PciFunction, base, device=hexadecimal, subsystem_vendor=hexadecimal,
                subsystem_device=hexadecimal, link_gen=link_gen, link_width=link_width, max_link_gen=link_gen,
                max_link_width=link_width, numa_node=signed, local_cpulist=cpulist),
    )  # fmt: skip


def _driver(source: Source, where: str) -> str | Missing | None:
    if isinstance(target := source.link(where), Missing):
        return None if target.gap is Gap.ABSENT else target
    return target.rstrip("/").rpartition("/")[2] or Missing(Gap.GARBLED, where, target[:80])


@or_gap
def pci_names(source: Source) -> Mapping[str, str | Missing]:
    """pci.ids by ``vendor:device``, four hexadecimal digits each."""
    return {ids: source.name("pci", ids) for ids in sorted({function.ids for function in need(pci(source))} - {""})}


@or_gap
def slots(source: Source) -> tuple[Slot, ...]:
    """``/sys/bus/pci/slots``: names are the firmware's (``2``, ``SLOT 4``, ``8-1``)."""
    found = sorted(need(source.names(PCI_SLOTS)), key=natural)
    return tuple(Slot(name=name, address=_address(source, f"{PCI_SLOTS}/{name}/address")) for name in found)


def _address(source: Source, where: str) -> str | Missing:
    if isinstance(text := source.text(where), Missing):
        return text
    address = text.strip().lower()
    return address if is_bdf(f"{address}.0") else Missing(Gap.GARBLED, where, text[:80])


# Kernels up to 5.6 print "8 GT/s", later ones "8.0 GT/s PCIe".
_SPELT = ("2.5", "5 5.0", "8 8.0", "16 16.0", "32 32.0", "64 64.0", "128.0")
_GENERATIONS = {rate: generation for generation, rates in enumerate(_SPELT, 1) for rate in rates.split()}


def link_gen(text: str, where: str) -> int | Missing:
    """PCIe generation from ``current_link_speed`` or ``max_link_speed``."""
    rate, unit, tail = text.partition("GT/s")
    if (generation := _GENERATIONS.get(rate.strip())) is None or not unit or tail.strip() not in ("", "PCIe"):
        return garbled(text, where)
    return generation


link_width = one_of({str(width): width for width in (1, 2, 4, 8, 12, 16, 32)})
"""Lanes from ``current_link_width``; 0 is no link, 63 and 255 are what dead devices read."""


_ASKED = (0x1021, 0x1023, 0x1025, DATA_DIRECT)
"""ConnectX-7, -8, -9, and the DMA functions of the last two; an answer takes milliseconds, so others are not asked."""
_ACCELERATOR = 0x0302
_MANAGES = f"{PURPOSE}SW_MNG"


@or_gap
def vpd(source: Source) -> tuple[Vpd, ...]:
    """``/sys/bus/pci/devices/<bdf>/vpd``, for root only; of machines with GPUs for computing and no NVSwitch on PCI."""
    readable = {bdf: code for bdf, code in need(class_codes(source)).items() if isinstance(code, int)}
    if _ACCELERATOR not in {code >> 8 for code in readable.values()}:
        return ()
    bridges = (bdf for bdf, code in readable.items() if code >> 8 == OTHER_BRIDGE)
    if any(pci_id(source, bdf, "vendor") == 0x10DE for bdf in bridges):
        return ()
    adapters = [bdf for bdf, code in readable.items() if (code >> 16 == 0x02 or is_dma_controller(code))]
    return tuple(_vpd(source, bdf) for bdf in adapters if pci_id(source, bdf, "vendor") == MELLANOX
                 and pci_id(source, bdf, "device") in _ASKED)  # fmt: skip


def _vpd(source: Source, bdf: str) -> Vpd:
    where = f"{PCI_DEVICES}/{bdf}/vpd"
    if isinstance(answer := source.data(where), Missing):
        return Vpd(bdf=bdf, uuid=answer, manages_nvswitches=answer)
    if not (found := dict(keywords(answer))):
        keyless = Missing(Gap.GARBLED, where, f"{len(answer)} bytes without keywords")
        return Vpd(bdf=bdf, uuid=keyless, manages_nvswitches=keyless)
    return Vpd(bdf=bdf, uuid=found.get(UUID) or Missing(Gap.ABSENT, where, f"no keyword {UUID}"),
               manages_nvswitches=any(_MANAGES in text for text in found.values()))


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
    odd = garbled(f"line {number}: {line}", where)
    if len(fields) != 3 or len(numbers) != 3:
        return odd
    start, end, flags = numbers
    if not flags:
        return odd if start or end else None
    if end < start:
        return odd
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
