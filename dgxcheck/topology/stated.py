"""A topology out of what ``nvidia-smi topo`` printed: alone, or beside what the box says itself.

A matrix names no bus ids, and shows NVLinks in place of the PCI path; what it does not say stays unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.nvidia_smi_topo import Labels, Stated
from dgxcheck.facts.nvlink import CAPABILITIES, P2pStatus
from dgxcheck.facts.record import replace
from dgxcheck.topology.model import Device, Link, PciClass, Topology

MATRIX = "nvidia-smi topo"
PCI: Mapping[str, PciClass] = {"PIX": "PIX", "PXB": "PXB", "PHB": "PHB", "NODE": "NODE", "SOC": "SOC"}
MOST_LINKS = 18
"""NVLinks of one GPU (H100, B200; older ones have fewer). Where a row adds up to more, NVSwitches are between."""
NO_ID = Missing(Gap.UNRECORDED, MATRIX, "a matrix names no bus ids")
NOT_ASKED = Missing(Gap.UNRECORDED, "nvidia-smi topo -p2p", "the imported matrix is of another capability")
WHICH_P2P = "The imported nvidia-smi topo -p2p does not say of which capability it is: r, w, n, a or p."
NOT_SHOWN = "no row of the imported matrix shows this pair"
HIDDEN = "the matrix shows the NVLinks in place of the PCI path"
PCI_ALONE = "the imported matrix may be one of PCI paths alone (topo -mp)"
Cells = Mapping[frozenset[str], "str | Missing"]


def with_stated(topology: Topology, stated: Stated) -> Topology:
    """The topology with what the tool's output adds to it, and notes on where the two differ."""
    alone = not topology.devices
    placed: dict[str, Device] = {}
    for name in stated.names:
        here = topology.device(name) or topology.device(stated.nic_names.get(name, name))
        if here is not None:
            placed[name] = here
        elif not topology.functions:
            placed[name] = _new(stated, name)
    every = [*topology.devices, *(device for device in placed.values() if device not in topology.devices)]
    devices = sorted(every, key=lambda device: device.kind == "nic")
    labels, pci_labels = _cells(stated.labels, placed), _cells(stated.pci_labels, placed)
    switched = _switched(labels)
    old = {frozenset((link.a, link.b)): link for link in topology.links}
    links: list[Link] = []
    differing: dict[tuple[str, str], list[str]] = {}
    for a, b in combinations(devices, 2):
        ends = frozenset((a.name, b.name))
        label, pci_label = labels.get(ends), pci_labels.get(ends)
        link = old.get(ends) or _unknown(a, b)
        links.append(_filled(link, label, pci_label, switched))
        for said, found in ((label, _whole(link)), (pci_label, link.pci)):
            if isinstance(said, str) and found not in (None, said):
                differing.setdefault((said, found or ""), []).append(f"{a.name}-{b.name}")
    known = all(link.nvlinks is not None for link in links)
    gone = [name for name in stated.names if name not in placed]
    return replace(
        topology,
        devices=tuple(devices),
        links=tuple(links),
        headline="" if known else topology.headline,
        notes=(
            *(_alone(links) if alone else topology.notes),
            *_differences(differing),
            *_not_here(gone),
            *([WHICH_P2P] if "" in stated.p2p else []),
        ),
        gaps=(NO_ID,) if alone else topology.gaps,
    )


def _cells(labels: Labels, placed: Mapping[str, Device]) -> Cells:
    """Labels by the two devices; a pair whose two cells differ is garbled."""
    seen: dict[frozenset[str], str | Missing] = {}
    for (a, b), label in labels.items():
        back = labels.get((b, a), label)
        if label != back:
            label = Missing(Gap.GARBLED, MATRIX, f"the matrix says {label} one way and {back} the other")
        if a in placed and b in placed:
            seen[frozenset((placed[a].name, placed[b].name))] = label
    return seen


