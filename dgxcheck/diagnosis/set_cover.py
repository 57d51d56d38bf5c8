"""The fewest components that explain all findings: https://en.wikipedia.org/wiki/Set_cover_problem, greedily."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from dgxcheck.components.component import Component, Key

Candidates = Mapping[str, Sequence[Component]]
"""By key of the finding, the likeliest component first."""
Explainers = Mapping[str, Collection[Key]]
"""By key of the finding, the components that explain it: its candidates, and others by containment."""
_Rank = tuple[int, int, int, int, Key]


def set_cover(candidates: Candidates, explainers: Explainers, imprecise: frozenset[str]) -> dict[Component, list[str]]:
    """Components with the keys that each explains, greedily the one that explains most first.

    Of equal ones the likeliest for its findings, then one that names a part, then the first by key. ``imprecise``
    findings (lines of a log name a device, not what of it is wrong) count in how likely a component is only where all
    else is equal.
    """
    cover = _Cover(candidates, explainers, imprecise)
    causes: dict[Component, list[str]] = {}
    while cover.ranks:
        component, keys = cover.take_best()
        causes[component] = keys
    return causes


class _Cover:
    """Findings that no component explains yet, and how good each component is; ranks change where findings go."""

    def __init__(self, candidates: Candidates, explainers: Explainers, imprecise: frozenset[str]) -> None:
        self._open = {key for key, components in candidates.items() if components}
        self._imprecise = imprecise
        self._named: dict[Key, dict[str, Component]] = {}
        self._place: dict[tuple[Key, str], int] = {}
        for key, components in candidates.items():
            for place, component in enumerate(components):
                self._named.setdefault(component.key, {}).setdefault(key, component)
                self._place.setdefault((component.key, key), place)
        self._explainers = {key: explainers[key] for key in self._open}
        self._explained: dict[Key, list[str]] = {one: [] for one in self._named}
        for key in candidates:
            for one in self._explainers.get(key, ()):
                self._explained[one].append(key)
        self.ranks: dict[Key, _Rank] = {one: self._rank(one) for one in self._named}

    def take_best(self) -> tuple[Component, list[str]]:
        """The best component, and the findings that it explains, which are no longer open."""
        best = min(self.ranks.values())[-1]
        component = next(component for key, component in self._named[best].items() if key in self._open)
        keys = [key for key in self._explained[best] if key in self._open]
        self._open.difference_update(keys)
        for one in {one for key in keys for one in self._explainers[key]}:
            if self._open.isdisjoint(self._named[one]):
                self.ranks.pop(one, None)
            else:
                self.ranks[one] = self._rank(one)
        return component, keys

    def _rank(self, one: Key) -> _Rank:
        """The less the better; a finding that is explained by containment alone has no likelier component."""
        explained = [key for key in self._explained[one] if key in self._open]
        places = {key: self._place.get((one, key), 0) for key in explained}
        precise = sum(place for key, place in places.items() if key not in self._imprecise)
        part = next(iter(self._named[one].values())).part
        return -len(explained), precise, 0 if part else 1, sum(places.values()), one
