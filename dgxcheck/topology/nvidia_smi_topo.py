"""A topology from the output of ``nvidia-smi topo``, alone or added to the facts of a box.

A matrix has no bus ids, and shows NVLinks in place of the PCI path; what it does not show stays Missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.nvml.nvlink import CAPABILITIES, P2pStatus
from dgxcheck.facts.record import replace
from dgxcheck.facts.tool_outputs import Labels, NvidiaSmiTopo
from dgxcheck.topology.model import PCI_CLASSES, Device, Link, Links, PciClass, Topology, is_printed
from dgxcheck.topology.nvlinks import MOST_LINKS

MATRIX = "nvidia-smi topo"
PCI: Mapping[str, PciClass] = {each: each for each in PCI_CLASSES}
NO_ID = Missing(Gap.UNRECORDED, MATRIX, "the matrix has no bus ids")
DOWN_NOT_SHOWN = Missing(Gap.UNRECORDED, MATRIX, "the matrix does not show NVLinks that are down")
NOT_ASKED = Missing(Gap.UNRECORDED, "nvidia-smi topo -p2p", "the imported matrix shows another capability")
WHICH_P2P = "The imported nvidia-smi topo -p2p matrix does not name its capability: r, w, n, a or p."
ABSENT_DEVICES = "The imported nvidia-smi topo matrix lists devices that the box does not have"
NOT_SHOWN = "this pair is not in the imported matrix"
HIDDEN = "the matrix shows the NVLinks in place of the PCI path"
PCI_ALONE = "the imported matrix may show PCI paths only (topo -mp)"
Cells = Mapping[frozenset[str], "str | Missing"]


def add_imported(topology: Topology, stated: NvidiaSmiTopo, unlisted_kinds: Collection[str] = ()) -> Topology:
    """The topology completed from the tool's output, with notes on the pairs where the two differ.

    Of ``unlisted_kinds`` the box may have more devices than it lists. NICs come in the order of the matrix where the
    box does not tell its own.
    """
    imported_only = not topology.devices
    devices_by_name: dict[str, Device] = {}
    for name in stated.names:
        device = topology.device(name) or topology.device(stated.nic_names.get(name, name))
        if device is not None:
            devices_by_name[name] = _with_affinity(stated, name, device)
        elif not topology.functions or _kind(name) in unlisted_kinds:
            devices_by_name[name] = _imported_device(stated, name)
    nameless = [name for name, device in devices_by_name.items() if is_printed(device.name)]
    by_name = {device.name: device for device in devices_by_name.values()}
    repeated = [  # NICs known by name alone, which may be any of those that the matrix does not name
        device for device in topology.devices
        if nameless and device.kind == "nic" and device.function is None and device.name not in by_name
    ]  # fmt: skip
    all_devices = [
        *(by_name.get(device.name, device) for device in topology.devices if device not in repeated),
        *(device for name, device in by_name.items() if topology.device(name) is None),
    ]
    nics = [] if topology.functions else [device.name for device in devices_by_name.values() if device.kind == "nic"]
    places = {name: at for at, name in enumerate(nics)}
    devices = sorted(all_devices, key=lambda device: (device.kind == "nic", places.get(device.name, len(places))))
    labels, pci_labels = _cells(stated.labels, devices_by_name), _cells(stated.pci_labels, devices_by_name)
    switched = _switched(labels)
    links_by_ends = {frozenset((link.a, link.b)): link for link in topology.links}
    links: list[Link] = []
    differing: dict[tuple[str, str], list[str]] = {}
    for a, b in combinations(devices, 2):
        ends = frozenset((a.name, b.name))
        label, pci_label = labels.get(ends), pci_labels.get(ends)
        link = links_by_ends.get(ends) or _unknown(a, b)
        links.append(_merged(link, label, pci_label, switched))
        own_label = link.label if link.nvlinks is not None else "?"
        for shown, own in ((label, own_label), (pci_label, link.pci_label)):
            if isinstance(shown, str) and own not in ("?", shown):
                differing.setdefault((shown, own), []).append(f"{a.name}-{b.name}")
    nvlinks_known = all(link.nvlinks is not None for link in links)
    absent = [name for name in stated.names if name not in devices_by_name]
    return replace(
        topology,
        devices=tuple(devices),
        links=Links.of([device.name for device in devices], links),
        headline="" if nvlinks_known else topology.headline,
        notes=(
            *(_imported_only(links) if imported_only else topology.notes),
            *_differences(differing),
            *([f"{ABSENT_DEVICES}: {', '.join(absent)}."] if absent else []),
            *_without_legend(nameless, repeated),
            *([WHICH_P2P] if "" in stated.p2p else []),
        ),
        gaps=(NO_ID,) if imported_only else topology.gaps,
    )


def _cells(labels: Labels, devices_by_name: Mapping[str, Device]) -> Cells:
    """Labels by pair of devices; a pair whose two cells differ is garbled."""
    cells: dict[frozenset[str], str | Missing] = {}
    for (a, b), label in labels.items():
        reverse = labels.get((b, a), label)
        if label != reverse:
            label = Missing(Gap.GARBLED, MATRIX, f"the matrix shows {label} one way and {reverse} the other")
        if a in devices_by_name and b in devices_by_name:
            cells[frozenset((devices_by_name[a].name, devices_by_name[b].name))] = label
    return cells


def _kind(name: str) -> Literal["gpu", "nic"]:
    return "gpu" if name.startswith("GPU") and name[3:].isdecimal() else "nic"


def _with_affinity(stated: NvidiaSmiTopo, name: str, device: Device) -> Device:
    """A device of the box with what the matrix tells of its place and the box does not."""
    affinity = {"cpu_affinity": _column_text(stated.cpu_affinity, name, "CPU Affinity"),
                "numa_node": _node(stated.numa_affinity, name), "gpu_numa_id": _node(stated.gpu_numa_id, name)}
    return replace(device, **{
        field: fact for field, fact in affinity.items()
        if not isinstance(fact, Missing) and isinstance(getattr(device, field), Missing)
    })  # fmt: skip


def _imported_device(stated: NvidiaSmiTopo, name: str) -> Device:
    is_gpu = _kind(name) == "gpu"
    node = _node(stated.numa_affinity, name)
    return Device(
        name=name if is_gpu else _nic_name(stated, name),
        kind=_kind(name),
        bdf=None,
        index=int(name[3:]) if is_gpu else None,
        uuid=NO_ID if is_gpu else None,
        numa_node=node,
        numa_nodes="" if isinstance(node, int) or (nodes := stated.numa_affinity.get(name, "")) == "N/A" else nodes,
        cpu_affinity=_column_text(stated.cpu_affinity, name, "CPU Affinity"),
        gpu_numa_id=_node(stated.gpu_numa_id, name) if is_gpu else None,
        is_vf=None if is_gpu else NO_ID,
        nvlink_positions=stated.nvlinks.get(name, DOWN_NOT_SHOWN) if is_gpu else None,
        path=NO_ID,
        function=None,
    )


def _nic_name(stated: NvidiaSmiTopo, name: str) -> str:
    """The NIC's name in the legend, unless another device has it too."""
    nic_name = stated.nic_names.get(name, name)
    return nic_name if Counter(stated.nic_names.values())[nic_name] < 2 and nic_name not in stated.names else name


