"""Plugs that are in each other's places: the fewest moves that put each where it belongs."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.fabric.model import ANY, Fabric, Port
from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import gathered


class Move(Record, kw_only=False):
    """One plug: that of the cable whose other end is at ``of``."""

    of: Port
    source: Port
    target: Port
    """With ``ANY`` for its number where only the switch is known."""


def exchanges(fabric: Fabric, homes: Mapping[Port, Port]) -> list[tuple[Move, ...]]:
    """Moves that belong together: two plugs that have each other's place, a ring of more, or one alone.

    ``homes`` are by the other end of the cable; of what has none nothing is moved. A home whose port is not known is
    any port of that switch: first that of a plug which belongs where this one is.
    """
    places = {of: place for of in homes if (place := fabric.far(of)) is not None}
    wrong = {of: homes[of] for of, place in places.items() if homes[of] not in (place, (place[0], ANY))}
    at = {places[of]: of for of in wrong}
    on = gathered(((places[of][0], home[0]), of) for of, home in wrong.items())
    found: list[tuple[Move, ...]] = []
    left = dict.fromkeys(wrong)
    for of in wrong:
        if of not in left:
            continue
        ring = _ring(of, places, wrong, at, on, left)
        for each in ring:
            del left[each]
        turned = [*ring[1:], ring[0]]
        found.append(
            tuple(Move(each, places[each], wrong[each] if len(ring) == 1 else places[after])
                  for each, after in zip(ring, turned, strict=True))
        )  # fmt: skip
    return found


def _ring(
    start: Port, places: Mapping[Port, Port], wrong: Mapping[Port, Port], at: Mapping[Port, Port],
    on: Mapping[tuple[str, str], list[Port]], left: Mapping[Port, None],
) -> list[Port]:  # fmt: skip
    """Each plug belongs where the next one is, and the last where the first is; the first alone where there is none."""
    ring = [start]
    while True:
        home, last = wrong[ring[-1]], places[ring[-1]]
        if len(ring) > 1 and home == (places[start][0], ANY):
            return ring
        after = at.get(home) if home[1] != ANY else None
        if home[1] == ANY:
            swapped = [each for each in on.get((home[0], last[0]), ()) if each in left and each not in ring]
            after = swapped[0] if swapped else None
            if after is not None and len(ring) == 1:
                return [start, after]
        if after == start:
            return ring
        if after is None or after in ring or after not in left:
            return [start]
        ring.append(after)
