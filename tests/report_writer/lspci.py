"""``lspci`` of a recorded machine: its tree, its ids, and verbose listings with the configuration space."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from dgxcheck.facts.firmware import keywords
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.source.protocol import Source

DEVICES = "/sys/bus/pci/devices"
_SPEEDS = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}
_EXPRESS = 0x60
HEADER = 64
_VENDORS = {"10de": "NVIDIA Corporation", "10b5": "PLX Technology, Inc."}
_CLASSES = {"0300": "VGA compatible controller", "0604": "PCI bridge", "0680": "Bridge"}
"""Words of pci.ids."""


def numbers(source: Source) -> str:
    """``lspci -nn``."""
    return "\n".join(_head(source, bdf, "" if not bdf.startswith("0000:") else bdf[5:]) for bdf in _bdfs(source)) + "\n"


def listing(source: Source) -> str:
    """``lspci -nnDvvvxxxx``."""
    return "\n".join(_verbose(source, bdf, bdf, whole=True) for bdf in _bdfs(source))


def listing_of_vendor(source: Source, vendor: int) -> str:
    """``lspci -d "10de:*" -v -xxx``: no ids, no domain, 256 bytes, regions without numbers."""
    of_vendor = [bdf for bdf in _bdfs(source) if _text(source, bdf, "vendor") == f"0x{vendor:04x}"]
    return "\n".join(_verbose(source, bdf, bdf.removeprefix("0000:"), whole=False) for bdf in of_vendor)


def tree(source: Source) -> str:
    """``lspci -t``: nested buses, drawn as ls-tree.c does."""
    children: dict[str, set[str]] = {}
    roots: set[str] = set()
    behind: dict[str, str] = {}
    for bdf in _bdfs(source):
        children.setdefault(bdf.rpartition(":")[0], set()).add(bdf)
        path = _path(source, bdf)
        if path:
            roots.add(path[0].removeprefix("pci"))
            behind |= {above: below.rpartition(":")[0] for above, below in pairwise(path[1:])}
    roots |= {bus for bus in children if bus not in behind.values()}
    blocks = [_bus(f"[{root}]-", root, children, behind) for root in sorted(roots)]
    if len(blocks) == 1:
        return "\n".join([f"-{blocks[0][0]}", *(f" {row}" for row in blocks[0][1:])]) + "\n"
    rows = []
    for number, block in enumerate(blocks):
        first, last = number == 0, number == len(blocks) - 1
        rows.append(("-+-" if first else " \\-" if last else " +-") + block[0])
        rows += [("   " if last else " | ") + row for row in block[1:]]
    return "\n".join(rows) + "\n"


def _bus(head: str, bus: str, children: dict[str, set[str]], behind: dict[str, str]) -> list[str]:
    """The rows of one bus, the first with its head."""
    rows: list[str] = []
    below = sorted(children.get(bus, ()))
    if not below:
        return [f"{head}-"]
    for number, bdf in enumerate(below):
        name = bdf.rpartition(":")[2]
        own = (
            [name]
            if bdf not in behind
            else _bus(f"{name}-[{behind[bdf].rpartition(':')[2]}]-", behind[bdf], children, behind)
        )
        mark = "--" if len(below) == 1 else "+-" if number < len(below) - 1 else "\\-"
        more = "  " if number == len(below) - 1 else "| "
        rows += [mark + own[0], *(more + row for row in own[1:])]
    first = "-" + rows[0] if len(below) == 1 else f"-{rows[0]}"
    return [head + first, *(" " * (len(head) + 1) + row for row in rows[1:])]


def _bdfs(source: Source) -> tuple[str, ...]:
    names = source.names(DEVICES)
    return () if isinstance(names, Missing) else tuple(sorted(names))


def _text(source: Source, bdf: str, name: str) -> str:
    text = source.text(f"{DEVICES}/{bdf}/{name}")
    return "" if isinstance(text, Missing) else text.strip()


def _path(source: Source, bdf: str) -> list[str]:
    link = source.link(f"{DEVICES}/{bdf}")
    return [] if isinstance(link, Missing) else link.partition("devices/")[2].split("/")


def _head(source: Source, bdf: str, address: str, ids: bool = True) -> str:
    code = _text(source, bdf, "class")[2:6] or "ff00"
    vendor, device = _text(source, bdf, "vendor")[2:] or "8086", _text(source, bdf, "device")[2:] or "0000"
    if not ids:
        return f"{address} {_CLASSES.get(code, '3D controller')}: {_VENDORS[vendor]} Device {device} (rev a1)"
    return f"{address or bdf} Some class [{code}]: Some vendor Device [{vendor}:{device}] (rev a1)"


def _verbose(source: Source, bdf: str, address: str, whole: bool) -> str:
    config = _config(source, bdf)
    rows = [_head(source, bdf, address, ids=whole)]
    rows += ["\tControl: I/O- Mem+ BusMaster+" if whole else "\tFlags: bus master, fast devsel, latency 0"]
    slot = _slot(source, bdf)
    rows += [f"\tPhysical Slot: {slot}"] if slot else []
    node = _text(source, bdf, "numa_node")
    rows += [f"\tNUMA node: {node}"] if node not in ("", "-1") else []
    group = source.link(f"{DEVICES}/{bdf}/iommu_group")
    rows += [f"\tIOMMU group: {group.rpartition('/')[2]}"] if isinstance(group, str) else []
    rows += list(_regions(_text(source, bdf, "resource").splitlines(), whole))
    rows += [*_serial(source, bdf), *_vital_product_data(source, bdf)] if whole else []
    driver = source.link(f"{DEVICES}/{bdf}/driver")
    rows += [f"\tKernel driver in use: {driver.rpartition('/')[2]}"] if isinstance(driver, str) else []
    used = len(config.rstrip(b"\0"))  # the rest is two hundred rows of zeros for each of a hundred functions
    for at in range(0, min(len(config), max(used, 256) if whole else 256), 16):
        rows.append(f"{at:02x}: {config[at : at + 16].hex(' ')}")
    return "\n".join(rows) + "\n"


def _slot(source: Source, bdf: str) -> str:
    names = source.names("/sys/bus/pci/slots")
    for name in rows(names):
        address = source.text(f"/sys/bus/pci/slots/{name}/address")
        if isinstance(address, str) and bdf.startswith(f"{address.strip()}."):
            return name
    return ""


def _serial(source: Source, bdf: str) -> list[str]:
    """Of an adapter its node GUID."""
    names = source.names("/sys/class/infiniband")
    for name in rows(names):
        link = source.link(f"/sys/class/infiniband/{name}/device")
        guid = source.text(f"/sys/class/infiniband/{name}/node_guid")
        if isinstance(link, str) and link.endswith(bdf) and isinstance(guid, str):
            digits = guid.strip().replace(":", "")
            return [
                f"\tCapabilities: [148 v1] Device Serial Number {'-'.join(digits[n : n + 2] for n in range(0, 16, 2))}"
            ]
    return []


def _vital_product_data(source: Source, bdf: str) -> list[str]:
    """As root sees it: ls-vpd.c of pciutils."""
    data = source.data(f"{DEVICES}/{bdf}/vpd")
    found = [] if isinstance(data, Missing) else [*keywords(data)]
    items = [f"\t\t\t[{name}] Vendor specific: {text}" for name, text in found]
    return ["\tCapabilities: [48] Vital Product Data", "\t\tRead-only fields:", *items, "\t\tEnd"] if found else []


def _regions(lines: list[str], whole: bool) -> Iterator[str]:
    for number, line in enumerate(lines[:6]):
        start, end, flags = (int(word, 16) for word in line.split())
        if not flags:
            continue
        size = end - start + 1
        unit, shift = next((u, s) for u, s in (("G", 30), ("M", 20), ("K", 10), ("", 0)) if size % (1 << s) == 0)
        place = "<unassigned>" if not start or flags & 0x20000000 else f"{start:x}"
        words = f"{'64' if flags & 0x100000 else '32'}-bit, {'' if flags & 0x2000 else 'non-'}prefetchable"
        what = f"I/O ports at {place}" if flags & 0x100 else f"Memory at {place} ({words})"
        yield f"\t{f'Region {number}: ' if whole else ''}{what} [size={size >> shift}{unit}]"


def _config(source: Source, bdf: str) -> bytes:
    """4 KiB: as recorded, else a header with an Express capability; the link as the files of sysfs have it."""
    recorded = source.data(f"{DEVICES}/{bdf}/config")
    if isinstance(recorded, bytes) and recorded.startswith(b"\xff\xff\xff\xff"):
        return b"\xff" * 256
    readable = isinstance(recorded, bytes) and len(recorded) <= HEADER  # what others than root may read
    space = bytearray(4096)
    if isinstance(recorded, bytes):
        space[: len(recorded)] = recorded
    for at, name in ((0, "vendor"), (2, "device"), (0x2C, "subsystem_vendor"), (0x2E, "subsystem_device")):
        if text := _text(source, bdf, name):
            space[at : at + 2] = int(text, 16).to_bytes(2, "little")
    space[9:12] = int(_text(source, bdf, "class") or "0xff0000", 16).to_bytes(3, "little")
    _bars(space, _text(source, bdf, "resource").splitlines())
    path = _path(source, bdf)
    below = [other for each in _bdfs(source) if path and bdf in (other := _path(source, each))[:-1]]
    if below:
        bus = below[0][below[0].index(bdf) + 1].split(":")[1]
        space[0x0E] = space[0x0E] & 0x80 | 1
        space[0x18:0x1B] = bytes((int(bdf.split(":")[1], 16), int(bus, 16), 0xFF))
        space[0x2C:0x30] = bytes(4)
    names = (f"{which}_link_{what}" for which in ("max", "current") for what in ("speed", "width"))
    if all(_text(source, bdf, name) for name in names):
        _link(source, bdf, space)
    return bytes(space[:HEADER] if readable else space)


def _bars(space: bytearray, lines: list[str]) -> None:
    for number, line in enumerate(lines[:6]):
        start, _, flags = (int(word, 16) for word in line.split())
        if flags and not flags & 0x20000000:
            low = 1 if flags & 0x100 else (4 if flags & 0x100000 else 0) | (8 if flags & 0x2000 else 0)
            size = 8 if flags & 0x100000 else 4
            space[0x10 + 4 * number : 0x10 + 4 * number + size] = (start | low).to_bytes(size, "little")


def _link(source: Source, bdf: str, space: bytearray) -> None:
    at = space[0x34]
    while at and space[at] != 0x10:
        at = space[at + 1]
    if not at:
        space[6] |= 0x10
        at = _EXPRESS
        space[at + 1], space[0x34] = space[0x34], at
        space[at], space[at + 2] = 0x10, 2

    def word(which: str) -> int:
        rate = _text(source, bdf, f"{which}_link_speed").split(" ")[0]
        speed = _SPEEDS.get(rate if "." in rate else f"{rate}.0", 0)
        return speed | int(_text(source, bdf, f"{which}_link_width") or 0) << 4

    space[at + 0x0C : at + 0x0E] = word("max").to_bytes(2, "little")
    space[at + 0x12 : at + 0x14] = word("current").to_bytes(2, "little")
    space[at + 0x2C : at + 0x2E] = ((1 << (word("max") & 0xF) + 1) - 2).to_bytes(2, "little")
