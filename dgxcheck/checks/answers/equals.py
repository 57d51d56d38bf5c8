"""Which facts most devices of a group have: counted once per group, however many devices there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from dgxcheck.facts.missing import Missing

Facts = Mapping[str, object]


class Group:
    """Devices that are expected to have the same facts."""

    def __init__(self) -> None:
        self.members = 0
        self.answered: Counter[str] = Counter()
        """By path, how many of them have a value."""

    def add(self, facts: Facts) -> None:
        """Count a device."""
        self.members += 1
        self.answered.update(path for path, fact in facts.items() if not isinstance(fact, Missing))


def most_have(groups: Iterable[Group], path: str) -> bool:
    """Do at least half of the others have a value that one device of these groups has not?"""
    members = answered = 0
    for group in groups:
        members += group.members
        answered += group.answered[path]
    return members > 1 and 2 * answered >= members - 1