def _new(stated: Stated, name: str) -> Device:
    gpu = name.startswith("GPU") and name[3:].isdecimal()
    return Device(
        name=name if gpu else _nic_name(stated, name),
        kind="gpu" if gpu else "nic",
        bdf=None,
        index=int(name[3:]) if gpu else None,
        uuid=NO_ID if gpu else None,
        numa_node=_node(stated.numa_affinity, name),
        cpu_affinity=_said(stated.cpu_affinity, name, "CPU Affinity"),
        gpu_numa_id=_node(stated.gpu_numa_id, name) if gpu else None,
        is_vf=None if gpu else NO_ID,
        nvlink_positions=_positions(stated, name) if gpu else None,
        path=NO_ID,
        function=None,
    )


def _nic_name(stated: Stated, name: str) -> str:
    """The name that the legend has for it, unless that is taken."""
    found = stated.nic_names.get(name, name)
    return found if Counter(stated.nic_names.values())[found] < 2 and found not in stated.names else name


def _positions(stated: Stated, name: str) -> int | Missing:
    gap = Missing(Gap.UNRECORDED, MATRIX, "a matrix shows no NVLinks that are down")
    return stated.nvlinks.get(name, gap)


def _said(column: Mapping[str, str], name: str, title: str) -> str | Missing:
    said = column.get(name)
    if said is None:
        return Missing(Gap.UNRECORDED, MATRIX, f"no {title} is shown")
    return Missing(Gap.UNSUPPORTED, MATRIX, f"{title} N/A") if said == "N/A" else said


def _node(column: Mapping[str, str], name: str) -> int | Missing:
    said = _said(column, name, "NUMA node")
    if isinstance(said, Missing):
        return said
    one = said.isascii() and said.isdecimal() and len(said) < 6
    return int(said) if one else Missing(Gap.UNSUPPORTED, MATRIX, f"NUMA nodes {said}, not one")


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


def _filled(link: Link, label: str | Missing | None, pci_label: str | Missing | None, switched: bool) -> Link:
    """The link with what it lacks out of the cells of the two matrices, or the reason why they do not tell either."""
    if link.nvlinks is None:
        if isinstance(label, str):
            count = _links(label)
            link = replace(link, nvlinks=count, nvlink_reason="", switched=switched and count > 0)
        elif not link.nvlink_reason:
            why = str(label) if isinstance(label, Missing) else NOT_SHOWN if pci_label is None else PCI_ALONE
            link = replace(link, nvlink_reason=why)
    if link.pci is None:
        said = pci_label if isinstance(pci_label, str) else label
        if isinstance(said, str) and said in PCI:
            link = replace(link, pci=PCI[said], pci_reason="")
        elif not link.pci_reason:
            why = HIDDEN if isinstance(said, str) else NOT_SHOWN if said is None else str(said)
            link = replace(link, pci_reason=why)
    return link


def _whole(link: Link) -> str | None:
    """What the box says in the words of ``topo -m``; None where it does not know."""
    return link.label if link.nvlinks is not None and link.label != "?" else None


def _alone(links: Sequence[Link]) -> Iterator[str]:
    yield (
        "This is what nvidia-smi printed, not a box: bus ids, PCIe links, NVLinks that are down, and the PCI path of "
        "pairs that NVLinks join are not known."
    )
    if any(link.nvlink_reason == PCI_ALONE for link in links):
        yield f"NVLink is unknown: {PCI_ALONE}."


def _differences(differing: Mapping[tuple[str, str], list[str]]) -> Iterator[str]:
    for (said, found), pairs in differing.items():
        yield f"The imported nvidia-smi topo says {said} where the box says {found}: {', '.join(pairs)}."


def _not_here(names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"The imported nvidia-smi topo names what is not here: {', '.join(names)}."


def statuses(topology: Topology, stated: Stated, capability: str) -> tuple[P2pStatus, ...]:
    """Peer-to-peer statuses of an imported ``topo -p2p``; empty where there is none of this capability.

    A matrix that does not say which capability it is of counts for the one that is asked for.
    """
    known = stated.p2p.get(capability) or stated.p2p.get("", {})
    names = {name: device.bdf or device.name for name in stated.names if (device := topology.device(name)) is not None}
    return tuple(
        P2pStatus(a=names[a], b=names[b], **dict.fromkeys(CAPABILITIES, NOT_ASKED) | {capability: status})
        for (a, b), status in known.items()
        if a in names and b in names
    )
