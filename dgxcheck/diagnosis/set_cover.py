"""The fewest components that explain findings, of those that each could come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.diagnosis.component import Component, Key

GONE = ("gpu.count", "gpu.lost", "baseline.drift")
"""About a device as a whole: what is wrong with a part of it explains them."""
LOGGED = "kernel."
"""The log says that something was wrong at a device, and less of where."""
Suspected = Mapping[str, Sequence[Component]]
"""By key of the finding."""


def cover(open_to: Suspected) -> dict[Component, list[str]]:
    """The fewest components that explain all, greedily; those that nothing is left to explain have none."""
    found: dict[Component, list[str]] = {}
    left = {key: those for key, those in open_to.items() if those}
    while left:
        component = _best(left)
        found[component] = [key for key, those in left.items() if _explains(component, those, key.startswith(GONE))]
        left = {key: those for key, those in left.items() if key not in found[component]}
    return found


def _explains(component: Component, components: Sequence[Component], whole: bool) -> bool:
    """The component is among the suspects, or, where the ``whole`` device is gone, the one of which it is a part."""
    return any(each.key == component.key or (whole and each.key == (*component.key[:2], "")) for each in components)


def _best(left: Suspected) -> Component:
    """That which explains the most; of equal ones the likeliest for its findings, one that names a part, the first."""
    candidates: dict[Key, Component] = {}
    for those in left.values():
        for component in those:
            candidates.setdefault(component.key, component)

    def rank(component: Component) -> tuple[int, int, int, Key]:
        mine = [key for key, those in left.items() if _explains(component, those, key.startswith(GONE))]
        places = [_place(component, left[key]) for key in mine if not key.startswith(LOGGED)]
        return -len(mine), sum(places), 0 if component.part else 1, component.key

    return min(candidates.values(), key=rank)


def _place(component: Component, components: Sequence[Component]) -> int:
    return next(place for place, each in enumerate(components) if _explains(component, [each], True))
