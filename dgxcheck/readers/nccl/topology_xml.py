"""NCCL's topology file (``NCCL_TOPO_DUMP_FILE``, ``NCCL_TOPO_FILE``): its tags, line by line, also of a cut file.

Of each PCIe switch it holds the upstream port alone, of the host bridges nothing
(https://github.com/NVIDIA/nccl/blob/master/src/graph/xml.cc): so of two devices of one CPU that share no switch it
cannot be told whether they share a host bridge.
"""

from __future__ import annotations

import re

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.record import Record
from dgxcheck.readers.model import Imported
from dgxcheck.readers.nccl.box import Card, facts
from dgxcheck.readers.values import bounded

TOOL = "NCCL topology"
MOST_DEPTH = 16
MOST_CARDS = 512
_TAG = re.compile(
    r"<(?P<end>/)?(?P<name>system|cpu|pci|gpu|nvlink|c2c|pcilink|nic|net)\b(?P<members>[^<>]{0,2000}?)(?P<leaf>/)?>"
)
_MEMBER = re.compile(r"""([a-z_]{1,24})\s{0,4}=\s{0,4}["']([^"'<>]{0,200})["']""")
_CLASSES = re.compile(r"0x([0-9a-fA-F]{6})")
_GPU, _NETWORK = 0x03, 0x02


class _Open(Record):
    """A tag whose end has not come yet."""

    name: str
    members: dict[str, str]


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """GPUs and NICs with their links, and the class of each pair as far as the file tells it."""
    cards: dict[str, Card] = {}
    understood: set[int] = set()
    stack: list[_Open] = []
    for number, line in enumerate(bounded(lines)):
        for match in _TAG.finditer(line) if "<" in line else ():
            understood.add(number)
            name = match["name"]
            if match["end"]:
                while stack and stack.pop().name != name:
                    pass
                continue
            members = dict(_MEMBER.findall(match["members"]))
            if len(cards) < MOST_CARDS:
                _take(cards, stack, name, members)
            if not match["leaf"] and len(stack) < MOST_DEPTH:
                stack.append(_Open(name=name, members=members))
    if not cards:
        return ()
    first, last = min(understood), max(understood)
    comments = {number for number in range(first, last) if lines[number].strip()}
    whole = not stack and all(lines[number].lstrip().startswith("<") for number in comments - understood)
    found = facts([*cards.values()], whole)
    return (Imported(tool=TOOL, facts=found, understood=frozenset(understood | comments)),)


def _take(cards: dict[str, Card], stack: list[_Open], name: str, members: dict[str, str]) -> None:
    """Enter a GPU or network card, or what a tag says of the card that it stands in."""
    if name == "pci":
        bdf = as_bdf(members.get("busid", ""))
        code = _CLASSES.fullmatch(members.get("class", ""))
        if bdf is not None and code is not None and int(code[1], 16) >> 16 in (_GPU, _NETWORK):
            above = tuple(each.members.get("busid", "") for each in stack if each.name == "pci")
            cpu = next((each.members for each in stack if each.name == "cpu"), {})
            is_gpu = int(code[1], 16) >> 16 == _GPU
            cards.setdefault(
                bdf, Card(bdf=bdf, is_gpu=is_gpu, members=members, cpu=cpu, above=above, gpu={}, nvlinks=[], nets=[])
            )
        return
    card = cards.get(_card(stack) or "")
    if card is None:
        return
    if name == "gpu" and card.is_gpu:
        card.gpu.update(members)
    elif name == "nvlink" and card.is_gpu:
        card.nvlinks.append(members)
    elif name == "net" and members.get("name"):
        card.nets.append(members)


def _card(stack: list[_Open]) -> str | None:
    """The bus id of what the innermost open tags stand in."""
    return next((as_bdf(each.members.get("busid", "")) for each in reversed(stack) if each.name == "pci"), None)
