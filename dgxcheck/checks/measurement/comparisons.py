"""Figures against each other, and slow copies that a narrow or slow PCIe link explains."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from dgxcheck.bandwidth.expected import to_host
from dgxcheck.bandwidth.links import LineRate, narrowest, physical, with_lanes
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.expected import siblings
from dgxcheck.checks.engine.finding import Judgement, Status, skip
from dgxcheck.checks.measurement.expectations import (
    amount,
    derived,
    expected_figure,
    figure_text,
    has_reference,
    quantity,
    slow,
)
from dgxcheck.checks.measurement.lookup import UNKNOWN, Figures, PairClass, device, label, link_between
from dgxcheck.checks.pcie.gpu_link import under_load
from dgxcheck.facts.measurement import MANY_RANKS, Measurement
from dgxcheck.facts.missing import Missing, known, rows
from dgxcheck.facts.record import remembered, replace
from dgxcheck.facts.typical import median
from dgxcheck.topology.model import PciClass
from dgxcheck.topology.paths import Hop, hops_above, hops_between, pcie_gbs

MOST_GPUS_OF_A_HOST = 16
"""DGX-2 and HGX-2 (https://docs.nvidia.com/dgx/pdf/dgx2-user-guide.pdf)."""
FEWEST = 2
"""Figures of a class that can be compared."""


def runs_differ(box: Box, row: Measurement) -> Judgement | None:
    """Runs of one GPU or pair that differ: on another NUMA node, or while it was busy."""
    if not row.runs or not _below(min(row.runs), max(row.runs), box.settings.limit("measure.runs")):
        return None
    low, high = min(row.runs), max(row.runs)
    why = "over the network between hosts" if over_network(box, row) else "on another NUMA node, or under other load"
    message = f"{label(box, row)}: runs differ, {amount(low)} to {quantity(high, row.unit)} ({why})"
    return slow(row, message, high, status=Status.WARN)


def over_network(box: Box, row: Measurement) -> bool:
    """Did the GPUs of a collective stand in several hosts?

    A table without its list of ranks does not say it: then they do where there are more ranks than one host has GPUs.
    """
    if row.kind != "collective":
        return False
    hosts = row.more.get("hosts")
    if isinstance(hosts, int):
        return hosts > 1
    most = len(box.topology.gpus) if box.choice is not None else MOST_GPUS_OF_A_HOST
    return row.b == MANY_RANKS or (row.b.isdecimal() and int(row.b) > most)


def is_slower(box: Box, row: Measurement, other: Measurement, limit: str) -> bool:
    """Is a figure below another one of the same tool and method?"""
    alike = (row.tool, row.how) == (other.tool, other.how)
    return alike and _below(row.number or 0, other.number or 0, box.settings.limit(limit))


def slower_than(box: Box, row: Measurement, other: Measurement | None, limit: str, what: str) -> Judgement | None:
    """The warning about a figure that is below another one, called ``what``; None where it is not."""
    if other is None or other.number is None or not is_slower(box, row, other, limit):
        return None
    message = f"{figure_text(box, row)}, {what} {quantity(other.number, other.unit)}"
    return slow(row, message, other.number, other, status=Status.WARN)


def below_class(box: Box, row: Measurement, alike: Iterable[Measurement], limit: str, what: str) -> Judgement | None:
    """A figure that is below the median of its class."""
    numbers = [each.number for each in alike
               if each.number is not None and (each.tool, each.how) == (row.tool, row.how)]  # fmt: skip
    if len(numbers) < FEWEST:
        return None
    middle = median(numbers)
    if not _below(row.number or 0, middle, box.settings.limit(limit)):
        return None
    message = f"{figure_text(box, row)}, median {what} {quantity(middle, row.unit)}"
    return slow(row, message, middle, status=Status.WARN)


def gpus_alike(box: Box, figures: Figures, row: Measurement) -> list[Measurement]:
    """The same kind at GPUs of the same model, this one too; for host copies those with an equally wide link.

    The model is NVML's, else the one that the tool printed.
    """
    gpu = device(box, row.a)
    listed = [] if gpu is None else [str(sibling.bdf) for sibling in siblings(box, gpu)]
    ids = [row.a, *(listed or _alike_by_tool(box, figures, row))]
    if row.kind in ("host-to-device", "device-to-host"):
        own = _host_line_rate(box, row.a)
        ids = [id for id in ids if _host_line_rate(box, id) == own]
    rows = (figures.get(row.kind, id) for id in ids)
    return [figure for figure in rows if figure is not None]


def _alike_by_tool(box: Box, figures: Figures, row: Measurement) -> list[str]:
    """GPUs of the name that a tool prints; where neither it nor NVML names any, all that have such a figure."""
    names = {measurement.a: measurement.more.get("name") for measurement in figures.of_kinds("device")}
    if not names and any(isinstance(gpu.name, str) for gpu in box.snapshot.listed_gpus):
        return []
    measured = (measurement.a for measurement in figures.of_kinds(row.kind))
    return [id for id in measured if id != row.a and names.get(id) == names.get(row.a)]


def _host_line_rate(box: Box, id: str) -> float | None:
    """GB/s"""
    gpu = device(box, id)
    return None if gpu is None else known(to_host(box, gpu).line_gbs)


def below_pairs(box: Box, figures: Figures, row: Measurement) -> Judgement | None:
    """A copy below those between pairs that the same number of links, or the same kind of PCI path, joins; where that
    is unknown, below those between all where nearly all are alike, or over NVLinks between most of the GPUs, else far
    below all."""
    own = figures.classes.get((row.a, row.b), UNKNOWN)
    number, middle, near = _usual(figures, row.kind, own, row.tool, row.how, box.settings.limit("measure.symmetry"))
    what = "all pairs" if own is UNKNOWN else "pairs with the same links"
    over_nvlinks = _is_over_nvlinks(row.kind, middle)
    alike = _all_alike(number, near, over_nvlinks)
    of_links = own is not UNKNOWN or (alike and over_nvlinks)
    limit = "symmetry" if of_links else "directions" if alike else "unlike"
    fast, of_others = _alike_with_all(figures, row.kind, row.tool, row.how, box.settings.limit("measure.symmetry"))
    if limit == "unlike" and fast and not {row.a, row.b} <= fast:
        what, limit, middle = "pairs of most GPUs", "directions", of_others
    if number < FEWEST or not _below(row.number or 0, middle, box.settings.limit(f"measure.{limit}")):
        return None
    message = f"{figure_text(box, row)}, median of {what} {quantity(middle, row.unit)}"
    return slow(row, message, middle, status=Status.WARN)


def above_pairs(box: Box, figures: Figures, row: Measurement) -> Judgement | None:
    """A latency of more than twice the median of all pairs, where nearly all are alike (sound ones within a fifth)."""
    percent = box.settings.limit("measure.directions")
    number, middle, near = _usual(figures, row.kind, None, row.tool, row.how, percent)
    if row.number is None or row.number <= 2 * middle or not _all_alike(number, near):
        return None
    message = f"{figure_text(box, row)}, median of all pairs {quantity(middle, row.unit)}"
    return slow(row, message, 2 * middle, status=Status.WARN)


@remembered()
def _usual(
    figures: Figures, kind: str, own: PairClass | None, tool: str, how: str, percent: float
) -> tuple[int, float, int]:
    """Of the figures of a class of pairs, of all where it is None: their number, their median, and how many are within
    so many percent of it."""
    of_all = (row for row in figures.of_kinds(kind) if row.a != row.b)
    every = of_all if own is None else figures.alike.get((kind, own), ())
    numbers = [row.number for row in every if row.number is not None and (row.tool, row.how) == (tool, how)]
    middle = median(numbers) if numbers else 0.0
    return len(numbers), middle, sum(abs(number - middle) <= middle * percent / 100 for number in numbers)


_FASTEST_PCIE_GBS = 64.0
"""Each way, of gen5 x16: what is faster crosses NVLinks, and most of those that are alike NVSwitches."""
_BRIDGED = (2, 4)
"""GPUs that an NVLink bridge joins; others beside it copy over PCIe (H200 NVL product brief, NVLink bridge)."""
_SEVERAL = 12
"""Both directions of the pairs of four GPUs."""


def _is_over_nvlinks(kind: str, gbs: float) -> bool:
    """Figures of both directions at once are their sum."""
    return gbs > _FASTEST_PCIE_GBS * (1 + kind.endswith("-both"))


def _all_alike(number: int, near: int, over_nvlinks: bool = False) -> bool:
    """Are three quarters of the figures, over PCIe more, near their median? One GPU of eight is in a quarter of all."""
    return number >= _SEVERAL and 4 * near > 3 * number - over_nvlinks


@remembered()
def _alike_with_all(figures: Figures, kind: str, tool: str, how: str, percent: float) -> tuple[AbstractSet[str], float]:
    """GPUs whose copies over NVLinks to every other of them are as fast as the fastest, where they are most of all and
    three or more, and the median of those copies in GB/s; none where GPUs are joined in groups, or some are not."""
    copies = {(row.a, row.b): row.number or 0.0 for row in figures.of_kinds(kind)
              if row.a != row.b and (row.tool, row.how) == (tool, how)}  # fmt: skip
    most = max(copies.values(), default=0.0)
    near = [pair for pair, number in copies.items() if not _below(number, most, percent)]
    fast, every = {id for pair in near for id in pair}, {id for pair in copies for id in pair}
    whole = len(near) == len(fast) * (len(fast) - 1) and len(fast) > max(2, len(every) / 2)
    middle = median(copies[pair] for pair in near) if whole else 0.0
    lone = len(every) - len(fast) == 1 and len(fast) not in _BRIDGED
    same = _is_over_nvlinks(kind, min(copies.values(), default=0)) or lone
    return (fast, middle) if same and _is_over_nvlinks(kind, middle) else (set(), 0.0)


def staged_in_a_socket(box: Box, figures: Figures, row: Measurement) -> list[Measurement]:
    """For copies through host memory between NUMA nodes: the same kind within one node.

    They are no slower across sockets on sound hosts: 10.0 against 9.2 to 9.7 GB/s on a DGX-1 with P100
    (uuudown/Tartan), 13 to 15 against 8 to 14 on a server of 2016 with K80 boards.
    """
    if _pci(box, row) != "SOC":
        return []
    return [each for each in figures.of_kinds(row.kind) if _pci(box, each) not in (None, "SOC")]


def _pci(box: Box, row: Measurement) -> PciClass | None:
    link = link_between(box, row.a, row.b)
    return None if link is None else link.pci


def _below(low: float, high: float, percent: float) -> bool:
    return low < high * (1 - percent / 100)


def unless_link_explains(box: Box, row: Measurement, judgement: Judgement | None) -> Judgement | None:
    """The judgement, or a skip where the copy is as fast as a link of fewer lanes or a lower generation allows."""
    expected, value = expected_figure(box, row), row.number or 0
    if expected is None or judgement is None or judgement.status is Status.PASS:
        return judgement
    line = _lanes(box)
    slowest = narrowest((hop for hop in _hops(box, row) if not isinstance(line(hop), Missing)), line)
    if not isinstance(slowest, tuple):
        return judgement
    hop, gbs = slowest
    if has_reference(box, row):
        reduced = _reduced(box, row, expected.value, gbs)
    else:
        by_path = derived(box, row, line)
        reduced = None if by_path is None else by_path.value
    if reduced is None or reduced >= expected.value:
        return judgement
    if value < reduced * expected.warn_below / 100:
        is_far = has_reference(box, row) or value < reduced * expected.far_below / 100
        return judgement if is_far else replace(judgement, status=Status.WARN)
    message = f"{figure_text(box, row)}, limited by link {hop}, which runs at gen{hop.max_gen} x{hop.width} at most"
    return skip("dependency-failed", f"see pcie.width, pcie.path or pcie.generation: {message}", *judgement.evidence)


def _hops(box: Box, row: Measurement) -> tuple[Hop, ...]:
    """The PCIe links that the copy crosses; none over NVLink."""
    one, other, link = device(box, row.a), device(box, row.b), link_between(box, row.a, row.b)
    functions = box.topology.functions
    if one is None or isinstance(one.path, Missing):
        return ()
    if not row.b:
        hops: tuple[Hop, ...] | Missing = hops_above(one.path, functions)
    elif other is None or link is None or link.nvlinks:
        return ()
    else:
        hops = hops_between(one, other, functions)
    return physical(rows(hops))


def _lanes(box: Box) -> LineRate:
    """GB/s with the lanes that a link has, or those under load where they are fewer, at the generation that both ends
    support."""

    def gbs(hop: Hop) -> float | Missing:
        loaded = under_load(box, hop.device, "link_width")
        widths = [width for width in (hop.width, loaded and loaded[0]) if isinstance(width, int)]
        return with_lanes(hop, min(widths, default=hop.width))

    return gbs


def _reduced(box: Box, row: Measurement, expected: float, gbs: float) -> float | None:
    """The reference machine's figure with a link that has ``gbs`` of the line rate that its links have."""
    generation, width = box.number("pcie.link_gen"), box.number("pcie.link_width")
    if generation is not None and width is not None:
        full = pcie_gbs(int(generation.value), int(width.value))
    else:
        slowest = narrowest(hop for hop in _hops(box, row) if not isinstance(hop.max_gbs, Missing))
        full = slowest[1] if isinstance(slowest, tuple) else gbs
    return None if isinstance(full, Missing) else expected * gbs / full
