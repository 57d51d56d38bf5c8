"""What ``lspci`` lists, with any of its options ``-n``, ``-v``, ``-x`` .., and draws with ``-t``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.record import Record, fields, replace, values
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern
from dgxcheck.readers.wording import rows

MOST_FUNCTIONS = 4096
"""Of one listing; a DGX-2 has some 400."""
CONFIG_BYTES = 4096
_HEAD = LazyPattern(
    r"(?P<bdf>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[01][0-9a-f]\.[0-7]) (?P<text>\S.{0,600})", flags=re.IGNORECASE | re.ASCII
)
_NAMED_CLASS = LazyPattern(r"[^\[\]]{1,80} \[(?P<code>[0-9a-f]{4})\]: ")
_CLASS = ascii_pattern(r"(?P<words>[A-Z0-9][\w /.&()-]{1,60}): (?P<name>\S.{0,300})")
"""Without ``-n``: class, vendor and device in words."""
_NAMES = (*rows("lspci/names"),)
_CLASSES, _NO_GPUS, _MODELS = (
    {row["name"]: int(row["code"], 16) for row in _NAMES if row["kind"] == kind} for kind in ("class", "other", "gpu")
)
"""How pci.ids calls the classes that matter, NVIDIA's functions that are no GPU, and data-center GPUs."""
_UNNAMED = ascii_pattern(r"Device ([0-9a-f]{4})\b")
"""A device that pci.ids did not know."""
_NVIDIA, _PCI_BRIDGE = 0x10DE, 0x0604
_VENDORS = {"NVIDIA Corporation ": 0x10DE, "Mellanox Technologies ": 0x15B3, "PLX Technology, Inc. ": 0x10B5}
_MODEL = LazyPattern(r"NVIDIA Corporation \w{4,8} ?\[([\w ]{2,24})\]")
_BARE = LazyPattern(r"(?P<code>[0-9a-f]{4}): (?P<vendor>[0-9a-f]{4}):(?P<device>[0-9a-f]{4})(?: |$)")
_IDS = LazyPattern(r"\[(?P<vendor>[0-9a-f]{4}):(?P<device>[0-9a-f]{4})\]")
_INTERFACE = LazyPattern(r"\(prog-if (?P<code>[0-9a-f]{2})")
_UNREADABLE = LazyPattern(r"!!! Unknown header type 7f")
_ROW = ascii_pattern(r"(?P<at>[0-9a-f]{2,3}): (?P<bytes>[0-9a-f]{2}(?: [0-9a-f]{2}){15})\s*")


class Function(Record):
    """One function as one or several listings show it; what none of them shows is None or empty."""

    bdf: str
    class_code: int | None = None
    """Base class and subclass, 16 bits."""
    interface: int | None = None
    """The programming interface, the low byte of the class of sysfs."""
    vendor: int | None = None
    device: int | None = None
    name: str = ""
    """Vendor and device in words, where ids are shown beside them."""
    details: tuple[str, ...] = ()
    """The indented lines of ``-v``, without blanks around them."""
    config: bytes = b""
    unreadable: bool = False
    """lspci read all ones: ``(rev ff)``, and with ``-v`` ``!!! Unknown header type 7f``."""


def functions(lines: Sequence[str]) -> tuple[dict[str, Function], frozenset[int]]:
    """Functions by bdf, in the order of the listing, and the numbers of the lines that belong to them."""
    found: dict[str, Function] = {}
    understood: set[int] = set()
    head: Function | None = None
    details: list[str] = []
    config = bytearray()
    unreadable = False

    def close() -> None:
        if head is not None and len(found) < MOST_FUNCTIONS:
            ones = unreadable or any(_UNREADABLE.match(line) for line in details)
            shown = replace(head, details=tuple(details), config=bytes(config), unreadable=ones)
            found[head.bdf] = _both(found[head.bdf], shown) if head.bdf in found else shown

    for number, line in enumerate(lines):
        if begun := _head(line):
            close()
            head, details, config, unreadable = begun, [], bytearray(), "(rev ff)" in line
        elif head is None or not line.strip():
            continue
        elif row := _ROW.fullmatch(line):
            if int(row["at"], 16) == len(config) < CONFIG_BYTES:
                config += bytes.fromhex(row["bytes"])
        elif line[:1] in ("\t", " ") or line.startswith("!!! "):
            details.append(line.strip())
        else:
            close()
            head = None
            continue
        understood.add(number)
    close()
    return found, frozenset(understood)


def merged(listings: Iterable[dict[str, Function]]) -> dict[str, Function]:
    """One entry per function: of each member what the first listing that has it says."""
    found: dict[str, Function] = {}
    for listing in listings:
        for bdf, function in listing.items():
            found[bdf] = _both(found[bdf], function) if bdf in found else function
    return found


def _both(first: Function, function: Function) -> Function:
    """One function as two listings show it; one that did not answer in either does not."""
    members = zip(fields(first), values(first), values(function), strict=True)
    found = {name: other if own is None else own for name, own, other in members}
    for name in ("name", "unreadable"):
        found[name] = getattr(first, name) or getattr(function, name)
    for name in ("details", "config"):
        found[name] = max(getattr(first, name), getattr(function, name), key=len)
    return replace(first, **found)


