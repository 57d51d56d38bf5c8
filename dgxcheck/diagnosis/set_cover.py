"""The fewest components that explain findings, of those that each finding could come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dgxcheck.components.component import Component, Key

Candidates = Mapping[str, Sequence[Component]]
"""By key of the finding, the likeliest component first."""
Explains = Callable[[Component, str], bool]
"""Does the component explain the finding of that key?"""


def set_cover(candidates: Candidates, explains: Explains, imprecise: frozenset[str]) -> dict[Component, list[str]]:
    """Components with the keys that each explains, greedily the one that explains most first.

    Of equal ones the likeliest for its findings, then one that names a part, then the first by key. ``imprecise``
    findings (lines of a log name a device, not what of it is wrong) do not count in how likely a component is.
    """
    causes: dict[Component, list[str]] = {}
    open_keys = {key: components for key, components in candidates.items() if components}
    while open_keys:
        best = _best(open_keys, explains, imprecise)
        causes[best] = [key for key in open_keys if explains(best, key)]
        open_keys = {key: components for key, components in open_keys.items() if key not in causes[best]}
    return causes


def _best(candidates: Candidates, explains: Explains, imprecise: frozenset[str]) -> Component:
    distinct: dict[Key, Component] = {}
    for components in candidates.values():
        for component in components:
            distinct.setdefault(component.key, component)

    def rank(component: Component) -> tuple[int, int, int, Key]:
        explained = [key for key in candidates if explains(component, key)]
        likelihood = sum(_place(component, candidates[key]) for key in explained if key not in imprecise)
        return -len(explained), likelihood, 0 if component.part else 1, component.key

    return min(distinct.values(), key=rank)


def _place(component: Component, candidates: Sequence[Component]) -> int:
    """How many likelier components a finding has; 0 where it is explained by containment alone."""
    keys = [candidate.key for candidate in candidates]
    return keys.index(component.key) if component.key in keys else 0
