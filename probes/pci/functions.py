"""PCI wiring: storage, network, GPUs, accelerators, NVSwitches and every bridge above them."""

from __future__ import annotations

from dgxcheck.facts.ids import NVIDIA, OTHER_BRIDGE
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.sysfs import PCI_DEVICES
from dgxcheck.source.protocol import Source
from probes.ask import ask
from probes.parse_scalar import cpulist, hexadecimal, signed
from probes.pci.parse_link import link_gen, link_width
from probes.pci.tree import Path, behind_infiniband, class_codes, path_of, with_bridges

_ENDS = frozenset((0x01, 0x02, 0x03, 0x0B, 0x12))  # storage, network, display, processor, accelerator


def probe(source: Source) -> tuple[PciFunction, ...] | Missing:
    """``/sys/bus/pci/devices``: class first for all, the rest only of functions of interest, in the names' order."""
    codes = class_codes(source)
    if isinstance(codes, Missing):
        return codes
    hcas = behind_infiniband(source)
    vendors: dict[str, int | Missing] = {}
    for bdf, code in codes.items():
        if isinstance(code, Missing) or code >> 16 in _ENDS or code >> 8 == OTHER_BRIDGE or bdf in hcas:
            vendors[bdf] = ask(source, f"{PCI_DEVICES}/{bdf}/vendor", hexadecimal)
    ends = {bdf: path_of(source, bdf) for bdf, vendor in vendors.items() if bdf in hcas or _wanted(codes[bdf], vendor)}
    paths = with_bridges(ends)
    order = [bdf for bdf in codes if bdf in paths] + [bdf for bdf in paths if bdf not in codes]
    return tuple(_function(source, bdf, paths[bdf], codes.get(bdf), vendors.get(bdf)) for bdf in order)


def _wanted(code: int | Missing, vendor: int | Missing) -> bool:
    """A function without a readable class may be anything, so it is shown."""
    if isinstance(code, Missing) or code >> 16 in _ENDS:
        return True
    return not isinstance(vendor, Missing) and vendor == NVIDIA


def _function(
    source: Source, bdf: str, path: Path | Missing, code: int | Missing | None, vendor: int | Missing | None
) -> PciFunction:
    base = f"{PCI_DEVICES}/{bdf}"
    return PciFunction(
        bdf=bdf,
        path=path,
        class_code=ask(source, f"{base}/class", hexadecimal) if code is None else code,
        vendor=ask(source, f"{base}/vendor", hexadecimal) if vendor is None else vendor,
        device=ask(source, f"{base}/device", hexadecimal),
        subsystem_vendor=ask(source, f"{base}/subsystem_vendor", hexadecimal),
        subsystem_device=ask(source, f"{base}/subsystem_device", hexadecimal),
        link_gen=ask(source, f"{base}/current_link_speed", link_gen),
        link_width=ask(source, f"{base}/current_link_width", link_width),
        max_link_gen=ask(source, f"{base}/max_link_speed", link_gen),
        max_link_width=ask(source, f"{base}/max_link_width", link_width),
        numa_node=ask(source, f"{base}/numa_node", signed),
        local_cpulist=ask(source, f"{base}/local_cpulist", cpulist),
        driver=_driver(source, f"{base}/driver"),
    )


def _driver(source: Source, where: str) -> str | Missing | None:
    target = source.link(where)
    if isinstance(target, Missing):
        return None if target.gap is Gap.ABSENT else target
    return target.rstrip("/").rpartition("/")[2] or Missing(Gap.GARBLED, where, target[:80])
