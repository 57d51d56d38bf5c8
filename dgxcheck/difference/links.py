"""PCIe links that are narrower, wider, slower or faster than they were; NVLinks that are up on one side only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from dgxcheck.difference.matching import Matched
from dgxcheck.difference.model import Difference, Side, arrow, judged
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.topology import nvlinks as ends_of_nvlinks
from dgxcheck.topology.paths import Hop, hops_of


def pcie(old: Side, new: Side, devices: Matched) -> Iterator[Difference]:
    """Each link above a device of both sides; except a GPU's current generation, which drops when idle."""
    places = {pair.old.bdf: pair.new.bdf for pair in devices.devices if pair.old and pair.new}
    names = {pair.new.bdf: pair.new.name for pair in devices.devices if pair.new}
    old_gpus, gpus = ({device.bdf for device in side.topology.gpus} for side in (old, new))
    before = {places.get(device, device): hop for device, hop in _hops(old).items()}
    for device, hop in _hops(new).items():
        if (was := before.get(device)) is not None:
            yield from _link(was, hop, names.get(device, device), device in gpus or was.device in old_gpus)


def _hops(side: Side) -> dict[str, Hop]:
    """Links above GPUs and NICs by the device at their lower end; those of GPUs by NVML where no port is visible."""
    links = (Hop(port="", device=gpu.bdf, gen=gpu.link_gen, width=gpu.link_width, max_gen=gpu.max_link_gen,
                 max_width=gpu.max_link_width, skip_reason="") for gpu in rows(side.snapshot.gpu_pcie))  # fmt: skip
    hops = {hop.device: hop for hop in links} | hops_of(side.topology.devices, side.topology.functions)
    return {device: hop for device, hop in hops.items() if not hop.skip_reason}


def _link(old: Hop, new: Hop, name: str, gpu: bool) -> Iterator[Difference]:
    widths = [(old.width, new.width), (old.max_width, new.max_width)]
    gens = [(old.max_gen, new.max_gen), *([] if gpu else [(old.gen, new.gen)])]
    for what, spelling, words, pairs in (("link-width", "x{}", ("narrower", "wider"), widths),
                                         ("link-gen", "gen{}", ("slower", "faster"), gens)):  # fmt: skip
        for was, now in pairs:
            if isinstance(was, Missing) or isinstance(now, Missing) or was == now or not was or not now:
                continue
            link = f"link {new}" if new.port else "link"
            yield Difference(
                kind=judged(was, now, more_is_better=True), area="link", change="changed", device=name,
                bdf=new.device, what=what, old=was, new=now, unit="lanes" if what == "link-width" else "",
                message=f"{link} is {words[now > was]}: {arrow(spelling.format(was), spelling.format(now))}",
            )  # fmt: skip
            break


SWITCH, UNKNOWN = "NVSwitch", "?"
Ends = tuple[str, str]


def nvlinks(old: Side, new: Side, devices: Matched) -> Iterator[Difference]:
    """Every pair of GPUs of both sides; a link counts if both of its ends report it up.

    A baseboard wires its sockets: of GPUs that changed places those in the same place are compared where that explains
    more.
    """
    boards = {pair.old.bdf: pair.new.bdf for pair in devices.gpus if pair.old and pair.new}
    places = {bdf: bdf for bdf in boards}
    ways = [boards, *([places] if boards != places and {*boards} == {*boards.values()} else [])]
    yield from min(([*_nvlinks(old, new, bdfs)] for bdfs in ways), key=len)


def _nvlinks(old: Side, new: Side, bdfs: Mapping[str | None, str | None]) -> Iterator[Difference]:
    before, after = _counted(old, bdfs), _counted(new, {place: place for place in bdfs.values()})
    if before is None or after is None:
        return
    names = {device.bdf: device.name for device in new.topology.gpus}
    order = {device.bdf: place for place, device in enumerate(new.topology.gpus)}
    unknown_ends = {a for a, b in (*before, *after) if b == UNKNOWN}
    for ends in sorted({*before, *after}, key=lambda pair: [order.get(end, len(order)) for end in pair]):
        was, now = before.get(ends, 0), after.get(ends, 0)
        if was == now or unknown_ends & {*ends}:
            continue
        a, b = (names.get(end, end) for end in ends)
        yield Difference(
            kind=judged(was, now, more_is_better=True), area="nvlink", change="changed", device=f"{a} - {b}",
            bdf=ends[0], what="nvlinks", old=was, new=now, unit="NVLinks",
            message=f"NVLinks up: {arrow(was, now)}",
        )  # fmt: skip


def _counted(side: Side, bdfs: Mapping[str | None, str | None]) -> dict[Ends, int] | None:
    """Links up per pair of GPUs that both sides have, by bus ids of the new side; None where unknown."""
    rows = side.snapshot.nvlink
    listed = {device.bdf for device in side.topology.gpus if device.index is not None}
    if isinstance(rows, Missing) or not listed:
        return None
    ways: Counter[Ends] = Counter()
    counts: dict[Ends, int] = {(now, UNKNOWN): 0 for was, now in bdfs.items() if now and was not in listed}
    for row in rows:
        if (bdf := bdfs.get(row.bdf)) is None:
            continue
        if isinstance(row.up, Missing):
            counts[bdf, UNKNOWN] = 0
        elif row.up and row.remote_type == ends_of_nvlinks.SWITCH:
            counts[bdf, SWITCH] = counts.get((bdf, SWITCH), 0) + 1
        elif row.up and not isinstance(row.remote_bdf, Missing) and (far := bdfs.get(row.remote_bdf)):
            ways[bdf, far] += 1
    for a, b in ways:
        ends = (min(a, b), max(a, b))
        counts[ends] = min(ways[a, b], ways[b, a])
    return counts
