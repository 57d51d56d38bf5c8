"""NCCL's topology file: GPUs and network cards, links, NUMA nodes, and the class of every pair.

NCCL's topology file (``NCCL_TOPO_DUMP_FILE``, ``NCCL_TOPO_FILE``): its tags, line by line, also of a cut file.

Of each PCIe switch it holds the upstream port alone, of the host bridges nothing
(https://github.com/NVIDIA/nccl/blob/master/src/graph/xml.cc): so of two devices of one CPU that share no switch it
cannot be told whether they share a host bridge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record
from dgxcheck.facts.sysfs import INFINIBAND, PCI_DEVICES, cpulist
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern
from dgxcheck.readers.formats import Tag, tags
from dgxcheck.readers.listing import INDEX
from dgxcheck.readers.model import Imported, Reports, ToolPart
from dgxcheck.readers.network.files import NAME
from dgxcheck.readers.values import MOST_GPUS, bits, integer

_HEX = LazyPattern(r"0x[0-9a-f]{4}", flags=re.ASCII | re.IGNORECASE)
_UNKNOWN_IDS = ("0x0000", "0xffff")
"""Providers write these for a virtual machine's switches and cards."""
_NVIDIA = "0x10de"
"""NCCL runs on no other GPUs; a file for those of another vendor names it."""
_SPEED = ascii_pattern(r"(\d{1,3}(?:\.\d)?) GT/s(?: PCIe)?")
_SWITCH = "0x0680"
_NO_BRIDGE: Json = {"missing": "unrecorded", "detail": "PHB or NODE: NCCL's topology file holds no host bridges"}
_NO_CPU: Json = {"missing": "unrecorded", "detail": "the file does not show the CPU of both"}


class Card(Record, kw_only=True):
    """A GPU or network card: the members of its tags, and what it stands in."""

    bdf: str
    is_gpu: bool
    members: dict[str, str]
    cpu: dict[str, str]
    above: tuple[str, ...]
    """Bus ids of the switches above it, from the CPU down."""
    gpu: dict[str, str]
    nvlinks: list[dict[str, str]]
    nets: list[dict[str, str]]


def facts(cards: Sequence[Card], whole: bool) -> dict[str, Json]:
    """By key: files of each card's function, names of the NICs, NVML's order of the GPUs, and stated labels.

    Only a ``whole`` file tells how many NVLinks each GPU shows.
    """
    found: dict[str, Json] = {}
    for card in cards:
        found |= {f"text {PCI_DEVICES}/{card.bdf}/{name}": f"{text}\n" for name, text in _files(card)}
    found |= _gpu_order([card for card in cards if card.is_gpu])
    names = _nic_names([card for card in cards if not card.is_gpu])
    found |= {f"link {INFINIBAND}/{name}/device": f"../../../{bdf}" for name, bdf in names.items()}
    found |= {f"names {INFINIBAND}": [*names]} if names else {}
    by_bdf = {card.bdf: card for card in cards}
    ends = [(card.bdf, card) for card in cards if card.is_gpu] + [(name, by_bdf[bdf]) for name, bdf in names.items()]
    contradictions = _contradictions([card for card in cards if card.is_gpu]) if whole else {}
    return found | dict(_labels(ends)) | contradictions


def _contradictions(gpus: Sequence[Card]) -> dict[str, Json]:
    """Pairs in which one GPU shows fewer NVLinks than the other, although a link is up at both ends or at neither."""
    reports = Reports("NCCL topology")
    for a, b in combinations(gpus, 2):
        there, back = _direct(a, b), _direct(b, a)
        fewer, other = (a, b) if there < back else (b, a)
        if there != back and fewer.nvlinks:
            few, many = min(there, back), max(there, back)
            text = f"{few} NVLink{'s' if few != 1 else ''} to {other.bdf}, which shows {many} to it"
            reports.add(fewer.bdf, "nvlink", "warn", Fault.CONTRADICTION, text)
    return reports.facts()


def _files(card: Card) -> Iterator[tuple[str, str]]:
    yield "class", card.members["class"].lower()
    for name in ("vendor", "device", "subsystem_vendor", "subsystem_device"):
        text = card.members.get(name, "").lower()
        if _HEX.fullmatch(text) and text not in _UNKNOWN_IDS:
            yield name, text
        elif name == "vendor" and card.is_gpu:
            yield name, _NVIDIA
    if speed := _SPEED.fullmatch(card.members.get("link_speed", "")):
        yield "current_link_speed", f"{float(speed[1]):.1f} GT/s PCIe"
    if width := integer(card.members.get("link_width", ""), 32):
        yield "current_link_width", str(width)
    if (node := integer(card.cpu.get("numaid", ""), 1023)) is not None:
        yield "numa_node", str(node)
    if cpus := bits(card.cpu.get("affinity", "")):
        yield "local_cpulist", cpulist(cpus)


