"""``lspci`` in a text, also several times or in fragments: listing, bytes and tree of one machine; ``lshw``.

Lines of ``lspci -vv`` without the line of their device: its PCIe link, as results about a device that is not named.

lspci calls a link downgraded where the device itself supports more (pciutils, ls-caps.c). The slot may have no more,
and GPUs lower the speed of an idle link, so only a width is reported, and half of the lanes are no fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dgxcheck.facts.bdf import PATTERN, as_bdf
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import DISPLAY, MELLANOX, NETWORK
from dgxcheck.facts.missing import Json
from dgxcheck.facts.pci import FEW_LANES
from dgxcheck.facts.record import replace
from dgxcheck.facts.sysfs import PCI_DEVICES
from dgxcheck.facts.tool_outputs import Outcome
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern
from dgxcheck.readers.lspci.files import files
from dgxcheck.readers.lspci.listing import Function, Tree, functions, of_leaf, of_words, tree
from dgxcheck.readers.lspci.registers import link
from dgxcheck.readers.model import HOST, Imported, Reports, ToolPart
from dgxcheck.readers.values import bounded, numbered
from dgxcheck.readers.wording import any_of

FRAGMENT_TOOL = "lspci -vv"
_DETAIL = ascii_pattern(any_of("lspci/lines", "lspci -vv"))
_WIDTH = ascii_pattern(r"LnkSta:\s.{0,60}\bWidth x(?P<width>\d{1,2})(?P<narrow> \(downgraded\))?")
_LINK = ("LnkCap:", "LnkSta:")
MOST = 64
"""Devices of one text."""


def unnamed(lines: Sequence[str], named: frozenset[int]) -> tuple[Imported, ...]:
    """One result for each such device; ``named`` are the lines that belong to a device."""
    part = ToolPart(FRAGMENT_TOOL)
    for block in [*_blocks(lines, named)][:MOST]:
        texts = [lines[at].strip() for at in block]
        words = link(b"", texts)
        status = next((match for text in texts if (match := _WIDTH.match(text))), None)
        if not words:
            continue
        part.lines.update(block)
        if status is None:
            continue
        speed = words.get("current_link_speed", "").partition(" ")[0].removesuffix(".0")
        most = words.get("max_link_width")
        narrow = status["narrow"] is not None or (most is not None and int(most) > int(status["width"]))
        text = f"a device that the text does not name: link at x{status['width']}, {speed} GT/s"
        text += _supports(most) if narrow else ""
        few = most is not None and int(status["width"]) * FEW_LANES <= int(most)
        _add_link(part, HOST, few, text, "unknown" if narrow else "pass")
    return part.imported()


def _supports(lanes: object = None) -> str:
    return f"; it supports {'more lanes' if lanes is None else f'x{lanes}'}, what its slot supports is not shown"


def _add_link(reports: Reports, device: str, few: bool, text: str, otherwise: Outcome = "unknown") -> None:
    reports.add(device, "link", "warn" if few else otherwise, Fault.LINK_UNSEEN if few else None, text)


_ACS = LazyPattern(r"ACSCtl:(?:\s{1,2}[A-Z]\w{5,12}[+-]){2,9}")
_REDIRECTS = ("ReqRedir+", "CmpltRedir+", "UpstreamFwd+", "EgressCtrl+")


def acs_unnamed(lines: Sequence[str], named: frozenset[int]) -> tuple[Imported, ...]:
    """``lspci -vvv | grep ACSCtl``, which NCCL's guide asks for: whether any port redirects, not which."""
    part = ToolPart(FRAGMENT_TOOL)
    part.lines.update(at for at, line in enumerate(lines) if at not in named and _ACS.fullmatch(line.strip()))
    if redirecting := [at for at in part.lines if any(word in lines[at] for word in _REDIRECTS)]:
        text = f"{len(redirecting)} of {len(part.lines)} ports that the text does not name redirect requests (ACSCtl)"
        part.add(HOST, "acs", "unknown", Fault.ACS, text)
    return part.imported(sound="acs")


def _blocks(lines: Sequence[str], named: frozenset[int]) -> Iterator[list[int]]:
    """Runs of such lines; a second capability or status of a link is another device's."""
    block: list[int] = []
    seen: set[str] = set()
    for at, line in enumerate(lines):
        text = line.strip()
        begins = next((word for word in _LINK if text.startswith(word)), "")
        if at in named or _DETAIL.fullmatch(text) is None or begins in seen:
            yield from [block] if block else []
            block, seen = [], set()
        if at not in named and _DETAIL.fullmatch(text) is not None:
            block.append(at)
            seen |= {begins} - {""}
    yield from [block] if block else []


