"""What ``lspci`` shows, as the files below ``/sys/bus/pci``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.firmware import read_only
from dgxcheck.facts.missing import Json
from dgxcheck.facts.sysfs import PCI_DEVICES, PCI_SLOTS
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern
from dgxcheck.readers.lspci.listing import Bus, Function, Tree
from dgxcheck.readers.lspci.registers import extended, is_dead, link, resource, secondary_bus
from dgxcheck.readers.model import Reports
from dgxcheck.source.recording.keys import to_rows

SERIAL = "serial-number"
"""Kind of the fact that holds a function's Device Serial Number, which is the node GUID of a ConnectX adapter."""
_BRIDGE = 0x0604
MOST_BRIDGES = 32
"""Above one function; the bus numbers of a forged listing may lead in a circle."""
_LINK_FILES = ("max_link_speed", "max_link_width", "current_link_speed", "current_link_width")
_DRIVER = ascii_pattern(r"Kernel driver in use: ([\w.+-]{1,64})")
_GROUP = ascii_pattern(r"IOMMU group: (\d{1,6})")
_NODE = ascii_pattern(r"NUMA node: (\d{1,4})")
_SLOT = ascii_pattern(r"Physical Slot: ([\w .+-]{1,60})")
_SERIAL = ascii_pattern(r"Capabilities: \[[0-9a-f]{3}(?: v\d)?\] Device Serial Number ((?:[0-9a-f]{2}-){7}[0-9a-f]{2})")
_KEYWORD = LazyPattern(r"\[(V[0-9A-Z])\] Vendor specific: (.{1,255})")
"""Of vital product data, which lspci shows to root with -vv (pciutils, ls-vpd.c)."""
_BEGINS = LazyPattern(r"(?:Flags|Control): |!!! ")
"""What the details of every function begin with, with -v and with -vv, or where it does not respond."""
_ENDS = LazyPattern(r"Kernel (?:driver in use|modules): ")
_SUBSYSTEM = LazyPattern(r"Subsystem: .{0,300}\[([0-9a-f]{4}):([0-9a-f]{4})\]")
_VENDORS = {0x10DE: "NVIDIA Corporation ", 0x15B3: "Mellanox Technologies "}
"""How pci.ids calls vendors whose devices matter; the name of a device follows."""
_ADAPTER = 0x15B3, 0x02
_LOST_OF = {(0x10DE, 0x03): ("GPU", Fault.GPU_LOST), _ADAPTER: ("adapter", Fault.HCA_LOST)}
"""By vendor and base class."""
_ERRORS = LazyPattern(r"UESta:\s.{20,200}")
_MASKED = LazyPattern(r"UEMsk:\s.{20,200}")
_ERROR = LazyPattern(r"(?<!\w)(?:DLP|TLP|FCP|CmpltTO|RxOF|MalfTLP|ECRC)(?=\+)")
"""Uncorrectable errors that stand until they are cleared. Probing at boot leaves the others, and a reset SDES."""
_ONES = "its config space reads all ones (rev ff)"
_ABSENT: Json = {"missing": "absent"}
_LOST: Json = {"missing": "lost", "detail": "lspci reads all ones"}


def files(functions: Mapping[str, Function], tree: Tree | None, whole: bool, cut: str = "") -> dict[str, Json]:
    """Facts by key, as in a recording.

    ``whole``: the listings show every function of the machine. Only then a path to the root is known without a tree.
    ``cut``: the function at which the text may end too early.
    """
    bridges, roots = _buses(functions, tree, whole)
    facts: dict[str, Json] = {}
    grouped = any(_first(_GROUP, function) for function in functions.values())
    noded = any(_first(_NODE, function) for function in functions.values())
    slots: dict[str, str] = {}
    reports = Reports("lspci")
    for bdf, function in functions.items():
        for name, fact in _function(function, grouped, noded, bdf != cut):
            facts[name.replace(" ", f" {PCI_DEVICES}/{bdf}/", 1)] = fact
        if (path := _path(bdf, bridges, roots)) is not None:
            facts[f"link {PCI_DEVICES}/{bdf}"] = path
        if slot := _first(_SLOT, function):
            slots.setdefault(slot.strip(), bdf.rpartition(".")[0])
        facts |= dict(_name(function))
        if (lost := _lost(function)) is not None:
            what, fault = _LOST_OF[lost]
            name = bdf.replace(":", ".") if lost == _ADAPTER else bdf  # in results one with colons is of a GPU
            reports.add(name, "ones", "fail", fault, f"the {what} does not respond: {_ONES}")
        elif function.class_code != _BRIDGE and function.vendor in _VENDORS and (errors := _uncorrected(function)):
            text = f"uncorrectable PCIe errors in its status: {errors}"
            reports.add(f"{bdf}/PCIe", "errors", "warn", Fault.AER_UNCORRECTABLE, text)
        if serial := _first(_SERIAL, function):
            facts[f"stated {SERIAL} {bdf}"] = serial.replace("-", "")
    if whole and functions:
        facts[f"names {PCI_DEVICES}"] = [*sorted(functions)]
        if any(_BEGINS.match(line) for function in functions.values() for line in function.details):
            facts[f"names {PCI_SLOTS}"] = [*sorted(slots)]
            facts |= {f"text {PCI_SLOTS}/{slot}/address": f"{address}\n" for slot, address in slots.items()}
    return facts | reports.facts()


def _uncorrected(function: Function) -> str:
    found, masked = (_ERROR.findall(next(filter(form.fullmatch, function.details), "")) for form in (_ERRORS, _MASKED))
    return ", ".join(name for name in found if name not in masked)