def _gpu_order(gpus: Sequence[Card]) -> dict[str, Json]:
    """NVML's list, where every GPU has a number of its own."""
    numbers = [integer(card.gpu.get("dev", ""), MOST_GPUS - 1) for card in gpus]
    if None in numbers or len(set(numbers)) != len(numbers):
        return {}
    order = sorted(zip(numbers, gpus, strict=True), key=lambda pair: pair[0] or 0)
    return {f"{INDEX} {number}": card.bdf for number, card in order}


def _nic_names(nics: Sequence[Card]) -> dict[str, str]:
    """Bus ids by name; ``NIC0`` and so on in the file's order where it names none."""
    named = {net["name"]: nic.bdf for nic in nics for net in nic.nets if re.fullmatch(NAME, net["name"], re.ASCII)}
    return named or {f"NIC{number}": nic.bdf for number, nic in enumerate(nics)}


def _labels(ends: Sequence[tuple[str, Card]]) -> Iterator[tuple[str, Json]]:
    """Of ``topo -mp`` for every pair, and of ``topo -m`` where the file shows the GPUs' NVLinks."""
    with_nvlinks = any(card.nvlinks for _, card in ends)
    for (name, card), (other_name, other) in combinations(ends, 2):
        label = _pci(card, other)
        links = _links(card, other) if card.is_gpu and other.is_gpu else 0
        for a, b in ((name, other_name), (other_name, name)):
            yield f"stated label-pci {a} {b}", label
            if with_nvlinks:
                yield f"stated label {a} {b}", f"NV{links}" if links else label


def _pci(a: Card, b: Card) -> Json:
    """One switch with both directly below it is PIX, as are two functions of one card; a further switch makes PXB."""
    if a.bdf.partition(".")[0] == b.bdf.partition(".")[0]:
        return "PIX"
    shared = 0
    for left, right in zip(a.above, b.above, strict=False):
        if left != right:
            break
        shared += 1
    if shared:
        return "PIX" if len(a.above) == len(b.above) == shared else "PXB"
    nodes = a.cpu.get("numaid"), b.cpu.get("numaid")
    if None in nodes or "-1" in nodes:
        return _NO_CPU
    return _NO_BRIDGE if nodes[0] == nodes[1] else "SYS"


def _links(a: Card, b: Card) -> int:
    """NVLinks to each other, else, where both lead to switches, the fewer of the two."""
    if direct := min(_direct(a, b), _direct(b, a)) or _direct(a, b):
        return direct
    return min(sum(_count(link) for link in card.nvlinks if link.get("tclass", "").startswith(_SWITCH))
               for card in (a, b))  # fmt: skip


def _direct(a: Card, b: Card) -> int:
    return sum(_count(link) for link in a.nvlinks if as_bdf(link.get("target", "")) == b.bdf)


def _count(link: dict[str, str]) -> int:
    return integer(link.get("count", ""), 36) or 0


TOOL = "NCCL topology"
MOST_CARDS = 512
_TAG = LazyPattern(
    r"<(?P<end>/)?(?P<name>system|cpu|pci|gpu|nvlink|c2c|pcilink|nic|net)\b(?P<members>[^<>]{0,2000}?)(?P<leaf>/)?>"
)
_CLASSES = LazyPattern(r"0x([0-9a-fA-F]{6})")
_GPU, _NETWORK = 0x03, 0x02


def read_topology_xml(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """GPUs and NICs with their links, and the class of each pair as far as the file tells it."""
    cards: dict[str, Card] = {}
    part = ToolPart(TOOL)
    around: list[Tag] = []
    for number, tag, around in tags(lines, _TAG):
        part.lines.add(number)
        if len(cards) < MOST_CARDS:
            _take(cards, around, *tag)
    if not cards:
        return ()
    part.beside = {number for number in range(min(part.lines), max(part.lines)) if lines[number].strip()}
    whole = not around and all(lines[number].lstrip().startswith("<") for number in part.beside - part.lines)
    return part.imported(facts([*cards.values()], whole))


def _take(cards: dict[str, Card], around: Sequence[Tag], name: str, members: dict[str, str]) -> None:
    """Enter a GPU or network card, or what a tag says of the card that it stands in."""
    functions = [each for of, each in around if of == "pci"]
    if name == "pci":
        bdf = as_bdf(members.get("busid", ""))
        code = _CLASSES.fullmatch(members.get("class", ""))
        if bdf is not None and code is not None and int(code[1], 16) >> 16 in (_GPU, _NETWORK):
            above = tuple(each.get("busid", "") for each in functions)
            cpu = next((each for of, each in around if of == "cpu"), {})
            is_gpu = int(code[1], 16) >> 16 == _GPU
            new = Card(bdf=bdf, is_gpu=is_gpu, members=members, cpu=cpu, above=above, gpu={}, nvlinks=[], nets=[])
            cards.setdefault(bdf, new)
        return
    card = cards.get(as_bdf(functions[-1].get("busid", "")) or "") if functions else None
    if card is None:
        return
    if name == "gpu" and card.is_gpu:
        card.gpu.update(members)
    elif name == "nvlink" and card.is_gpu:
        card.nvlinks.append(members)
    elif name == "net" and members.get("name"):
        card.nets.append(members)
