"""Where each NVLink of a GPU leads, also while it is down and NVML names no device at its other end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from statistics import multimode

from dgxcheck.components.component import Component
from dgxcheck.components.locate import has_nvswitches, is_nvswitch, nvlinks_between
from dgxcheck.facts.missing import Gap, Missing, rows
from dgxcheck.facts.nvlink import NvLink
from dgxcheck.topology.model import Device, Machine
from dgxcheck.topology.nvlinks import SWITCH


def far_ends(machine: Machine, gpu: Device) -> Mapping[int, str]:
    """By link position the bus id of the device at the other end: as NVML has it, else the only one that lacks a link.

    A peer lacks one where it reports more links to this GPU than this GPU reports to it; an NVSwitch, where this GPU
    has fewer links to it than most GPUs have, or no GPU has any.
    """
    rows = _rows(machine)
    own = [row for row in rows if row.bdf == gpu.bdf]
    known = {row.link: row.remote_bdf for row in own if isinstance(row.remote_bdf, str)}
    unknown = [row.link for row in own if row.link not in known and row.up is False]
    lacking = _lacking(machine, rows, gpu, Counter(known.values())) if unknown else []
    return known | (dict.fromkeys(unknown, lacking[0]) if len(lacking) == 1 else {})


def missing_nvswitches(machine: Machine) -> tuple[str, ...]:
    """Bus ids of NVSwitches to which NVLinks lead and that are not on PCI; empty where no NVSwitch is on PCI.

    NVSwitches that another host manages, or from Blackwell on, are never on PCI; a CPU can be the peer of a link too.
    """
    known = {gpu.bdf for gpu in machine.topology.gpus} | {*machine.topology.functions}
    ends = {
        row.remote_bdf
        for row in _rows(machine)
        if row.up is True and isinstance(row.remote_bdf, str) and (row.remote_type == SWITCH or _untold(row))
    }
    return tuple(sorted(ends - known)) if has_nvswitches(machine) else ()


def _untold(row: NvLink) -> bool:
    """Drivers before R470 do not tell the kind of a link's peer."""
    return isinstance(row.remote_type, Missing) and row.remote_type.gap is Gap.UNSUPPORTED


def link_positions(machine: Machine, gpu: Device) -> tuple[int, ...]:
    """The NVLink positions of a GPU that NVML reports; empty where it reports none."""
    return tuple(row.link for row in _rows(machine) if row.bdf == gpu.bdf)


def nvlinks_of(machine: Machine, gpu: Device, links: Collection[int] | None = None) -> Iterator[Component]:
    """What these links of a GPU, or all of them, have at their far ends: the NVLinks of the pair, or the NVSwitch.

    An NVSwitch is among them only where all of these links lead to it.
    """
    ends = {end for link, end in far_ends(machine, gpu).items() if links is None or link in links}
    for peer in machine.topology.gpus:
        if peer.bdf in ends:
            yield nvlinks_between(machine, gpu, peer)
    if links and len(ends) == 1:
        function = machine.topology.functions.get(bdf := ends.pop())
        if (function is not None and is_nvswitch(function)) or bdf in missing_nvswitches(machine):
            yield Component(kind="nvswitch", name=bdf, bdf=bdf)


def _lacking(machine: Machine, rows: Collection[NvLink], gpu: Device, own: Counter[str]) -> list[str]:
    to_each = {
        other.bdf: Counter(row.remote_bdf for row in rows if row.bdf == other.bdf and isinstance(row.remote_bdf, str))
        for other in machine.topology.gpus
        if other.bdf != gpu.bdf
    }
    reached = {end for counts in to_each.values() for end in counts}
    # each half of a DGX-2 has NVSwitches of its own: GPUs that share one with this GPU say what is usual
    near = {bdf: counts for bdf, counts in to_each.items() if counts.keys() & own.keys()}
    to_switch = near or to_each
    ends = {end for counts in to_switch.values() for end in counts} - {each.bdf for each in machine.topology.gpus}
    usual = {end: max(multimode(counts[end] for counts in to_switch.values())) for end in ends}
    theirs = Counter(row.bdf for row in rows if row.remote_bdf == gpu.bdf)
    lacking = sorted(end for end, links in {**usual, **theirs}.items() if links > own[end])
    return lacking or _idle_nvswitches(machine, reached | own.keys())


def _idle_nvswitches(machine: Machine, ends: Collection[str]) -> list[str]:
    """NVSwitches on PCI to which no NVLink leads while NVLinks lead to others: all of its links are down."""
    switches = {bdf for bdf, function in machine.topology.functions.items() if is_nvswitch(function)}
    return sorted(switches - {*ends}) if switches & {*ends} else []


def _rows(machine: Machine) -> tuple[NvLink, ...]:
    return rows(machine.snapshot.nvlink)
