"""hwloc's XML (``lstopo FILE.xml``), versions 1 and 2: the PCI tree with its root buses, NUMA nodes and devices.

It is read tag by tag, as a pasted file may be cut. Format: hwloc2.dtd (https://github.com/open-mpi/hwloc).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.missing import Json
from dgxcheck.facts.sysfs import INFINIBAND, NODES, PCI_DEVICES, cpulist
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern
from dgxcheck.readers.formats import tags
from dgxcheck.readers.listing import whole_list
from dgxcheck.readers.model import Imported
from dgxcheck.readers.network.files import NAME
from dgxcheck.readers.values import MOST_GPUS, bits

TOOL = "hwloc"
MOST_DEVICES = 4096
_TAG = LazyPattern(r"<(?P<end>/)?(?P<name>object|topology|root)\b(?P<members>[^<>]{0,4000}?)(?P<leaf>/)?>")
_HEAD = LazyPattern(r"<\?xml [^<>]{1,100}\?>|<!DOCTYPE topology SYSTEM [^<>]{1,60}>")
_TYPE = LazyPattern(
    r"(?P<class>[0-9a-f]{4}) \[(?P<vendor>[0-9a-f]{4}):(?P<device>[0-9a-f]{4})\]"
    r"(?: \[(?P<subvendor>[0-9a-f]{4}):(?P<subdevice>[0-9a-f]{4})\])?.{0,8}",
    flags=re.IGNORECASE | re.ASCII,
)
_ROOT = LazyPattern(r"([0-9a-f]{4,8}):\[([0-9a-f]{2})-[0-9a-f]{2}\]", flags=re.IGNORECASE | re.ASCII)
_NVML = ascii_pattern(r"nvml(\d{1,3})")
_OPENFABRICS = "3"
_NO_SUBSYSTEM = "0000"
_Object = dict[str, str]
"""Members of an object, or of one around it."""


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Files of every PCI function, of NUMA nodes and HCAs, and NVML's order where hwloc was built with it."""
    facts: dict[str, Json] = {}
    numbers: list[int] = []
    order: dict[int, str] = {}
    hcas: dict[str, None] = {}
    nodes: dict[str, None] = {}
    for number, (name, found), around in tags(lines, _TAG):
        numbers.append(number)
        if name == "object" and len(facts) < 16 * MOST_DEVICES:
            stack = [members for _, members in around]
            facts |= dict(_pci(stack, found))
            facts |= dict(_node(found, nodes))
            facts |= dict(_device(stack, found, order, hcas))
    if not facts:
        return ()
    facts |= whole_list(order)
    facts |= {f"names {INFINIBAND}": [*hcas]} if hcas else {}
    facts |= {f"names {NODES}": [*nodes]} if nodes else {}
    inside = range(min(numbers), max(numbers) + 1)
    head = {number for number, line in enumerate(lines[: inside.start]) if _HEAD.fullmatch(line.strip())}
    understood = head | {number for number in inside if lines[number].strip()}
    return (Imported(tool=TOOL, facts=facts, understood=frozenset(understood)),)


def _pci(stack: list[_Object], found: _Object) -> Iterator[tuple[str, Json]]:
    kind = _TYPE.fullmatch(found.get("pci_type", ""))
    bdf = as_bdf(found.get("pci_busid", ""))
    if kind is None or bdf is None:
        return
    base = f"text {PCI_DEVICES}/{bdf}"
    yield f"{base}/class", f"0x{kind['class'].lower()}00\n"
    yield f"{base}/vendor", f"0x{kind['vendor'].lower()}\n"
    yield f"{base}/device", f"0x{kind['device'].lower()}\n"
    if kind["subvendor"] not in (None, _NO_SUBSYSTEM):
        yield f"{base}/subsystem_vendor", f"0x{kind['subvendor'].lower()}\n"
        yield f"{base}/subsystem_device", f"0x{kind['subdevice'].lower()}\n"
    above = [each for each in stack if each.get("type") == "Bridge"]
    root = _ROOT.fullmatch(above[0].get("bridge_pci", "")) if above else None
    bridges = [as_bdf(each.get("pci_busid", "")) for each in above[1:]]
    if root is not None and above[0].get("bridge_type") == "0-1" and None not in bridges:
        path = "/".join([f"pci{root[1].lower()}:{root[2].lower()}", *map(str, bridges), bdf])
        yield f"link {PCI_DEVICES}/{bdf}", f"../../../devices/{path}"
    place = next((each for each in reversed(stack) if "nodeset" in each), {})
    near = bits(place.get("nodeset", ""))
    if near is not None and sum(map(len, near)) == 1:
        yield f"{base}/numa_node", f"{near[0].start}\n"
        if cpus := bits(place.get("cpuset", "")):
            yield f"{base}/local_cpulist", f"{cpulist(cpus)}\n"


def _node(found: _Object, nodes: dict[str, None]) -> Iterator[tuple[str, Json]]:
    index = found.get("os_index", "")
    if found.get("type") != "NUMANode" or re.fullmatch(r"\d{1,4}", index, re.ASCII) is None:
        return
    nodes[f"node{index}"] = None
    if (cpus := bits(found.get("cpuset", ""))) is not None:
        yield f"text {NODES}/node{index}/cpulist", f"{cpulist(cpus)}\n"


def _device(
    stack: list[_Object], found: _Object, order: dict[int, str], hcas: dict[str, None]
) -> Iterator[tuple[str, Json]]:
    """An HCA, or a GPU's number in NVML's list."""
    name, holder = found.get("name", ""), stack[-1] if stack else {}
    bdf = as_bdf(holder.get("pci_busid", ""))
    if found.get("type") != "OSDev" or bdf is None:
        return
    if (nvml := _NVML.fullmatch(name)) and int(nvml[1]) < MOST_GPUS:
        order[int(nvml[1])] = bdf
    elif found.get("osdev_type") == _OPENFABRICS and re.fullmatch(NAME, name, re.ASCII):
        hcas[name] = None
        yield f"link {INFINIBAND}/{name}/device", f"../../../{bdf}"