def _lost(function: Function) -> tuple[int, int] | None:
    """Vendor and base class of a GPU or HCA that reads all ones in a listing without bytes; of bytes the checks of the
    config space tell."""
    is_lost = function.unreadable and not function.config
    kind = (function.vendor or 0, (function.class_code or 0) >> 8)
    return kind if is_lost and kind in _LOST_OF else None


def _function(function: Function, grouped: bool, noded: bool, ended: bool) -> Iterator[tuple[str, Json]]:
    """Kind and name of each file of one function's directory, and what is in it.

    ``grouped``, ``noded``: the listing shows IOMMU groups, and NUMA nodes, of the functions that have one. ``ended``:
    something follows the function. A line that is missing says something only where ``grep`` did not choose the lines.
    """
    config, details = function.config, function.details
    dead = is_dead(config) or (not config and function.unreadable)
    words = None if dead or len(config) < 0x40 else config
    vendor = function.vendor if function.vendor is not None or words is None else int.from_bytes(words[:2], "little")
    device = function.device if function.device is not None or words is None else int.from_bytes(words[2:4], "little")
    for name, number in (("vendor", vendor), ("device", device)):
        if number is not None:
            yield f"text {name}", f"0x{number:04x}\n"
    if words is not None:
        yield "text class", f"0x{int.from_bytes(words[9:12], 'little'):06x}\n"
    elif function.class_code is not None:  # -nn alone shows no programming interface, and nothing is decided by it
        yield "text class", f"0x{function.class_code << 8 | (function.interface or 0):06x}\n"
    if subsystem := _subsystem(function, words):
        yield "text subsystem_vendor", f"0x{subsystem[0]}\n"
        yield "text subsystem_device", f"0x{subsystem[1]}\n"
    if dead:
        yield from ((f"text {name}", _LOST) for name in _LINK_FILES)
    else:
        yield from ((f"text {name}", f"{text}\n") for name, text in link(config, details).items())
    if details:
        complete = any(map(_BEGINS.match, details)) and (ended or any(map(_ENDS.match, details)))
        if driver := _first(_DRIVER, function):
            yield "link driver", f"../../../../bus/pci/drivers/{driver}"
        elif complete or any(map(_ENDS.match, details)):  # a driver stands above the modules
            yield "link driver", _ABSENT
        node = _first(_NODE, function)
        if node or (noded and complete):  # lspci leaves the line out where the kernel says -1
            yield "text numa_node", f"{node or -1}\n"
        if group := _first(_GROUP, function):
            yield "link iommu_group", f"../../../../kernel/iommu_groups/{group}"
        elif grouped and complete:
            yield "link iommu_group", _ABSENT
        if keywords := {match[1]: match[2] for line in details if (match := _KEYWORD.fullmatch(line))}:
            yield "data vpd", to_rows(read_only(keywords))
        if complete and (config or not dead) and (rows := resource(details, config)) is not None:
            yield "text resource", rows
    if dead and not config:
        yield "data config", _LOST
    if config:
        yield "data config", to_rows(extended(config, details))


def _subsystem(function: Function, config: bytes | None) -> tuple[str, str] | None:
    if config is not None and config[0x0E] & 0x7F == 0:
        return config[0x2D:0x2B:-1].hex(), config[0x2F:0x2D:-1].hex()
    match = next((match for line in function.details if (match := _SUBSYSTEM.match(line))), None)
    return None if match is None else (match[1], match[2])


def _name(function: Function) -> Iterator[tuple[str, Json]]:
    """The name of its ids, where the vendor's is known, so that what follows is the device's."""
    prefix = _VENDORS.get(-1 if function.vendor is None else function.vendor, "")
    name = function.name.removeprefix(prefix)
    if prefix and function.device is not None and name != function.name and name != "Device":
        yield f"name pci {function.vendor:04x}:{function.device:04x}", name


def _buses(functions: Mapping[str, Function], tree: Tree | None, whole: bool) -> tuple[dict[Bus, str], frozenset[Bus]]:
    """The bridge that leads to each bus, and the root buses."""
    bridges: dict[Bus, str] = {} if tree is None else dict(tree.bridges)
    for bdf, function in functions.items():
        if (bus := secondary_bus(function.config, function.details)) is not None:
            bridges.setdefault((bdf.partition(":")[0], bus), bdf)
    if tree is not None:
        return bridges, tree.roots
    silent = any(f.class_code == _BRIDGE and not f.config and not f.details for f in functions.values())
    buses = {_bus(bdf) for bdf in functions} if whole and not silent else set()
    return bridges, frozenset(bus for bus in buses if bus not in bridges)


def _path(bdf: str, bridges: Mapping[Bus, str], roots: frozenset[Bus]) -> str | None:
    """``../../../devices/pci0000:40/0000:40:01.1/0000:41:00.0``; None where the way up is not known."""
    path = [bdf]
    while (bus := _bus(path[0])) not in roots:
        above = bridges.get(bus)
        if above is None or len(path) > MOST_BRIDGES:
            return None
        path.insert(0, above)
    return f"../../../devices/pci{bus[0]}:{bus[1]}/{'/'.join(path)}"


def _bus(bdf: str) -> Bus:
    domain, bus, _ = bdf.split(":")
    return domain, bus


def _first(pattern: LazyPattern, function: Function) -> str | None:
    return next((match[1] for line in function.details if (match := pattern.match(line))), None)