def _head(line: str) -> Function | None:
    """``0000:2e:00.0 VGA compatible controller [0300]: NVIDIA .. [10de:2230] (rev a1) (prog-if 00 [..])``."""
    match = _HEAD.fullmatch(line.rstrip())
    bdf = None if match is None else as_bdf(match["bdf"], short=True)
    if match is None or bdf is None:
        return None
    text = match["text"]
    bare = _BARE.match(text)
    named = _NAMED_CLASS.match(text)
    code = bare or named
    if code is None:
        return of_words(bdf, text)
    ids = list(_IDS.finditer(text))[-1:]
    interface = _INTERFACE.search(text)
    numbers = bare or (ids[0] if ids else None)
    return Function(
        bdf=bdf,
        class_code=int(code["code"], 16),
        interface=int(interface["code"], 16) if interface is not None else None,
        vendor=int(numbers["vendor"], 16) if numbers is not None else None,
        device=int(numbers["device"], 16) if numbers is not None else None,
        name=text[named.end() : ids[0].start()].strip() if named is not None and ids else "",
    )


def of_words(bdf: str, text: str) -> Function | None:
    """A function without numbers: ``3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)``."""
    match = _CLASS.match(text)
    if match is None:
        return None
    vendor, device = _ids_of(match["name"])
    return Function(bdf=bdf, class_code=_CLASSES.get(match["words"]), vendor=vendor, device=device)


def of_leaf(bdf: str, name: str, bridge: bool) -> Function:
    """A function as the tree of ``-tv`` shows it: no class, but bridges have others below them.

    NVIDIA's functions that are no GPU are distinguished by the words of pci.ids.
    """
    vendor, device = _ids_of(name)
    code = _PCI_BRIDGE if bridge else None
    if vendor == _NVIDIA and not bridge:
        code = next((number for words, number in _NO_GPUS.items() if words in name), None)
    return Function(bdf=bdf, class_code=code, vendor=vendor, device=device)


def _ids_of(name: str) -> tuple[int | None, int | None]:
    """Vendor and device: their numbers where they are shown, else the vendors whose devices matter by name."""
    if ids := list(_IDS.finditer(name))[-1:]:
        return int(ids[0]["vendor"], 16), int(ids[0]["device"], 16)
    vendor = next((words for words in _VENDORS if name.startswith(words)), "")
    unnamed = _UNNAMED.match(name, len(vendor)) if vendor else None
    model = _MODEL.match(name)
    return _VENDORS.get(vendor), int(unnamed[1], 16) if unnamed else _MODELS.get(model[1]) if model else None


_PART = ascii_pattern(
    r"(?P<branch>[+\\])|[ |-]{1,400}|\[(?:(?P<domain>[0-9a-f]{4,8}):)?(?P<bus>[0-9a-f]{2})(?:-[0-9a-f]{2})?\]"
    r"|(?P<device>[01][0-9a-f]\.[0-7])(?=-\[|\s|$)"
)
_LINE = LazyPattern(r"[ |]{0,400}(?:-\[|-\+-|\+-|\\-)")
_NAME = 300

Bus = tuple[str, str]
"""Domain and number, as in a bdf."""


class Tree(Record):
    """What the drawing shows."""

    bridges: dict[Bus, str]
    """bdf of the bridge that leads to each bus."""
    roots: frozenset[Bus]
    bdfs: frozenset[str]
    names: dict[str, str]
    """By bdf, what ``-v`` adds: vendor and device in words; bridges have none."""


def tree(lines: Sequence[str]) -> tuple[Tree, frozenset[int]]:
    """The tree, and the numbers of its lines.

    A line goes on with the bus from which its first branch (``+`` or ``\\``) hangs, known from the branch's column.
    A bus number at the beginning of a line is a root bus, one after a device is the bus behind that bridge.
    """
    bridges: dict[Bus, str] = {}
    roots: set[Bus] = set()
    bdfs: set[str] = set()
    names: dict[str, str] = {}
    understood: set[int] = set()
    by_column: dict[int, Bus] = {}
    for number, line in enumerate(lines):
        if not _LINE.match(line):
            continue
        at, bus, device = 0, None, ""
        while (part := _PART.match(line, at)) is not None:
            at = part.end()
            if part["branch"] and bus is not None:
                by_column[part.start()] = bus
            elif part["branch"]:
                bus = by_column.get(part.start())
            elif part["bus"]:
                new = (part["domain"] or (bus[0] if bus is not None else "0000"), part["bus"])
                if device:
                    bridges.setdefault(new, device)
                else:
                    roots.add(new)
                bus, device = new, ""
            elif part["device"]:
                if bus is None:
                    break
                device = f"{bus[0]}:{bus[1]}:{part['device']}"
                bdfs.add(device)
                understood.add(number)
                if line[at : at + 2] != "-[":
                    names |= {device: name} if (name := line[at : at + _NAME].strip()) else {}
                    break  # the device's name follows, or nothing
    return Tree(bridges=bridges, roots=frozenset(roots), bdfs=frozenset(bdfs), names=names), frozenset(understood)
