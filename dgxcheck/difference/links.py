"""PCIe links that are narrower, wider, slower or faster than they were."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.difference.matching import Matched
from dgxcheck.difference.model import Difference, Side, arrow, judged
from dgxcheck.facts.missing import Missing
from dgxcheck.topology.paths import Hop, hops_above


def differences(old: Side, new: Side, devices: Matched) -> Iterator[Difference]:
    """Each link above a device of both sides; except a GPU's current generation, which drops when idle."""
    places = {pair.old.bdf: pair.new.bdf for pair in devices.devices if pair.old and pair.new}
    names = {pair.new.bdf: pair.new.name for pair in devices.devices if pair.new}
    old_gpus, gpus = ({device.bdf for device in side.topology.gpus} for side in (old, new))
    before = {places.get(device, device): hop for device, hop in _hops(old).items()}
    for device, hop in _hops(new).items():
        if (was := before.get(device)) is not None:
            yield from _link(was, hop, names.get(device, device), device in gpus or was.device in old_gpus)


def _hops(side: Side) -> dict[str, Hop]:
    """Links above GPUs and NICs by the device at their lower end."""
    hops: dict[str, Hop] = {}
    for device in side.topology.devices:
        if not isinstance(device.path, Missing):
            hops |= {hop.device: hop for hop in hops_above(device.path, side.topology.functions) if not hop.skip_reason}
    return hops


def _link(old: Hop, new: Hop, name: str, gpu: bool) -> Iterator[Difference]:
    widths = [(old.width, new.width), (old.max_width, new.max_width)]
    gens = [(old.max_gen, new.max_gen), *([] if gpu else [(old.gen, new.gen)])]
    for what, spelling, pairs in (("link-width", "x{}", widths), ("link-gen", "gen{}", gens)):
        for was, now in pairs:
            if isinstance(was, Missing) or isinstance(now, Missing) or was == now or not was or not now:
                continue
            words = {"link-width": ("narrower", "wider"), "link-gen": ("slower", "faster")}[what][now > was]
            yield Difference(
                kind=judged(was, now, more_is_better=True), area="link", change="changed", device=name,
                bdf=new.device, what=what, old=was, new=now, unit="lanes" if what == "link-width" else "",
                message=f"link {new} is {words}: {arrow(spelling.format(was), spelling.format(now))}",
            )  # fmt: skip
            break