def _column_text(column: Mapping[str, str], name: str, title: str) -> str | Missing:
    if (text := column.get(name)) is None:
        return Missing(Gap.UNRECORDED, MATRIX, f"the matrix has no {title}")
    return Missing(Gap.UNSUPPORTED, MATRIX, f"{title} N/A") if text == "N/A" else text


def _node(column: Mapping[str, str], name: str) -> int | Missing:
    if isinstance(text := _column_text(column, name, "NUMA node"), Missing):
        return text
    is_single = text.isascii() and text.isdecimal() and len(text) < 6
    return int(text) if is_single else Missing(Gap.UNSUPPORTED, MATRIX, f"several NUMA nodes ({text})")


def _switched(labels: Cells) -> bool:
    total: Counter[str] = Counter()
    for ends, label in labels.items():
        total.update(dict.fromkeys(ends, _links(label)))
    return any(links > MOST_LINKS for links in total.values())


def _links(label: str | Missing | None) -> int:
    return int(label[2:]) if isinstance(label, str) and label.startswith("NV") else 0


def _unknown(a: Device, b: Device) -> Link:
    gpus = a.kind == b.kind == "gpu"
    return Link(
        a=a.name, b=b.name, pci=None, pci_reason="",
        nvlinks=None if gpus else 0, nvlink_reason="", nvlink_generation=None, switched=False,
    )  # fmt: skip


def _merged(link: Link, label: str | Missing | None, pci_label: str | Missing | None, switched: bool) -> Link:
    """The link completed from the cells of the two matrices; if they do not show it either, with the reason."""
    if link.nvlinks is None:
        if isinstance(label, str):
            count = _links(label)
            link = replace(link, nvlinks=count, nvlink_reason="", switched=switched and count > 0)
        elif not link.nvlink_reason:
            why = str(label) if isinstance(label, Missing) else NOT_SHOWN if pci_label is None else PCI_ALONE
            link = replace(link, nvlink_reason=why)
    if link.pci is None:
        shown = pci_label if isinstance(pci_label, str) else label
        if isinstance(shown, str) and shown in PCI:
            link = replace(link, pci=PCI[shown], pci_reason="")
        elif isinstance(shown, Missing):
            link = replace(link, pci_reason=str(shown))
        elif not link.pci_reason:
            link = replace(link, pci_reason=HIDDEN if isinstance(shown, str) else NOT_SHOWN)
    return link


def _imported_only(links: Sequence[Link]) -> Iterator[str]:
    yield (
        "Imported output of nvidia-smi: bus ids, PCIe links, NVLinks that are down, and the PCI path of pairs joined "
        "by NVLinks are unknown."
    )
    if any(link.nvlink_reason == PCI_ALONE for link in links):
        yield f"NVLink is unknown: {PCI_ALONE}."


def _differences(differing: Mapping[tuple[str, str], list[str]]) -> Iterator[str]:
    for (shown, own), pairs in differing.items():
        yield f"The imported nvidia-smi topo matrix shows {shown}, the box itself {own}: {', '.join(pairs)}."


def _without_legend(nameless: Sequence[str], repeated: Sequence[Device]) -> Iterator[str]:
    if repeated:
        nics, names = ", ".join(nameless), ", ".join(device.name for device in repeated)
        yield f"The imported nvidia-smi topo matrix does not tell which of {nics} these are: {names}."


def statuses(topology: Topology, stated: NvidiaSmiTopo, capability: str) -> tuple[P2pStatus, ...]:
    """Peer-to-peer statuses of an imported ``topo -p2p`` matrix of this capability; empty without one.

    A matrix that does not name its capability is taken for the requested one.
    """
    matrix = stated.p2p.get(capability) or stated.p2p.get("", {})
    names = {name: device.bdf or device.name for name in stated.names if (device := topology.device(name)) is not None}
    unasked = dict.fromkeys(CAPABILITIES, NOT_ASKED)
    return tuple(P2pStatus(a=names[a], b=names[b], **unasked | {capability: status})
                 for (a, b), status in matrix.items() if a in names and b in names)
