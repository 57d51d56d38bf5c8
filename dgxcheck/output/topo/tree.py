"""The PCI tree of a box: host bridges, switches, devices, the link of each hop, NUMA nodes."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.bdf import bus_order
from dgxcheck.facts.missing import Json, Missing, rows
from dgxcheck.facts.pci import PciFunction
from dgxcheck.output.plain_text import lines, shown, visible
from dgxcheck.topology.model import Topology
from dgxcheck.topology.nvlinks import is_nvswitch
from dgxcheck.topology.paths import Hop, hops_of, sharers

Branch = dict[str, "Branch"]
PciNames = Mapping[str, str | Missing] | Missing
_KINDS = {0x01: "storage", 0x02: "network", 0x03: "display", 0x0B: "processor", 0x12: "accelerator"}
_CLASSES = {0x0101: "IDE", 0x0104: "RAID", 0x0106: "SATA", 0x0107: "SAS", 0x0108: "NVMe", 0x0200: "Ethernet",
            0x0207: "InfiniBand", 0x0300: "VGA", 0x0302: "3D", 0x0604: "bridge", 0x0680: "bridge",
            0x0801: "DMA"}  # fmt: skip


def tree(topology: Topology, names: PciNames) -> str:
    """The tree of every root bus; ``names`` are the pci.ids names by ``vendor:device`` (``10de:1db1``)."""
    roots: Branch = {}
    for function in sorted(topology.functions.values(), key=lambda function: bus_order(function.bdf)):
        branch = roots
        for part in rows(function.path):
            branch = branch.setdefault(part, {})
    hops = _hops(topology)
    text: list[str] = []
    for root, branch in sorted(roots.items(), key=lambda item: bus_order(item[0])):
        text.append(f"{visible(root)}{_node(topology, root)}")
        _grow(text, topology, names, hops, branch, "")
    lost = [function.bdf for function in topology.functions.values() if isinstance(function.path, Missing)]
    text += [f"{visible(bdf)}  path unknown: {visible(str(topology.functions[bdf].path))}" for bdf in lost]
    text += [f"{visible(gpu.name)}  not on the PCI tree" for gpu in topology.devices if gpu.function is None]
    return lines([*(text or ["No PCI functions found."]), *_summary(topology, hops)])


def excerpt(topology: Topology, names: PciNames, bdf: str) -> list[str]:
    """The way from the root bus to one device, and what is directly below that; empty where it is not known."""
    function = topology.functions.get(bdf)
    if function is None or isinstance(function.path, Missing):
        return []
    hops = _hops(topology)
    root, *way = function.path
    text = [visible(root)]
    text += [f"{'   ' * depth}└─ {_entry(topology, names, hops, part)}" for depth, part in enumerate(way)]
    below = sorted((other.bdf for other in topology.functions.values() if rows(other.path)[:-1] == function.path),
                   key=bus_order)  # fmt: skip
    return text + [f"{'   ' * len(way)}└─ {_entry(topology, names, hops, each)}" for each in below]


def as_json(topology: Topology) -> dict[str, Json]:
    """The links of the tree for the JSON document, from the root down."""
    return {"hops": [hop_json(hop) for hop in sorted(_hops(topology).values(), key=lambda hop: bus_order(hop.device))]}


def hop_json(hop: Hop) -> dict[str, Json]:
    """One link; null and a reason for what is unknown, ``unjudged`` is why it is not a physical link."""
    from dgxcheck.output.json_values import either, members

    found = members(hop, "port device gen width max_gen max_width narrow slow")
    found |= either("gb_per_second", hop.gbs) | either("max_gb_per_second", hop.max_gbs)
    return found | {"unjudged": hop.skip_reason or None}


def hop_text(hop: Hop) -> str:
    """``gen3 x16``, and what both ends support where the link is narrower or slower."""
    if hop.skip_reason:
        return hop.skip_reason
    text = f"gen{shown(hop.gen)} x{shown(hop.width)}"
    if hop.narrow is True:
        text += f", narrow, both ends support x{shown(hop.max_width)}"
    if hop.slow is True:
        text += f", both ends support gen{shown(hop.max_gen)}"
    return text


def _hops(topology: Topology) -> dict[str, Hop]:
    return hops_of(topology.functions.values(), topology.functions)


def _grow(
    text: list[str], topology: Topology, names: PciNames, hops: dict[str, Hop], branch: Branch, indent: str
) -> None:
    for number, (bdf, below) in enumerate(branch.items()):
        last = number == len(branch) - 1
        text.append(f"{indent}{'└─ ' if last else '├─ '}{_entry(topology, names, hops, bdf)}")
        _grow(text, topology, names, hops, below, indent + ("   " if last else "│  "))


def _entry(topology: Topology, names: PciNames, hops: dict[str, Hop], bdf: str) -> str:
    function = topology.functions.get(bdf)
    device_names = [visible(device.name) for device in topology.devices if device.bdf == bdf]
    what = visible(_what(function, names)) if function else "bridge, no details"
    link = f"  [{hop_text(hops[bdf])}]" if bdf in hops else ""
    return f"{visible(bdf)}  {'/'.join(device_names) + '  ' if device_names else ''}{what}{link}"


def _what(function: PciFunction, names: PciNames) -> str:
    code = function.class_code
    kind = "?" if isinstance(code, Missing) else _CLASSES.get(code >> 8, _KINDS.get(code >> 16, f"{code:06x}"))
    kind = "NVSwitch" if is_nvswitch(function) else kind
    name = None if isinstance(names, Missing) else names.get(function.ids)
    named = name if isinstance(name, str) else function.ids
    return f"{kind} {named}" if named else kind


def _node(topology: Topology, root: str) -> str:
    """The NUMA nodes of the functions below a root bus."""
    paths = [rows(each.path) for each in topology.functions.values()]
    below = [topology.functions.get(bdf) for path in paths if path[:1] == (root,) for bdf in path[1:]]
    nodes = {each.numa_node for each in below if each and isinstance(each.numa_node, int) and each.numa_node >= 0}
    return f"  NUMA node {', '.join(map(str, sorted(nodes)))}" if nodes else "  NUMA node unknown"


def all_links_known(topology: Topology) -> bool:
    """Is the width of every physical link known?"""
    return not any(isinstance(hop.narrow, Missing) and not hop.skip_reason for hop in _hops(topology).values())


def link_words(hop: Hop, topology: Topology) -> str:
    """``link A - B of GPU0: gen3 x8``: with the devices that share it."""
    behind = ", ".join(map(visible, sharers(hop, topology)))
    return f"link {hop}{f' of {behind}' if behind else ''}: {hop_text(hop)}"


def narrow_links(topology: Topology) -> list[str]:
    """One sentence per link on fewer lanes than both ends support."""
    return [f"L{link_words(hop, topology)[1:]}." for hop in _hops(topology).values() if hop.narrow is True]


def _summary(topology: Topology, hops: dict[str, Hop]) -> list[str]:
    sentences = narrow_links(topology)
    if unknown := sum(isinstance(hop.narrow, Missing) and not hop.skip_reason for hop in hops.values()):
        sentences.append(f"Width unknown for {unknown} of {len(hops)} links.")
    return ["", *sentences] if sentences else []