TOOL, TREE = "lspci", "lspci -t"
_PART = LazyPattern(r"\blspci\b.{0,200}\s-[a-zA-Z]*[ds]\b")
_COMMAND = LazyPattern(r"(?:.{0,80}[$#>] ?)?(?:sudo )?(?:/\S{1,40}/)?lspci(?: .{0,200})?")
_HEAD = LazyPattern(r" {0,16}(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[01][0-9a-f]\.[0-7] [A-Z0-9]")
_HOST_BRIDGE, _PCI_BRIDGE, _NVIDIA = 0x0600, 0x0604, 0x10DE


def read_text(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Files of the functions that are listed; which functions there are only where the listing shows all."""
    lines = _dedented(bounded(lines))
    shown, of_listing = functions(lines)
    drawn, of_tree = tree(lines)
    if not drawn.roots:
        of_tree = frozenset()
    alone = (*unnamed(lines, of_listing), *acs_unnamed(lines, of_listing))
    if not shown and not drawn.names:
        return (*_of_numbers(drawn, of_tree, lines), *alone)
    bridges = dict.fromkeys(drawn.bridges.values(), "")
    listed = shown or {bdf: of_leaf(bdf, name, bdf in bridges) for bdf, name in (drawn.names | bridges).items()}
    whole = not shown or _is_whole(shown, lines)
    facts = files(listed, drawn if drawn.roots else None, whole, _last(shown, of_listing, lines)) | _narrow(shown)
    facts |= _adapters({bdf: each for bdf, each in shown.items() if f"link {PCI_DEVICES}/{bdf}" not in facts})
    understood = of_listing | of_tree | _commands(lines)
    return (Imported(tool=TOOL if shown else TREE, facts=facts, understood=understood), *alone)


def _narrow(shown: dict[str, Function]) -> dict[str, Json]:
    """GPUs whose link lspci calls downgraded, where ``grep LnkSta`` left out how many lanes they support: few beside
    those of a GPU whose link is whole."""
    reports = Reports(FRAGMENT_TOOL)
    links = {
        bdf: (status["narrow"], int(status["width"]))
        for bdf, function in shown.items() if function.vendor == _NVIDIA and (function.class_code or 0) >> 8 == DISPLAY
        and not function.config and not any(line.startswith(_LINK[0]) for line in function.details)
        for line in function.details if (status := _WIDTH.match(line))
    }  # fmt: skip
    most = max((width for narrow, width in links.values() if not narrow), default=0)
    for bdf, (narrow, width) in links.items():
        if narrow:
            _add_link(reports, bdf, width * FEW_LANES <= most, f"link at x{width}{_supports()}")
    return reports.facts()


def _adapters(shown: dict[str, Function]) -> dict[str, Json]:
    """Adapters with fewer lanes than they support: few, or fewer than most others of their model."""
    reports = Reports(FRAGMENT_TOOL)
    links: dict[tuple[str, ...], dict[str, tuple[int, int]]] = {}
    for bdf, function in shown.items():
        if function.vendor != MELLANOX or (function.class_code or 0) >> 8 != NETWORK:
            continue
        if "max_link_width" in (words := link(function.config, function.details)):
            board = (f"{function.device}", *(each for each in function.details if each.startswith("Subsystem:")))
            lanes = int(words["max_link_width"]), int(words.get("current_link_width", 0))
            links.setdefault(board, {})[bdf] = lanes
    for alike in links.values():
        cards = {bdf.partition(".")[0]: most == width for bdf, (most, width) in alike.items()}
        whole = sum(cards.values())
        for bdf, (most, width) in alike.items():
            if 0 < width < most:
                few = width * FEW_LANES <= most or (whole > 1 and 2 * whole > len(cards))
                _add_link(reports, bdf.replace(":", "."), few, f"link at x{width}{_supports(most)}")
    return reports.facts()


def _commands(lines: tuple[str, ...]) -> frozenset[int]:
    return frozenset(n for n, line in enumerate(lines) if _COMMAND.fullmatch(line.strip()))


def _of_numbers(drawn: Tree, of_tree: frozenset[int], lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``lspci -t`` alone: where each function is, but not what it is, so that nobody can say which ones are GPUs."""
    if not drawn.roots or not drawn.bdfs:
        return ()
    facts = files({bdf: Function(bdf=bdf) for bdf in drawn.bdfs}, drawn, False)
    listed: dict[str, Json] = {f"names {PCI_DEVICES}": [*sorted(drawn.bdfs)]}
    return (Imported(tool=TREE, facts=facts | listed, understood=of_tree | _commands(lines)),)


def _last(shown: dict[str, Function], of_listing: frozenset[int], lines: tuple[str, ...]) -> str:
    """The function with which the whole text ends; empty where something follows."""
    following = (line for line in lines[max(of_listing, default=0) + 1 :] if line.strip())
    return next(reversed(shown), "") if next(following, None) is None else ""


def _dedented(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Without the blanks that the head of a function has before it, and what follows it, as in an indented listing."""
    found, margin = [], ""
    for line in lines:
        if _HEAD.match(line):
            margin = line[: len(line) - len(line.lstrip(" "))]
        found.append(line.removeprefix(margin))
    return tuple(found)


def _is_whole(shown: dict[str, Function], lines: tuple[str, ...]) -> bool:
    """Does it begin as the listing of a whole machine does, with a host bridge and a bridge below it?"""
    classes = {function.class_code for function in shown.values()}
    if any(_PART.search(line) for line in lines if "lspci" in line):
        return False
    first = next(iter(shown))
    return first.endswith(":00:00.0") and _PCI_BRIDGE in classes and _HOST_BRIDGE in classes


_BANDWIDTH = LazyPattern(
    rf"(?:.{{0,120}}\s)?mlx5_core (?P<bdf>{PATTERN}): (?P<rate>\d{{1,4}}\.\d{{1,3}}) Gb/s available PCIe bandwidth(?:,"
    rf" limited by (?P<gts>[\d.]{{1,5}}) GT/s PCIe x(?P<width>\d{{1,2}}) link at (?P<at>{PATTERN}) \(capable of"
    r" (?P<can>\d{1,4}\.\d{1,3}) Gb/s with [\d.]{1,5} GT/s PCIe x(?P<most>\d{1,2}) link\)| \([\d.]{1,5} GT/s"
    r" PCIe x\d{1,2} link\))"
)
"""Linux drivers/pci/pci.c: __pcie_print_link_status; a slot with fewer lanes is limited by design."""
_FEW = 8
"""Of what the adapter can, the part that no slot leaves it by its generation alone: gen2 of gen5."""


def read_bandwidth(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """What the kernel says of the lanes of adapters at boot, the last time."""
    part = ToolPart("kernel log")
    last = {row["bdf"]: row for row in part.matches(_BANDWIDTH, numbered(lines))}
    for bdf, row in last.items():
        if row["width"] is None:
            continue
        slow = float(row["rate"]) * _FEW <= float(row["can"])
        if int(row["width"]) >= int(row["most"]) and not slow:  # less by its generation
            continue
        few = slow or int(row["width"]) * FEW_LANES <= int(row["most"])
        rate, most = (f", {row['gts']} GT/s", f"{row['can']} Gb/s") if slow else ("", f"x{row['most']}")
        text = f"limited by a link of x{row['width']}{rate} at {row['at']}, it supports {most}"
        _add_link(part, bdf.replace(":", "."), few, text, "note")
    return part.imported()


LSHW = "lshw"
_NODE = LazyPattern(r"\*-[\w:-]{1,40}(?P<state>(?: [A-Z]{5,12}){0,3})", "*-")
_OF_NODE = LazyPattern(r"(?P<name>[a-z][a-z ]{2,20}): (?P<value>.{1,400})", ": ")
_DRIVER = LazyPattern(r"(?:.{0,200} )?driver=(?P<name>[\w.+-]{1,64})(?: .{0,200})?")


def read_lshw(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``lshw -c display``: the driver of each function; of one that is UNCLAIMED that it has none."""
    nodes: list[dict[str, str]] = []
    understood: set[int] = set()
    for number, text in numbered(lines):
        if head := _NODE.fullmatch(text):
            nodes.append({"state": head["state"]})
        elif nodes and (row := _OF_NODE.fullmatch(text)):
            nodes[-1][row["name"]] = row["value"]
        else:
            continue
        understood.add(number)
    found: dict[str, Function] = {}
    unclaimed = Reports(LSHW)
    for node in nodes[:MOST]:
        bdf = as_bdf(node.get("bus info", "").removeprefix("pci@"))
        words = f"{node.get('description', '')}: {node.get('vendor', '')} {node.get('product', '')}"
        if bdf is not None and (shown := of_words(bdf, words)) is not None:
            driver = _DRIVER.fullmatch(node.get("configuration", ""))
            used = f"driver in use: {driver['name']}" if driver else "modules: " if "UNCLAIMED" in node["state"] else ""
            found[bdf] = replace(shown, details=(f"Kernel {used}",) if used else ())
            if (shown.vendor, (shown.class_code or 0) >> 8, used) == (_NVIDIA, DISPLAY, "modules: "):
                unclaimed.add(HOST, "driver", "fail", Fault.DRIVER_NOT_LOADED, "no driver holds any GPU (UNCLAIMED)")
    held = any(each.vendor == _NVIDIA and "in use" in "".join(each.details) for each in found.values())
    alone = {} if held else unclaimed.facts()
    facts = files(found, None, False) | alone if found else {}
    return (Imported(tool=LSHW, facts=facts, understood=frozenset(understood)),) if found else ()
