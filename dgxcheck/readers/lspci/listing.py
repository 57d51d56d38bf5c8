"""The functions that ``lspci`` lists, with any of its options ``-n``, ``-nn``, ``-D``, ``-v`` .. and ``-x`` .."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.record import Record, replace

MOST_FUNCTIONS = 4096
"""Of one listing; a DGX-2 has some 400."""
CONFIG_BYTES = 4096
_HEAD = re.compile(
    r"(?P<bdf>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[01][0-9a-f]\.[0-7]) (?P<text>\S.{0,600})", re.IGNORECASE | re.ASCII
)
_NAMED_CLASS = re.compile(r"[^\[\]]{1,80} \[(?P<code>[0-9a-f]{4})\]: ", re.ASCII)
_BARE = re.compile(r"(?P<code>[0-9a-f]{4}): (?P<vendor>[0-9a-f]{4}):(?P<device>[0-9a-f]{4})(?: |$)", re.ASCII)
_IDS = re.compile(r"\[(?P<vendor>[0-9a-f]{4}):(?P<device>[0-9a-f]{4})\]", re.ASCII)
_INTERFACE = re.compile(r"\(prog-if (?P<code>[0-9a-f]{2})", re.ASCII)
_ROW = re.compile(r"(?P<at>[0-9a-f]{2,3}): (?P<bytes>[0-9a-f]{2}(?: [0-9a-f]{2}){15})\s*", re.ASCII)


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


def functions(lines: Sequence[str]) -> tuple[dict[str, Function], frozenset[int]]:
    """Functions by bdf, in the order of the listing, and the numbers of the lines that belong to them."""
    found: dict[str, Function] = {}
    understood: set[int] = set()
    head: Function | None = None
    details: list[str] = []
    config = bytearray()

    def close() -> None:
        if head is not None and len(found) < MOST_FUNCTIONS:
            found[head.bdf] = replace(head, details=tuple(details), config=bytes(config))

    for number, line in enumerate(lines):
        if begun := _head(line):
            close()
            head, details, config = begun, [], bytearray()
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
            first = found.setdefault(bdf, function)
            found[bdf] = Function(
                bdf=bdf,
                class_code=function.class_code if first.class_code is None else first.class_code,
                interface=function.interface if first.interface is None else first.interface,
                vendor=function.vendor if first.vendor is None else first.vendor,
                device=function.device if first.device is None else first.device,
                name=first.name or function.name,
                details=max(first.details, function.details, key=len),
                config=max(first.config, function.config, key=len),
            )
    return found


def _head(line: str) -> Function | None:
    """``0000:2e:00.0 VGA compatible controller [0300]: NVIDIA .. [10de:2230] (rev a1) (prog-if 00 [..])``."""
    match = _HEAD.fullmatch(line.rstrip())
    bdf = None if match is None else as_bdf(match["bdf"], short=True)
    if match is None or bdf is None:
        return None
    text = match["text"]
    bare = _BARE.match(text)
    named = _NAMED_CLASS.match(text)
    ids = list(_IDS.finditer(text))[-1:]
    interface = _INTERFACE.search(text)
    numbers = bare or (ids[0] if ids else None)
    code = bare or named
    return Function(
        bdf=bdf,
        class_code=int(code["code"], 16) if code is not None else None,
        interface=int(interface["code"], 16) if interface is not None else None,
        vendor=int(numbers["vendor"], 16) if numbers is not None else None,
        device=int(numbers["device"], 16) if numbers is not None else None,
        name=text[named.end() : ids[0].start()].strip() if named is not None and ids else "",
    )
