"""Addresses of PCI functions (domain:bus:device.function) and names of root buses, as sysfs spells them.

No patterns: compiling them would cost every start more than all their uses.
"""

from __future__ import annotations

IdPair = tuple[str, str]
"""Two devices by bus id, or by name where a text has no bus ids; from the first to the second."""
PATTERN = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
"""A bdf within a line of text. VMD's domains start at 10000, clouds use 32 bits."""
_HEX = frozenset("0123456789abcdef")
UNPLACED = "ffffffff:00:00.0"
"""A GPU of which a text gives neither number nor bus id; all ones, as PCI reads where nothing is."""
_NUMBERED = "ffff"
"""First digits of the domain of a GPU of which a text gives the number alone; its last four are that number."""
_NAMELESS = 0xFFFF
"""The number of the first GPU of which a text does not even give the number; those of others count down from it."""


def as_bdf(text: str, short: bool = False) -> str | None:
    """Any spelling of a bdf as sysfs has it: ``00000000:06:00.0`` -> ``0000:06:00.0``; None for anything else.

    ``short`` also accepts an address without its domain, its function or its leading zeros: ``6:0``.
    """
    address, dot, function = text.strip().lower().partition(".")
    parts = address.split(":")
    if short:
        parts = ["0", *parts] if len(parts) == 2 else parts
        function = function if dot else "0"
    if len(parts) != 3 or len(function) != 1 or function not in "01234567" or not _HEX.issuperset("".join(parts)):
        return None
    domain, bus, device = parts
    if not 1 <= len(domain) <= 8 or not all((1 if short else 2) <= len(part) <= 2 for part in (bus, device)):
        return None
    return f"{int(domain, 16):04x}:{bus:0>2}:{device:0>2}.{function}" if int(device, 16) < 32 else None


def bus_order(bdf: str) -> tuple[int, str]:
    """Sort key of a bdf: a domain of five digits (VMD, Hyper-V) comes after those of four."""
    return len(bdf), bdf


def is_bdf(name: str) -> bool:
    """True for the name of a PCI function in sysfs: ``0000:06:00.0``."""
    domain, _, rest = name.partition(":")
    return (
        len(rest) == 7 and rest[2] == ":" and rest[3] in "01" and rest[5] == "." and rest[6] in "01234567"
        and (len(domain) == 4 or (4 < len(domain) <= 8 and domain[0] != "0"))
        and _HEX.issuperset(domain) and _HEX.issuperset(rest[:2] + rest[4])
    )  # fmt: skip


def unplaced(number: int) -> str:
    """What stands for the bus id of a GPU of which a text gives the number alone."""
    return f"{_NUMBERED}{number:04x}:00:00.0"


def nameless(place: int) -> str:
    """What stands for the bus id of a GPU that a text does not name; ``place`` counts such GPUs from 0."""
    return unplaced(_NAMELESS - place)


def place_of(bdf: str | None) -> int | None:
    """Which of the GPUs that a text does not name this is, from 0; None for every other bdf."""
    if bdf is None or not is_unplaced(bdf) or bdf[4:6] != _NUMBERED[:2]:
        return None
    return _NAMELESS - int(bdf[4:8], 16)


def gpu_at(bdf: str) -> str:
    """How a GPU without a number is called: ``GPU@0000:0a:00.0``, or ``unnamed GPU`` where a text does not name it."""
    if (place := place_of(bdf)) is None:
        number = number_of(bdf)
        return f"GPU@{bdf}" if number is None else f"GPU{number}"
    return f"unnamed GPU {place + 1}" if place else "unnamed GPU"


def is_unplaced(bdf: str | None) -> bool:
    """Does a bdf stand for one that is not known? It is never shown."""
    return bdf is not None and bdf[:4] == _NUMBERED and bdf[8:] == ":00:00.0" and _HEX.issuperset(bdf[4:8])


def without_unplaced(text: str, named: bool) -> str:
    """A text without bdfs that stand for one that is not known.

    They become ``-`` for people, who read the name of the GPU beside it, and ``named`` the GPU in keys and sentences
    for programs: ``nvlink.state/GPU0``.
    """
    parts, end = [], 0
    while (at := text.find(_NUMBERED, end)) >= 0:
        bdf = text[at : at + len(UNPLACED)]
        is_placed = not is_unplaced(bdf)
        parts += [text[end:at], text[at : at + 1] if is_placed else _named(bdf) if named else "-"]
        end = at + (1 if is_placed else len(bdf))
    return "".join([*parts, text[end:]])


def _named(bdf: str) -> str:
    number = number_of(bdf)
    return f"unnamed-GPU{place_of(bdf) or 0}" if number is None else f"GPU{number}"


def number_of(bdf: str) -> int | None:
    """The number of a GPU of which a text gives nothing else; None for every other bdf."""
    return int(bdf[4:8], 16) if is_unplaced(bdf) and place_of(bdf) is None else None


def for_smi(bdf: str | None) -> str:
    """What ``nvidia-smi -i`` takes for a GPU: its bus id, or its number; empty where neither is known."""
    number = number_of(bdf) if bdf is not None else None
    return (shown(bdf) or "") if number is None else str(number)


def shown(bdf: str | None) -> str | None:
    """A bdf for people and programs; None for one that is not known."""
    return None if is_unplaced(bdf) else bdf


def card_of(bdf: str | None) -> str:
    """Domain, bus and device of a PCI function, which all functions of its card share: ``0000:06:00``."""
    return str(bdf).rpartition(".")[0]


def is_root_bus(name: str) -> bool:
    """True for a host bridge in a sysfs path: ``pci0000:80``."""
    return name[:3] == "pci" and is_bdf(f"{name[3:]}:00.0")
