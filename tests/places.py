"""All other places of one kind in a box, and the moves to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moving import Move
from wired import End, Wired

Moves = Iterator[tuple[str, Move]]
"""Each with the name of the new place."""


def to_gpus(box: Wired, at: Sequence[str]) -> Moves:
    """From one GPU to every other; what is below its switch goes below the switch of the other."""
    for gpu in box.gpus:
        if gpu != at[0]:
            yield box.called(gpu), one_for_another(box, at[0], gpu)


def to_hcas(box: Wired, at: Sequence[str]) -> Moves:
    """From one adapter to every other, with the GPUs below its switch."""
    for hca in box.hcas:
        if hca != at[0]:
            yield box.called(hca), one_for_another(box, at[0], hca)


def to_switches(box: Wired, at: Sequence[str]) -> Moves:
    """From one switch to every other, with all that is below it."""
    for switch in box.switches():
        if at[0] not in box.behind(switch):
            yield f"switch {switch}", one_for_another(box, at[0], box.behind(switch)[0])


def to_buses(box: Wired, at: Sequence[str]) -> Moves:
    """From one root bus to every other with as many GPUs and adapters, with all of them."""
    old = box.path(at[0])[0]
    for bus in dict.fromkeys(box.path(gpu)[0] for gpu in box.gpus):
        if bus != old:
            devices = dict(zip(box.behind(old), box.behind(bus), strict=True))
            yield bus, Move(box, devices, [two for each in devices.items() for two in aligned(box, *each)])


def to_ports(box: Wired, at: Sequence[str]) -> Moves:
    """From the port above a GPU to that above every other GPU or adapter."""
    yield from ((f"port above {place}", move) for place, move in to_gpus(box, at))
    for hca in box.hcas:
        yield f"port above {box.called(hca)}", Move(box, {}, aligned(box, at[0], hca))


def to_nvlinks(box: Wired, at: Sequence[str]) -> Moves:
    """From the NVLinks of two GPUs to those of every other two; each of them may have a third that it is joined to."""
    for pair in box.joined():
        if {*pair} != {*at[:2]}:
            yield between(box, pair), pair_for_another(box, at, pair)


def to_ends(box: Wired, at: Sequence[str]) -> Moves:
    """The same of what one end of a link sees: by turns at the first of two GPUs and at the second."""
    for number, pair in enumerate(box.joined()):
        if {*pair} != {*at[:2]}:
            near, far = pair if number % 2 else pair[::-1]
            yield f"{box.called(near)} of {between(box, pair)}", pair_for_another(box, at, (near, far))


def to_wrong_peers(box: Wired, at: Sequence[str]) -> Moves:
    """A link of the first of two GPUs that leads elsewhere than to the second: the same of every other two."""
    for pair in box.joined():
        if {*pair} != {*at[:2]}:
            old, new = ([*two[:2], next(gpu for gpu in box.gpus if gpu not in two)] for two in (at, pair))
            move = pair_for_another(box, at, pair)
            yield between(box, pair), Move(box, dict(zip(old, new, strict=True)), ends=move.ends)


def between(box: Wired, pair: Sequence[str]) -> str:
    return " - ".join(map(box.called, pair))


def one_for_another(box: Wired, old: str, new: str) -> Move:
    """A GPU or adapter, what is beside it below its switch, and the bridges above them."""
    devices = {old: new, **dict(zip(beside(box, old), beside(box, new), strict=True))}
    bridges = [two for each in devices.items() for two in aligned(box, *each)]
    leading = ([end for end, far in sorted(box.ends.items()) if far == each] for each in (old, new))
    return Move(box, devices, bridges, dict(zip(*leading, strict=True)))


def pair_for_another(box: Wired, old: Sequence[str], new: Sequence[str]) -> Move:
    """Two GPUs and the NVLinks between them; where there are fewer, the last for all that are too many."""
    a, b, c, d = *old[:2], *new
    ends: dict[End, End] = {}
    for before, now in ((box.links(a, b), box.links(c, d)), (box.links(b, a), box.links(d, c))):
        ends |= {end: now[min(number, len(now) - 1)] for number, end in enumerate(before)}
    devices = {a: c, b: d}
    for third, near in zip(old[2:], new, strict=False):
        devices[third] = next(gpu for gpu in box.gpus if gpu not in devices.values() and box.links(near, gpu))
    return Move(box, devices, (), ends)


def beside(box: Wired, bdf: str) -> list[str]:
    return [each for each in box.behind(box.path(bdf)[-3]) if each != bdf]


def aligned(box: Wired, old: str, new: str) -> Iterator[tuple[str, str]]:
    """Two paths from their ends up, as far as both go, and the root buses."""
    (bus, *above), (other, *there) = box.path(old), box.path(new)
    yield from zip(reversed(above), reversed(there), strict=False)
    yield bus, other
